"""Samples of brokers over weeks, drawn with a seed: rhythm of days and weeks, bursts, pauses, and a slow disk."""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import cos, pi
from random import Random

WINDOW = 300
START = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp())  # a Monday
DAY = 86_400


@dataclass(frozen=True)
class Planted:
    """A broker that is slow from one second to another."""

    broker: int
    since: int
    until: int


@dataclass(frozen=True)
class SlowCluster:
    """What each broker tells of itself, one row a window: second, broker, flush in milliseconds, bytes a second in."""

    rows: list[tuple[int, int, float, float]]
    planted: Planted | None
    days: int
    brokers: int


def drawn(seed: int, days: int, *, has_slow: bool = True) -> SlowCluster:
    """Return a cluster; one of its brokers is four to twelve times as slow for six hours to three days."""
    random = Random(seed)
    brokers = random.randint(3, 12)
    planted = None
    if has_slow:
        since = START + random.randrange(DAY, (days - 1) * DAY)
        planted = Planted(random.randint(1, brokers), since, since + random.randrange(DAY // 4, 3 * DAY))
    factor = random.uniform(4, 12)
    rows = []
    burst_until, burst = 0, 1.0
    most, base = random.uniform(20, 200) * 1024**2, random.uniform(5, 80)
    own = {broker: random.uniform(0.6, 1.5) for broker in range(1, brokers + 1)}
    disks = {broker: random.uniform(0.75, 1.35) for broker in range(1, brokers + 1)}
    for second in range(START, START + days * DAY, WINDOW):
        if random.random() < 0.002:
            burst_until, burst = second + random.randrange(600, 7200), random.uniform(1.5, 4)
        if second >= burst_until:
            burst = 1.0
        for broker, weight in own.items():
            load = _rhythm(second) * weight * burst * random.lognormvariate(0, 0.1)
            flush = base * disks[broker] * (1 + 2 * load**2) * random.lognormvariate(0, 0.3)
            if random.random() < 0.004:
                flush += random.uniform(100, 2000)  # a pause of the garbage collector
            if planted is not None and planted.broker == broker and planted.since <= second < planted.until:
                flush *= factor
            if random.random() < 0.99:
                rows.append((second + random.randrange(WINDOW), broker, round(flush, 3), round(load * most, 3)))
    return SlowCluster(rows, planted, days, brokers)


def _rhythm(second: int) -> float:
    """Return the load of that hour: least at night, half at weekends."""
    of_day = 0.55 - 0.45 * cos(2 * pi * (second % DAY) / DAY)
    return of_day * (0.5 if (second - START) // DAY % 7 >= 5 else 1.0)
