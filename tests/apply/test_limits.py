"""A plan is held against the brokers as they are when it runs: before the first request, and before each stage."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.clusters.small_cluster import small_cluster, with_cordons
from helpers.plans.deaths import killed
from helpers.plans.small_runs import MB, RATE, SIZE, admin_of, election, move, plan_of

from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.checks import RECOVERY
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.limits import NOTHING_DECLARED, ApplyRules
from reconciler.apply.run import run_plan
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic
from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.desired import BrokerState, DesiredBroker, DesiredCluster, DesiredLogDir, Limits, LogDirState
from reconciler.model.move import DirMove, Reason
from reconciler.model.plan import Plan, Source
from reconciler.model.problem import MissingRight, Problem, Refused, Severity
from reconciler.model.run import RunProgress, RunState
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition

LINES = [f"orders-{number}: 1,2,3 size {SIZE}" for number in range(3)]
TO_4 = [move(f"orders-{number}", "1,2,3", "1,2,4") for number in range(3)]


def before(*lines: str, **dirs: tuple[int, int]) -> Cluster:
    """Return the cluster; with `b4=(300, 100)` broker 4 has one log dir of 300 bytes, of which 100 are free."""
    cluster = small_cluster(*(lines or LINES))
    disks = {int(name.removeprefix("b")): LogDir("/d1", *sizes) for name, sizes in dirs.items()}
    brokers = {id_: replace(cluster.brokers[id_], log_dirs=(one,)) for id_, one in disks.items()}
    return replace(cluster, brokers={**cluster.brokers, **brokers})


def plan(*stages: tuple[int, ...], **fields: object) -> Plan:
    """Return a plan that moves these partitions of `orders` from broker 3 to 4, stage by stage."""
    made = [ReassignStage(n, tuple(TO_4[one] for one in some), RATE) for n, some in enumerate(stages, start=1)]
    return plan_of(made, before(), **fields)


def files(*brokers: DesiredBroker, **limits: object) -> ApplyRules:
    """Return what is declared: these brokers and limits."""
    declared = {one.id: one for one in brokers}
    return ApplyRules(DesiredCluster("small", brokers=declared, limits=Limits(**limits)))  # type: ignore[arg-type]


def refused(made: Plan, cluster: Cluster, declared: ApplyRules = NOTHING_DECLARED) -> Refused:
    """Return the error of a run that is refused before anything is changed, as its dry run is."""
    admin, errors = admin_of(cluster), []
    for is_dry_run in (True, False):
        with pytest.raises(Refused) as error:
            run_plan(made, admin, MemoryJournal(), declared=declared, is_dry_run=is_dry_run)
        errors.append(error.value)
    assert (admin.writes, admin.cluster) == (0, cluster)
    assert str(errors[0]) == str(errors[1])
    return errors[1]


def runs(made: Plan, cluster: Cluster, declared: ApplyRules = NOTHING_DECLARED) -> SimulatedAdmin:
    """Return the cluster after a run that is not refused."""
    admin = admin_of(cluster)
    assert run_plan(made, admin, MemoryJournal(), declared=declared).state is RunState.DONE
    return admin


def test_a_copy_that_cannot_fit_is_never_started_whatever_is_declared() -> None:
    error = refused(plan((0, 1), (2,)), before(b4=(900 * MB, 2 * SIZE - 1)))
    assert error.code == "KR456"
    assert "stage 1 copies 190.7 MiB to broker 4, which has 190.7 MiB left; a disk that gets full" in str(error)
    assert refused(plan((0, 1), (2,)), before(b4=(900 * MB, 3 * SIZE - 1))).code == "KR456"  # by its second stage
    runs(plan((0, 1), (2,)), before(b4=(900 * MB, 3 * SIZE)))


def test_a_disk_is_not_filled_beyond_the_limit_that_is_declared_by_now() -> None:
    cluster = before(b4=(1000 * MB, 500 * MB))
    runs(plan((0, 1, 2)), cluster, files(disk_use=Fraction(8, 10)))
    error = refused(plan((0, 1, 2)), cluster, files(disk_use=Fraction(3, 4)))
    assert error.code == "KR413"
    assert "would then hold 762.9 MiB of 953.7 MiB: 47.7 MiB (50000000 bytes) more than limits.diskUse 75%" in str(
        error
    )


def test_what_leaves_a_disk_makes_room_for_a_later_stage_and_not_for_its_own() -> None:
    out, into = move("orders-0", "1,2,3", "1,2,5"), move("pay-0", "1,2", "1,3")
    cluster = before(*LINES, f"pay-0: 1,2 size {SIZE}", b3=(300 * MB, 0))
    runs(plan_of([ReassignStage(1, (out,), RATE), ReassignStage(2, (into,), RATE)], cluster), cluster)
    assert refused(plan_of([ReassignStage(1, (out, into), RATE)], cluster), cluster).code == "KR456"


def test_a_full_disk_is_relieved() -> None:
    cluster = before(b3=(300 * MB, 0))
    runs(plan((0,), (1,)), cluster, files(disk_use=Fraction(1, 2)))


def test_a_partition_that_has_grown_since_counts_as_it_is() -> None:
    grown = small_cluster(*(line.replace(str(SIZE), str(2 * SIZE)) for line in LINES))
    small = replace(grown.brokers[4], log_dirs=(LogDir("/d1", 900 * MB, 2 * SIZE - 1),))
    assert refused(plan((0,)), replace(grown, brokers={**grown.brokers, 4: small})).code == "KR456"


def test_what_has_been_copied_before_a_crash_counts_once() -> None:
    cluster = before(b4=(900 * MB, SIZE))
    admin = admin_of(cluster)
    journal = killed(admin, plan((0,)), lambda name: name == "poll" and bool(admin.reassignments()))
    admin.clock.sleep(3)
    free = admin.cluster.brokers[4].log_dirs[0].usable_bytes
    assert free is not None
    assert 0 < free < SIZE
    assert run_plan(plan((0,)), admin, journal).state is RunState.DONE


def test_each_log_dir_is_looked_at_by_itself_where_the_plan_says_which() -> None:
    dirs = (LogDir("/d1", 900 * MB, SIZE - 1), LogDir("/d2", 900 * MB, 900 * MB))
    cluster = before()
    cluster = replace(cluster, brokers={**cluster.brokers, 4: replace(cluster.brokers[4], log_dirs=dirs)})
    to_d1, to_d2 = (plan((0,), predicted_log_dirs={TopicPartition("orders", 0): {4: path}}) for path in ("/d1", "/d2"))
    assert "to log dir /d1 of broker 4, which has 95.4 MiB left" in str(refused(to_d1, cluster))
    runs(to_d2, cluster)
    runs(plan((0,)), cluster)  # Kafka chooses


def test_a_way_back_is_held_by_the_room_on_disks_alone() -> None:
    back = plan((0,), source=Source("sha256:00", rolls_back="0badcafe"))
    declared = files(DesiredBroker(4, BrokerState.DRAINING), disk_use=Fraction(1, 100), replicas_per_broker=0)
    runs(back, before(b4=(900 * MB, SIZE)), declared)
    assert refused(back, before(b4=(900 * MB, SIZE - 1)), declared).code == "KR456"


def test_replicas_of_other_topics_count() -> None:
    cluster = before(*LINES, "new-0: 4,5", "new-1: 4,6")
    runs(plan((0,)), cluster, files(replicas_per_broker=3))
    error = refused(plan((0,), (1,)), cluster, files(replicas_per_broker=3))
    assert error.code == "KR419"
    assert "broker 4 would hold 4 replicas in stage 2, 1 more than limits.replicasPerBroker, 3, allows" in str(error)


def test_new_partitions_and_what_others_move_count_as_replicas() -> None:
    cluster = before(*LINES, "new-0: 5,6")
    changes = (
        CreateTopic("audit", 1, 2, {}, {0: (4, 5)}),
        CreatePartitions("new", 1, 2, {1: (4, 6)}),
    )
    made = plan_of([TopicsStage(1, (0, 1))], cluster, topic_changes=changes)
    runs(made, cluster, files(replicas_per_broker=3))
    moving = admin_of(cluster)
    moving.reassign({TopicPartition("orders", 2): (1, 2, 4)})
    with pytest.raises(Refused, match="broker 4 would hold 3 replicas"):
        run_plan(made, moving, MemoryJournal(), declared=files(replicas_per_broker=2))


CLOSED = [
    (DesiredBroker(4, BrokerState.DRAINING), "orders-0 would come to broker 4, which is declared draining by now"),
    (DesiredBroker(4, BrokerState.CORDONED), "which is declared cordoned by now"),
    (DesiredBroker(4, BrokerState.ABSENT), "which is declared absent by now"),
    (
        DesiredBroker(4, log_dirs=tuple(DesiredLogDir(path, LogDirState.CORDONED) for path in ("/d1", "/d2"))),
        "whose log dirs are all closed by now",
    ),
]


@pytest.mark.parametrize(("broker", "text"), CLOSED)
def test_a_broker_that_is_closed_by_now_gets_nothing(broker: DesiredBroker, text: str) -> None:
    error = refused(plan((0,)), before(), files(broker))
    assert error.code == "KR461"
    assert text in str(error)
    runs(plan((0,)), before(), files(replace(broker, id=3)))  # what only leaves is free to


def test_a_broker_that_somebody_cordoned_gets_nothing_unless_it_is_declared_active() -> None:
    cluster = with_cordons(before(), [4])
    assert "cordoned in Kafka by now (cordoned.log.dirs)" in str(refused(plan((0,)), cluster, files()))
    runs(plan((0,)), cluster, files(DesiredBroker(4, has_state=True)))


@pytest.mark.parametrize("state", [BrokerState.MAINTENANCE, BrokerState.DRAINING])
def test_a_broker_that_is_not_to_lead_by_now_does_not(state: BrokerState) -> None:
    cluster = before("pay-0: 2,4 leader 2", "pay-1: 4 leader 4")
    turn = plan_of([ReassignStage(1, (move("pay-0", "2,4", "4,2"),))], cluster)
    elect = plan_of([ElectStage(1, (election("pay-0", 4),))], before("pay-0: 4,2 leader 2"))
    declared = files(DesiredBroker(4, state))
    assert f"pay-0 would be led by broker 4, which is declared {state} by now" in str(refused(turn, cluster, declared))
    assert refused(elect, before("pay-0: 4,2 leader 2"), declared).code == "KR461"
    runs(turn, cluster, files(DesiredBroker(4, state), DesiredBroker(2, state)))  # one of the two must


def test_a_log_dir_that_is_closed_by_now_gets_nothing_from_the_others() -> None:
    inside = DirMove(TopicPartition("orders", 0), 1, "/d1", "/d2", SIZE, Reason.LOG_DIRS, replicas=(1, 2, 3))
    cluster = before()
    path = cluster.topics["orders"].partitions[0].log_dirs[0]
    inside = replace(inside, from_dir=path or "", to_dir="/d1" if path == "/d2" else "/d2")
    made = plan_of([LogDirsStage(1, (inside,))], cluster)
    declared = files(DesiredBroker(1, log_dirs=(DesiredLogDir(inside.to_dir, LogDirState.DRAINING),)))
    assert "which is declared closed by now" in str(refused(made, cluster, declared))
    runs(made, cluster, files())


def test_a_factor_does_not_fall_below_a_min_isr_that_was_raised_since() -> None:
    cluster = small_cluster(*LINES, configs={"orders": {"min.insync.replicas": "3"}})
    made = plan_of([ReassignStage(1, tuple(move(f"orders-{one}", "1,2,3", "1,2") for one in range(3)))], cluster)
    assert refused(made, cluster).code == "KR462"
    warned = replace(made, warnings=(Problem("KR881", "topic orders", severity=Severity.WARNING),))
    runs(warned, cluster)
    raised = AlterConfigs("orders", {"min.insync.replicas": "4"}, (), {"min.insync.replicas": "3"})
    assert refused(plan_of([TopicsStage(1, (0,))], cluster, topic_changes=(raised,)), cluster).code == "KR462"


def test_owners_are_asked_about_what_is_left_on_all_topics_as_they_are() -> None:
    cluster = before(*LINES, "other-0: 5,6 size 7")
    made = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,3,4"),), RATE)], cluster)
    asked = []

    def check(rest: Plan, now: Cluster) -> list[Problem]:
        asked.append((rest.stages, sorted(now.topics), now.topics["other"].partitions[0].sizes))
        return [Problem("KR472", "team would have too much", severity=Severity.VIOLATION)]

    declared = replace(files(), owners=check)
    assert refused(made, cluster, declared).code == "KR472"
    assert asked == [(made.stages, ["orders", "other"], (7, 7))] * 2


def fill(admin: SimulatedAdmin) -> None:
    """Let somebody else's data take all but a little of broker 4."""
    left = tuple(replace(one, usable_bytes=1) for one in admin.cluster.brokers[4].log_dirs)
    brokers = {**admin.cluster.brokers, 4: replace(admin.cluster.brokers[4], log_dirs=left)}
    admin.cluster = replace(admin.cluster, brokers=brokers)


def test_a_later_stage_that_no_longer_fits_does_not_begin() -> None:
    admin = admin_of(before(b4=(900 * MB, 900 * MB)))
    made = plan((0,), (1,))
    start = admin.clock.now()

    def progress(seen: RunProgress) -> None:
        if seen.done_moves:
            fill(admin)

    with pytest.raises(Refused, match=r"so no further stage begins: stage 2 copies 95.4 MiB to broker 4") as error:
        run_plan(made, admin, MemoryJournal(), progress=progress)
    assert error.value.code == "KR456"
    assert admin.clock.now() - start >= RECOVERY  # what Kafka deletes goes within a minute
    assert admin.cluster.topics["orders"].partitions[0].replicas == (1, 2, 4)
    assert admin.cluster.topics["orders"].partitions[1].replicas == (1, 2, 3)
    assert not any(broker.configs for broker in admin.cluster.brokers.values())


def lacking(error: Exception) -> Callable[[str, Moment], None]:
    def fault(name: str, moment: Moment) -> None:
        if name == "disks" and moment is Moment.BEFORE:
            raise error

    return fault


def test_where_disks_may_not_be_looked_at_a_run_says_so_once_and_goes_on() -> None:
    admin, told = admin_of(before()), list[str]()
    admin.fault = lacking(MissingRight("Describe on the cluster is missing"))
    assert run_plan(plan((0,), (1,)), admin, MemoryJournal(), notify=told.append).state is RunState.DONE
    assert sum("whether its disks have room" in text for text in told) == 1
