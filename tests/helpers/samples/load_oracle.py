"""What `loads` should find, in plain Python over lists: no Spark, and none of its code."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from helpers.samples.hole_oracle import Fills, expected_fills

RATES = ("bytes_in", "bytes_out", "messages_in")
MEASURES = (*RATES, "size_bytes", "end_offset")
Key = tuple[str, str, int]
DAY = 86_400.0


@dataclass
class Row:
    """One sample: seconds since 1970, and how late its file was written."""

    ts: float | None
    cluster: str | None
    topic: str | None
    partition: int | None
    bytes_in: float | None = None
    bytes_out: float | None = None
    messages_in: float | None = None
    size_bytes: int | None = None
    end_offset: int | None = None
    written: int = 0


@dataclass
class Expected:
    """Rows of the result by key, and the count of each rule by cluster."""

    loads: dict[Key, dict[str, Any]] = field(default_factory=dict)
    defects: dict[str | None, dict[str, int]] = field(default_factory=dict)
    busiest: dict[str, int | None] = field(default_factory=dict)


def expected_loads(rows: Sequence[Row], bucket: int, now: float) -> Expected:
    """Return what a careful person would work out by hand."""
    counts: dict[str | None, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    groups: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        tally = counts[row.cluster]
        clean = _clean(row, tally)
        if row.ts is None or row.cluster is None or row.topic is None or row.partition is None or row.partition < 0:
            tally["incomplete"] += 1
        elif row.ts > now:
            tally["future"] += 1
        else:
            groups[row.cluster, row.topic, row.partition].append(clean)
    series = {key: _one_a_moment(found, counts[key[0]]) for key, found in groups.items()}
    for key, found in series.items():
        _grow(found, counts[key[0]])
    return _summed_up(series, counts, bucket)


def _clean(row: Row, tally: dict[str, int]) -> dict[str, Any]:
    clean: dict[str, Any] = {name: getattr(row, name) for name in MEASURES}
    strange = [name for name in RATES if clean[name] is not None and not abs(clean[name]) <= 1e12]
    negative = [name for name in MEASURES if clean[name] is not None and clean[name] < 0]
    tally["notANumber"] += bool(strange)
    tally["negative"] += bool(negative)
    for name in (*strange, *negative):
        clean[name] = None
    return clean | {"ts": row.ts, "written": row.written}


def _rank(sample: dict[str, Any]) -> list[float]:
    values = (sample[name] for name in ("end_offset", "size_bytes", *RATES))
    return [sample["written"], *(-1 if value is None else value for value in values)]


def _one_a_moment(found: list[dict[str, Any]], tally: dict[str, int]) -> list[dict[str, Any]]:
    moments: dict[float, list[dict[str, Any]]] = defaultdict(list)
    for sample in found:
        moments[sample["ts"]].append(sample)
    kept = [max(moments[ts], key=_rank) for ts in sorted(moments)]
    tally["duplicate"] += len(found) - len(kept)
    for sample in kept:
        newer = [other["written"] for other in found if other["ts"] > sample["ts"]]
        tally["late"] += any(written < sample["written"] for written in newer)
    return kept


def _grow(kept: list[dict[str, Any]], tally: dict[str, int]) -> None:
    before: dict[str, Any] | None = None
    for place, sample in enumerate(kept):
        sample["messages"] = sample["bytes"] = sample["seconds"] = None
        if sample["end_offset"] is None and sample["size_bytes"] is None:
            continue
        is_anew, is_back = _fallen(kept, place)
        if is_back:
            tally["fallenOffset"] += 1
            continue
        if before is not None:
            _grow_one(sample, before, tally, is_anew=is_anew)
        before = sample
    telling = [each for each in kept if each["bytes"] is not None and (each["messages"] or 0) > 0]
    grown, messages = (sum(each[name] for each in telling) for name in ("bytes", "messages"))
    mean = grown / messages if grown > 0 else None
    for sample in kept:
        if sample["seconds"] is not None:
            _fill(sample, mean, tally)


def _fallen(kept: list[dict[str, Any]], place: int) -> tuple[bool, bool]:
    """Return whether this sample's log began anew, and whether its offset merely fell."""
    offsets = [sample["end_offset"] for sample in kept]
    here = offsets[place]
    older = next((offset for offset in reversed(offsets[:place]) if offset is not None), None)
    newer = next((offset for offset in offsets[place + 1 :] if offset is not None), None)
    if here is None or older is None or here >= older:
        return False, False
    is_anew = 2 * here < older and not (newer is not None and newer >= older)
    return is_anew, not is_anew


def _grow_one(sample: dict[str, Any], before: dict[str, Any], tally: dict[str, int], *, is_anew: bool) -> None:
    has_fallen = False
    if sample["end_offset"] is not None and before["end_offset"] is not None:
        has_fallen = is_anew
        messages = sample["end_offset"] - (0 if has_fallen else before["end_offset"])
        if messages < 0:
            tally["fallenOffset"] += 1
            return
        sample["messages"] = messages
    sample["seconds"] = sample["ts"] - before["ts"]
    tally["counterReset"] += has_fallen
    if has_fallen:
        sample["bytes"] = sample["size_bytes"]
    elif sample["size_bytes"] is not None and before["size_bytes"] is not None:
        difference = sample["size_bytes"] - before["size_bytes"]
        sample["bytes"] = difference if difference >= 0 else None


def _fill(sample: dict[str, Any], mean: float | None, tally: dict[str, int]) -> None:
    rates: dict[str, float | None] = {"messages_in": None, "bytes_in": None}
    if sample["messages"] is not None:
        rates["messages_in"] = sample["messages"] / sample["seconds"]
        if sample["messages"] == 0:
            rates["bytes_in"] = 0.0
        elif mean is not None:
            rates["bytes_in"] = sample["messages"] / sample["seconds"] * mean
    elif sample["bytes"] is not None:
        rates["bytes_in"] = sample["bytes"] / sample["seconds"]
    made = [name for name, value in rates.items() if sample[name] is None and value is not None]
    tally["estimated"] += bool(made)
    for name in made:
        sample[name] = rates[name]


def _summed_up(
    series: dict[Key, list[dict[str, Any]]], counts: dict[str | None, dict[str, int]], bucket: int
) -> Expected:
    result = Expected(defects=counts)
    buckets = {key: _buckets(found, bucket) for key, found in series.items() if found}
    for cluster in sorted({key[0] for key in buckets}):
        of = {key: found for key, found in buckets.items() if key[0] == cluster}
        fills = expected_fills(_series(of))
        result.busiest[cluster] = busiest = _busiest(of, fills)
        starts = sorted({start for found in of.values() for start in found})
        steps = sorted(after - before for before, after in pairwise(starts))
        step = steps[(len(steps) - 1) // 2] if steps else bucket
        for key, found in of.items():
            due = max((starts[-1] - starts[0]) // step + 1, len(found))
            counts[cluster]["gap"] += due - len(found)
            result.loads[key] = _load(found, busiest, fills.rates.get(key, {})) | {"coverage": len(found) / due}
            for way, count in fills.counts.get(key, {}).items():
                counts[cluster][way] += count
        for topic in {key[1] for key in of}:
            numbers = [key[2] for key in of if key[1] == topic]
            counts[cluster]["missingPartition"] += max(numbers) + 1 - len(numbers)
    return result


def _buckets(found: list[dict[str, Any]], bucket: int) -> dict[int, dict[str, Any]]:
    grouped: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for sample in found:
        grouped[math.floor(sample["ts"] / bucket) * bucket].append(sample)
    return {start: _bucket(samples) for start, samples in grouped.items()}


def _bucket(samples: list[dict[str, Any]]) -> dict[str, Any]:
    sized = [each for each in samples if each["size_bytes"] is not None]
    means = {rate: _mean([each[rate] for each in samples if each[rate] is not None]) for rate in RATES}
    return means | {
        "size_bytes": sized[-1]["size_bytes"] if sized else None,
        "size_at": sized[-1]["ts"] if sized else None,
    }


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _series(of: dict[Key, dict[int, dict[str, Any]]]) -> dict[tuple[str, str, int, str], dict[int, int]]:
    series: dict[tuple[str, str, int, str], dict[int, int]] = {}
    for key, found in of.items():
        for rate in RATES:
            known = {start: each[rate] for start, each in found.items() if each[rate] is not None}
            if known:
                series[(*key, rate)] = {start: math.floor(value * 1000 + 0.5) for start, value in known.items()}
    return series


def _busiest(of: dict[Key, dict[int, dict[str, Any]]], fills: Fills) -> int | None:
    totals: dict[int, int] = defaultdict(int)
    for found in of.values():
        for start, bucket in found.items():
            known = [bucket[name] for name in ("bytes_in", "bytes_out") if bucket[name] is not None]
            if known:
                totals[start] += sum(math.floor(value * 1000 + 0.5) for value in known)
    for made in fills.rates.values():
        for start, rates in made.items():
            totals[start] += sum(value for rate, value in rates.items() if rate != "messages_in")
    return min(totals, key=lambda start: (-totals[start], start)) if totals else None


def _load(found: dict[int, dict[str, Any]], busiest: int | None, fills: dict[int, dict[str, int]]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for rate in RATES:
        seen = {start: each[rate] for start, each in found.items() if each[rate] is not None}
        every = seen | {start: made[rate] / 1000 for start, made in fills.items() if rate in made}
        values = sorted(every.values())
        row[f"{rate}_avg"] = _mean(list(seen.values()))
        row[f"{rate}_p95"] = _between_ranks(values, 0.95)
        row[f"{rate}_max"] = values[-1] if values else None
        row[f"{rate}_peak"] = every.get(busiest) if busiest is not None else None
    sized = sorted((each["size_at"], each["size_bytes"]) for each in found.values() if each["size_at"] is not None)
    row["size_bytes"] = sized[-1][1] if sized else None
    row["growth_bytes_per_day"] = _slope([(at - sized[0][0], size) for at, size in sized])
    return row


def _between_ranks(values: list[float], share: float) -> float | None:
    if not values:
        return None
    place = share * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


def _slope(points: list[tuple[float, int]]) -> float | None:
    if len(points) < 2:
        return None
    middle = [math.fsum(each) / len(points) for each in zip(*points, strict=True)]
    spread = math.fsum((x - middle[0]) ** 2 for x, _ in points)
    return math.fsum((x - middle[0]) * (y - middle[1]) for x, y in points) / spread * DAY if spread else None
