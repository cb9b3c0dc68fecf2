"""Samples of brokers, as `collect` writes them beside those of partitions."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

MINUTES, MANY_MINUTES = 5, 240


def write_broker_samples(samples: Path, cluster: str, start: float, flushes: Mapping[int, float]) -> None:
    """Write what each broker tells every five minutes of four hours; its flushes take so long, in milliseconds."""
    import pyarrow as pa
    from pyarrow import parquet

    moments = [datetime.fromtimestamp(start + 60 * minute, UTC) for minute in range(0, MANY_MINUTES, MINUTES)]
    rows = [(moment, broker, flush) for moment in moments for broker, flush in flushes.items()]
    columns = {
        "ts": pa.array([moment for moment, _, _ in rows]),
        "cluster": pa.array([cluster for _ in rows]),
        "broker": pa.array([broker for _, broker, _ in rows], pa.int32()),
        "bytes_in": pa.array([5e6 for _ in rows]),
        "log_flush_ms": pa.array([flush for _, _, flush in rows]),
    }
    place = samples / "_brokers" / f"cluster={cluster}" / "date=2026-03-29"
    place.mkdir(parents=True)
    parquet.write_table(pa.table(columns), place / "part-0.parquet")
