from dataclasses import replace

import pytest
from staging.cases import cluster, desired, move, rules_of

from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, MovePolicy, Spread
from reconciler.model.move import Move, Reason
from reconciler.model.move_table import Moves
from reconciler.staging.chain import chains, steps_of
from reconciler.staging.step import URGENCY_OF, Step, Urgency, situation

BROKERS = "1a 2b 3c 4a 5b 6c"


def steps(
    observed: Cluster,
    whole: Move,
    *,
    per_partition: int = 1,
    states: dict[int, BrokerState] | None = None,
    spread: Spread | None = Spread.STRICT,
    is_election_wanted: bool = True,
) -> tuple[Step, ...]:
    wanted = desired(states, MovePolicy(per_partition=per_partition))
    wanted = replace(wanted, cluster=replace(wanted.cluster, is_election_wanted=is_election_wanted))
    rules = rules_of(observed, observed.topics, spread, leaving=states or (), unfit=states or ())
    return steps_of(whole, situation(observed, wanted, rules, {}))


def targets(found: tuple[Step, ...]) -> list[tuple[int, ...]]:
    return [step.move.to_replicas for step in found]


def elected(found: tuple[Step, ...]) -> list[int | None]:
    return [step.elected for step in found]


def test_one_replica_moves_in_one_step_that_is_the_move_itself() -> None:
    whole = move("t-0: 1,2,3 -> 1,2,6", size=5)
    found = steps(cluster(BROKERS, "t-0: 1,2,3"), whole)
    assert [step.move for step in found] == [whole]
    assert elected(found) == [None]


def test_a_full_swap_exchanges_within_racks_one_by_one_and_keeps_the_leader_until_it_goes() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3"), move("t-0: 1,2,3 -> 4,5,6", size=5))
    assert targets(found) == [(1, 5, 3), (1, 5, 6), (4, 5, 6)]
    assert elected(found) == [None, None, None]
    assert [step.move.bytes for step in found] == [5, 5, 5]


def test_per_partition_two_takes_two_at_a_time() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3"), move("t-0: 1,2,3 -> 4,5,6"), per_partition=2)
    assert [len(step.added) for step in found] == [2, 1]


def test_a_growing_factor_grows_first_and_never_falls() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2"), move("t-0: 1,2 -> 1,5,3"))
    assert targets(found) == [(1, 3, 2), (1, 5, 3)]


def test_a_falling_factor_keeps_all_replicas_until_the_last_step() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3"), move("t-0: 1,2,3 -> 5,6"))
    assert [len(target) for target in targets(found)] == [3, 2]


def test_a_shrink_copies_nothing_and_kafka_picks_the_next_leader_itself() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3"), move("t-0: 1,2,3 -> 2,3"))
    assert [(step.added, step.removed, step.move.bytes) for step in found] == [((), (1,), 0)]
    assert elected(found) == [None]


def test_an_old_leader_that_stays_behind_a_new_first_replica_is_voted_out() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3"), move("t-0: 1,2,3 -> 5,1,3"))
    assert (targets(found), elected(found)) == ([(5, 1, 3)], [5])


def test_a_leader_that_is_not_first_comes_first_while_others_move_so_that_it_is_not_elected_away_twice() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3 leader 2"), move("t-0: 1,2,3 -> 4,5,6"))
    assert targets(found) == [(2, 4, 3), (2, 4, 6), (4, 5, 6)]
    assert elected(found) == [None, None, None]


def test_a_leader_that_is_not_first_is_put_right_with_the_list() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3 leader 2"), move("t-0: 1,2,3 -> 1,2,6"))
    assert elected(found) == [1]


def test_dead_replicas_are_replaced_in_one_step_whatever_per_partition_says() -> None:
    observed = cluster("1a 2b! 3c! 4a 5b 6c", "t-0: 1,2,3 isr 1")
    found = steps(observed, move("t-0: 1,2,3 -> 4,5,6", Reason.DEAD_BROKER))
    assert targets(found) == [(1, 5, 6), (4, 5, 6)]
    assert [step.urgency for step in found] == [Urgency.REPAIR + 1, Urgency.REPAIRED]


def test_only_what_leaves_a_draining_broker_is_urgent() -> None:
    observed, leaving = cluster(BROKERS, "t-0: 1,2,3", "t-1: 2,4,1"), {3: BrokerState.DRAINING}
    at = situation(observed, desired(leaving), rules_of(observed, observed.topics, leaving=leaving, unfit=leaving), {})
    found = chains(Moves.of([move("t-0: 1,2,3 -> 1,2,6"), move("t-1: 2,4,1 -> 2,4,6")]), at)
    assert found.urgency.tolist() == [Urgency.DRAINING, URGENCY_OF[Reason.BALANCE]]
    assert found.depth.dtype == int  # also behind no step at all, as here


def test_while_the_preferred_leader_is_dead_copies_come_from_who_leads() -> None:
    observed = cluster("1a! 2b 3c 4b 5c", "t-0: 1,2,3 isr 2,3 leader 2")
    rules = rules_of(observed, observed.topics, Spread.IGNORE)
    rules = {name: replace(rule, leadable=frozenset({1, 4, 5})) for name, rule in rules.items()}
    found = steps_of(move("t-0: 1,2,3 -> 1,4,5"), situation(observed, desired({}, MovePolicy()), rules, {}))
    assert [(step.move.to_replicas, step.source) for step in found] == [((1, 4, 2), 2), ((1, 4, 5), 2)]


def test_a_shrink_of_a_partition_with_a_dead_replica_drops_that_one_first() -> None:
    observed = cluster("1a 2b! 3c 4a 5b 6c", "t-0: 1,2,3,4 isr 1,3,4")
    found = steps(observed, move("t-0: 1,2,3,4 -> 1,5,6"))
    assert targets(found) == [(1, 5, 3, 4), (1, 5, 6)]


def test_leadership_leaves_a_draining_broker_before_its_data() -> None:
    found = steps(
        cluster(BROKERS, "t-0: 1,2,3"),
        move("t-0: 1,2,3 -> 4,2,3", Reason.DRAINING, size=5),
        states={1: BrokerState.DRAINING},
    )
    assert targets(found) == [(2, 1, 3), (4, 2, 3)]
    assert elected(found) == [2, 4]
    assert [step.is_handover for step in found] == [True, False]
    assert [step.move.bytes for step in found] == [0, 5]
    assert [step.source for step in found] == [1, 2]


@pytest.mark.parametrize("state", [BrokerState.DRAINING, BrokerState.ABSENT, BrokerState.MAINTENANCE])
def test_the_heir_is_the_final_preferred_leader_where_it_can_be(state: BrokerState) -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3"), move("t-0: 1,2,3 -> 3,2,4"), states={1: state})
    assert (targets(found), elected(found)) == ([(3, 1, 2), (3, 2, 4)], [3, None])


@pytest.mark.parametrize(
    ("line", "way", "resting", "expected"),
    [
        ("t-0: 1,2,3", "t-0: 1,2,3 -> 2,1,3", (), None),
        ("t-0: 1,2,3 leader 3", "t-0: 1,2,3 -> 1,2,3,5", (), None),
        ("t-0: 1,2,3 leader 3", "t-0: 1,2,3 -> 1,3", (3,), 1),
        ("t-0: 1,2,3 leader 3", "t-0: 1,2,3 -> 3,2,4", (3,), None),
    ],
    ids=["another is to lead", "another leads", "a leader at rest", "all are at rest"],
)
def test_with_elections_off_a_leader_stays_after_a_move_unless_it_must_not_lead(
    line: str, way: str, resting: tuple[int, ...], expected: int | None
) -> None:
    states = dict.fromkeys(resting, BrokerState.MAINTENANCE)
    found = steps(cluster(BROKERS, line), move(way), states=states, is_election_wanted=False)
    assert elected(found) == [expected]


def test_the_heir_is_in_sync() -> None:
    observed = cluster(BROKERS, "t-0: 1,2,3 isr 1,3")
    found = steps(observed, move("t-0: 1,2,3 -> 2,3,4"), states={1: BrokerState.DRAINING})
    assert found[0].elected == 3


def test_without_an_in_sync_heir_leader_and_data_leave_together() -> None:
    observed = cluster(BROKERS, "t-0: 1,2,3 isr 1")
    found = steps(observed, move("t-0: 1,2,3 -> 4,2,3"), states={1: BrokerState.DRAINING})
    assert (targets(found), elected(found)) == ([(4, 2, 3)], [None])


def test_a_sole_replica_moves_without_an_election() -> None:
    found = steps(cluster(BROKERS, "t-0: 1"), move("t-0: 1 -> 4"), states={1: BrokerState.DRAINING}, spread=None)
    assert (targets(found), elected(found)) == ([(4,)], [None])


def test_a_draining_leader_with_a_dead_follower_hands_over_with_the_repair() -> None:
    observed = cluster("1a 2b 3c! 4a 5b 6c", "t-0: 1,2,3 isr 1,2")
    found = steps(observed, move("t-0: 1,2,3 -> 4,2,6"), states={1: BrokerState.DRAINING})
    assert (targets(found), elected(found)) == ([(2, 6, 1), (4, 2, 6)], [2, 4])
    assert found[0].urgency == Urgency.REPAIR + 2


def test_a_leader_hands_over_without_a_copy_where_enough_replicas_stay() -> None:
    observed = cluster("1a 2b 3c! 4a 5c 6b", "t-0: 1,2,3,5 isr 1,2,5")
    found = steps(observed, move("t-0: 1,2,3,5 -> 4,6,5"), states={1: BrokerState.DRAINING})
    assert [step.added for step in found] == [(), (4,), (6,)]
    assert targets(found)[0] == (5, 1, 2)


def test_an_heir_that_appears_on_the_way_takes_over_before_the_data_goes() -> None:
    observed = cluster("1a 2b! 3c! 4a 5b 6c", "t-0: 1,2,3 isr 1")
    found = steps(observed, move("t-0: 1,2,3 -> 4,5,6"), states={1: BrokerState.DRAINING})
    assert (targets(found), elected(found)) == ([(5, 6, 1), (4, 5, 6)], [5, 4])


def test_a_dead_replica_stays_listed_while_the_leader_hands_over_where_the_racks_ask_for_it() -> None:
    observed = cluster("1a! 2b 3b 4a 5b", "t-0: 1,2,3 leader 2 isr 2,3")
    found = steps(observed, move("t-0: 1,2,3 -> 5"), states={2: BrokerState.DRAINING})
    assert (targets(found), elected(found)) == ([(3, 1, 2), (5,)], [3, None])
    assert [step.urgency for step in found] == [Urgency.REPAIR + 2, Urgency.REPAIR + 2]


def test_where_kafka_would_not_list_a_dead_broker_again_leader_and_data_leave_together() -> None:
    observed = cluster("1a! 2b 3b 4a 5b 7a!", "t-0: 1,7,9,2,3 leader 2 isr 2,3")
    found = steps(observed, move("t-0: 1,7,9,2,3 -> 5"), states={2: BrokerState.DRAINING})
    assert (targets(found), elected(found)) == ([(5,)], [None])


def test_who_may_lead_by_the_rules_or_not_takes_over_from_a_draining_broker() -> None:
    observed = cluster("1a 2b! 3c! 4a 5b 6c", "t-0: 1,2,3 isr 1")
    wanted = desired({1: BrokerState.DRAINING}, MovePolicy(per_partition=1))
    rules = rules_of(observed, ["t"], leaving=[1], unfit=[1, 5, 6])
    found = steps_of(move("t-0: 1,2,3 -> 4,5,6"), situation(observed, wanted, rules, {}))
    assert (targets(found), elected(found)) == ([(5, 6, 1), (4, 5, 6)], [5, 4])


def test_two_dead_replicas_of_a_falling_factor_are_both_replaced_at_once_where_the_racks_ask_for_it() -> None:
    observed = cluster("1b! 2c 3a! 4b 5c 6a 8c", "t-0: 1,5,3,2 leader 5 isr 5,2")
    found = steps(observed, move("t-0: 1,5,3,2 -> 4,8,6", Reason.DEAD_BROKER))
    assert targets(found) == [(5, 4, 6, 2), (4, 8, 6)]


def test_where_no_exchange_keeps_the_racks_the_least_bad_one_is_taken() -> None:
    observed = cluster("1a 2a 3b 4b 5c 6c", "t-0: 1,3,5")
    found = steps(observed, move("t-0: 1,3,5 -> 2,1,3"), spread=Spread.PREFER)
    assert targets(found)[-1] == (2, 1, 3)


def test_a_reorder_is_one_step_of_no_bytes() -> None:
    found = steps(cluster(BROKERS, "t-0: 1,2,3"), move("t-0: 1,2,3 -> 2,1,3", Reason.LEADERS))
    assert [(step.move.bytes, step.elected, step.urgency) for step in found] == [(0, 2, Urgency.LEADERS)]
