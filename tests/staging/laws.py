"""Laws of any staging: a small cluster runs the stages and shares no code with them."""

from collections import Counter
from collections.abc import Sequence

from staging.disks import disks_are_counted_with_old_replicas_until_their_move_has_ended
from staging.drawn import Case
from staging.least_time import least_seconds
from staging.urgency import no_move_waits_for_a_less_urgent_one

from reconciler.model.stage import ElectStage, ReassignStage, elections_of
from reconciler.model.words import MANY


def imbalance(case: Case, replicas: Sequence[int], racks: Sequence[str]) -> int:
    """Return how many replicas are too many, or too few, in their racks: the rule's words as plain sums."""
    held = Counter(case.rack_of[replica] for replica in replicas)
    most, fewest = -(-len(replicas) // len(racks)), len(replicas) // len(racks)
    too_many = sum(count - most for count in held.values() if count > most)
    too_few = sum(fewest - held[rack] for rack in racks if held[rack] < fewest)
    return max(too_many, too_few)


def the_run_ends_where_the_moves_say_and_leads_where_the_lists_say(case: Case) -> None:
    seen = case.told()
    for move in case.moves:
        assert seen.replicas[move.topic_partition] == move.to_replicas
        assert seen.leaders[move.topic_partition] == move.to_replicas[0]
    moved = {move.topic_partition for move in case.moves}
    for election in case.elections:
        if election.topic_partition not in moved:
            assert seen.leaders[election.topic_partition] == election.leader
    touched = moved | {election.topic_partition for election in case.elections}
    for name, partition in case.observed.partitions():
        if name not in touched:
            assert (seen.replicas[name], seen.leaders[name]) == (partition.replicas, partition.leader)


def no_bytes_are_added_or_lost_on_the_way(case: Case) -> None:
    stages = [stage for stage in case.staged().stages if isinstance(stage, ReassignStage)]
    assert sum(stage.bytes for stage in stages) == sum(move.bytes for move in case.moves)
    assert sum(sum(copied.values()) for copied in case.told().copied) == sum(len(move.added) for move in case.moves)


def no_stage_takes_on_more_than_the_limits(case: Case) -> None:
    seen = case.told()
    assert max(seen.partitions, default=0) <= case.policy.per_stage
    dead_in = {
        name: sum(replica in case.dead for replica in partition.replicas)
        for name, partition in case.observed.partitions()
    }
    for copied in seen.copied:
        for name, copies in copied.items():
            assert copies <= max(case.policy.per_partition, dead_in[name])
    copied_at_once = [each for copied in seen.copied for each in sorted(copied.items())]
    over = [(name, copies) for name, copies in copied_at_once if copies > case.policy.per_partition]
    told = [each.message for each in case.staged().warnings if each.code == "KR883"]
    assert len(told) == bool(over)
    assert len(over) > MANY or all(f"{name}: {copies}" in told[0] for name, copies in over)


def the_rack_rule_is_never_broken_worse_than_before(case: Case) -> None:
    racks = case.rules["t"].racks
    for name, lists in case.told().steps.items():
        partition = case.observed.partition(name)
        assert partition is not None
        before = imbalance(case, partition.replicas, racks)
        for replicas in lists:
            after = imbalance(case, replicas, racks)
            assert after <= before, (name, lists)
            before = after


def living_replicas_are_never_fewer_than_now_or_wanted_and_no_dead_one_is_kept_beside_a_copy(case: Case) -> None:
    goal = {move.topic_partition: len(move.to_replicas) for move in case.moves}
    for name, lists in case.told().steps.items():
        partition = case.observed.partition(name)
        assert partition is not None
        before = partition.replicas
        for replicas in lists:
            living = sum(replica not in case.dead for replica in replicas)
            assert living >= min(sum(replica not in case.dead for replica in before), goal[name])
            if set(replicas) != set(before):
                assert case.dead.isdisjoint(replicas), "a target with a dead replica never ends"
            assert min(len(before), goal[name]) <= len(replicas) <= max(len(before), goal[name])
            before = replicas


def leadership_leaves_an_unfit_broker_before_its_data_while_another_can_lead(case: Case) -> None:
    for leader, replicas, in_sync in case.told().led_away:
        if leader in case.unfit:
            assert not in_sync - case.unfit - case.dead, (leader, replicas)


def elections_are_needed_and_spread_over_the_new_leaders(case: Case) -> None:
    assert case.told().useless_elections == 0
    stages = case.staged().stages
    assert not any(isinstance(one, ElectStage) for one in stages[1:]), "elections belong to the stage of their moves"
    for stage in stages:
        if isinstance(stage, ElectStage):
            assert stage.elections
        if isinstance(stage, ReassignStage):
            assert {one.topic_partition for one in stage.elections} <= {one.topic_partition for one in stage.moves}
        turns = [election.leader for election in elections_of(stage)]
        for index in range(1, len(turns)):
            if turns[index] == turns[index - 1]:
                assert set(turns[index:]) == {turns[index]}, "one broker twice in a row, while others still wait"


def each_estimate_is_at_least_its_busiest_brokers_and_at_most_all_copies_in_a_row(case: Case) -> None:
    stages = [stage for stage in case.staged().stages if isinstance(stage, ReassignStage)]
    rate = case.policy.throttle_bytes_per_second or 100 * 2**20
    for stage, busiest, copied in zip(stages, case.told().bytes_per_stage, case.told().copied, strict=True):
        is_copying = any(copied.values())
        in_a_row = sum(max(rate * 2 * len(move.added), move.bytes) for move in stage.moves if move.added)
        least, most = 5 + -(-busiest // rate), 5 + -(-in_a_row // rate)
        assert (least <= stage.estimated_seconds <= most + 1) if is_copying else stage.estimated_seconds == 0
        assert stage.throttle_bytes_per_second == (case.policy.throttle_bytes_per_second if is_copying else None)
    bound = least_seconds(case.staged().stages, case.observed, case.policy)
    assert bound <= sum(stage.estimated_seconds for stage in stages)


def stages_are_numbered_from_one_and_none_is_empty(case: Case) -> None:
    stages = case.staged().stages
    assert [stage.number for stage in stages] == list(range(1, len(stages) + 1))
    for stage in stages:
        assert not isinstance(stage, ReassignStage) or stage.moves


LAWS = (
    disks_are_counted_with_old_replicas_until_their_move_has_ended,
    the_run_ends_where_the_moves_say_and_leads_where_the_lists_say,
    no_bytes_are_added_or_lost_on_the_way,
    no_stage_takes_on_more_than_the_limits,
    no_move_waits_for_a_less_urgent_one,
    the_rack_rule_is_never_broken_worse_than_before,
    living_replicas_are_never_fewer_than_now_or_wanted_and_no_dead_one_is_kept_beside_a_copy,
    leadership_leaves_an_unfit_broker_before_its_data_while_another_can_lead,
    elections_are_needed_and_spread_over_the_new_leaders,
    each_estimate_is_at_least_its_busiest_brokers_and_at_most_all_copies_in_a_row,
    stages_are_numbered_from_one_and_none_is_empty,
)
