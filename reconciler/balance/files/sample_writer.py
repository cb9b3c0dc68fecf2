"""Writes samples as Parquet, in folders by cluster and day: `collect` writes and `loads` reads them.

    DIR/cluster=prod/date=2026-11-21/20261121T140211.000000Z-5f0c2b9a.parquet

DIR itself is a table of samples, at a path as at a URI. Each file is one round of one collector, has the column
`cluster` too, and is whole: it gets its name when all of it is on disk.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from uuid import uuid4

from reconciler.balance.files.sample_files import ESTIMATED, LOG_START, SAMPLE_COLUMNS
from reconciler.balance.model.shares import RATES, Shares
from reconciler.files.raw import write_atomically
from reconciler.model.problem import ReconcilerError
from reconciler.model.sample import ClusterSample

UNWRITTEN, NO_PYARROW = "KR141", "KR142"
# What Spark's ExternalCatalogUtils.escapePathName escapes, and every other reader of such folders takes back.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round; the file is None if there was nothing to write."""

    partitions: int
    replicas: int
    """How many replicas on disk the sizes of the partitions were taken from."""
    partitions_file: Path | None = None


def require_pyarrow() -> None:
    """Raise ReconcilerError, in one sentence, where samples cannot be written for want of the library."""
    _pyarrow()


def write_round(out: Path, cluster: str, at: datetime, sample: ClusterSample, *, rates: Shares | None = None) -> Round:
    """Write one sample of every partition of that cluster into one new file.

    `rates`: what partitions got of their topics' rates.
    """
    moment = at.astimezone(UTC)
    sizes = sample.sizes()
    shares = rates or {}
    partitions = [
        (
            moment, cluster, *key, *(shares.get(key, {}).get(rate) for rate in RATES), sizes.get(key),
            sample.end_offsets.get(key), sample.start_offsets.get(key), key in shares,
        )
        for key in sample.partitions()
    ]  # fmt: skip
    file = _write_partitions(out / new_place(cluster, moment), partitions)
    return Round(len(partitions), len(sample.replicas), file)


def new_place(cluster: str, moment: datetime) -> Path:
    """Return a new file's place below the folder of the samples, for samples of that moment (UTC)."""
    name = f"{moment:%Y%m%dT%H%M%S.%fZ}-{uuid4().hex[:8]}.parquet"
    return Path(f"cluster={escaped(cluster)}") / f"date={moment:%Y-%m-%d}" / name


def _write_partitions(path: Path, rows: Sequence[tuple[object, ...]]) -> Path | None:
    """Write rows that end in a log's start, and in whether rates are estimated: columns that are there where any is."""
    columns = {**SAMPLE_COLUMNS, LOG_START: "int64", ESTIMATED: "bool_"}
    unused = {
        *(() if any(row[-2] is not None for row in rows) else (LOG_START,)),
        *(() if any(row[-1] for row in rows) else (ESTIMATED,)),
    }
    places = [place for place, name in enumerate(columns) if name not in unused]
    kept = {name: kind for name, kind in columns.items() if name not in unused}
    return _write(path, kept, [tuple(row[place] for place in places) for row in rows])


def escaped(name: str) -> str:
    """Return a name as the value of a `key=value` folder, as Hive and Spark spell it."""
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in name)


def _write(path: Path, columns: Mapping[str, str], rows: Sequence[tuple[object, ...]]) -> Path | None:
    """Write the rows, whose values are in the order of the columns; no rows, no file."""
    if not rows:
        return None
    arrow = _pyarrow()
    from pyarrow import parquet

    schema = arrow.schema(
        [
            (name, arrow.timestamp("us", tz="UTC") if kind == "timestamp" else getattr(arrow, kind)())
            for name, kind in columns.items()
        ]
    )
    arrays = [arrow.array(values, type=each.type) for values, each in zip(zip(*rows, strict=True), schema, strict=True)]
    content = io.BytesIO()
    parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), content, compression="zstd")
    write_atomically(path, content.getvalue(), "samples", UNWRITTEN)
    return path


def _pyarrow() -> ModuleType:
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        message = "samples are written with pyarrow, which is not installed: pip install 'kafka-reconciler[loads]'"
        raise ReconcilerError(message, code=NO_PYARROW) from None
    return arrow
