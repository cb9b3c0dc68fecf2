"""Prints what the assignors cost: `python -m pytest tests/benchmarks -m benchmark -s`; no assertion is about time."""

from time import process_time

import pytest
from benchmarks.table import show
from groups.classic_groups import CLASSIC, COOPERATIVE, moved, pairs_apart, rejoining
from groups.large_groups import four_sets, one_more

from reconciler.groups.assignors.registry import assignor_named

pytestmark = pytest.mark.benchmark

SIZES = {"20,000 partitions": (200, 200, 100), "200,000 partitions": (2_000, 200, 1_000)}


@pytest.mark.parametrize("size", SIZES)
def test_one_member_joins_four_overlapping_subscription_sets(size: str) -> None:
    members, topics = four_sets(*SIZES[size])
    show(f"\n| {len(members):,} members, {size}, unequal; one joins | CPU s | pair score | moved |\n|---|---|---|---|")
    for name in CLASSIC:
        assignor = assignor_named(name)
        before = assignor.assign(members, topics)
        joined = [*rejoining(members, before), one_more(members)]
        started = process_time()
        now = assignor.assign(joined, topics)
        if name == COOPERATIVE:
            now = assignor.assign(rejoining(joined, now, 2), topics)
        spent = process_time() - started
        show(f"| {name} | {spent:.2f} | {pairs_apart(now):,} | {moved(before, now):,} |")
