"""The JSON of a snapshot -> a cluster. Lists may come in any order; what cannot be true of a cluster is refused."""

from collections.abc import Iterable
from typing import Any, TypeVar

from reconciler.files.checked import Fields, are_integers, shown
from reconciler.model.cluster import CLASSIC, CONSUMER, Broker, Cluster, Group, GroupMember, LogDir, Partition, Topic
from reconciler.model.codec import MAX_INTEGER, Malformed, pointer

K = TypeVar("K", int, str)
_Ids = tuple[int, ...]
_NONE: tuple[Any, ...] = ()


def cluster_from_json(document: dict[str, Any]) -> Cluster:
    """Return the cluster that a snapshot's JSON object describes; raise Malformed at the first wrong field."""
    fields = Fields(document, "")
    brokers = {broker.id: broker for broker in sorted(fields.each("brokers", _broker), key=lambda one: one.id)}
    _refuse_repeats(fields, "brokers", "id")
    topics = sorted(fields.each("topics", _TopicReader().topic), key=lambda topic: topic.name)
    _refuse_repeats(fields, "topics", "name")
    groups = sorted(fields.each("groups", _group), key=lambda group: group.group_id)
    _refuse_repeats(fields, "groups", "groupId")
    return Cluster(
        cluster_id=fields.text("clusterId"),
        brokers=brokers,
        topics={topic.name: topic for topic in topics},
        groups=tuple(groups),
        observed_at=fields.optional_text("observedAt"),
        kafka_version=fields.optional_text("kafkaVersion"),
        controller_id=fields.optional_integer("controllerId"),
        has_groups="groups" in document,
    )


def _refuse_repeats(fields: Fields, key: str, name: str) -> None:
    seen: dict[int | str, int] = {}
    for index, item in enumerate(fields.items(key)):
        first = seen.setdefault(item[name], index)
        if first != index:
            at = f"{fields.where(key)}/{index}/{name}"
            raise Malformed(at, f"repeats {shown(item[name])}, which {fields.where(key)}/{first} has already")


def _broker(fields: Fields) -> Broker:
    log_dirs = sorted(fields.each("logDirs", _log_dir), key=lambda log_dir: log_dir.path)
    _refuse_repeats(fields, "logDirs", "path")
    return Broker(
        id=fields.integer("id"),
        rack=fields.optional_text("rack"),
        host=fields.optional_text("host"),
        port=fields.optional_integer("port"),
        is_fenced=fields.flag("fenced", default=False),
        log_dirs=tuple(log_dirs),
        configs=fields.texts("configs"),
        settings=fields.texts("settings"),
    )


def _log_dir(fields: Fields) -> LogDir:
    return LogDir(
        fields.text("path"),
        fields.optional_integer("totalBytes"),
        fields.optional_integer("usableBytes"),
        is_cordoned=fields.flag("cordoned", default=False),
    )


class _TopicReader:
    """Reads topics; equal tuples are kept once, which more than halves the memory of a large cluster."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def topic(self, fields: Fields) -> Topic:
        """Return one topic with its partitions in order, which must be numbered from 0 without a gap."""
        name = fields.text("name")
        at = fields.where("partitions")
        items = fields.items("partitions")
        partitions = [self._partition(item, at, index) for index, item in enumerate(items)]
        partitions.sort(key=lambda one: one.partition)
        for number, partition in enumerate(partitions):
            if partition.partition != number:
                message = f"must number the partitions of {shown(name)} from 0 to {len(items) - 1}, each once; "
                raise Malformed(at, f"{message}there is no {number}")
        return Topic(
            name=name,
            partitions=tuple(partitions),
            topic_id=fields.optional_text("topicId"),
            is_internal=fields.flag("internal", default=False),
            configs=fields.texts("configs"),
        )

    def _partition(self, item: Any, parent: str, index: int) -> Partition:
        """Take one partition straight from its dict: a large cluster has hundreds of thousands of them."""
        try:
            number, leader = item["partition"], item["leader"]
            replicas = self._ids(item["replicas"])
            isr = self._ids(item["isr"])
            get = item.get
            adding = self._ids(get("addingReplicas", _NONE))
            removing = self._ids(get("removingReplicas", _NONE))
            sizes = self._sizes(get("sizes", _NONE), replicas)
            log_dirs = self._log_dirs(get("logDirs", _NONE), replicas)
            end_offset = get("endOffset")
            elr = None if get("elr") is None else self._ids(item["elr"])
            untiered = get("untieredBytes")
            last_known = None if get("lastKnownElr") is None else self._ids(item["lastKnownElr"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _explained(item, f"{parent}/{index}") from None
        if (
            type(number) is not int
            or not 0 <= number <= MAX_INTEGER
            or not (leader is None or (type(leader) is int and leader in replicas))
            or not (end_offset is None or (type(end_offset) is int and 0 <= end_offset <= MAX_INTEGER))
            or not (untiered is None or (type(untiered) is int and 0 <= untiered <= MAX_INTEGER))
            or not replicas
            or (isr is not replicas and not set(replicas).issuperset(isr))
            or ((elr or last_known) and not set(replicas).issuperset((elr or ()) + (last_known or ())))
            or ((adding or removing) and not set(replicas).issuperset(adding + removing))
        ):
            raise _explained(item, f"{parent}/{index}")
        return Partition(
            number, leader, replicas, isr, adding, removing, sizes, log_dirs, end_offset, elr, last_known, untiered
        )

    def _ids(self, items: Any) -> _Ids:
        """Return broker ids as a kept tuple; only a list that was never seen needs a check."""
        # 1, 1.0 and True are equal keys, so only what is an int throughout may be looked up.
        for item in items:
            if type(item) is not int:
                raise TypeError
        ids = tuple(items)
        kept = self._kept.get(ids)
        if kept is not None:
            return kept
        if (items is not _NONE and type(items) is not list) or len(set(ids)) != len(ids) or not are_integers(ids):
            raise ValueError
        self._kept[ids] = ids
        return ids

    @staticmethod
    def _sizes(items: Any, replicas: _Ids) -> tuple[int | None, ...]:
        if not items and type(items) in {list, tuple}:
            return ()
        if type(items) is not list or len(items) != len(replicas):
            raise ValueError
        for item in items:
            if item is not None and (type(item) is not int or not 0 <= item <= MAX_INTEGER):
                raise ValueError
        return tuple(items)

    def _log_dirs(self, items: Any, replicas: _Ids) -> tuple[str | None, ...]:
        if not items and type(items) in {list, tuple}:
            return ()
        paths = tuple(items)
        if type(items) is not list or len(items) != len(replicas):
            raise ValueError
        kept = self._kept.get(paths)
        if kept is not None:
            return kept
        if not all(path is None or isinstance(path, str) for path in paths):
            raise ValueError
        self._kept[paths] = paths
        return paths


def _explained(item: object, at: str) -> Malformed:
    """Return what is wrong with a partition that was refused: the slow, telling way."""
    try:
        fields = Fields(item, at)
        fields.integer("partition")
        for key in ("leader", "replicas", "isr"):
            if key not in fields.value:
                return Malformed(at, f'needs the field "{key}"')
        replicas = fields.integers("replicas")
        if not replicas:
            return Malformed(fields.where("replicas"), "must name at least one broker")
        fields.optional_integer("leader")
        _refuse_strangers(fields, "leader", [fields.value["leader"]], replicas)
        for key in ("isr", "addingReplicas", "removingReplicas", "elr", "lastKnownElr"):
            _refuse_strangers(fields, key, fields.integers(key), replicas)
        _refuse_not_parallel(fields, "sizes", replicas)
        _refuse_not_parallel(fields, "logDirs", replicas)
        fields.optional_integer("endOffset")
        fields.optional_integer("untieredBytes")
    except Malformed as wrong:
        return wrong
    return Malformed(at, "is not a partition")


def _refuse_strangers(fields: Fields, key: str, broker_ids: Iterable[int | None], replicas: _Ids) -> None:
    for broker_id in broker_ids:
        if broker_id is not None and broker_id not in replicas:
            message = f"names broker {broker_id}, which is none of the replicas {shown(list(replicas))}"
            raise Malformed(fields.where(key), message)


def _refuse_not_parallel(fields: Fields, key: str, replicas: _Ids) -> None:
    items = fields.items(key)
    if items and len(items) != len(replicas):
        message = f"must have one entry for each of the {len(replicas)} replicas, or none; it has {len(items)}"
        raise Malformed(fields.where(key), message)
    kind = "a whole number of at least 0" if key == "sizes" else "a text"
    for index, item in enumerate(items):
        is_right = are_integers([item]) if key == "sizes" else isinstance(item, str)
        if item is not None and not is_right:
            raise Malformed(pointer(fields.where(key), index), f"must be {kind} or null, not {shown(item)}")


def _group(fields: Fields) -> Group:
    members = sorted(fields.each("members", _member), key=lambda member: member.member_id)
    _refuse_repeats(fields, "members", "memberId")
    offsets = fields.member("offsets")
    kind, protocol_type = fields.optional_text("type"), fields.optional_text("protocolType")
    return Group(
        group_id=fields.text("groupId"),
        state=fields.optional_text("state") or "",
        protocol=fields.optional_text("protocol") or "",
        coordinator=fields.optional_integer("coordinator"),
        members=tuple(members),
        offsets={topic: _offsets(offsets.member(topic)) for topic in sorted(offsets.value)},
        kind=CLASSIC if kind is None else kind,
        protocol_type=CONSUMER if protocol_type is None else protocol_type,
    )


def _member(fields: Fields) -> GroupMember:
    assignment = fields.member("assignment")
    return GroupMember(
        member_id=fields.text("memberId"),
        client_id=fields.optional_text("clientId") or "",
        host=fields.optional_text("host") or "",
        instance_id=fields.optional_text("instanceId"),
        rack=fields.optional_text("rack"),
        subscription=tuple(sorted(fields.text_list("subscription"))),
        assignment={topic: tuple(sorted(assignment.integers(topic))) for topic in sorted(assignment.value)},
        subscription_pattern=fields.optional_text("subscriptionPattern"),
    )


def _offsets(fields: Fields) -> dict[int, int]:
    return {number: fields.integer(key) for number, key in fields.numbered()}
