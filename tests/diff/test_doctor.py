"""Each thing that can be wrong gives its finding, names what it is about, and a healthy cluster gives none."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.diff.doctor.diagnose import diagnose
from reconciler.model.cluster import (
    ALTER_LOG_DIRS_RATE,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_REPLICAS,
    UNCLEAN_ELECTION,
    Cluster,
    LogDir,
)
from reconciler.model.desired import Desired, DesiredCluster, TopicPolicy
from reconciler.model.diagnosis import Diagnosis, Finding, KnownRun, Whose
from reconciler.model.lock import LOCK_GROUP
from reconciler.model.problem import Problem, Severity
from reconciler.model.sample import ReplicaOnDisk
from reconciler.model.starting import Start
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import (
    CoordinatedTransaction,
    DiskReport,
    Features,
    LateTransactions,
    LogDirState,
    OpenTransaction,
    Rights,
    Vitals,
)
from reconciler.model.words import size
from reconciler.workflow.doctor import examine

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TWO = {"min.insync.replicas": "2"}


def seen(cluster: Cluster) -> Vitals:
    return examine(SimulatedAdmin(cluster))


def findings_of(vitals: Vitals, *known: KnownRun) -> dict[str, Finding]:
    found = diagnose(vitals, known)
    assert len({one.code for one in found.findings}) == len(found.findings), found.findings
    assert all(one.message and one.next for one in found.findings), found.findings
    return {one.code: one for one in found.findings}


def only(vitals: Vitals, code: str, *known: KnownRun) -> Finding:
    found = findings_of(vitals, *known)
    assert list(found) == [code], found
    assert found[code].next
    return found[code]


def leaderless(cluster: Cluster, topic: str, **fields: tuple[int, ...] | None) -> Cluster:
    left = [replace(one, leader=None, **fields) for one in cluster.topics[topic].partitions]  # type: ignore[arg-type]
    return replace(cluster, topics={**cluster.topics, topic: replace(cluster.topics[topic], partitions=tuple(left))})


def test_a_healthy_cluster_has_no_findings() -> None:
    found = diagnose(seen(small_cluster("a-0: 1,2,3 size 5", "b-0: 4,5,6", configs={"a": TWO})))
    assert found.findings == ()
    assert (found.is_healthy, found.safe_to_stop, dict(found.blocking)) == (True, (1, 2, 3, 4, 5, 6), {})
    assert (found.kafka_version, found.brokers, found.topics, found.partitions) == ("4.1", 6, 2, 2)
    assert all(one.is_granted for one in found.rights or ())


# Partitions


def test_partitions_without_a_leader_are_one_finding_for_those_that_can_lead_them() -> None:
    cluster = leaderless(small_cluster("a-0: 1,2 isr 2", "a-1: 2,1 isr 2", "b-0: 3,4", fenced=[2]), "a")
    finding = findings_of(seen(cluster))["KR640"]
    assert (finding.severity, finding.brokers, finding.partitions) == (Severity.ERROR, (2,), (A0, A1))
    assert finding.next == "start broker 2: only it has all records; an unclean election would lose some"
    assert diagnose(seen(cluster)).start == (Start(2, leads=(A0, A1), can_lead=(A0, A1), opens=(A0, A1)),)
    alive = findings_of(Vitals(leaderless(small_cluster("a-0: 1,2 isr 2"), "a")))["KR640"]
    assert alive.next.startswith(
        "see why broker 2 does not lead, though alive: its log dirs: only it has all records; "
    )


def test_after_an_outage_only_those_are_to_be_started_that_have_every_acknowledged_record() -> None:
    cluster = small_cluster("a-0: 1,2,3", "a-1: 3,2,1", brokers=(1, 2, 3), fenced=(1, 2, 3), configs={"a": TWO})
    found = diagnose(Vitals(leaderless(cluster, "a", isr=(), elr=(1, 2), last_known_elr=(2,))))
    (offline,) = (one for one in found.findings if one.code == "KR640")
    assert (offline.brokers, offline.partitions) == ((2, 1), (A0, A1))
    assert offline.next == (
        "start brokers 2, 1 (2 led last): only they have all records; an unclean election would lose some"
    )
    assert found.start == (Start(2, leads=(A0, A1), can_lead=(A0, A1)), Start(1, can_lead=(A0, A1), opens=(A0, A1)))


@pytest.mark.parametrize(
    ("elr", "last", "brokers", "words"),
    [
        ((), (2,), (2,), "start broker 2: it led last, and Kafka elects it by itself; those that had "),
        ((), (), (1, 2, 3), "start brokers 1, 2, 3: which of them has all records is not known; with "),
        (None, None, (1, 2, 3), "start brokers 1, 2, 3: which of them has all records is not known (the ELR"),
    ],
)
def test_where_nobody_is_known_to_have_all_records_that_is_said(
    elr: tuple[int, ...] | None, last: tuple[int, ...] | None, brokers: tuple[int, ...], words: str
) -> None:
    cluster = small_cluster("a-0: 1,2,3", brokers=(1, 2, 3), fenced=(1, 2, 3))
    found = diagnose(Vitals(leaderless(cluster, "a", isr=(), elr=elr, last_known_elr=last)))
    (offline,) = (one for one in found.findings if one.code == "KR640")
    assert (offline.brokers, offline.next[: len(words)], found.start) == (brokers, words, ())


@pytest.mark.parametrize(("topic", "of_brokers", "is_told"), [(None, "true", True), ("false", "true", False)])
def test_where_kafka_would_elect_uncleanly_by_itself_the_others_must_wait(
    topic: str | None, of_brokers: str, *, is_told: bool
) -> None:
    configs = {"a": {UNCLEAN_ELECTION: topic}} if topic else {}
    cluster = leaderless(small_cluster("a-0: 1,2,3", fenced=[1], configs=configs), "a", isr=(), elr=(1,))
    finding = findings_of(Vitals(cluster, settings={4: {UNCLEAN_ELECTION: of_brokers}}))["KR640"]
    assert ("start no other that holds them before" in finding.next) is is_told


def test_what_is_under_min_isr_names_who_is_missing() -> None:
    cluster = small_cluster("a-0: 1,2,3 isr 1", "a-1: 1,2,3 isr 1,3", "b-0: 1,2,3 isr 1", configs={"a": TWO})
    (finding,) = [one for one in diagnose(Vitals(cluster)).findings if one.code == "KR641"]
    assert (finding.severity, finding.brokers, finding.partitions) == (Severity.ERROR, (2, 3), (A0,))
    assert finding.message == "1 partition under min ISR (brokers 2, 3 not in sync), closed to acks=all: a-0"
    assert finding.next


def test_each_broker_with_lagging_followers_is_told_with_bytes_where_log_dirs_tell_them() -> None:
    cluster = small_cluster("a-0: 1,2,3 isr 1,3", "a-1: 1,2,3 isr 1,3")
    replicas = [ReplicaOnDisk(A0, 1, "/d1", 100), ReplicaOnDisk(A0, 2, "/d1", 40, 3), ReplicaOnDisk(A1, 1, "/d1", 9)]
    finding = only(Vitals(cluster, disks=DiskReport((), tuple(replicas))), "KR642")
    assert (finding.severity, finding.brokers, finding.partitions) == (Severity.WARNING, (2,), (A0, A1))
    assert (finding.bytes_behind, finding.records_behind) == (60 + 9, 3)
    assert only(Vitals(cluster), "KR642").bytes_behind is None


def test_a_replica_that_a_move_only_brings_is_not_sick() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2,3 size 1000000000"))
    admin.reassign({A0: (2, 3, 4)})
    run = KnownRun("51d0c2aa", is_open=True, began="then", targets={A0: frozenset({(2, 3, 4)})})
    found = diagnose(replace(examine(admin), locked_by="apply"), (run,))
    assert [one.code for one in found.findings] == ["KR663"]


def test_min_isr_is_that_of_the_brokers_where_the_topic_has_none() -> None:
    cluster = small_cluster("a-0: 1,2,3 isr 1,2", rates=dict.fromkeys((1, 2, 3), TWO))
    found = diagnose(seen(cluster))
    assert (found.safe_to_stop, list(found.blocking)) == ((3, 4, 5, 6), [1, 2])
    static = diagnose(Vitals(small_cluster("a-0: 1,2,3 isr 1,2"), settings={1: TWO, 2: TWO}))
    assert (static.safe_to_stop, list(static.blocking)) == ((3, 4, 5, 6), [1, 2])


def test_strays_are_replicas_on_disk_that_metadata_does_not_assign_there() -> None:
    vitals = seen(small_cluster("a-0: 1,2,3 size 5"))
    assert vitals.disks is not None
    strays = (ReplicaOnDisk(A0, 4, "/d1", 50), ReplicaOnDisk(TopicPartition("gone", 0), 4, "/d2", 8))
    hidden = ReplicaOnDisk(TopicPartition("hidden", 0), 4, "/d2", 1)
    future = ReplicaOnDisk(A0, 1, "/d2", 2, 12, is_future=True)
    disks = replace(vitals.disks, replicas=(*vitals.disks.replicas, *strays, hidden, future))
    rights = replace(vitals.rights or Rights(), hidden=frozenset({"hidden"}))
    found = findings_of(replace(vitals, disks=disks, rights=rights))
    stray, moving = found["KR680"], found["KR681"]
    assert (stray.brokers, stray.partitions, stray.bytes_on_disk) == ((4,), (A0, TopicPartition("gone", 0)), 58)
    assert (moving.severity, moving.brokers, moving.partitions, moving.records_behind) == (
        Severity.NOTE,
        (1,),
        (A0,),
        12,
    )
    assert "kafka-log-dirs --describe" in moving.next


# Brokers


def test_a_dead_broker_is_an_error_with_all_that_it_holds_and_a_warning_with_nothing() -> None:
    cluster = small_cluster("a-0: 1,2,3 isr 1,2", "a-1: 3,1,2 isr 1,2", fenced=[3, 6])
    found = findings_of(seen(cluster))
    assert sorted(found) == ["KR650", "KR651"]
    assert (found["KR650"].brokers, found["KR650"].partitions) == ((3,), (A0, A1))
    assert found["KR650"].next == (
        "start it; if it will not come back, declare it draining and plan: its replicas are made elsewhere"
    )
    assert (found["KR651"].severity, found["KR651"].brokers) == (Severity.WARNING, (6,))


def test_a_broker_that_no_one_knows_any_more_is_told_where_it_holds_replicas() -> None:
    finding = findings_of(seen(small_cluster("a-0: 1,9 isr 1", brokers=(1, 2))))["KR650"]
    assert "broker 9 is not known to the cluster and holds 1 replica" in finding.message


def test_an_offline_log_dir_is_an_error_although_its_broker_lives() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2,3 size 5"))
    admin.fail_log_dir(2, "/d1")
    found = findings_of(examine(admin))
    assert "log dir /d1 of broker 2 is offline (KAFKA_STORAGE_ERROR)" in found["KR652"].message
    snapshot = small_cluster("a-0: 1,2,3")
    broken = replace(snapshot.brokers[2], log_dirs=(LogDir("/d1", is_offline=True),))
    finding = only(Vitals(replace(snapshot, brokers={**snapshot.brokers, 2: broken})), "KR652")
    assert finding.brokers == (2,)
    assert "log dir /d1 of broker 2 is offline (offline when the snapshot was taken)" in finding.message


@pytest.mark.parametrize(("free", "is_named"), [(600_000, True), (5_999_999, True), (6_000_000, False), (-1, True)])
def test_a_disk_that_is_nearly_full_is_named_live_and_of_a_snapshot(free: int, *, is_named: bool) -> None:
    before = small_cluster("a-0: 1,2,3")
    full = replace(before.brokers[2], log_dirs=(LogDir("/d1", 60_000_000, free),))
    cluster = replace(before, brokers={**before.brokers, 2: full})
    for vitals in (examine(SimulatedAdmin(cluster)), Vitals(cluster)):
        found = findings_of(vitals)
        assert ("KR666" in found) == is_named
        if is_named:
            assert found["KR666"].brokers == (2,)
            assert f"log dir /d1 of broker 2 has {size(max(0, free))} of 57.2 MiB left" in found["KR666"].message
    offline = replace(full, log_dirs=(LogDir("/d1", 60_000_000, 0, is_offline=True),))
    admin = SimulatedAdmin(replace(before, brokers={**before.brokers, 2: offline}))
    assert "KR666" not in findings_of(examine(admin))


def test_a_cordoned_log_dir_and_a_silent_broker_are_told() -> None:
    disks = DiskReport((LogDirState(1, "/d1", is_cordoned=True),), (), silent=(2,))
    found = findings_of(Vitals(small_cluster("a-0: 1,2,3"), disks=disks))
    assert {code: one.brokers for code, one in found.items()} == {"KR654": (2,), "KR655": (1,)}
    assert found["KR655"].message.startswith("log dir /d1 of broker 1 is cordoned (KIP-1066): ")


@pytest.mark.parametrize(
    ("racks", "code", "brokers"),
    [
        ({1: "a", 2: None, 3: "c"}, "KR653", (2,)),
        ({1: None, 2: None, 3: None}, "KR656", ()),
        ({1: "a", 2: "a", 3: "a"}, "KR656", ()),
    ],
)
def test_racks_that_cannot_keep_replicas_apart_are_told(
    racks: dict[int, str | None], code: str, brokers: tuple[int, ...]
) -> None:
    cluster = small_cluster("a-0: 1,2,3", brokers=(1, 2, 3))
    known = {one.id: replace(one, rack=racks[one.id]) for one in cluster.brokers.values()}
    assert only(Vitals(replace(cluster, brokers=known)), code).brokers == brokers


def test_leaders_that_kafka_will_elect_by_itself_are_named() -> None:
    cluster = small_cluster("a-0: 1,2,3 leader 2", "a-1: 1,2,3", "b-0: 3,1 isr 1")
    settings = {1: {"auto.leader.rebalance.enable": "true"}, 2: {"auto.leader.rebalance.enable": "false"}}
    finding = findings_of(Vitals(cluster, settings=settings))["KR657"]
    assert (finding.severity, finding.brokers, finding.partitions) == (Severity.NOTE, (1,), (A0,))
    assert "every leader.imbalance.check.interval.seconds (300) the controller" in finding.message
    often = {broker: {**settings[1], "leader.imbalance.check.interval.seconds": str(5 * broker)} for broker in (1, 2)}
    assert "check.interval.seconds (5, 10) the" in findings_of(Vitals(cluster, settings=often))["KR657"].message


# What is in flight


def test_reassignments_that_no_plan_asked_for_are_told_apart_and_one_to_a_dead_broker_cannot_end() -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2,3 size 1000000000", "b-0: 1,2,3 size 1000000000"))
    admin.reassign({A0: (2, 3, 4), B0: (1, 3, 5)})
    ours = KnownRun("51d0c2aa", targets={A0: frozenset({(2, 3, 4)}), B0: frozenset({(1, 3, 6)})})
    found = findings_of(examine(admin), ours)
    assert sorted(found) == ["KR660", "KR662"]
    assert (found["KR660"].partitions, found["KR662"].partitions) == ((B0,), (A0,))
    admin.kill_broker(5)
    assert findings_of(examine(admin), KnownRun("of another topic"), ours)["KR661"].partitions == (B0,)


def test_a_run_without_an_end_is_told_unless_the_lock_says_that_it_goes_on() -> None:
    vitals = seen(small_cluster("a-0: 1,2,3"))
    run = KnownRun("51d0c2aa", is_open=True, began="2026-11-21T14:00:00+00:00")
    assert only(vitals, "KR662", run).message == (
        "the run of plan 51d0c2aa has not told its end (it began 2026-11-21T14:00:00+00:00):"
        " it crashed, or goes on elsewhere"
    )
    assert "locked by apply on box" in only(replace(vitals, locked_by="apply on box"), "KR663", run).message


# Throttles


def throttled(holder: str | None, *known: KnownRun) -> Diagnosis:
    cluster = small_cluster(
        "a-0: 1,2,3",
        "b-0: 1,2,3",
        configs={"a": {LEADER_THROTTLED_REPLICAS: "0:1,0:2", FOLLOWER_THROTTLED_REPLICAS: "*"}},
        rates={1: {FOLLOWER_THROTTLED_RATE: "1000"}, 2: {FOLLOWER_THROTTLED_RATE: "7"}},
    )
    return diagnose(replace(seen(cluster), locked_by=holder), known)


def test_throttles_of_a_run_are_told_apart_from_an_operators() -> None:
    run = KnownRun(
        "51d0c2aa",
        throttles={(1, FOLLOWER_THROTTLED_RATE): None, ("a", LEADER_THROTTLED_REPLICAS): "0:2"},
        unrestored=(5,),
    )
    found = throttled(None, run)
    told = {(one.owner, one.key): (one.whose, one.plan_id, one.restored) for one in found.throttles}
    assert told == {
        (1, FOLLOWER_THROTTLED_RATE): (Whose.LEFTOVER, "51d0c2aa", None),
        (2, FOLLOWER_THROTTLED_RATE): (Whose.OTHER, None, None),
        ("a", LEADER_THROTTLED_REPLICAS): (Whose.LEFTOVER, "51d0c2aa", "0:2"),
        ("a", FOLLOWER_THROTTLED_REPLICAS): (Whose.OTHER, None, None),
    }
    by_code = {one.code: (one.severity, one.brokers, one.topics) for one in found.findings}
    assert by_code == {
        "KR670": (Severity.WARNING, (1,), ("a",)),
        "KR671": (Severity.WARNING, (), ("a",)),
        "KR672": (Severity.NOTE, (2,), ()),
        "KR673": (Severity.WARNING, (5,), ()),
    }
    assert found.is_healthy
    (other,) = (one for one in found.findings if one.code == "KR672")
    assert f"broker 2 {FOLLOWER_THROTTLED_RATE}=7" in other.message
    assert "..." not in other.message
    (left,) = (one for one in found.findings if one.code == "KR670")
    assert left.next == "reconciler doctor --fix throttles"
    assert left.message.endswith("; a listed replica that falls out of the ISR is held back too")


HARM = {
    "cordoned.log.dirs": ("*", "a cordoned broker gets no new replica"),
    ALTER_LOG_DIRS_RATE: ("7", "what is copied between log dirs is held back"),
}


@pytest.mark.parametrize("key", HARM)
def test_what_a_run_left_on_log_dirs_is_told_with_its_harm_and_an_operators_is_not(key: str) -> None:
    value, harm = HARM[key]
    vitals = seen(small_cluster("a-0: 1,2,3", rates={id_: {key: value} for id_ in (1, 2)}))
    found = diagnose(vitals, (KnownRun("51d0c2aa", is_open=True, throttles={(1, key): None}),))
    assert [(one.owner, one.whose) for one in found.throttles] == [(1, Whose.LEFTOVER)]
    (left,) = (one for one in found.findings if one.code == "KR670")
    assert left.message.endswith(f"broker 1 {key}={value}; {harm}")
    cordoned = {one.brokers for one in found.findings if one.code == "KR655"}
    assert cordoned == ({(1,), (2,)} if value == "*" else set())


def test_a_rate_that_a_broker_out_of_reach_may_keep_is_told_with_its_run() -> None:
    run = KnownRun("51d0c2aa", unrestored=(5, 6))
    assert diagnose(seen(small_cluster("a-0: 1,2,3")), (run,)).findings == (
        Finding(
            "KR673",
            Severity.WARNING,
            "brokers 5, 6 may keep a throttle rate of the run of plan 51d0c2aa, and cannot be asked",
            "start it; then the next apply, cancel, or doctor --fix throttles takes the rate off",
            brokers=(5, 6),
        ),
    )


def test_throttles_of_a_run_that_goes_on_are_no_leftovers() -> None:
    run = KnownRun("51d0c2aa", is_open=True, throttles={(1, FOLLOWER_THROTTLED_RATE): None}, unrestored=(5,))
    found = throttled("apply on box", run)
    assert {one.whose for one in found.throttles if one.owner == 1} == {Whose.RUN}
    assert {"KR670", "KR673"}.isdisjoint(one.code for one in found.findings)


# Rights and versions


def test_every_right_that_is_missing_is_named_and_without_those_of_looking_nothing_is_healthy() -> None:
    vitals = seen(small_cluster("a-0: 1,2,3", "b-0: 1,2,3"))
    assert vitals.rights is not None
    every = vitals.rights
    limited = Rights(
        cluster=every.cluster - {"Alter", "Describe", "Create"},
        topics={"a": every.topics["a"] - {"AlterConfigs", "Delete"}},
        groups={LOCK_GROUP: frozenset(), "billing": frozenset(), "mail": frozenset({"Describe"})},
        hidden=frozenset({"b"}),
    )
    found = diagnose(replace(vitals, rights=limited))
    told = {one.message.partition(":")[0].removeprefix("this user lacks the right "): one for one in found.findings}
    assert {text: (one.code, one.severity, one.topics) for text, one in told.items()} == {
        "Describe on the cluster": ("KR630", Severity.ERROR, ()),
        "Describe on topic b": ("KR630", Severity.ERROR, ("b",)),
        "Alter on the cluster": ("KR631", Severity.WARNING, ()),
        "Create on the cluster": ("KR631", Severity.NOTE, ()),
        "AlterConfigs on topic a": ("KR631", Severity.WARNING, ("a",)),
        f"Read on group {LOCK_GROUP}": ("KR631", Severity.WARNING, ()),
        "Describe on group billing": ("KR631", Severity.WARNING, ()),
    }
    assert told["AlterConfigs on topic a"].next.endswith("--operation AlterConfigs --topic a")
    assert told["Alter on the cluster"].next.endswith("--operation Alter --cluster")
    assert not found.is_healthy


def test_deleting_needs_its_right_only_where_it_is_allowed() -> None:
    vitals = seen(small_cluster("a-0: 1,2,3"))
    assert vitals.rights is not None
    held = vitals.rights.topics["a"] - {"Delete"}
    limited = replace(vitals, rights=replace(vitals.rights, topics={"a": held}))
    desired = Desired(DesiredCluster("small", topics=TopicPolicy(is_delete_allowed=True)))
    assert diagnose(limited).findings == ()
    assert [one.code for one in diagnose(limited, desired=desired).findings] == ["KR631"]


def test_versions_that_hold_something_back_are_told() -> None:
    vitals = seen(small_cluster("a-0: 1,2,3", kafka_version="3.9"))
    assert only(vitals, "KR634").severity is Severity.NOTE
    behind = Features("4.1", {"metadata.version": 27}, {"metadata.version": 30}, has_factor_guard=True)
    assert "metadata.version is 27, the brokers support 30" in only(replace(vitals, features=behind), "KR635").message


def test_another_cluster_than_the_one_declared_is_an_error() -> None:
    vitals = seen(small_cluster("a-0: 1,2,3"))
    found = diagnose(vitals, desired=Desired(DesiredCluster("prod", cluster_id="another")))
    assert [(one.code, one.severity) for one in found.findings] == [("KR636", Severity.ERROR)]


def test_what_the_client_properties_leave_open_is_a_warning_in_the_same_words() -> None:
    open_left = Problem("KR900", "the name of the broker is not checked")
    found = diagnose(seen(small_cluster("a-0: 1,2,3")), cautions=(open_left,))
    assert found.findings == (Finding("KR900", Severity.WARNING, "the name of the broker is not checked"),)


def test_errors_come_first_and_the_order_is_always_the_same() -> None:
    cluster = small_cluster("a-0: 1,2,3 isr 1,2", "b-0: 4,5 isr 5", fenced=[3], kafka_version="3.9", configs={"b": TWO})
    gravities = [one.severity for one in diagnose(seen(cluster)).findings]
    assert gravities == sorted(gravities, key=list(Severity).index)
    assert len(set(gravities)) == 3
    assert diagnose(seen(cluster)) == diagnose(seen(cluster))


MINUTE = 60_000


@pytest.mark.parametrize(
    ("known", "since_minutes", "codes"),
    [
        (None, 21, {"KR664"}),
        (None, 19, set()),
        (CoordinatedTransaction("app", "PrepareCommit", -21 * MINUTE), 21, {"KR665"}),
        # Its records have old times, and it has only just begun.
        (CoordinatedTransaction("app", "Ongoing", -MINUTE), 21, set()),
    ],
)
def test_a_transaction_hangs_that_no_coordinator_knows_after_the_longest_time_allowed(
    known: CoordinatedTransaction | None, since_minutes: int, codes: set[str]
) -> None:
    admin = SimulatedAdmin(small_cluster("a-0: 1,2,3", "a-1: 2,3,1"))
    now = int(admin.clock.now().timestamp() * 1000)
    if known is not None:
        known = replace(known, began_ms=now + known.began_ms)
    late = OpenTransaction(A1, 9000, 0, 4711, now - since_minutes * MINUTE, known)
    admin.transactions = LateTransactions(found=(late,))
    found = {code: one for code, one in findings_of(examine(admin)).items() if code in {"KR664", "KR665"}}
    assert set(found) == codes
    for one in found.values():
        assert one.partitions == (A1,)
        assert "a-1 from offset 4711 on, of producer 9000, last written" in one.message
    if "KR664" in codes:
        assert "abort --topic a --partition 1 --start-offset 4711" in found["KR664"].next


def test_the_longest_time_allowed_is_the_brokers_own() -> None:
    cluster = small_cluster("a-0: 1,2,3")
    brokers = {1: replace(cluster.brokers[1], settings={"transaction.max.timeout.ms": str(30 * MINUTE)})}
    admin = SimulatedAdmin(replace(cluster, brokers={**cluster.brokers, **brokers}))
    now = int(admin.clock.now().timestamp() * 1000)
    assert examine(admin).transactions.before_ms == now - 35 * MINUTE
