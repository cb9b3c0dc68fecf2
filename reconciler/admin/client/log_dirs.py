"""Reads what the log dirs of brokers hold: for moves, for the doctor, and for `collect`.

Each broker tells only of its own dirs, so each is asked itself, and all at once; one that is silent is left out.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from kafka.protocol.admin import DescribeLogDirsRequest

from reconciler.admin.client import observe
from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE, missing_right, name_of
from reconciler.admin.client.offsets import end_offsets, log_offsets
from reconciler.admin.client.wire import Wire, by_topic
from reconciler.admin.port import EARLIEST, DiskUse
from reconciler.model.cluster import Broker, FutureReplica, LogDir, Topic, leaders_of
from reconciler.model.problem import MissingRight, NotOffered
from reconciler.model.sample import ClusterSample, ReplicaOnDisk
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import DiskReport, LogDirState
from reconciler.model.words import few

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeLogDirsResponse

    Answers = Mapping[int, DescribeLogDirsResponse]


QUESTION = "DescribeLogDirs"


def disks(
    wire: Wire, broker_ids: Collection[int], topic_partitions: Collection[TopicPartition] | None = None
) -> DiskUse:
    """Return what the log dirs of these brokers hold, of these partitions or of all; a silent broker is left out.

    Of some partitions it is asked again and again: then one that was silent a moment ago is not waited for.
    """
    answers = _asked(wire, broker_ids, topic_partitions)
    _check_right(answers)
    told = [replica for broker, answer in answers.items() for replica in _replicas(broker, answer)]
    replicas = {(one.topic_partition, one.broker_id): one for one in told if not one.is_future}
    return DiskUse(
        log_dirs={broker: _log_dirs(answer) for broker, answer in answers.items()},
        replica_bytes={key: one.size_bytes for key, one in replicas.items() if one.size_bytes is not None},
        replica_paths={key: one.log_dir for key, one in replicas.items()},
        futures={
            (one.topic_partition, one.broker_id): FutureReplica(one.topic_partition, one.log_dir, one.size_bytes)
            for one in told
            if one.is_future
        },
    )


def disk_report(wire: Wire, broker_ids: Collection[int]) -> DiskReport:
    """Return every log dir of these brokers and what it holds; a broker that does not answer is `silent`.

    Raises MissingRight without Describe on the cluster: Kafka then answers as if there were no log dirs. NotOffered
    where brokers do not take the question.
    """
    if not wire.is_supported(DescribeLogDirsRequest, 0):
        raise NotOffered.of(QUESTION)
    answers = _asked(wire, broker_ids)
    _check_right(answers)
    return DiskReport(
        dirs=tuple(state for broker, answer in sorted(answers.items()) for state in _states(broker, answer)),
        replicas=tuple(sorted(one for broker, answer in answers.items() for one in _replicas(broker, answer))),
        silent=tuple(sorted(set(broker_ids) - answers.keys())),
    )


def sample(wire: Wire) -> ClusterSample:
    """Return what the log dirs of all live brokers hold, and every log's offsets; needs Describe on cluster and topics.

    A missing answer or right hides only what it would have told, and `untold` says so.
    """
    cluster_id, brokers = observe.cluster_id_and_brokers(wire)
    topics = observe.topics(wire, None)
    answers = _asked(wire, [broker.id for broker in brokers.values() if not broker.is_fenced])
    replicas = sorted(replica for broker, answer in answers.items() for replica in _replicas(broker, answer))
    leaders = leaders_of(topics.values())
    offsets = end_offsets(wire, leaders)
    starts = log_offsets(wire, {key: leaders[key] for key in offsets}, EARLIEST)
    is_told = wire.is_supported(DescribeLogDirsRequest, 0)
    untold = [
        *(_silent(brokers, topics, answers) if is_told else [f"sizes are unknown: {NotOffered.of(QUESTION)}"]),
        *_refused(answers),
        *_hidden(wire, topics, [replica.topic_partition for replica in replicas]),
        *_offsets_missing(leaders.keys() - offsets.keys()),
    ]
    return ClusterSample(
        cluster_id,
        topics,
        tuple(replicas),
        dict(sorted(offsets.items())),
        tuple(untold),
        {key: offset for key, offset in sorted(starts.items()) if offset is not None},
    )


def _asked(
    wire: Wire, broker_ids: Collection[int], topic_partitions: Collection[TopicPartition] | None = None
) -> "Answers":
    form = DescribeLogDirsRequest.DescribableLogDirTopic
    asked = None
    if not wire.is_supported(DescribeLogDirsRequest, 0):
        return {}
    if topic_partitions is not None:
        asked = [form(topic=topic, partitions=numbers) for topic, numbers in by_topic(topic_partitions).items()]
    # The library's own describe_log_dirs asks one broker after the other, and fails for all where one is silent.
    builds = {broker: lambda: DescribeLogDirsRequest(topics=asked) for broker in sorted(broker_ids)}
    return wire.read_each(builds, is_waiting_for_all=topic_partitions is None)


def _check_right(answers: "Answers") -> None:
    # A broker has at least one log dir, so none means that the right is missing: before version 3 nothing else tells.
    for answer in answers.values():
        if getattr(answer, "error_code", NONE) in AUTHORIZATION_FAILED or not answer.results:
            raise missing_right("Describe", "cluster", (), "Reading log dirs")


def _log_dirs(answer: "DescribeLogDirsResponse") -> tuple[LogDir, ...]:
    return tuple(
        LogDir(
            result.log_dir,
            _known(result.total_bytes),
            _known(result.usable_bytes),
            is_offline=result.error_code != NONE,
            is_cordoned=bool(getattr(result, "is_cordoned", False)),
        )
        for result in sorted(answer.results, key=lambda result: result.log_dir)
    )


def _states(broker: int, answer: "DescribeLogDirsResponse") -> Iterator[LogDirState]:
    for result in sorted(answer.results, key=lambda result: result.log_dir):
        error = name_of(result.error_code) if result.error_code != NONE else None
        sizes = (_known(result.total_bytes), _known(result.usable_bytes))
        yield LogDirState(broker, result.log_dir, error, bool(getattr(result, "is_cordoned", False)), *sizes)


def _replicas(broker: int, answer: "DescribeLogDirsResponse") -> Iterator[ReplicaOnDisk]:
    """Yield the replicas that a broker tells of, in the order of its answer."""
    for result in answer.results:
        for topic in result.topics:
            for replica in topic.partitions:
                yield ReplicaOnDisk(
                    TopicPartition(topic.name, replica.partition_index),
                    broker,
                    result.log_dir,
                    _known(replica.partition_size),
                    _known(replica.offset_lag),
                    is_future=bool(replica.is_future_key),
                )


def _known(amount: int | None) -> int | None:
    """Return the amount, None for Kafka's -1: not known, as of a dir that is offline, or before version 4."""
    return amount if amount is not None and amount >= 0 else None


def _silent(brokers: Mapping[int, Broker], topics: Mapping[str, Topic], answers: Collection[int]) -> Iterator[str]:
    """Name the brokers that told nothing, also those that hold replicas but are not listed (before Kafka 4.0)."""
    holders = {broker for topic in topics.values() for partition in topic.partitions for broker in partition.replicas}
    for broker in sorted((holders | brokers.keys()) - set(answers)):
        is_alive = broker in brokers and not brokers[broker].is_fenced
        what = "does not answer" if is_alive else "is not alive"
        yield f"broker {broker} {what}: what its log dirs hold is unknown"


def _refused(answers: "Answers") -> Iterator[str]:
    try:
        _check_right(answers)
    except MissingRight as error:
        yield f"sizes are unknown: {error}"
    for state in (state for broker, answer in answers.items() for state in _states(broker, answer) if state.error):
        where = f"broker {state.broker_id} cannot read its log dir {state.path}"
        yield f"{where} ({state.error}): what it holds is unknown"


def _hidden(wire: Wire, topics: Collection[str], on_disk: Collection[TopicPartition]) -> Iterator[str]:
    try:
        observe.check_for_hidden_topics(wire, topics, on_disk)
    except MissingRight as error:
        yield f"end offsets and leaders of some topics are unknown: {error}"


def _offsets_missing(keys: Collection[TopicPartition]) -> Iterator[str]:
    if keys:
        yield f"no leader told the end offset of {few(sorted(keys))}: unknown"
