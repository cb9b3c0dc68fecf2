"""Rows as Arrow tables, which Spark takes as they are."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import pyarrow as pa

ArrowTable: TypeAlias = pa.Table
TEXT, INT, LONG, YES_NO = pa.string(), pa.int32(), pa.int64(), pa.bool_()
TEXTS, INTS, LONGS = pa.list_(TEXT), pa.list_(INT), pa.list_(LONG)
TEXT_BY_TEXT = pa.map_(TEXT, TEXT)


def arrow_table(columns: Mapping[str, pa.DataType], rows: Iterable[tuple[object, ...]]) -> ArrowTable:
    """Return a table with these columns, whose rows have their values in this order."""
    held: list[list[object]] = [[] for _ in columns]
    for row in rows:
        for column, value in zip(held, row, strict=True):
            column.append(value)
    arrays = [pa.array(values, kind) for values, kind in zip(held, columns.values(), strict=True)]
    return pa.table(dict(zip(columns, arrays, strict=True)))
