"""Clusters that are even in truth, what they carry, and samples of it with holes: seeded, one pattern of loss each."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from helpers.clusters.small_cluster import small_cluster
from helpers.samples.sample_tables import START

from reconciler.model.cluster import Cluster

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rates = NDArray[np.float64]
    Seen = NDArray[np.bool_]

LOSSES = ("random", "outage", "election", "jumps")
BROKERS, TOPICS, TURNS = 4, 4, 4
RECORD = 1000  # bytes
_HOUR = 3600


@dataclass(frozen=True)
class Form:
    """How long samples go on, and how far apart they are, in seconds."""

    days: int
    step: int

    @property
    def buckets(self) -> int:
        """How many there would be without loss."""
        return self.days * 86_400 // self.step


@dataclass(frozen=True)
class Trace:
    """One cluster: what its partitions take in and send in each bucket, and the samples that were kept of it."""

    name: str
    loss: str
    cluster: Cluster
    leaders: tuple[int, ...]
    """The place of each partition's leader among the brokers; the next one follows."""
    bytes_in: "Rates"
    bytes_out: "Rates"
    columns: dict[str, Any]

    def carried(self, way: str) -> "Rates":
        """Return what each broker takes in or sends in each bucket, in truth."""
        total = np.zeros((BROKERS, self.bytes_in.shape[1]))
        for place, leader in enumerate(self.leaders):
            if way == "in":
                total[[leader, (leader + 1) % BROKERS]] += self.bytes_in[place]
            else:
                total[leader] += self.bytes_in[place] + self.bytes_out[place]
        return total


def trace(seed: int, form: Form) -> Trace:
    """Return that cluster: of days and weeks with their rhythm, of bursts of all or one topic, and of noise."""
    random = np.random.default_rng(seed)
    loss = LOSSES[seed % len(LOSSES)]
    partitions = [(topic, number) for topic in range(TOPICS) for number in range(BROKERS * TURNS)]
    leaders = tuple(number % BROKERS for _, number in partitions)
    lines = [
        f"t{topic}-{number}: {1 + number % BROKERS},{1 + (number + 1) % BROKERS} size 1000000000"
        for topic, number in partitions
    ]
    bytes_in = _rates(random, form)
    bytes_out = bytes_in * random.uniform(0.5, 3, TOPICS)[:, None].repeat(BROKERS * TURNS, axis=0)
    kept = _Kept(random, form, bytes_in, bytes_out, leaders)
    columns = kept.election() if loss == "election" else kept.measured(loss)
    name = f"{loss}-{seed:03}"
    columns |= {"cluster": [name] * len(columns["ts"])}
    cluster = small_cluster(*lines, brokers=range(1, BROKERS + 1))
    return Trace(name, loss, cluster, leaders, bytes_in, bytes_out, columns)


def _rates(random: np.random.Generator, form: Form) -> "Rates":
    at = np.arange(form.buckets) * form.step
    daily = 1 + random.uniform(0.2, 0.5) * np.sin(2 * np.pi * (at / 86_400 - random.random()))
    weekly = np.where(at // 86_400 % 7 >= 5, random.uniform(0.6, 1), 1.0)
    common = daily * weekly * _bursts(random, form)
    topics = [
        random.lognormal(14, 0.5) * common * _bursts(random, form) * random.lognormal(0, 0.1, form.buckets)
        for _ in range(TOPICS)
    ]
    each = np.repeat(np.array(topics), BROKERS * TURNS, axis=0)
    return np.asarray(each * random.lognormal(0, 0.05, each.shape))


def _bursts(random: np.random.Generator, form: Form) -> "Rates":
    found = np.ones(form.buckets)
    for _ in range(max(2, form.days // 2)):
        first = random.integers(form.buckets)
        found[first : first + random.integers(1, 1 + max(2, 1800 // form.step))] *= random.uniform(1.3, 2.5)
    return found


@dataclass
class _Kept:
    """What is left of the samples."""

    random: np.random.Generator
    form: Form
    bytes_in: "Rates"
    bytes_out: "Rates"
    leaders: tuple[int, ...]

    def measured(self, loss: str) -> dict[str, Any]:
        """Return samples of rates: some at random lost, or a broker's for an hour, or taken when the scraper could."""
        shape = self.bytes_in.shape
        seen, moments = np.ones(shape, dtype=bool), np.zeros(shape) + 5
        if loss == "random":
            seen = self.random.random(shape) >= 0.2
        elif loss == "outage":
            seen = self._outage()
        else:
            moments, seen = self._jumps()
        places, buckets = np.nonzero(seen)
        rates = (self.bytes_in[seen], self.bytes_out[seen], self.bytes_in[seen] / RECORD)
        return self._columns(places, buckets, moments[seen]) | dict(
            zip(("bytes_in", "bytes_out", "messages_in"), rates, strict=True)
        )

    def election(self) -> dict[str, Any]:
        """Return samples of offsets and sizes: a broker's logs were cut a little, others lag now and then."""
        grown = np.floor(self.bytes_in / RECORD * self.form.step).astype(np.int64)
        offsets = 10_000 + grown.cumsum(axis=1)
        at = self.random.integers(self.form.buckets // 4, self.form.buckets * 3 // 4)
        led = np.array(self.leaders) == self.random.integers(BROKERS)
        offsets[led, at:] -= (grown[led, at] * 3 // 2)[:, None]
        lags = self.random.random(grown.shape) < 0.01
        told = np.where(lags, offsets - grown * 13 // 10, offsets)
        seen = self.random.random(grown.shape) >= 0.05
        seen[led, at - 3600 // self.form.step : at] = False
        places, buckets = np.nonzero(seen)
        return self._columns(places, buckets, np.full(len(places), 5.0)) | {
            "end_offset": told[seen],
            "size_bytes": (offsets * RECORD)[seen],
        }

    def _outage(self) -> "Seen":
        seen = np.ones(self.bytes_in.shape, dtype=bool)
        first = self.random.integers(self.form.buckets - _HOUR // self.form.step)
        led = np.array(self.leaders) == self.random.integers(BROKERS)
        seen[led, first : first + _HOUR // self.form.step] = False
        return seen

    def _jumps(self) -> "tuple[Rates, Seen]":
        """Return a scraper that takes a third of a step from the first partition to the last, late by chance."""
        partitions, buckets = self.bytes_in.shape
        late = np.minimum(self.random.exponential(self.form.step / 4, buckets), 1.9 * self.form.step)
        moments = np.floor(late + np.arange(partitions)[:, None] / partitions * self.form.step / 3)
        seen = np.ones((partitions, buckets), dtype=bool)
        skipped = self.random.integers(buckets - 5)
        seen[:, skipped : skipped + 3] = False
        return moments, seen

    def _columns(self, places: Any, buckets: Any, moments: Any) -> dict[str, Any]:  # noqa: ANN401 - arrays
        per = BROKERS * TURNS
        return {
            "ts": START + buckets * self.form.step + moments,
            "topic": np.char.add("t", (places // per).astype(str)),
            "partition": places % per,
            "size_bytes": np.full(len(places), 10**9),
        }


def write_traces(folder: Path, traces: "list[Trace]") -> Path:
    """Write the samples of all traces, a file each."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True)
    types = {"bytes_in": pa.float64(), "bytes_out": pa.float64(), "messages_in": pa.float64(), "end_offset": pa.int64()}
    for one in traces:
        held = one.columns
        count = len(held["ts"])
        table = {
            "ts": pa.array((held["ts"] * 1_000_000).astype(np.int64), pa.timestamp("us", tz="UTC")),
            "cluster": pa.array(held["cluster"], pa.string()),
            "topic": pa.array(held["topic"].tolist(), pa.string()),
            "partition": pa.array(held["partition"], pa.int32()),
            "size_bytes": pa.array(held["size_bytes"], pa.int64()),
            **{
                name: pa.array(held[name], kind) if name in held else pa.nulls(count, kind)
                for name, kind in types.items()
            },
        }
        parquet.write_table(pa.table(table), folder / f"{one.name}.parquet")
    return folder
