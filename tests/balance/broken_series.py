"""Partitions with nothing wrong in their samples, beside others of which each has one thing wrong."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from helpers.samples.load_oracle import Row
from helpers.samples.sample_tables import START

MINUTE = 60
MINUTES = 30
CLEAN = 4


def _series(partition: int) -> list[Row]:
    """Return a partition's samples with nothing wrong, from files written in the order of time."""
    return [
        Row(
            START + minute * MINUTE + 5,
            "series",
            "t",
            partition,
            (partition + 1) / 7 * ((minute * 7919) % 31),
            None if minute % 11 == 3 else minute / 3,
            minute % 5 / 9,
            1000 + partition * minute**2 if minute % 4 else None,
            50 * minute if minute % 6 else None,
            minute // 10,
        )
        for minute in range(MINUTES)
    ]


def _reset(rows: list[Row]) -> list[Row]:
    return [*rows[:10], replace(rows[10], end_offset=3), *rows[11:]]


def _late(rows: list[Row]) -> list[Row]:
    return [replace(rows[2], written=3), *rows[:2], *rows[3:]]


def _one_other(**wrong: object) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [*rows[:4], replace(rows[4], **wrong), *rows[5:]]  # type: ignore[arg-type]


_BROKEN: Sequence[Callable[[list[Row]], list[Row]]] = (
    _reset,
    _late,
    lambda rows: [*rows, replace(rows[9], bytes_in=1e6)],
    lambda rows: [*rows, replace(rows[9], ts=(rows[9].ts or 0) + 1)],
    _one_other(bytes_in=None),
    _one_other(messages_in=None),
    _one_other(bytes_out=-1.0),
    _one_other(bytes_in=float("nan")),
    _one_other(ts=float(START + 10**9)),
    _one_other(ts=None),
)


def broken_series() -> list[Row]:
    """Return the samples of a cluster `series`: the first CLEAN partitions are sound, no other one is."""
    rows = [row for partition in range(CLEAN) for row in _series(partition)]
    for number, broken in enumerate(_BROKEN):
        rows += broken(_series(CLEAN + number))
    return [*rows, replace(rows[0], partition=None), replace(rows[0], cluster=None)]
