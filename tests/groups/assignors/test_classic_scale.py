"""Large groups: what Kafka's class needed minutes for comes out the same, at once."""

import pytest
from groups.classic_groups import counts, moved, owners, pairs_apart, rejoining
from groups.large_groups import four_sets, one_more

from reconciler.groups.assignors.registry import assignor_named

# Kafka 4.1.1's StickyAssignor arrived at these, and at the same owner of every partition, in 183 CPU seconds.
PAIR_SCORE = 10_100
MOVED = 149


@pytest.mark.long
def test_unequal_sticky_is_as_balanced_as_kafkas_and_moves_no_more() -> None:
    members, topics = four_sets()
    sticky = assignor_named("sticky")
    before = sticky.assign(members, topics)
    now = sticky.assign([*rejoining(members, before), one_more(members)], topics)
    assert pairs_apart(now) <= PAIR_SCORE
    assert moved(before, now) <= MOVED


def test_a_badly_balanced_group_is_evened_out_until_no_move_would_help() -> None:
    members, topics = four_sets(40, 20, 50)
    readers = {name: [member.member_id for member in members if name in member.subscription] for name in topics}
    skewed = {
        member.member_id: {name: tuple(range(50)) for name in topics if readers[name][0] == member.member_id}
        for member in members
    }
    now = assignor_named("sticky").assign(rejoining(members, skewed), topics)
    held = counts(now)
    assert all(
        held[owner] <= 1 + min(held[reader] for reader in readers[topic]) for (topic, _), owner in owners(now).items()
    )
    assert pairs_apart(now) < pairs_apart(skewed) // 100
