"""Writes samples as Parquet, in folders by cluster and day: what `collect` writes and `loads` reads.

    DIR/cluster=prod/date=2026-11-21/20261121T140211.000000Z-5f0c2b9a.parquet            partitions
    DIR/_replicas/cluster=prod/date=2026-11-21/20261121T140211.000000Z-5f0c2b9a.parquet  replicas on disk

Spark, DuckDB and pyarrow take no file or folder for data whose name begins with `_` or `.`, so DIR itself is a table of
partition samples, at a path as at a URI, and DIR/_replicas one of replica samples. Each file is one round of one
collector, has the column `cluster` too, and is whole: it gets its name when all of it is on disk.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from uuid import uuid4

from reconciler.balance.files.sample_files import REPLICA_COLUMNS, SAMPLE_COLUMNS
from reconciler.files.raw import write_atomically
from reconciler.model.problem import ReconcilerError
from reconciler.model.sample import ClusterSample

REPLICAS_FOLDER = "_replicas"
UNWRITTEN, NO_PYARROW = "KR141", "KR142"
# What Spark's ExternalCatalogUtils.escapePathName escapes, and every other reader of such folders takes back.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))


@dataclass(frozen=True, slots=True)
class Round:
    """What one round wrote; a file is None where there was nothing to write."""

    partitions: int
    replicas: int
    partitions_file: Path | None = None
    replicas_file: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that were written."""
        return tuple(file for file in (self.partitions_file, self.replicas_file) if file is not None)


def require_pyarrow() -> None:
    """Raise ReconcilerError, in one sentence, where samples cannot be written for want of the library."""
    _pyarrow()


def write_round(out: Path, cluster: str, at: datetime, sample: ClusterSample) -> Round:
    """Write one sample of every partition and replica of that cluster, each kind one new file, and return them."""
    moment = at.astimezone(UTC)
    name = f"{moment:%Y%m%dT%H%M%S.%fZ}-{uuid4().hex[:8]}.parquet"
    place = Path(f"cluster={escaped(cluster)}") / f"date={moment:%Y-%m-%d}" / name
    sizes = sample.sizes()
    partitions = [
        (moment, cluster, *key, None, None, None, sizes.get(key), sample.end_offsets.get(key))
        for key in sample.partitions()
    ]
    replicas = [
        (
            moment, cluster, one.broker_id, one.log_dir, *one.topic_partition,
            one.size_bytes, one.offset_lag, one.is_future,
        )
        for one in sample.replicas
    ]  # fmt: skip
    return Round(
        len(partitions),
        len(replicas),
        replicas_file=_write(out / REPLICAS_FOLDER / place, REPLICA_COLUMNS, replicas),
        partitions_file=_write(out / place, SAMPLE_COLUMNS, partitions),
    )


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
