"""Shows topics: Kafka's own lines first, then what only the files, the log dirs and the groups tell. Unknown is `-`."""

import csv
from collections.abc import Iterable, Iterator, Sequence

from reconciler.model.cluster import Partition
from reconciler.model.java_hash import hash_map_order
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.topic_report import DescriptionOfCluster, Growth, KeyOfCluster, ListOfCluster, Reader, TopicFacts
from reconciler.model.words import counted, number, percent, size
from reconciler.render.escape import visible
from reconciler.render.facts import place
from reconciler.render.report import Report, Section, Table

NONE = "-"  # in place of what is not known, which is never zero
NOT_DECLARED = "not declared"
# kafka-topics shows configs as Java's HashMap walks them. Of keys in one bin, those that the broker tells of first go
# first, which are these; 3.9 has index.interval.bytes and min.cleanable.dirty.ratio the other way round.
_TOLD_FIRST = (
    "segment.bytes", "retention.ms", "flush.messages", "retention.bytes", "max.compaction.lag.ms",
    "message.downconversion.enable",
)  # fmt: skip
_ORDER = {key: place for place, key in enumerate(hash_map_order((*_TOLD_FIRST, *TOPIC_CONFIGS)))}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would run, where a text begins so."""
Cell = str | int | bool | None


def listed(seen: ListOfCluster, *, root: str = "") -> str:
    """Return one line a topic; with growth where an earlier snapshot was given."""
    facts = [each.facts for each in seen.topics]
    has_growth = any(each.growth is not None for each in facts)
    growth = ("size a day", "records a day") if has_growth else ()
    head = ("topic", "owner", "declared", "partitions", "RF", "size", "all replicas", "readers", *growth)
    rows = tuple((*_row(each, root), *(_growth_cells(each.growth) if has_growth else ())) for each in facts)
    return Report((Section(parts=(Table(head, rows, left=3),)),)).text() if rows else "No topics.\n"


def described(seen: DescriptionOfCluster, *, root: str = "") -> str:
    """Return each topic as kafka-topics describes it, and below that what else is told of it."""
    blocks = ("\n".join([*kafka_lines(one.facts), *_told_below(one.facts, root)]) for one in seen.topics)
    return "\n\n".join(blocks) + "\n" if seen.topics else "No topics.\n"


def key(seen: KeyOfCluster, shown: str) -> str:
    """Return where that key goes, and where it would go among more partitions."""
    lines = [
        f"{seen.topic} has {counted(seen.partitions, 'partition')}: key {shown} goes to partition {seen.partition}."
    ]
    if seen.after is not None:
        lines.append(
            f"With {counted(seen.after.partitions, 'partition')} it would go to partition {seen.after.partition}; "
            f"{percent(seen.after.share)} of keys would go to another partition than now."
        )
    return "\n".join(map(visible, lines)) + "\n"


def kafka_lines(facts: TopicFacts) -> Iterator[str]:
    """Yield the lines that `kafka-topics --describe` prints of a topic, since Kafka 3.9."""
    name = visible(facts.name)
    configs = sorted(facts.configs.items(), key=lambda item: (_ORDER.get(item[0], len(_ORDER)), item[0]))
    head = [f"Topic: {name}"]
    head += [f"TopicId: {visible(facts.topic_id)}"] if facts.topic_id else []
    head += [f"PartitionCount: {len(facts.topic.partitions)}", f"ReplicationFactor: {facts.replication_factor}"]
    yield "\t".join([*head, "Configs: " + ",".join(visible(f"{each}={value}") for each, value in configs)])
    for partition in facts.topic.partitions:
        yield "\t".join(["", f"Topic: {name}", *_partition_cells(partition)])


def _partition_cells(one: Partition) -> Iterator[str]:
    yield f"Partition: {one.partition}"
    yield f"Leader: {'none' if one.leader is None else one.leader}"
    yield f"Replicas: {_ids(one.replicas)}"
    yield f"Isr: {_ids(one.isr)}"
    if one.is_reassigning:
        yield f"Adding Replicas: {_ids(one.adding_replicas)}"
        yield f"Removing Replicas: {_ids(one.removing_replicas)}"
    for name, ids in (("Elr", one.elr), ("LastKnownElr", one.last_known_elr)):
        # Of a partition in sync nobody asks for them: it has none.
        is_unknown = ids is None and len(one.isr) < len(one.replicas)
        yield f"{name}: {'N/A' if is_unknown else _ids(ids or ())}"


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


def _row(facts: TopicFacts, root: str) -> tuple[str, ...]:
    return (
        facts.name,
        facts.owner or NONE,
        _declared(facts, root),
        number(len(facts.topic.partitions)),
        str(facts.replication_factor),
        _size(facts.size),
        _size(facts.size_of_replicas),
        NONE if facts.readers is None else number(len(facts.readers)),
    )


def _told_below(facts: TopicFacts, root: str) -> Sequence[str]:
    lines = [
        f"declared  {_declared(facts, root)}",
        f"owner     {facts.owner or NONE}",
        f"size      {_size(facts.size)}, {_size(facts.size_of_replicas)} in all replicas",
        f"tiered    {'yes: sizes are of what is on the brokers' if facts.is_tiered else 'no'}",
    ]
    lines += [f"growth    {_growth(facts.growth)}"] if facts.growth is not None else []
    readers = [f"readers   {NONE if facts.readers is None else 'none'}"]
    if facts.readers:
        rows = tuple(map(_reader_cells, facts.readers))
        return _lines(*lines, Table(("readers", "state", "members", "lag"), rows, left=2))
    return _lines(*lines, *readers)


def _lines(*parts: str | Table) -> Sequence[str]:
    return Report((Section(parts=parts),)).text().splitlines()


def _reader_cells(reader: Reader) -> tuple[str, ...]:
    lag = NONE if reader.lag is None else number(reader.lag)
    return reader.group_id, reader.state or NONE, number(reader.members), lag


def _declared(facts: TopicFacts, root: str) -> str:
    if facts.declaration is None:
        return NONE if facts.is_declared is None else NOT_DECLARED
    by = facts.declaration.by
    return place(facts.declaration.at, root) + ("" if by == "topic" else f" ({by})")


def _size(count: int | None) -> str:
    return NONE if count is None else size(count)


def _growth(growth: Growth) -> str:
    in_bytes, in_records = _growth_cells(growth)
    if growth.is_idle:
        return f"{in_bytes} a day, and idle since {growth.since} at least"
    return f"{in_bytes} and {in_records} records a day since {growth.since}"


def _growth_cells(growth: Growth | None) -> tuple[str, str]:
    if growth is None:
        return NONE, NONE
    change, records = growth.bytes_per_day, growth.records_per_day
    in_bytes = NONE if change is None else f"{'+' if change > 0 else ''}{size(change)}"
    if records == 0:
        return in_bytes, "idle" if growth.is_idle else "under 1"
    return in_bytes, NONE if records is None else number(records)


def listed_csv(clusters: Iterable[ListOfCluster]) -> str:
    """Return a row a topic, with a head; an empty cell is not known, or not there."""
    head = (
        "cluster", "clusterId", "topic", "topicId", "internal", "partitions", "replicationFactor", "bytes",
        "bytesOfReplicas", "tiered", "readers", "owner", "declared", "declaredBy", "declaredAt", "since", "bytesPerDay",
        "recordsPerDay", "idle",
    )  # fmt: skip
    rows = ((seen.cluster, seen.cluster_id, *_csv_cells(one.facts)) for seen in clusters for one in seen.topics)
    return _csv(head, rows)


def _csv_cells(facts: TopicFacts) -> tuple[Cell, ...]:
    by, growth = facts.declaration, facts.growth
    return (
        facts.name,
        facts.topic_id,
        facts.is_internal,
        len(facts.topic.partitions),
        facts.replication_factor,
        facts.size,
        facts.size_of_replicas,
        facts.is_tiered,
        None if facts.readers is None else len(facts.readers),
        facts.owner,
        facts.is_declared,
        None if by is None else by.by,
        None if by is None or by.at is None else str(by.at),
        *((growth.since, growth.bytes_per_day, growth.records_per_day, growth.is_idle) if growth else (None,) * 4),
    )


def described_csv(clusters: Iterable[DescriptionOfCluster]) -> str:
    """Return a row a partition, with a head; lists of brokers have commas, as Kafka's tools write them."""
    head = (
        "cluster", "clusterId", "topic", "partition", "leader", "replicas", "isr", "addingReplicas", "removingReplicas",
        "bytes", "endOffset",
    )  # fmt: skip
    rows = (
        (seen.cluster, seen.cluster_id, topic.facts.name, *_csv_partition(one))
        for seen in clusters
        for topic in seen.topics
        for one in topic.partitions
    )
    return _csv(head, rows)


def _csv_partition(one: Partition) -> tuple[Cell, ...]:
    lists = (one.replicas, one.isr, one.adding_replicas, one.removing_replicas)
    sizes = ",".join("" if each is None else str(each) for each in one.sizes)
    return one.partition, one.leader, *map(_ids, lists), sizes, one.end_offset


class _Lines(list[str]):
    """What a CSV writer writes to."""

    def write(self, line: str) -> None:
        """Take a line."""
        self.append(line)


def _csv(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    lines = _Lines()
    csv.writer(lines, lineterminator="\n").writerows([head, *(tuple(map(_cell, row)) for row in rows)])
    return "".join(lines)


def _cell(value: Cell) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case _:
            return f"'{visible(value)}" if value.startswith(_FORMULA) else visible(value)
