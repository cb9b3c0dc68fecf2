"""Makes Arrow tables of rows, which Spark takes as they are, and writes and reads their files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

ArrowTable: TypeAlias = pa.Table
TEXT, INT, LONG, DOUBLE, YES_NO = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
INTS = pa.list_(INT)
TEXT_BY_TEXT = pa.map_(TEXT, TEXT)


def arrow_table(columns: Mapping[str, pa.DataType], rows: Iterable[tuple[object, ...]]) -> ArrowTable:
    """Return a table with these columns, whose rows have their values in this order."""
    held: list[list[object]] = [[] for _ in columns]
    for row in rows:
        for column, value in zip(held, row, strict=True):
            column.append(value)
    arrays = [pa.array(values, kind) for values, kind in zip(held, columns.values(), strict=True)]
    return pa.table(dict(zip(columns, arrays, strict=True)))


def write_arrow(table: ArrowTable, path: Path) -> None:
    """Write the table as an Arrow file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def read_arrow(path: Path) -> ArrowTable:
    """Return the table of an Arrow file; an empty one has columns of one empty part, as Spark wants them."""
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    return table if table.num_rows else table.schema.empty_table()
