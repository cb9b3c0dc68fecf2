"""Throttles are added to what is there, and exactly ours come off."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import pytest
from apply.small_world import At
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.deaths import killed, nth
from helpers.plans.small_runs import RATE, cluster, move, plan_of
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.admin.port import Reassignment
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import planted
from reconciler.apply.journal import MemoryJournal, recorded, seen_detail
from reconciler.apply.leftovers import adopt_leftovers, restore_throttles
from reconciler.apply.partition_path import paths_of
from reconciler.apply.run import run_plan
from reconciler.apply.session import Session
from reconciler.apply.throttles import (
    Entry,
    Key,
    ThrottleRecord,
    appended,
    leftover_problems,
    list_restored,
    lists_to_extend,
    rate_restored,
    rates_to_set,
    undecided_problems,
    wanted_lists,
    wanted_rates,
)
from reconciler.model.change import ConfigChange, ConfigOperation, CreateTopic
from reconciler.model.cluster import (
    CORDONED_LOG_DIRS,
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Cluster,
)
from reconciler.model.run import Outcome, RunEvent, RunFailed, RunState
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

LEADERS, FOLLOWERS = LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS
EMPTY = ThrottleRecord()

STAGE = ReassignStage(
    1,
    (
        move("bar-0", "2,3,4", "1,2,3"),
        move("foo-0", "1,2,3", "1,2,5"),
        move("foo-10", "1,2", "2,3"),
        move("foo-2", "1,2", "2,1"),
        move("foo-3", "6,7", "6"),
    ),
    1000,
)


def test_only_moves_that_copy_are_throttled_on_both_sides() -> None:
    assert wanted_lists(STAGE) == {
        ("bar", FOLLOWERS): {"0:1"},
        ("bar", LEADERS): {"0:2", "0:3", "0:4"},
        ("foo", FOLLOWERS): {"0:5", "10:3"},
        ("foo", LEADERS): {"0:1", "0:2", "0:3", "10:1", "10:2"},
    }
    assert wanted_rates(STAGE) == dict.fromkeys((1, 2, 3, 4, 5), "1000")


def test_without_a_throttle_nothing_is_throttled() -> None:
    stage = ReassignStage(1, STAGE.moves)
    assert (wanted_lists(stage), wanted_rates(stage)) == ({}, {})


def test_items_are_appended_in_the_order_of_text_and_without_spaces() -> None:
    missing = lists_to_extend(wanted_lists(STAGE), {"foo": {}}, {}, {})
    assert appended(missing)["foo"] == (
        ConfigChange(FOLLOWERS, ConfigOperation.APPEND, "0:5,10:3"),
        ConfigChange(LEADERS, ConfigOperation.APPEND, "0:1,0:2,0:3,10:1,10:2"),
    )


@pytest.mark.parametrize(
    ("value", "missing"),
    [
        ("*", None),
        ("0:2,0:3,0:4", None),
        ("9:9,0:3", {"0:2", "0:4"}),
        ("", {"0:2", "0:3", "0:4"}),
        ("0:2, 0:3", {"0:3", "0:4"}),
    ],
)
def test_a_list_gets_only_what_it_lacks(value: str, missing: set[str] | None) -> None:
    found = lists_to_extend(wanted_lists(STAGE), {"bar": {LEADERS: value}}, {}, {})
    assert found.get(("bar", LEADERS)) == missing


def test_only_living_brokers_without_a_rate_of_this_run_get_it() -> None:
    has_it = {LEADER_THROTTLED_RATE: "5", FOLLOWER_THROTTLED_RATE: "5"}
    told = {(2, LEADER_THROTTLED_RATE): "5", (2, FOLLOWER_THROTTLED_RATE): "5"}
    changes = rates_to_set({1: "5", 2: "5", 3: "5"}, {1: {}, 2: has_it}, EMPTY, frozenset("5"), told)
    both = [FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE]
    assert {broker: [change.key for change in keys] for broker, keys in changes.items()} == {1: both}
    # What is read of 2 may be of before this run put its rate back.
    assert list(rates_to_set({2: "5"}, {2: has_it}, EMPTY, frozenset("5"), {})) == [2]


@pytest.mark.parametrize(
    ("before", "value", "change"),
    [
        (None, "5", ConfigOperation.DELETE),
        ("7", "5", ConfigOperation.SET),
        (None, None, ConfigOperation.DELETE),
        ("7", "7", ConfigOperation.SET),
        (None, "9", None),
        ("7", "9", None),
    ],
)
def test_a_rate_goes_back_unless_somebody_set_another(
    before: str | None, value: str | None, change: ConfigOperation | None
) -> None:
    restored = rate_restored("key", before, value, frozenset({"5"}))
    assert (restored.operation if restored else None) is change


@pytest.mark.parametrize(
    ("before", "value", "operation", "text"),
    [
        (None, "0:1,0:2", ConfigOperation.DELETE, ""),
        (None, "0:1,0:2,9:9", ConfigOperation.SUBTRACT, "0:1,0:2"),
        (None, None, ConfigOperation.DELETE, ""),
        ("", "0:1,0:2", ConfigOperation.SUBTRACT, "0:1,0:2"),
        ("9:9", "9:9,0:1,0:2", ConfigOperation.SUBTRACT, "0:1,0:2"),
        ("9:9", None, ConfigOperation.SET, "9:9"),
        ("9:9,,8:8", "9:9,8:8,0:1,0:2", ConfigOperation.SET, "9:9,,8:8"),
        ("9:9, 0:1", "9:9, 0:1,0:1,0:2", ConfigOperation.SUBTRACT, "0:1,0:2"),
    ],
)
def test_a_list_loses_our_items_and_no_other(
    before: str | None, value: str | None, operation: ConfigOperation, text: str
) -> None:
    restored = list_restored("key", Entry(before, frozenset({"0:1", "0:2"})), value)
    assert restored == ConfigChange("key", operation, text)


def test_what_stays_on_a_topic_is_told_with_what_it_was_before() -> None:
    def told(before: str | None) -> str:
        [problem] = leftover_problems(ThrottleRecord(lists={("orders", LEADERS): Entry(before, frozenset())}))
        return problem.message

    assert f"{LEADERS} (before: 0:1,2:3)" in told("0:1,2:3")
    assert "(before: (empty))" in told("")
    assert "(before: not set)" in told(None)
    assert "0:9, 0:10 and 2 more)" in told(",".join(f"0:{n}" for n in range(1, 13)))


def test_an_undecided_list_entry_is_named_with_a_command_that_keeps_the_other_entries() -> None:
    undecided: dict[Key, Entry] = {
        ("orders", FOLLOWER_THROTTLED_REPLICAS): Entry("0:1,0:2", frozenset({"0:3"})),
        ("orders", LEADER_THROTTLED_REPLICAS): Entry(None, frozenset({"0:1"})),
        (4, LEADER_THROTTLED_RATE): Entry(None, frozenset({"20971520"})),
    }
    topic, broker = (str(problem).split("--entity-type ")[1] for problem in undecided_problems(undecided))
    assert broker == "brokers --entity-name 4 --delete-config leader.replication.throttled.rate (KR724)"
    removed, set_again = topic.split(" --add-config ")
    assert removed == "topics --entity-name orders --delete-config leader.replication.throttled.replicas"
    assert set_again == "'follower.replication.throttled.replicas=[0:1,0:2]' (KR724)"


def test_an_operators_single_entry_that_the_plan_would_set_too_stays_and_is_named(admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], admin.cluster)
    admin.alter_topic_configs({"orders": [ConfigChange(FOLLOWERS, ConfigOperation.APPEND, "0:4")]})
    before = admin.cluster
    for end in (restore_throttles, cancel_run):
        left = end(plan, admin, MemoryJournal()).leftover_throttles
        assert [(problem.code, f"{FOLLOWERS}=0:4" in problem.message) for problem in left] == [("KR724", True)]
        assert admin.cluster == before


def test_rates_of_this_plans_runs_stay_its_own_beside_those_that_the_clusters_record_tells_of(before: Cluster) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before)
    admin = SimulatedAdmin(before)
    killed(admin, plan_of([ReassignStage(1, (move("orders-1", "2,3,1", "2,3,5"),), 7)], before), nth(20))
    asked = RunEvent(datetime(2026, 11, 23, tzinfo=UTC), 1, "rate", Outcome.DONE, {"ours": ["5"]})
    session = Session(admin, MemoryJournal([asked]), paths_of(plan))
    adopt_leftovers(session, session.look(["orders"]))
    assert session.our_rates == {str(RATE), "5"}, "a rate that nobody may ask for is not believed"


def test_a_list_that_somebody_made_cover_everything_is_left() -> None:
    assert list_restored("key", Entry(None, frozenset({"0:1"})), "*") is None


ITEMS = st.lists(st.sampled_from(["0:1", "0:2", "0:4", "1:1", "2:3", "7:7"]), unique=True).map(",".join)
LISTS = st.one_of(st.none(), st.just("*"), st.just(""), ITEMS)
RATES = st.one_of(st.none(), st.sampled_from(["1000000", "90000000", str(RATE)]))


@pytest.mark.long
@settings(max_examples=20)
@given(leaders=LISTS, followers=LISTS, rates=st.lists(RATES, min_size=8, max_size=8))
def test_whatever_an_operator_had_set_is_there_again_after_a_run(
    leaders: str | None, followers: str | None, rates: list[str | None]
) -> None:
    admin = SimulatedAdmin(cluster())
    wanted = {LEADERS: leaders, FOLLOWERS: followers}
    admin.alter_topic_configs({"orders": [_wanted(key, value) for key, value in wanted.items()]})
    for position, value in enumerate(rates):
        key = (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)[position % 2]
        admin.alter_broker_configs(1 + position // 2, [_wanted(key, value)])
    before = admin.cluster
    moves = (move("orders-0", "1,2,3", "1,2,4"), move("orders-1", "2,3,1", "2,3,4"))
    run_plan(plan_of([ReassignStage(1, moves, RATE)], before), admin, MemoryJournal())
    assert admin.cluster.topics["orders"].configs == before.topics["orders"].configs
    assert {one.id: one.configs for one in admin.cluster.brokers.values()} == {
        one.id: one.configs for one in before.brokers.values()
    }


def _wanted(key: str, value: str | None) -> ConfigChange:
    return ConfigChange(key, ConfigOperation.DELETE) if value is None else ConfigChange(key, ConfigOperation.SET, value)


def test_a_list_that_this_run_has_put_back_is_not_taken_from_reads_of_the_past() -> None:
    stale = {"bar": {LEADERS: "0:2,0:3,0:4"}}
    first = {("bar", LEADERS): "9:9"}
    assert lists_to_extend(wanted_lists(STAGE), stale, {}, first)["bar", LEADERS] == {"0:2", "0:3", "0:4"}
    on = {("bar", LEADERS): frozenset({"0:2", "0:3", "0:4"})}
    assert ("bar", LEADERS) not in lists_to_extend(wanted_lists(STAGE), stale, on, first)


def test_what_is_seen_of_throttles_is_what_was_there_before_ours() -> None:
    ours = ThrottleRecord({(1, LEADER_THROTTLED_RATE): "5"}, {("foo", LEADERS): Entry("0:9", frozenset({"0:1"}))})
    rates = {LEADER_THROTTLED_RATE: "10", FOLLOWER_THROTTLED_RATE: "7"}
    found = seen_detail(ours, {1: rates}, {"foo": {LEADERS: "0:9,0:1", FOLLOWERS: "*"}, "bar": {}})
    rows = found["seen"]
    assert isinstance(rows, list)
    assert {(where, key): value for where, key, value in rows} == {
        (1, LEADER_THROTTLED_RATE): "5",
        (1, FOLLOWER_THROTTLED_RATE): "7",
        (1, CORDONED_LOG_DIRS): None,
        ("bar", LEADERS): None,
        ("bar", FOLLOWERS): None,
        ("foo", LEADERS): "0:9",
        ("foo", FOLLOWERS): "*",
    }


class HiddenOnce(SimulatedAdmin):
    """Broker 4 lives, and does not answer the first time; a minute later it does, as where a machine was asleep."""

    asked = 0

    def broker_configs(self, broker_ids: Collection[int]) -> Mapping[int, Mapping[str, str]]:
        """Return what brokers answer."""
        self.asked += 4 in broker_ids
        return super().broker_configs([one for one in broker_ids if one != 4 or self.asked > 1])

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Return what is in flight."""
        if self.asked == 1:
            self.clock.sleep(60)
        return super().reassignments()


def test_a_broker_that_does_not_answer_is_asked_again_before_it_is_given_up_however_late_it_is() -> None:
    plan = plan_of([ReassignStage(1, (move("payments-0", "2,3", "2,4"),), RATE)], cluster())
    before = small_cluster("payments-0: 2,3", brokers=range(1, 7))
    assert run_plan(plan, HiddenOnce(before), MemoryJournal()).state is RunState.DONE


def test_what_an_operator_set_after_the_plan_was_made_is_in_the_journal(admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], cluster())
    admin.alter_broker_configs(4, [_wanted(FOLLOWER_THROTTLED_RATE, "88000000")])
    admin.alter_topic_configs({"orders": [_wanted(FOLLOWERS, "0:4,2:1")]})
    before = admin.cluster
    run_plan(plan, admin, killed(admin, plan, lambda name: name == "poll" and admin.reassignments()))
    assert admin.cluster.topics["orders"].configs == before.topics["orders"].configs
    assert admin.cluster.brokers[4].configs == before.brokers[4].configs


def test_what_a_killed_run_left_comes_off_before_the_next_stage_begins(before: Cluster, admin: SimulatedAdmin) -> None:
    stages = [
        ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE),
        ReassignStage(2, (move("payments-0", "2,4", "2,6"),), RATE),
    ]
    plan = plan_of(stages, before)
    journal = killed(admin, plan, lambda name: name == "poll" and admin.reassignments())
    admin.clock.sleep(60)
    seen: list[str | None] = []

    def look(name: str) -> None:
        if name == "reassign.before":
            seen.append(admin.cluster.topics["orders"].configs.get(FOLLOWERS))

    with planted(look):
        run_plan(plan, admin, journal)
    assert seen == [None]


def test_what_an_operator_sets_after_a_run_stays_when_its_plan_is_applied_again(admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], cluster())
    journal = MemoryJournal()
    run_plan(plan, admin, journal)
    admin.alter_broker_configs(4, [_wanted(FOLLOWER_THROTTLED_RATE, str(RATE))])
    admin.alter_topic_configs({"orders": [_wanted(FOLLOWERS, "0:4")]})
    assert run_plan(plan, admin, MemoryJournal(journal.appended)).writes == 0


def test_an_entry_that_landed_on_a_topic_made_again_comes_off_it_and_nothing_else_does(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    plan = plan_of([ReassignStage(1, (move("payments-0", "2,4", "2,6"),), 1000)], before)

    def made_again() -> None:
        admin.delete_topics(["payments"])
        admin.create_topics([CreateTopic("payments", 2, 2, {}, {0: (2, 4), 1: (2, 4)})])
        theirs = ConfigChange(LEADERS, ConfigOperation.SET, "7:7")
        admin.alter_topic_configs({"payments": [theirs]})

    admin.fault = At("alter_topic_configs", 1, made_again)
    with pytest.raises(RunFailed):
        run_plan(plan, admin, MemoryJournal())
    assert admin.cluster.topics["payments"].configs == {LEADERS: "7:7"}


def test_a_journal_gives_back_nothing_but_what_runs_change() -> None:
    """A file that says otherwise cannot set any config of a broker or a topic."""
    sound: dict[str, list[object]] = {
        "rates": [[1, LEADER_THROTTLED_RATE, "5"]],
        "lists": [["orders", LEADERS, None, "0:1"]],
    }
    forged: dict[str, list[object]] = {
        "rates": [[1, "log.retention.ms", "1"]],
        "lists": [["orders", "retention.ms", "1", "0:1"]],
    }
    now = datetime(2026, 11, 23, tzinfo=UTC)

    def told(detail: Mapping[str, object]) -> ThrottleRecord:
        return recorded([RunEvent(now, 1, "throttle", Outcome.STARTED, detail)]).throttles

    assert told(forged).is_empty
    assert not told(sound).is_empty
    assert told({key: [*sound[key], *forged[key]] for key in sound}) == told(sound)


def test_what_a_run_that_ended_well_left_on_no_topic_is_not_taken_off_again() -> None:
    """Another machine may have taken it off, by the cluster's record: no line of this journal tells of that."""
    now = datetime(2026, 11, 23, tzinfo=UTC)
    on = RunEvent(now, 1, "throttle", Outcome.STARTED, {"lists": [["orders", LEADERS, None, "0:1"]], "rates": []})
    for step in ("run", "cancel"):
        well = RunEvent(now, 3, step, Outcome.DONE, {"leftoverThrottles": []})
        owing = RunEvent(now, 3, step, Outcome.DONE, {"leftoverThrottles": ["broker 3"]})
        assert recorded([on, well]).throttles.is_empty
        assert not recorded([on, owing]).throttles.is_empty
        assert not recorded([on, well, on]).throttles.is_empty
