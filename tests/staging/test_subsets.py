from collections.abc import Callable, Sequence

import pytest
from helpers.depth import parts
from staging.drawn import Case, make_case
from staging.laws import LAWS
from staging.subsets import disks_hold_in_every_part, partitions_are_safe_in_every_part
from staging.test_mutants import frees_early, nothing_leaves

from reconciler.staging.disk import DiskUse
from reconciler.staging.log_dirs import BrokerDirs

pytestmark = pytest.mark.long
WHOLE = range(1000, 1300)


def check(case: Case, seed: int) -> None:
    partitions_are_safe_in_every_part(case)
    disks_hold_in_every_part(case, seed, subsets=1000)


@pytest.mark.parametrize("is_tight", [False, True], ids=["wide", "tight"])
@parts("seeds", WHOLE[::60], deep=WHOLE)
def test_every_prefix_and_a_thousand_parts_of_each_stage_are_safe(seeds: Sequence[int], *, is_tight: bool) -> None:
    for seed in seeds:
        case = make_case(seed, is_tight=is_tight)
        try:
            check(case, seed)
            for kept in LAWS:
                kept(case)
        except AssertionError as error:
            error.add_note(f"make_case({seed}, is_tight={is_tight})")
            raise


@pytest.mark.parametrize(
    ("target", "name", "mutant", "seed"),
    [(BrokerDirs, "_most", nothing_leaves, 1099), (DiskUse, "begin", frees_early, 1000)],
    ids=["a log dir has no fewer logs once one has left", "space is free before its move has ended"],
)
def test_disks_that_are_counted_wrongly_are_caught(
    monkeypatch: pytest.MonkeyPatch, target: object, name: str, mutant: Callable[..., object], seed: int
) -> None:
    monkeypatch.setattr(target, name, mutant)
    with pytest.raises(AssertionError):
        check(make_case(seed, is_tight=True), seed)
