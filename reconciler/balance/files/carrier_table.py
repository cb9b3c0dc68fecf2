"""Numbers what carries partitions, and counts what it holds: the log dirs (or brokers) of replicas, and topics.

Sums over partitions then go by these few numbers, and not by names. There are millions of replicas, so
memory is saved: one amount at a time, 32 bits where they suffice, and no copy of the whole table before the end.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from pyarrow import compute

from reconciler.balance.files.arrow_tables import INT, TEXT, ArrowTable
from reconciler.balance.files.assignment_table import BEFORE
from reconciler.model.columns import Bools, Ints, starts_of_runs

# A topic's partitions are carried so many at a time: one bit each in a whole number.
PART = 64
_NAMES = {"side": TEXT, "cluster": TEXT, "broker": INT, "rack": TEXT, "log_dir": TEXT, "topic": TEXT}
_NONE = {TEXT: "", INT: -1}


def with_carriers(partitions: ArrowTable) -> tuple[ArrowTable, ArrowTable]:
    """Return the rows of `assignment_table.partition_table` with their carriers, and the table of all carriers.

    The first has `carriers` in place of racks and log_dirs: the number of each replica's place, then that of the topic.
    A topic is one carrier for each 64 of its partitions. The second has carrier, then side, cluster, broker, rack,
    log_dir, topic (-1 or an empty text where one does not apply or is not known), is_total (a topic of before: these
    hold each partition once), then what it holds: replicas, leaders, preferred_leaders, preferred_led, size_bytes (of
    those that are known), unknown_sizes.
    """
    counts = compute.list_value_length(partitions["replicas"]).to_numpy()
    place, places = _places(partitions, counts)
    part, topics = _topics(partitions)
    part = part + len(places)
    carriers = _named(places, topics)
    held = _held(partitions, counts, (place, np.repeat(part, counts)), len(places) + len(topics))
    return _with_numbers(partitions, counts, place, part), pa.table({**carriers, **held})


def _with_numbers(table: ArrowTable, counts: Ints, place: Ints, part: Ints) -> ArrowTable:
    starts = np.concatenate(([0], np.cumsum(counts + 1)))
    is_place = np.ones(starts[-1], dtype=np.bool_)
    is_place[starts[1:] - 1] = False
    numbers = np.empty(len(is_place), dtype=np.int64)
    numbers[is_place], numbers[~is_place] = place, part
    listed = pa.ListArray.from_arrays(pa.array(starts, INT), pa.array(numbers))
    return table.drop(["racks", "log_dirs"]).combine_chunks().append_column("carriers", listed)


def _places(table: ArrowTable, counts: Ints) -> tuple[Ints, ArrowTable]:
    """Return for each replica the number of where it stands, and the table of these places."""
    cluster, _ = _numbered({name: table[name] for name in ("side", "cluster")})
    stands = {
        "broker": _flat(table, "replicas"),
        **{name: _flat(table, f"{name}s").fill_null("") for name in ("rack", "log_dir")},
    }
    number, first = _numbered({"cluster": pa.array(np.repeat(cluster, counts)), **stands})
    row = np.searchsorted(np.cumsum(counts), first, side="right")
    clusters = {name: table[name].take(pa.array(row)) for name in ("side", "cluster")}
    return number, pa.table({**clusters, **{name: each.take(pa.array(first)) for name, each in stands.items()}})


def _topics(table: ArrowTable) -> tuple[Ints, ArrowTable]:
    """Return for each partition the number of its part of a topic, and the table of these."""
    topics = {name: table[name] for name in ("side", "cluster", "topic")}
    number, first = _numbered({**topics, "part": pa.array(table["partition"].to_numpy() // PART)})
    return number, pa.table(topics).take(pa.array(first))


def _numbered(columns: Mapping[str, pa.Array]) -> tuple[Ints, Ints]:
    """Return for each row the number of what it is, and the first row of each number, ascending; equal rows are one."""
    table = pa.table(dict(columns))
    number: Ints = np.zeros(len(table), dtype=np.int32)
    for column in table.columns:
        code = column.dictionary_encode().combine_chunks()
        # Both are below 2^31: 64 bits hold every pair.
        pair = number * np.int64(len(code.dictionary)) + code.indices.to_numpy()
        number = pa.array(pair).dictionary_encode().indices.to_numpy()
    # Numbers are given in order: a row is the first of its number where the largest so far grows.
    return number, np.flatnonzero(starts_of_runs(np.maximum.accumulate(number)))


def _named(places: ArrowTable, topics: ArrowTable) -> dict[str, pa.Array]:
    """Return the columns that name all carriers."""
    named = pa.concat_tables([_with_names(places), _with_names(topics)]).combine_chunks()
    is_total = (np.arange(len(named)) >= len(places)) & (named["side"].to_numpy() == BEFORE)
    return {"carrier": np.arange(len(named)), **dict(zip(_NAMES, named.columns, strict=True)), "is_total": is_total}


def _with_names(some: ArrowTable) -> ArrowTable:
    """Return the table with all names."""
    has = some.column_names
    nothing = {name: pa.repeat(pa.scalar(_NONE[kind], kind), len(some)) for name, kind in _NAMES.items()}
    return pa.table({name: some[name] if name in has else nothing[name] for name in _NAMES})


def _held(table: ArrowTable, counts: Ints, carriers: tuple[Ints, Ints], count: int) -> dict[str, Ints]:
    """Return the sum of each amount for each carrier; a replica has two."""
    place, part = carriers
    amounts = _amounts(table, counts)
    return {name: _sums(amount, place, count) + _sums(amount, part, count) for name, amount in amounts}


def _amounts(table: ArrowTable, counts: Ints) -> Iterator[tuple[str, Ints | Bools]]:
    """Yield what each replica counts for, one amount after the other."""
    leads = _flat(table, "replicas").to_numpy() == np.repeat(table["leader"].fill_null(-1).to_numpy(), counts)
    is_preferred = np.zeros(len(leads), dtype=np.bool_)
    is_preferred[(np.cumsum(counts) - counts)[counts > 0]] = True
    yield "replicas", np.ones(len(leads), dtype=np.bool_)
    yield "leaders", leads
    yield "preferred_leaders", is_preferred
    yield "preferred_led", is_preferred & leads
    sizes = _flat(table, "sizes")
    yield "size_bytes", sizes.fill_null(0).to_numpy()
    yield "unknown_sizes", sizes.is_null().to_numpy()


def _sums(amount: Ints | Bools, of: Ints, count: int) -> Ints:
    if amount.dtype == np.bool_:
        return np.bincount(of[amount], minlength=count)
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, of, amount)
    return total


def _flat(table: ArrowTable, name: str) -> pa.ChunkedArray:
    return compute.list_flatten(table[name])
