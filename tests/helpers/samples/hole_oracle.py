"""What is to be estimated in time buckets without a rate, in plain Python: none of the code that it checks."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Partition = tuple[str, str, int]
Series = Mapping[tuple[str, str, int, str], Mapping[int, int]]
"""What is known of a cluster's, topic's, partition's rate: whole thousandths by the bucket's start in seconds."""
HOUR = 3600
WAYS = ("filledByHour", "filledByP95", "filledByTopic", "notFilled")


@dataclass
class Fills:
    """Estimates in thousandths by partition, bucket and rate; and by partition, how many buckets in which way."""

    rates: dict[Partition, dict[int, dict[str, int]]] = field(default_factory=lambda: defaultdict(dict))
    counts: dict[Partition, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))


def expected_fills(series: Series) -> Fills:
    """Return what a careful person would put in."""
    ways: dict[tuple[Partition, int], int] = {}
    fills = Fills()
    for cluster, rate in sorted({(key[0], key[3]) for key in series}):
        known = {key[1:3]: told for key, told in series.items() if (key[0], key[3]) == (cluster, rate)}
        for (topic, partition), of_bucket in _of_one_rate(known).items():
            key = (cluster, topic, partition)
            for bucket, (value, way) in of_bucket.items():
                ways[key, bucket] = max(ways.get((key, bucket), 0), way)
                if value is not None:
                    fills.rates[key].setdefault(bucket, {})[rate] = value
    for (key, _), way in ways.items():
        fills.counts[key][WAYS[way]] += 1
    return fills


def whole(value: float) -> int:
    """Return the nearest whole number."""
    return math.floor(value + 0.5)


def percentile(values: Iterable[int]) -> float:
    """Return the 95th percentile, interpolated linearly between the closest ranks."""
    ordered = sorted(values)
    place = 0.95 * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _of_one_rate(
    known: Mapping[tuple[str, int], Mapping[int, int]],
) -> dict[tuple[str, int], dict[int, tuple[int | None, int]]]:
    grid = sorted({bucket for told in known.values() for bucket in told})
    due: dict[int, int] = defaultdict(int)
    for bucket in grid:
        due[_hour(bucket)] += 1
    own = {key: told for key, told in known.items() if 4 * len(told) >= len(grid)}
    usual = {key: whole(percentile(told.values())) for key, told in own.items()}
    hours = {key: _hours(told, due) for key, told in own.items()}
    found: dict[tuple[str, int], dict[int, tuple[int | None, int]]] = defaultdict(dict)
    for bucket in grid:
        hour = _hour(bucket)
        here = {key: told[bucket] for key, told in own.items() if bucket in told}
        in_hour = {key: of[hour] for key, of in hours.items() if hour in of}
        for key, told in known.items():
            if bucket in told:
                continue
            if 10 * len(told) < len(grid):
                found[key][bucket] = None, 3
            elif key in in_hour:
                found[key][bucket] = whole(in_hour[key] * _factor(key[0], here, in_hour, usual)), 0
            elif key in usual:
                found[key][bucket] = whole(usual[key] * _factor(key[0], here, usual, usual)), 1
            else:
                others = [value for (topic, _), value in here.items() if topic == key[0]]
                found[key][bucket] = (whole(sum(others) / len(others)), 2) if others else (None, 3)
    return found


def _hour(bucket: int) -> int:
    return bucket // HOUR % 168


def _hours(told: Mapping[int, int], due: Mapping[int, int]) -> dict[int, int]:
    seen: dict[int, list[int]] = defaultdict(list)
    for bucket, value in told.items():
        seen[_hour(bucket)].append(value)
    return {hour: whole(sum(of) / len(of)) for hour, of in seen.items() if 2 * len(of) >= due[hour]}


def _factor(
    topic: str,
    here: Mapping[tuple[str, int], int],
    usual: Mapping[tuple[str, int], int],
    weights: Mapping[tuple[str, int], int],
) -> float:
    """Return how much more than usual the others of the topic carry here; else those of the cluster; else 1."""
    for of in (lambda key: key[0] == topic, lambda _: True):
        seen = [key for key in usual if of(key) and key in here]
        base = sum(usual[key] for key in seen)
        if base > 0 and 4 * sum(weights[key] for key in seen) >= sum(weights[key] for key in weights if of(key)):
            return sum(here[key] for key in seen) / base
    return 1.0
