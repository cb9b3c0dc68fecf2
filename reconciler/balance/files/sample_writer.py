"""Writes samples as Parquet, in folders by cluster and day: `collect` writes and `loads` reads them.

    DIR/cluster=prod/date=2026-11-21/20261121T140211.000000Z-5f0c2b9a.parquet

DIR itself is a table of samples, at a path as at a URI. Each file is one round of one collector, has the column
`cluster` too, and is whole: it gets its name when all of it is on disk.
"""

import io
from collections.abc import Sequence
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
_COLUMNS = {**SAMPLE_COLUMNS, LOG_START: "int64", ESTIMATED: "bool_"}
# What Spark's ExternalCatalogUtils.escapePathName escapes, and every other reader of such folders takes back.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round."""

    partitions: int
    replicas: int
    """How many replicas on disk the sizes of the partitions were taken from."""


def require_pyarrow() -> None:
    """Raise ReconcilerError, in one sentence, where samples cannot be written for want of the library."""
    _pyarrow()


def write_round(out: Path, cluster: str, at: datetime, sample: ClusterSample, *, rates: Shares | None = None) -> Round:
    """Write one sample of every partition of that cluster into one new file; without partitions, no file.

    `rates`: what partitions got of their topics' rates.
    """
    moment = at.astimezone(UTC)
    sizes = sample.sizes()
    shares = rates or {}
    rows = [
        (
            moment, cluster, *key, *(shares.get(key, {}).get(rate) for rate in RATES), sizes.get(key),
            sample.end_offsets.get(key), sample.start_offsets.get(key), key in shares,
        )
        for key in sample.partitions()
    ]  # fmt: skip
    if rows:
        name = f"{moment:%Y%m%dT%H%M%S.%fZ}-{uuid4().hex[:8]}.parquet"
        _write(out / f"cluster={escaped(cluster)}" / f"date={moment:%Y-%m-%d}" / name, rows)
    return Round(len(rows), len(sample.replicas))


def escaped(name: str) -> str:
    """Return a name as the value of a `key=value` folder, as Hive and Spark spell it."""
    return "".join(f"%{ord(each):02X}" if each in _ESCAPED else each for each in name)


def _write(path: Path, rows: Sequence[tuple[object, ...]]) -> None:
    """Write rows with the values of _COLUMNS. A log's start and `estimated` are columns only if a row has them."""
    arrow = _pyarrow()
    from pyarrow import parquet

    values = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True))
    if all(start is None for start in values[LOG_START]):
        del values[LOG_START]
    if not any(values[ESTIMATED]):
        del values[ESTIMATED]
    types = {name: getattr(arrow, kind) for name, kind in _COLUMNS.items() if kind != "timestamp"}
    moments = arrow.timestamp("us", tz="UTC")
    table = arrow.table(
        {name: arrow.array(each, types[name]() if name in types else moments) for name, each in values.items()}
    )
    content = io.BytesIO()
    parquet.write_table(table, content, compression="zstd")
    write_atomically(path, content.getvalue(), "samples", UNWRITTEN)


def _pyarrow() -> ModuleType:
    try:
        arrow = import_module("pyarrow")
    except ImportError:
        message = "samples are written with pyarrow, which is not installed: pip install 'WHEEL[loads]'"
        raise ReconcilerError(message, code=NO_PYARROW) from None
    return arrow
