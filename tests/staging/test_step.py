from staging.cases import cluster, desired, key, move

from reconciler.model.cluster import Partition
from reconciler.model.move_table import Moves
from reconciler.staging.step import situation


def test_a_partition_that_was_not_observed_has_no_leader_and_nothing_in_sync() -> None:
    at = situation(cluster("1a 2b", "t-0: 1,2"), desired(), {}, {})
    assert at.partition(key("t-7")) == Partition(7, leader=None, replicas=(), isr=())


def test_who_is_elected_before_the_first_move_leads_when_it_begins() -> None:
    observed = cluster("1a 2b", "t-0: 1,2", "t-1: 1,2")
    at = situation(observed, desired(), {}, {key("t-0"): 2})
    moves = Moves.of([move(f"{name}: 1,2 -> 2,1") for name in ("t-0", "t-1", "t-7", "u-0")])
    standings = at.standings(moves, at.leaders(moves))
    assert [(one.leader, one.isr) for one in standings] == [(2, (1, 2)), (1, (1, 2)), (None, ()), (None, ())]
