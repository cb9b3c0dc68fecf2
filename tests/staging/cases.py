"""Inputs of staging in few words, and a small cluster of its own that runs stages and looks at every state."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.diff.rules import TopicRules
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredCluster, Limits, MovePolicy, Spread
from reconciler.model.move import Move, Reason
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition

LINE = re.compile(r"(?P<topic>[\w.]+)-(?P<number>\d+): (?P<replicas>[\d,]+)(?P<rest>.*)")
WORD = re.compile(r"(leader|isr|size) ([\d,]+|none)")


def ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def key(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def cluster(
    brokers: str,
    *lines: str,
    disks: Mapping[int, tuple[int, int]] | None = None,
    configs: Mapping[str, str] | None = None,
) -> Cluster:
    """Return a cluster: brokers as `1a 2b 3c!` (`!`: fenced), partitions as `t-0: 1,2,3 leader 2 isr 1,2 size 5`.

    `disks` maps a broker to its total and its used bytes.
    """
    partitions: defaultdict[str, list[Partition]] = defaultdict(list)
    for line in lines:
        match = LINE.fullmatch(line)
        assert match, line
        partitions[match["topic"]].append(_partition(match))
    return Cluster(
        cluster_id="test",
        brokers={broker.id: broker for broker in (_broker(text, disks or {}) for text in brokers.split())},
        topics={
            name: Topic(name, tuple(sorted(found, key=lambda one: one.partition)), configs=configs or {})
            for name, found in sorted(partitions.items())
        },
    )


def _broker(text: str, disks: Mapping[int, tuple[int, int]]) -> Broker:
    match = re.fullmatch(r"(\d+)([a-z]*)(!?)", text)
    assert match, text
    number = int(match[1])
    log_dirs = tuple(LogDir("/d", total, total - used) for total, used in [disks[number]]) if number in disks else ()
    return Broker(number, rack=match[2] or None, is_fenced=bool(match[3]), log_dirs=log_dirs)


def _partition(match: re.Match[str]) -> Partition:
    words = dict(WORD.findall(match["rest"]))
    replicas = ids(match["replicas"])
    leader = words.get("leader", str(replicas[0]))
    size = int(words["size"]) if "size" in words else None
    return Partition(
        int(match["number"]),
        leader=None if leader == "none" else int(leader),
        replicas=replicas,
        isr=ids(words["isr"]) if words.get("isr", "none") != "none" else replicas if "isr" not in words else (),
        sizes=() if size is None else (size,) * len(replicas),
    )


def move(text: str, reason: Reason = Reason.BALANCE, *, size: int = 0) -> Move:
    """Return a move as `t-0: 1,2,3 -> 1,2,4` of a partition of that size."""
    name, _, lists = text.partition(": ")
    before, after = (ids(part.strip()) for part in lists.split("->"))
    return Move(key(name), before, after, size * len(set(after) - set(before)), reason)


def desired(
    states: Mapping[int, BrokerState] | None = None, moves: MovePolicy | None = None, limits: Limits | None = None
) -> Desired:
    return Desired(
        DesiredCluster(
            name="test",
            brokers={number: DesiredBroker(number, state=state) for number, state in (states or {}).items()},
            moves=moves or MovePolicy(throttle_bytes_per_second=1),
            limits=limits or Limits(),
        )
    )


def rules_of(
    observed: Cluster,
    topics: Iterable[str],
    spread: Spread | None = Spread.STRICT,
    *,
    leaving: Collection[int] = (),
    unfit: Collection[int] = (),
) -> Mapping[str, TopicRules]:
    rack_of = {number: broker.rack or "" for number, broker in observed.brokers.items()}
    staying = frozenset(rack_of).difference(leaving)
    living = frozenset(number for number in staying if not observed.brokers[number].is_fenced)
    return {
        topic: TopicRules(
            topic,
            None,
            receivable=living,
            keepable=living,
            leadable=living.difference(unfit),
            spread=spread,
            racks=tuple(sorted({rack_of[number] for number in staying})),
            rack_of=rack_of,
        )
        for topic in topics
    }


@dataclass
class Run:
    """What a run of stages did, as a small cluster that knows nothing of staging saw it."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    leaders: dict[TopicPartition, int | None]
    steps: dict[TopicPartition, list[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(list))
    arriving: list[Counter[int]] = field(default_factory=list)
    leaving: list[Counter[int]] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    copied: list[dict[TopicPartition, int]] = field(default_factory=list)
    bytes_per_stage: list[int] = field(default_factory=list)
    led_away: list[tuple[int, tuple[int, ...], frozenset[int]]] = field(default_factory=list)
    """Each leader that lost its data while it led, with the replicas then and those of them in sync."""
    useless_elections: int = 0


def run(observed: Cluster, stages: Sequence[Stage]) -> Run:
    """Run the stages as Kafka would; a move that starts elsewhere or an election of a follower fails at once."""
    seen = {
        TopicPartition(name, partition.partition): partition
        for name, topic in observed.topics.items()
        for partition in topic.partitions
    }
    told = Run(
        replicas={name: partition.replicas for name, partition in seen.items()},
        leaders={name: partition.leader for name, partition in seen.items()},
    )
    in_sync = {name: set(partition.isr) for name, partition in seen.items()}
    for stage in stages:
        if isinstance(stage, ReassignStage):
            _reassign(told, stage, in_sync)
        if isinstance(stage, ReassignStage | ElectStage):
            for election in stage.elections:
                name = election.topic_partition
                assert told.replicas[name][0] == election.leader, "only the first replica can be elected"
                assert election.leader in in_sync[name], "only an in-sync replica can be elected"
                told.useless_elections += told.leaders[name] == election.leader
                told.leaders[name] = election.leader
    return told


def _reassign(told: Run, stage: ReassignStage, in_sync: dict[TopicPartition, set[int]]) -> None:
    arriving: Counter[int] = Counter()
    leaving: Counter[int] = Counter()
    taken_in: Counter[int] = Counter()
    given_out: Counter[int] = Counter()
    copied: dict[TopicPartition, int] = {}
    for one in stage.moves:
        name, before, after = one.topic_partition, one.from_replicas, one.to_replicas
        assert name not in copied, "one move a partition and stage"
        assert told.replicas[name] == before, "a move starts where its partition is"
        assert len(set(after)) == len(after), "no broker twice"
        new = [replica for replica in after if replica not in before]
        leader = told.leaders[name]
        copied[name] = len(new)
        arriving.update(new)
        leaving.update(set(before) - set(after))
        for replica in new:
            taken_in[replica] += one.bytes // len(new)
            if leader is not None:
                given_out[leader] += one.bytes // len(new)
        if leader not in after:
            if leader is not None:
                told.led_away.append((leader, before, frozenset(in_sync[name])))
            leader = after[0]
        told.leaders[name], told.replicas[name] = leader, after
        told.steps[name].append(after)
        in_sync[name] = set(after)
    told.arriving.append(arriving)
    told.leaving.append(leaving)
    told.partitions.append(len(stage.moves))
    told.copied.append(copied)
    told.bytes_per_stage.append(max([0, *taken_in.values(), *given_out.values()]))
