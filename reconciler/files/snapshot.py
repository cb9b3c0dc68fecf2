"""The observed state as a file: read with every field checked, written so that the same state gives the same bytes."""

from pathlib import Path
from typing import Any

from reconciler.files.checked import malformed
from reconciler.files.json_text import collector_paused, parse_json, readable_json
from reconciler.files.raw import display_name, invalid, packed_bytes, read_bytes, write_atomically
from reconciler.files.snapshot_reader import cluster_from_json
from reconciler.model.cluster import CLASSIC, CONSUMER, Broker, Cluster, Group, GroupMember, LogDir, Partition, Topic
from reconciler.model.codec import Malformed

FORMAT_VERSION = "1.1"
UNREADABLE = "KR201"
WRONG_VERSION = "KR202"
WRONG_CONTENT = "KR203"
NOT_WRITTEN = "KR204"
# The fields by which each kind of file is known.
KINDS = {
    "plan": {"formatVersion", "stages", "topicChanges"},
    "snapshot": {"formatVersion", "clusterId"},
    "file of kafka-reassign-partitions": {"version", "partitions"},
}


def read_snapshot(source: str | Path) -> Cluster:
    """Return the cluster in a `.json` or `.json.gz` file, `-` being stdin; InvalidInput says what is wrong where."""
    name = display_name(source)
    content = read_bytes(source, "snapshot", UNREADABLE)
    document = parse_json(content, name, "snapshot", UNREADABLE)
    if not isinstance(document, dict):
        raise invalid(WRONG_CONTENT, f"{name}: a snapshot is one JSON object; this holds something else")
    refuse_other_kind(document, name, "snapshot", WRONG_CONTENT)
    check_version(document, name, "snapshot", WRONG_VERSION)
    try:
        with collector_paused():
            return cluster_from_json(document)
    except Malformed as wrong:
        raise malformed(WRONG_CONTENT, name, content, wrong) from None
    except RecursionError:
        raise invalid(UNREADABLE, f"{name}: the snapshot is nested too deeply") from None


def write_snapshot(cluster: Cluster, path: str | Path) -> None:
    """Write the cluster, gzipped if the name ends in `.gz`; the file is replaced whole or not at all."""
    content = snapshot_text(cluster).encode()
    target = Path(path)
    packed = packed_bytes(content) if target.suffix == ".gz" else content
    write_atomically(target, packed, "snapshot", NOT_WRITTEN)


def snapshot_text(cluster: Cluster) -> str:
    """Return the snapshot file of that cluster: sorted, one partition a line."""
    with collector_paused():
        return readable_json(cluster_to_json(cluster))


def refuse_other_kind(document: dict[str, Any], name: str, wanted: str, code: str) -> None:
    """Refuse a file that is known to be of another kind, and say of which."""
    for kind, fields in KINDS.items():
        if kind != wanted and fields <= document.keys():
            raise invalid(code, f"{name}: this is a {kind}, not a {wanted}; name the other file")


def check_version(document: dict[str, Any], name: str, what: str, code: str) -> None:
    """Refuse a file whose format is of another major version, or has none."""
    version = document.get("formatVersion")
    if not isinstance(version, str) or not version:
        raise invalid(code, f'{name}: the {what} needs "formatVersion": "1.0"')
    if version.partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
        told = version[:20].encode("ascii", "backslashreplace").decode()
        raise invalid(
            code,
            f"{name}: the {what} has format version {told}, and this program reads 1.x; "
            "read it with the version that wrote it, or make it again",
        )


def cluster_to_json(cluster: Cluster) -> dict[str, Any]:
    """Return the cluster as the JSON object of contract and schema; what is not known is left out."""
    return _known(
        formatVersion=FORMAT_VERSION,
        clusterId=cluster.cluster_id,
        observedAt=cluster.observed_at,
        kafkaVersion=cluster.kafka_version,
        controllerId=cluster.controller_id,
        brokers=[_broker(cluster.brokers[broker_id]) for broker_id in sorted(cluster.brokers)],
        topics=[_topic(cluster.topics[name]) for name in sorted(cluster.topics)],
        groups=_groups(cluster),
    )


def _groups(cluster: Cluster) -> list[Any] | None:
    found = [_group(group) for group in sorted(cluster.groups, key=lambda group: group.group_id)]
    return found if found or cluster.has_groups else None


def _broker(broker: Broker) -> dict[str, Any]:
    return _known(
        id=broker.id,
        rack=broker.rack,
        host=broker.host,
        port=broker.port,
        fenced=broker.is_fenced,
        logDirs=[_log_dir(log_dir) for log_dir in sorted(broker.log_dirs, key=lambda log_dir: log_dir.path)],
        configs=dict(broker.configs),
        settings=dict(broker.settings) or None,
    )


def _log_dir(log_dir: LogDir) -> dict[str, Any]:
    return _known(
        path=log_dir.path,
        totalBytes=log_dir.total_bytes,
        usableBytes=log_dir.usable_bytes,
        cordoned=log_dir.is_cordoned or None,
    )


def _topic(topic: Topic) -> dict[str, Any]:
    return _known(
        name=topic.name,
        topicId=topic.topic_id,
        internal=topic.is_internal,
        configs=dict(topic.configs),
        partitions=[_partition(partition) for partition in sorted(topic.partitions, key=lambda one: one.partition)],
    )


def _partition(partition: Partition) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "partition": partition.partition,
        "leader": partition.leader,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
    }
    if partition.adding_replicas:
        fields["addingReplicas"] = list(partition.adding_replicas)
    if partition.removing_replicas:
        fields["removingReplicas"] = list(partition.removing_replicas)
    if partition.sizes:
        fields["sizes"] = list(partition.sizes)
    if partition.log_dirs:
        fields["logDirs"] = list(partition.log_dirs)
    if partition.elr is not None:
        fields["elr"] = list(partition.elr)
    if partition.last_known_elr is not None:
        fields["lastKnownElr"] = list(partition.last_known_elr)
    if partition.untiered_bytes is not None:
        fields["untieredBytes"] = partition.untiered_bytes
    if partition.end_offset is not None:
        fields["endOffset"] = partition.end_offset
    return fields


def _group(group: Group) -> dict[str, Any]:
    return _known(
        groupId=group.group_id,
        type=group.kind if group.kind != CLASSIC else None,
        protocolType=group.protocol_type if group.protocol_type != CONSUMER else None,
        state=group.state,
        protocol=group.protocol,
        coordinator=group.coordinator,
        members=[_member(member) for member in sorted(group.members, key=lambda member: member.member_id)],
        offsets={
            topic: {str(partition): offset for partition, offset in sorted(offsets.items())}
            for topic, offsets in group.offsets.items()
        },
    )


def _member(member: GroupMember) -> dict[str, Any]:
    pattern = member.subscription_pattern
    return ({} if pattern is None else {"subscriptionPattern": pattern}) | {
        "memberId": member.member_id,
        "clientId": member.client_id,
        "host": member.host,
        "instanceId": member.instance_id,
        "rack": member.rack,
        "subscription": list(member.subscription),
        "assignment": {topic: list(partitions) for topic, partitions in member.assignment.items()},
    }


def _known(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
