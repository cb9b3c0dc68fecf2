"""Faults planted in staging on purpose: the laws' own little cluster must see each of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from staging.drawn import PART, Case, make_case
from staging.laws import LAWS

from reconciler.model.columns import Ints
from reconciler.model.move import Election
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging import chain, packing, stages
from reconciler.staging.disk import DiskUse
from reconciler.staging.log_dirs import BrokerDirs, Dir
from reconciler.staging.step import Situation, Step, Urgency, situation

pytestmark = pytest.mark.long


def caught_by(seeds: Sequence[int], case_of: Callable[[int], Case] = make_case) -> int | None:
    """Return the first seed in whose case some law sees a fault; without a fault none does, as test_laws shows."""
    for seed in seeds:
        case = case_of(seed)
        for check in LAWS:
            try:
                check(case)
            except AssertionError:
                return seed
    return None


def _no_heir(*_: object) -> None:
    return None


BEGIN = DiskUse.begin


def frees_early(disk: DiskUse, step: Step) -> None:
    BEGIN(disk, step)
    disk.end([step])


def _emptiest(dirs: BrokerDirs, topic_partition: TopicPartition, load: int) -> None:
    one = max(dirs.dirs, key=lambda one: (one.total - one.held, one.path))
    one.held += load
    one.logs += 1
    dirs.predicted[topic_partition] = one.path


def _in_one_order(_: object, _one: Dir, arrivals: int, _leaving: int) -> int:
    return min(1, arrivals)


MOST = BrokerDirs._most


def _last_of_equals(dirs: BrokerDirs, one: Dir, arrivals: int, leaving: int) -> int:
    return MOST(dirs, one, arrivals, leaving - 1)


def nothing_leaves(dirs: BrokerDirs, one: Dir, arrivals: int, _leaving: int) -> int:
    return MOST(dirs, one, arrivals, 0)


def _no_elections(_: object) -> tuple[Election, ...]:
    return ()


def _no_excess(*_: object) -> int:
    return 0


def _sorted_by_name(elections: Sequence[Election]) -> tuple[Election, ...]:
    return tuple(sorted(elections, key=lambda one: one.leader))


def _in_great_haste(*args: Any) -> Situation:  # noqa: ANN401 - passed on as they are
    return replace(situation(*args), per_partition=9)


def _blind_to_the_dead(*args: Any) -> Situation:  # noqa: ANN401 - passed on as they are
    right = situation(*args)
    return replace(right, alive=frozenset(right.observed.brokers))


def _all_alike(*_: object, **__: object) -> int:
    return Urgency.RULE


def _in_one_wave(steps: Sequence[Step], *_: object) -> Ints:
    return np.zeros(len(steps), dtype=np.int64)


MUTANTS: list[tuple[str, object, str, Callable[..., object]]] = [
    ("leaders of draining brokers are left to go with their data", chain, "_heir", _no_heir),
    ("what is balanced goes beside what is repaired", packing, "_waves", _in_one_wave),
    ("space is free before its move has ended", DiskUse, "begin", frees_early),
    ("the emptiest log dir is taken for the one with the fewest logs", BrokerDirs, "_predict", _emptiest),
    ("one replica a stage is reckoned to a log dir", BrokerDirs, "_most", _in_one_order),
    ("of log dirs with as many logs the other is always taken", BrokerDirs, "_most", _last_of_equals),
    ("a log dir has no fewer logs once one has left", BrokerDirs, "_most", nothing_leaves),
    ("repairs wait for balance", chain, "_urgency", _all_alike),
    ("elections are forgotten", stages, "spread_over_leaders", _no_elections),
    ("elections of one leader come in a row", stages, "spread_over_leaders", _sorted_by_name),
    ("racks are ignored on the way", chain, "_excess", _no_excess),
    ("too many replicas of a partition are copied at once", stages, "situation", _in_great_haste),
    ("dead replicas stay beside copies", stages, "situation", _blind_to_the_dead),
]


UNSPREAD = 33
"""In this case a stage elects several leaders of one broker."""


@pytest.mark.parametrize(("target", "name", "mutant"), [row[1:] for row in MUTANTS], ids=[row[0] for row in MUTANTS])
def test_a_planted_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch, target: object, name: str, mutant: Callable[..., object]
) -> None:
    monkeypatch.setattr(target, name, mutant)
    assert caught_by((*PART, UNSPREAD)) is not None
