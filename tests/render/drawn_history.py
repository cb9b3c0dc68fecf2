"""Histories of any size, drawn with a seed, for those who show them."""

from datetime import UTC, datetime, timedelta
from math import cos, pi
from random import Random

from reconciler.balance.model.history import (
    Carried,
    Cause,
    Changed,
    Changes,
    Contribution,
    History,
    Placement,
    Shift,
    SkewAt,
    SlowBroker,
    Slowness,
    Step,
)
from reconciler.model.evenness import Evenness

_START = datetime(2026, 3, 2, tzinfo=UTC)
_MIB = 1024**2


def drawn_history(random: Random, brokers: int, *, days: int = 28, topic: str = "team.topic") -> History:
    """Return a history of that many brokers: load by day and week, noise, and all that may be told."""
    heat = {None: float(brokers)} | {one: random.lognormvariate(0, 0.5) for one in range(1, brokers + 1)}
    causes = (
        Contribution(
            Cause.TOPIC, topic, is_new=True, bytes_in=Shift(0, 70 * _MIB), bytes_out=Shift(0, 90 * _MIB), share=0.6
        ),
        Contribution(Cause.LEADERSHIP, from_broker=1, to_broker=2, bytes_in=Shift(0, 8), bytes_out=None, share=0.2),
        Contribution(Cause.REPLICAS, from_broker=1, to_broker=2, bytes_in=Shift(9, 3), size_bytes=Shift(7, 5)),
        *(Contribution(Cause.TOPIC, f"{topic}-{number}", bytes_in=Shift(9, 3), share=0.1) for number in range(7)),
    )
    scopes = tuple(
        Changed(broker, Shift(9 * _MIB, 80 * _MIB), Shift(9 * _MIB, 100 * _MIB), Shift(7, 9), causes)
        for broker in (None, *range(1, min(brokers, 3) + 1))
    )
    slow = SlowBroker(1, Slowness.PERSISTENT, _at(3), _at(5), 50, 1420.5, 24.1, 9 * _MIB)
    return History(
        step=Step.DAY,
        periods=tuple(_at(day) for day in range(days)),
        hours_of_week=tuple(_carried(random, one, weight, 168, 1) for one, weight in heat.items()),
        series=tuple(_carried(random, one, weight, days, 24) for one, weight in heat.items()),
        skews=tuple(
            SkewAt(day, placement, *(_even(random) if told else None for told in (is_then, True, True, not is_then)))
            for day in range(days)
            for placement in Placement
            if (is_then := placement is Placement.THEN) or True
        ),
        changes=Changes(
            _at(14), _at(21), _at(28), of=scopes, brokers=(Contribution(Cause.BROKER, broker=1, bytes_in=Shift(9, 3)),)
        ),
        has_broker_samples=True,
        slow_brokers=(slow,),
    )


def _at(day: int) -> str:
    return f"{_START + timedelta(days=day):%Y-%m-%dT%H:%M:%SZ}"


def _carried(random: Random, broker: int | None, weight: float, count: int, hours: int) -> Carried:
    def rates(share: float) -> tuple[int | None, ...]:
        return tuple(
            None
            if random.random() < 0.01
            else round(share * weight * 40 * _MIB * _rhythm(at * hours) * random.lognormvariate(0, 0.1))
            for at in range(count)
        )

    return Carried(broker, rates(1.0), rates(1.7))


def _rhythm(hour: int) -> float:
    return (0.55 - 0.45 * cos(2 * pi * (hour % 24) / 24)) * (0.5 if hour % 168 >= 120 else 1.0)


def _even(random: Random) -> Evenness:
    return Evenness(1 + random.random(), random.random() / 2, random.random() / 4)
