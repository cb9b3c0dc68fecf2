"""Offsets as the CSV of `kafka-consumer-groups`: topic,partition,offset, or with the group before them; no header."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from reconciler.files.json_place import line_and_column
from reconciler.files.raw import display_name, read_bytes, write_atomically
from reconciler.model.problem import InvalidInput, Problem
from reconciler.model.topic_partition import TopicPartition

UNREADABLE = "KR161"
WRONG_CONTENT = "KR162"
NOT_WRITTEN = "KR163"
WITHOUT_GROUP, WITH_GROUP = 3, 4
MAX_BYTES = 64 << 20
_LARGEST = (1 << 63) - 1
_LARGEST_PARTITION = (1 << 31) - 1
_SHOWN = 60
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_KAFKA_NAME = re.compile(r"[a-zA-Z0-9._-]+")

Offsets = Mapping[TopicPartition, int]


def read_offsets(source: str | Path, only: str | None) -> dict[str, dict[TopicPartition, int]]:
    """Return the offsets of each group in the file; rows without a group are those of the only group that was named.

    Raises InvalidInput that names every wrong line.
    """
    name = display_name(source)
    content = read_bytes(source, "CSV of offsets", UNREADABLE, MAX_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        message = f"{name}:{line_and_column(before, len(before))}: the CSV of offsets is not UTF-8 there"
        raise InvalidInput([Problem(UNREADABLE, message)]) from None
    found: dict[str, dict[TopicPartition, int]] = {}
    problems: list[Problem] = []
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in rows:
            if any(cell.strip() for cell in row):
                wrong = _take(found, row, only)
                if wrong is not None:
                    problems.append(Problem(WRONG_CONTENT, f"{name}:{rows.line_num}:1: {wrong}"))
    except csv.Error as error:
        problems.append(Problem(WRONG_CONTENT, f"{name}:{max(1, rows.line_num)}:1: this is no CSV: {error}"))
    if problems:
        raise InvalidInput(problems)
    if not found:
        raise InvalidInput([Problem(WRONG_CONTENT, f"{name}: it holds no offsets")])
    return found


def write_offsets(path: str | Path, groups: Mapping[str, Offsets], *, has_groups: bool) -> None:
    """Write the file that `read_offsets`, and Kafka's own tool, read."""
    write_atomically(Path(path), offsets_text(groups, has_groups=has_groups).encode(), "CSV of offsets", NOT_WRITTEN)


def offsets_text(groups: Mapping[str, Offsets], *, has_groups: bool) -> str:
    """Return the CSV, sorted: topic,partition,offset, or with the group first.

    Kafka's own tool writes and wants the group unless exactly one was named, however many there are.
    """
    text = io.StringIO()
    names = [group_id + key.topic for group_id, offsets in groups.items() for key in offsets]
    # Of itself the writer quotes a carriage return only where lines end in one; bare, what looks like a byte order
    # mark would be taken for one at the file's beginning.
    is_quoted = any("\r" in name or name[:1] == "\ufeff" for name in names)
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if is_quoted else csv.QUOTE_MINIMAL)
    for group_id, offsets in sorted(groups.items()):
        writer.writerows(_rows(offsets.items(), group_id) if has_groups else _rows(offsets.items()))
    return text.getvalue()


def _rows(offsets: Iterable[tuple[TopicPartition, int]], *before: str) -> list[tuple[str | int, ...]]:
    cells = [*map(_inert, before)]
    return [(*cells, _inert(topic), partition, offset) for (topic, partition), offset in sorted(offsets)]


def _inert(name: str) -> str:
    """Return the name so that no spreadsheet takes it for a formula; `read_offsets` takes it back."""
    return f"'{name}" if _FORMULA.match(name) and not _KAFKA_NAME.fullmatch(name) else name


def _meant(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def _take(found: dict[str, dict[TopicPartition, int]], row: Sequence[str], only: str | None) -> str | None:
    """Add the row; return what is wrong with it."""
    if len(row) == WITHOUT_GROUP:
        if only is None:
            return "topic,partition,offset is of one group: name that one, or begin each line with its group"
        row = (_inert(only), *row)
    if len(row) != WITH_GROUP:
        return f"a line is topic,partition,offset or group,topic,partition,offset; this one has {len(row)} fields"
    # Kafka takes any text as a group id, with spaces at its ends too.
    group_id, topic, partition, offset = _meant(row[0]), *(_meant(cell.strip()) for cell in row[1:])
    number, position = _integer(partition), _integer(offset)
    if not topic or number is None or not 0 <= number <= _LARGEST_PARTITION:
        return f"{_cut(topic)},{_cut(partition)} is no topic and partition"
    if position is None or abs(position) > _LARGEST:
        return f"{_cut(offset)} is no offset: write a whole number"
    key = TopicPartition(topic, number)
    if key in found.get(group_id, {}):
        return f"{key} of group {group_id} stands there twice"
    found.setdefault(group_id, {})[key] = position
    return None


def _cut(text: str) -> str:
    return text[:_SHOWN] + "…" * (len(text) > _SHOWN) if text else "(empty)"


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= len(str(_LARGEST)) else None
