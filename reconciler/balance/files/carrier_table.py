"""Numbers what carries partitions, and counts what it holds: the log dirs (or brokers) of replicas, and topics.

Sums over partitions then go by these few numbers, and not by names.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from reconciler.balance.files.arrow_tables import INT, LONG, TEXT, ArrowTable
from reconciler.balance.files.assignment_table import BEFORE
from reconciler.model.columns import Bools, Ints, alike, counted

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
    table = partitions.combine_chunks()
    counts = np.diff(table["replicas"].combine_chunks().offsets.to_numpy()).astype(np.int64)
    row = np.repeat(np.arange(len(table)), counts)
    place, places = _numbered(_places(table, row))
    part, topics = _numbered(_parts(table))
    part += len(places)
    named = pa.concat_tables([_named(places), _named(topics)]).combine_chunks()
    is_total = (np.arange(len(named)) >= len(places)) & (named["side"].to_numpy() == BEFORE)
    held = _held(_amounts(table, row, counted(counts) == 0), (place, part[row]), len(named))
    carriers = {"carrier": np.arange(len(named)), **dict(zip(_NAMES, named.columns, strict=True)), "is_total": is_total}
    return _with_numbers(table, counts, place, part), pa.table({**carriers, **held})


def _with_numbers(table: ArrowTable, counts: Ints, place: Ints, part: Ints) -> ArrowTable:
    starts = np.concatenate(([0], np.cumsum(counts + 1)))
    numbers = np.insert(place, np.cumsum(counts), part)
    listed = pa.ListArray.from_arrays(pa.array(starts, INT), pa.array(numbers, LONG))
    return table.drop(["racks", "log_dirs"]).append_column("carriers", listed)


def _places(table: ArrowTable, row: Ints) -> dict[str, pa.Array]:
    """Return where each replica stands; it is one of the partition in that row."""
    return {
        **{name: table[name].take(pa.array(row)) for name in ("side", "cluster")},
        "broker": _flat(table, "replicas"),
        **{name: _flat(table, f"{name}s").fill_null("") for name in ("rack", "log_dir")},
    }


def _parts(table: ArrowTable) -> dict[str, pa.Array]:
    parts = pa.array(table["partition"].to_numpy() // PART)
    return {**{name: table[name] for name in ("side", "cluster", "topic")}, "part": parts}


def _numbered(columns: Mapping[str, pa.Array]) -> tuple[Ints, ArrowTable]:
    """Return for each row the number of what it is, and the table of these; equal rows are one."""
    rows = pa.table(dict(columns))
    codes = [column.dictionary_encode().combine_chunks().indices.to_numpy() for column in rows.columns]
    first, number = alike([code.astype(np.int64) for code in codes])
    return number, rows.take(pa.array(first))


def _named(some: ArrowTable) -> ArrowTable:
    """Return the table with all names."""
    has = some.column_names
    nothing = {name: pa.repeat(pa.scalar(_NONE[kind], kind), len(some)) for name, kind in _NAMES.items()}
    return pa.table({name: some[name] if name in has else nothing[name] for name in _NAMES})


def _amounts(table: ArrowTable, row: Ints, is_preferred: Bools) -> dict[str, Ints | Bools]:
    """Return what each replica counts for."""
    leads = _flat(table, "replicas").to_numpy() == table["leader"].fill_null(-1).to_numpy()[row]
    sizes = _flat(table, "sizes")
    return {
        "replicas": np.ones(len(row), dtype=np.int64),
        "leaders": leads,
        "preferred_leaders": is_preferred,
        "preferred_led": is_preferred & leads,
        "size_bytes": sizes.fill_null(0).to_numpy(),
        "unknown_sizes": sizes.is_null().to_numpy(zero_copy_only=False),
    }


def _held(amounts: Mapping[str, Ints | Bools], carriers: tuple[Ints, Ints], count: int) -> dict[str, Ints]:
    """Return the sums of these amounts for each carrier; a replica has two."""
    held = {name: np.zeros(count, dtype=np.int64) for name in amounts}
    for name, amount in amounts.items():
        for of in carriers:
            np.add.at(held[name], of, amount.astype(np.int64))
    return held


def _flat(table: ArrowTable, name: str) -> pa.Array:
    return table[name].combine_chunks().flatten()
