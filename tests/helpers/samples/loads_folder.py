"""A folder of measured loads, as `loads` writes it, from a few rows."""

from collections.abc import Mapping
from pathlib import Path


def write_loads(
    folder: Path, cluster: str, rates: Mapping[tuple[str, int], tuple[int, int]], coverage: float | None = None
) -> str:
    """Write bytes in and out per second of each (topic, partition); the averages are half of the peaks."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    keys = sorted(rates)
    columns = {
        "cluster": [cluster] * len(keys),
        "topic": [topic for topic, _ in keys],
        "partition": [partition for _, partition in keys],
        "bytes_in_peak": [float(rates[key][0]) for key in keys],
        "bytes_out_peak": [float(rates[key][1]) for key in keys],
        "bytes_in_avg": [rates[key][0] / 2 for key in keys],
        "bytes_out_avg": [rates[key][1] / 2 for key in keys],
        "size_bytes": [1] * len(keys),
    }
    if coverage is not None:
        columns["coverage"] = [coverage] * len(keys)
    parquet.write_table(pa.table(columns), folder / "part-0.parquet")
    return str(folder)
