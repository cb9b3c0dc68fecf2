"""A broker that a run empties is cordoned as long, and is then as it was: whatever ends the run."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from apply.small_world import At
from helpers.clusters.small_cluster import small_cluster, with_cordons
from helpers.plans import small_runs
from helpers.plans.deaths import Journals, boundaries_of, kept, killed, lost, nth, passing
from helpers.plans.small_runs import move

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.partition_path import paths_of
from reconciler.apply.run import run_plan
from reconciler.apply.status import Watcher
from reconciler.files.plan_file import plan_from_json
from reconciler.model.change import ConfigChange, ConfigOperation, CreateTopic
from reconciler.model.cluster import Cluster
from reconciler.model.codec import to_json
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredCluster, MovePolicy
from reconciler.model.plan import Plan
from reconciler.model.problem import MissingRight, Refused
from reconciler.model.run import RunFailed, RunState, StoppedEarly
from reconciler.model.stage import ReassignStage
from reconciler.model.vitals import Rights
from reconciler.render import as_status, facts
from reconciler.workflow.plan import plan_of

CORDON = "cordoned.log.dirs"
RATE = 1_000_000
LINES = ("orders-0: 1,2,3 size 5000000", "orders-1: 1,3,2 size 5000000", "orders-2: 2,3,4 size 5000000")
BEFORE: Mapping[str, Mapping[str, str]] = {
    "nothing": {},
    "an empty value": {CORDON: ""},
    "one log dir": {CORDON: "/d2"},
    "an operator's own *": {CORDON: "*"},
}
THROTTLED = pytest.mark.parametrize("rate", [RATE, None], ids=["throttled", "unthrottled"])
FIRST_SET = pytest.mark.parametrize("before", BEFORE)


def world(before: str = "nothing", **options: str | None) -> Cluster:
    return small_cluster(*LINES, kafka_version=options.get("version", "4.3"), rates={1: BEFORE[before]})


@pytest.fixture
def admin() -> SimulatedAdmin:
    return SimulatedAdmin(world())


def draining(observed: Cluster, rate: int | None = RATE, *, is_on: bool = True) -> Plan:
    """Return the plan that empties broker 1, as it is read from its file."""
    brokers = {1: DesiredBroker(1, BrokerState.DRAINING)}
    moves = MovePolicy(throttle_bytes_per_second=rate, per_stage=1, is_draining_cordoned=is_on)
    plan = plan_of(Desired(DesiredCluster("c", brokers=brokers, moves=moves)), observed)
    return plan_from_json(to_json(plan))


class Watch:
    """Notes at each request whether broker 1 is cordoned."""

    def __init__(self, admin: SimulatedAdmin) -> None:
        self.admin = admin
        self.seen: list[tuple[str, bool]] = []

    def __call__(self, name: str, moment: Moment) -> Answer | None:
        if moment is Moment.BEFORE:
            self.seen.append((name, self.admin.cluster.brokers[1].is_cordoned))
        return None

    def during(self, name: str) -> set[bool]:
        return {is_cordoned for one, is_cordoned in self.seen if one == name}


def watched(cluster: Cluster) -> tuple[SimulatedAdmin, Watch]:
    admin = SimulatedAdmin(cluster)
    watch = Watch(admin)
    admin.fault = watch
    return admin, watch


def as_it_was(admin: SimulatedAdmin, before: str) -> bool:
    broker, first = admin.cluster.brokers[1], world(before).brokers[1]
    return (dict(broker.configs), broker.cordoned_dirs) == (dict(BEFORE[before]), first.cordoned_dirs)


def test_a_cordon_waits_until_kafka_has_taken_a_move() -> None:
    admin, watch = watched(world())
    refusals = [Answer("NOT_CONTROLLER"), Answer("NOT_CONTROLLER")]

    def away(name: str, moment: Moment) -> Answer | None:
        watch(name, moment)
        return refusals.pop() if name == "reassign" and moment is Moment.BEFORE and refusals else None

    admin.fault = away
    run_plan(draining(admin.cluster), admin, MemoryJournal())
    asked = [is_cordoned for name, is_cordoned in watch.seen if name == "reassign"]
    assert asked[:3] == [False, False, False]
    assert set(asked[3:]) == {True}


@THROTTLED
@FIRST_SET
def test_a_broker_is_cordoned_while_it_is_emptied_and_what_was_there_before_comes_back(
    before: str, rate: int | None
) -> None:
    admin, watch = watched(world(before))
    plan = draining(admin.cluster, rate)
    assert plan.cordoned == (1,)
    run_plan(plan, admin, MemoryJournal())
    told = [is_cordoned for name, is_cordoned in watch.seen if name == "reassignments"]
    assert all(told[told.index(True) : -2]), "from the first move on"
    assert watch.during("elect_preferred_leaders") <= {True}
    assert as_it_was(admin, before)
    assert all(1 not in partition.replicas for _, partition in admin.cluster.partitions())


def test_kafka_places_nothing_on_a_broker_that_is_being_emptied(admin: SimulatedAdmin) -> None:
    made: list[Answer] = []

    def place() -> None:
        made.append(admin.create_topics([CreateTopic("meanwhile", 12, 3)])["meanwhile"])

    admin.fault = At("reassign", 2, place)
    run_plan(draining(admin.cluster), admin, MemoryJournal())
    assert made == [Answer()]
    assert all(1 not in partition.replicas for partition in admin.cluster.topics["meanwhile"].partitions)


def test_a_static_cordon_is_left_alone() -> None:
    static = with_cordons(world(), [1])
    admin, watch = watched(static)
    run_plan(draining(static), admin, MemoryJournal())
    assert ("alter_broker_configs", False) not in watch.seen
    assert CORDON not in admin.cluster.brokers[1].configs
    assert admin.cluster.brokers[1].is_cordoned


def test_it_is_asked_for_in_no_other_case() -> None:
    observed = world()
    assert draining(observed, is_on=False).cordoned == ()
    assert draining(world(version="4.1")).cordoned == ()
    old = replace(observed.brokers[1], settings={"compression.type": "producer"})
    assert draining(replace(observed, brokers={**observed.brokers, 1: old})).cordoned == ()
    new = replace(observed.brokers[1], settings={CORDON: ""})
    older = world(version="4.1")
    assert draining(replace(older, brokers={**older.brokers, 1: new})).cordoned == (1,)
    dead = replace(observed, brokers={**observed.brokers, 1: replace(observed.brokers[1], is_fenced=True)})
    assert draining(dead).cordoned == ()
    empty = small_cluster("orders-0: 2,3", kafka_version="4.3")
    assert draining(empty).cordoned == ()


POINTS = ("intent.written", "throttle.broker", "reassign.sent", "poll", "unthrottle.broker", "unthrottle.sent")


@pytest.mark.long
@THROTTLED
@FIRST_SET
@pytest.mark.parametrize("point", POINTS)
def test_after_a_kill_the_next_apply_brings_it_back(point: str, before: str, rate: int | None) -> None:
    admin = SimulatedAdmin(world(before))
    plan = draining(admin.cluster, rate)
    if before == "an operator's own *" and rate is None:
        run_plan(plan, admin, MemoryJournal())  # such a run sets nothing at all
    else:
        journal = killed(admin, plan, passing(point))
        run_plan(plan, admin, journal)
    assert as_it_was(admin, before)


@pytest.mark.long
@THROTTLED
@FIRST_SET
def test_after_a_kill_a_cancel_or_doctor_brings_it_back(before: str, rate: int | None) -> None:
    for end in (cancel_run, restore_throttles):
        admin = SimulatedAdmin(world(before))
        plan = draining(admin.cluster, rate)
        journal = killed(admin, plan, passing("stage.done"))
        assert admin.cluster.brokers[1].is_cordoned
        end(plan, admin, journal)
        assert as_it_was(admin, before)


@THROTTLED
def test_a_run_that_died_elsewhere_is_cleaned_up_after_by_its_plan_alone(rate: int | None) -> None:
    for end in (run_plan, cancel_run, restore_throttles):
        admin = SimulatedAdmin(world("one log dir"))
        plan = draining(admin.cluster, rate)
        killed(admin, plan, passing("stage.done"))
        end(plan, admin, MemoryJournal())
        assert as_it_was(admin, "one log dir")


def test_an_operators_cordon_between_plan_and_run_is_not_taken_for_ours(admin: SimulatedAdmin) -> None:
    plan = draining(admin.cluster)
    admin.alter_broker_configs(1, [ConfigChange(CORDON, ConfigOperation.SET, "*")])
    run_plan(plan, admin, MemoryJournal())
    assert admin.cluster.brokers[1].configs[CORDON] == "*"


def test_an_operators_cordon_between_a_stopped_run_and_the_next_stays() -> None:
    admin, journal = SimulatedAdmin(world()), MemoryJournal()
    plan = draining(admin.cluster)
    with pytest.raises(StoppedEarly):
        run_plan(plan, admin, journal, should_stop=lambda: "enough" if admin.writes > 10 else None)
    assert as_it_was(admin, "nothing")
    admin.alter_broker_configs(1, [ConfigChange(CORDON, ConfigOperation.SET, "*")])
    run_plan(plan, admin, MemoryJournal(journal.appended))
    assert admin.cluster.brokers[1].configs[CORDON] == "*"


def test_what_an_operator_sets_during_the_run_stays(admin: SimulatedAdmin) -> None:
    change = ConfigChange(CORDON, ConfigOperation.SET, "/d1")
    admin.fault = At("reassign", 1, lambda: admin.alter_broker_configs(1, [change]))
    run_plan(draining(admin.cluster), admin, MemoryJournal())
    assert admin.cluster.brokers[1].configs[CORDON] == "/d1"


def test_a_broker_that_is_down_at_the_end_owes_its_cordon_and_pays_later() -> None:
    admin, journal = SimulatedAdmin(world()), MemoryJournal()
    plan = draining(admin.cluster, None)

    def down(name: str) -> None:
        if name == "end.before":
            admin.kill_broker(1)

    with planted(down):
        result = run_plan(plan, admin, journal)
    assert [one.code for one in result.leftover_throttles] == ["KR720"]
    assert (
        "broker 1 keeps what this run set: cordoned.log.dirs (before: not set): it is not alive"
        in result.leftover_throttles[0].message
    )
    admin.return_broker(1)
    assert admin.cluster.brokers[1].is_cordoned
    restore_throttles(plan, admin, journal)
    assert as_it_was(admin, "nothing")


def test_a_refused_cordon_is_told_and_the_broker_is_emptied_all_the_same() -> None:
    def refuse(name: str, moment: Moment) -> Answer | None:
        is_first = name == "alter_broker_configs" and moment is Moment.BEFORE
        return Answer("POLICY_VIOLATION", "not here") if is_first else None

    admin = SimulatedAdmin(world(), fault=refuse)
    result = run_plan(draining(admin.cluster, None), admin, MemoryJournal())
    assert any("without its log dirs being cordoned: POLICY_VIOLATION (not here)" in one for one in result.messages)
    assert all(1 not in partition.replicas for _, partition in admin.cluster.partitions())


def test_a_failure_gives_it_back(admin: SimulatedAdmin) -> None:
    refuse = {"reassign": Answer("POLICY_VIOLATION")}
    admin.fault = lambda name, moment: refuse.get(name) if moment is Moment.BEFORE else None
    with pytest.raises(RunFailed):
        run_plan(draining(admin.cluster), admin, MemoryJournal())
    assert as_it_was(admin, "nothing")


def test_the_right_to_set_it_is_asked_for_first(admin: SimulatedAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    told = admin.rights()
    less = Rights(cluster=told.cluster - {"AlterConfigs"}, topics=told.topics, groups=told.groups)
    monkeypatch.setattr(admin, "rights", lambda *_: less)
    with pytest.raises(MissingRight, match=r"AlterConfigs on the cluster, for cordoning .*moves\.cordon"):
        run_plan(draining(admin.cluster, None), admin, MemoryJournal())
    assert admin.writes == 0


def test_a_dry_run_tells_of_it(admin: SimulatedAdmin) -> None:
    lines = run_plan(draining(admin.cluster), admin, MemoryJournal(), is_dry_run=True).messages
    assert lines[0] == "cordon the log dirs of broker 1"
    assert lines[-1] == "put the cordon of broker 1 back to what it was"


def test_a_log_dir_that_was_cordoned_since_the_plan_is_left_to_the_broker_to_choose(admin: SimulatedAdmin) -> None:
    plan = draining(admin.cluster)
    for broker in (2, 3, 4, 5, 6):
        admin.alter_broker_configs(broker, [ConfigChange(CORDON, ConfigOperation.SET, "/d2")])
    run_plan(plan, admin, MemoryJournal(), has_log_dirs=True)
    assert all(1 not in partition.replicas for _, partition in admin.cluster.partitions())


def test_the_plan_and_the_status_tell_of_it(admin: SimulatedAdmin) -> None:
    assert facts.throttle(draining(admin.cluster)).endswith(" per broker, broker 1 cordoned meanwhile")
    plan = draining(admin.cluster, None)
    killed(admin, plan, passing("stage.done"))
    assert "cordoned: broker 1\n" in as_status.status(Watcher(plan, admin).look())
    assert "cordon on broker 1: cordoned.log.dirs=*" in as_status.status(Watcher(plan, admin).look(), has_all=True)


def lists(admin: SimulatedAdmin) -> dict[str, tuple[int, ...]]:
    return {str(key): partition.replicas for key, partition in admin.cluster.partitions()}


def test_where_kafka_refuses_lists_with_a_cordoned_broker_the_cordon_waits_for_the_last_of_them() -> None:
    admin, watch = watched(world(version="4.4"))
    plan = draining(admin.cluster)
    named = [1 in move.to_replicas for stage in plan.stages for move in stage.moves]  # type: ignore[union-attr]
    assert named == [True, True, False, False]
    run_plan(plan, admin, MemoryJournal())
    assert [is_cordoned for name, is_cordoned in watch.seen if name == "reassign"] == [False, False, False, True]
    assert as_it_was(admin, "nothing")
    assert all(1 not in partition.replicas for _, partition in admin.cluster.partitions())


@pytest.mark.long
@pytest.mark.parametrize("next_journal", [kept, lost])
def test_where_kafka_refuses_them_a_cancel_still_restores_each_ordered_list(next_journal: Journals) -> None:
    first = SimulatedAdmin(world(version="4.4"))
    plan = draining(first.cluster)
    paths = {str(key): path.lists for key, path in paths_of(plan).by_partition.items()}
    whole = {str(key): partition.replicas for key, partition in first.cluster.partitions()}
    for at in range(1, 1 + len(boundaries_of(lambda: run_plan(plan, first, MemoryJournal())))):
        admin = SimulatedAdmin(world(version="4.4"))
        journal = killed(admin, plan, nth(at))
        cancel_run(plan, admin, next_journal(journal))
        assert as_it_was(admin, "nothing"), at
        assert all(replicas in paths.get(name, (whole[name],)) for name, replicas in lists(admin).items()), at
        run_plan(plan, admin, MemoryJournal())
        assert as_it_was(admin, "nothing"), at
        assert all(1 not in replicas for replicas in lists(admin).values()), at


@pytest.mark.parametrize("version", ["4.3", "4.4"])
def test_an_operators_cordon_that_keeps_kafka_from_taking_a_list_is_told_before_the_first_request(version: str) -> None:
    admin = SimulatedAdmin(small_cluster(*LINES, kafka_version=version))
    plan = small_runs.plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,5"),), RATE)], admin.cluster)
    admin.alter_broker_configs(2, [ConfigChange(CORDON, ConfigOperation.SET, "*")])
    if version == "4.3":
        assert run_plan(plan, admin, MemoryJournal()).state is RunState.DONE
        return
    before = admin.cluster
    with pytest.raises(Refused, match="orders-0 would be on broker 2, whose log dirs are all cordoned") as refused:
        run_plan(plan, admin, MemoryJournal())
    assert refused.value.code == "KR461"
    assert admin.cluster == before
