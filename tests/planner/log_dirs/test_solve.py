"""Brokers with many replicas: what is reached is reached again for nothing, and no other places beat the bound."""

from dataclasses import replace
from random import Random

import pytest
from helpers.depth import parts

from reconciler.planner.log_dirs.solve import NOWHERE, DirTask, solve

pytestmark = pytest.mark.long

WORK = 0.1


def drawn(seed: int) -> DirTask:
    """Return a broker whose log dirs are filled at random, some bands within reach and some not."""
    random = Random(seed)
    count, dirs = random.choice((20, 40, 90, 200, 500)), random.choice((2, 3, 4, 8))
    total = [10**12 * random.choice((1, 1, 2)) for _ in range(dirs)]
    sizes = [random.lognormvariate(0, random.choice((0.5, 1.2, 2.5))) for _ in range(count)]
    scale = 0.6 * sum(total) / sum(sizes)
    size = tuple(int(one * scale) for one in sizes)
    weights = [random.random() ** 2 for _ in range(dirs)]
    is_drained = random.random() < 0.4
    home = tuple(
        NOWHERE if is_drained and random.random() < 0.2 else random.choices(range(dirs), weights)[0] for _ in size
    )
    fixed = tuple(random.randint(0, 10**10) for _ in range(dirs))
    share = (sum(size) + sum(fixed)) / sum(total)
    return DirTask(
        total=tuple(total),
        allowed=tuple(8 * one // 10 for one in total),
        low=tuple(int(0.93 * share * one) for one in total),
        high=tuple(int(1.07 * share * one) for one in total),
        fixed=fixed,
        size=size,
        home=home,
    )


@parts("seeds", range(15), deep=range(1000))
def test_places_that_were_found_cost_nothing_again_and_little_more_is_moved_than_the_bound(seeds: range) -> None:
    kept = []
    for seed in seeds:
        task = drawn(seed)
        found = solve(task, WORK)
        assert found == solve(task, WORK), seed
        assert found.cost == task.cost(found.dirs), seed
        assert 0 <= found.least <= found.cost.moved, seed
        again = solve(replace(task, home=found.dirs), WORK)
        assert again.dirs == found.dirs, seed
        if NOWHERE not in task.home:
            assert found.cost <= task.cost(task.home), seed
        if not found.cost.outside and not found.cost.excess:
            kept.append((task, found))
    assert len(kept) > len(seeds) // 2
    moved, least = (sum(amounts) for amounts in zip(*((one.cost.moved, one.least) for _, one in kept), strict=True))
    assert moved <= 1.01 * least, (moved, least)
    # Moving any one replica back breaks a band, or was no move.
    for task, one in kept:
        for number, (home, place) in enumerate(zip(task.home, one.dirs, strict=True)):
            if home not in {NOWHERE, place} and task.size[number]:
                back = task.cost((*one.dirs[:number], home, *one.dirs[number + 1 :]))
                assert back.outside or back.excess, number
