"""Reads a snapshot's partitions straight into columns, several times as fast as the reader that makes a value of each.

It takes only what is right beyond doubt. Whatever else it meets, the strict reader looks at again and says what is
wrong where; so this one needs no messages.
"""

from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Raw, Struct

from reconciler.model.codec import MAX_INTEGER
from reconciler.model.partition_table import PartitionTable
from reconciler.model.table_maker import Columns, Facts, is_sound

_Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
_Ids = tuple[_Number, ...]


class _Told(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """The members of a partition in a snapshot. What is left out is None; so is a null, but that has a colon."""

    partition: _Number
    leader: _Number | None
    replicas: _Ids
    isr: _Ids
    adding_replicas: _Ids | None = None
    removing_replicas: _Ids | None = None
    sizes: tuple[_Number | None, ...] | None = None
    log_dirs: tuple[str | None, ...] | None = None
    end_offset: _Number | None = None
    elr: _Ids | None = None
    last_known_elr: _Ids | None = None
    untiered_bytes: _Number | None = None


_NUMBER = attrgetter("partition")
_OUTSIDE = msgspec.json.Decoder(dict[str, Raw])
_TOPICS = msgspec.json.Decoder(list[dict[str, Raw]])
_PARTITIONS = msgspec.json.Decoder(list[_Told])


def parse_quickly(content: bytes) -> tuple[dict[str, Any], PartitionTable] | None:
    """Return a snapshot's document without its partitions, and these; None where the strict reader has to look."""
    # An escaped colon would hide what colons tell: how many members there are, so that none stands twice.
    if b"\\u003" in content:
        return None
    try:
        outside = _OUTSIDE.decode(content)
        told = _TOPICS.decode(outside.pop("topics"))
        lists = sum("partitions" in topic for topic in told)
        partitions = [topic.pop("partitions", Raw(b"[]")) for topic in told]
        topics = [{key: msgspec.json.decode(value) for key, value in topic.items()} for topic in told]
        document = {key: msgspec.json.decode(value) for key, value in outside.items()} | {"topics": topics}
        table, members = _table(sorted(zip(map(itemgetter("name"), topics), partitions, strict=True)))
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None
    is_sure = members + lists + _colons(document) == content.count(b":") and is_sound(table)
    return (document, table) if is_sure else None


def _colons(value: object) -> int:
    """Return how many colons the JSON of that value has outside and inside its texts, no key standing twice."""
    if isinstance(value, str):
        return value.count(":")
    if isinstance(value, dict):
        return sum(1 + key.count(":") + _colons(item) for key, item in value.items())
    return sum(map(_colons, value)) if isinstance(value, list) else 0


def _table(topics: Sequence[tuple[str, Raw]]) -> tuple[PartitionTable, int]:
    """Return the table of these topics' partitions, and how many colons they are written with; ValueError for none."""
    columns, members = Columns(), 0
    for name, raw in topics:
        facts = Facts.of(sorted(_PARTITIONS.decode(raw), key=_NUMBER))
        # A leader that is null is a member as well.
        members += facts.leader.count(None) + sum(len(each) - each.count(None) for each in facts)
        for lists in (facts.sizes, facts.log_dirs):
            if any(told and len(told) != len(held) for told, held in zip(lists, facts.replicas, strict=True)):
                raise ValueError("other lengths")
        columns.add(name, facts)
    table = columns.table()
    times = np.bincount(table.log_dirs[table.log_dirs >= 0], minlength=len(table.paths)).tolist()
    return table, members + sum(path.count(":") * count for path, count in zip(table.paths, times, strict=True))
