"""Sums a plan by broker, rack, disk, topic and stage, for Markdown and the page."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

from reconciler.model.move import Move
from reconciler.model.plan import BrokerShare, Plan
from reconciler.model.stage import CopyingStage, LogDirsStage, ReassignStage, Stage


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk at the worst moment of the run: a log dir where these are known, else (`path` empty) all of a broker's."""

    broker_id: int
    path: str
    peak_bytes: int
    total_bytes: int
    is_predicted: bool = False

    @property
    def share(self) -> float:
        """How full it is then, from 0 to 1."""
        return self.peak_bytes / self.total_bytes


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """A broker before and after; what the plan brings to it and takes from it; its fullest disk. None: unknown."""

    broker_id: int
    rack: str
    before: BrokerShare | None
    after: BrokerShare | None
    arriving: int
    arriving_bytes: int
    leaving: int
    disk: Disk | None


@dataclass(frozen=True, slots=True)
class RackFigures:
    """The brokers of a rack together; `disk` is the fullest of them."""

    rack: str
    brokers: int
    before: BrokerShare
    after: BrokerShare
    arriving_bytes: int
    disk: Disk | None


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """What the plan moves of a topic; `reasons` in their own order."""

    topic: str
    partitions: int
    copies: int
    bytes: int
    is_size_known: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageFigures:
    """A stage in time, by the plan's estimates; `most_arriving`: the replicas and bytes that one broker takes in."""

    stage: Stage
    start_seconds: int
    seconds: int
    bytes: int
    copies: int
    busiest: int | None = None
    most_arriving: int = 0
    most_arriving_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RackSpread:
    """How many of the touched partitions stand on fewer racks than they could; `worst` is after the worst stage."""

    before: int
    worst: int
    after: int


def disks(plan: Plan) -> tuple[Disk, ...]:
    """Return every disk whose worst moment is known, the fullest first."""
    predicted = {(id_, path) for dirs in plan.predicted_log_dirs.values() for id_, path in dirs.items()}
    whole = (
        Disk(id_, "", plan.disk_peak[id_], total)
        for id_, total in plan.disk_capacity.items()
        if total and id_ in plan.disk_peak and id_ not in plan.log_dirs
    )
    single = (
        Disk(id_, one.path, one.peak_bytes, one.total_bytes, (id_, one.path) in predicted)
        for id_, several in plan.log_dirs.items()
        for one in several
        if one.total_bytes
    )
    return tuple(sorted((*whole, *single), key=lambda disk: (-disk.share, disk.broker_id, disk.path)))


def brokers(plan: Plan) -> tuple[BrokerFigures, ...]:
    """Return every broker that the plan tells of, by id."""
    arriving: Counter[int] = Counter()
    arriving_bytes: Counter[int] = Counter()
    leaving: Counter[int] = Counter()
    for move in _moves(plan):
        leaving.update(move.removed)
        for broker_id, count in _arrivals(move):
            arriving[broker_id] += 1
            arriving_bytes[broker_id] += count
    fullest: dict[int, Disk] = {}
    for disk in disks(plan):
        fullest.setdefault(disk.broker_id, disk)
    grounds = plan.grounds.brokers
    ids = {*plan.balance_before, *plan.balance_after, *arriving, *leaving}
    return tuple(
        BrokerFigures(
            broker_id=id_,
            rack=grounds[id_].rack if id_ in grounds else "",
            before=plan.balance_before.get(id_),
            after=plan.balance_after.get(id_),
            arriving=arriving[id_],
            arriving_bytes=arriving_bytes[id_],
            leaving=leaving[id_],
            disk=fullest.get(id_),
        )
        for id_ in sorted(ids)
    )


def racks(plan: Plan) -> tuple[RackFigures, ...]:
    """Return every rack by name, nothing where the brokers name none."""
    groups: dict[str, list[BrokerFigures]] = {}
    for broker in brokers(plan):
        groups.setdefault(broker.rack, []).append(broker)
    if not any(groups):
        return ()
    return tuple(
        RackFigures(
            rack=rack,
            brokers=len(members),
            before=_sum(each.before for each in members),
            after=_sum(each.after for each in members),
            arriving_bytes=sum(each.arriving_bytes for each in members),
            disk=max((each.disk for each in members if each.disk), key=lambda disk: disk.share, default=None),
        )
        for rack, members in sorted(groups.items())
    )


def topics(plan: Plan) -> tuple[TopicFigures, ...]:
    """Return every topic of which partitions move, the most bytes first."""
    groups: dict[str, list[Move]] = {}
    for move in _moves(plan):
        groups.setdefault(move.topic_partition.topic, []).append(move)
    found = (
        TopicFigures(
            topic=topic,
            partitions=len({move.topic_partition for move in moves}),
            copies=sum(len(move.added) for move in moves),
            bytes=sum(move.bytes for move in moves),
            is_size_known=all(move.is_size_known for move in moves),
            reasons=tuple(sorted({str(move.reason) for move in moves})),
        )
        for topic, moves in groups.items()
    )
    return tuple(sorted(found, key=lambda each: (-each.bytes, -each.copies, each.topic)))


def stages(plan: Plan) -> tuple[StageFigures, ...]:
    """Return the stages one after the other."""
    found: list[StageFigures] = []
    start = 0
    for stage in plan.stages:
        seconds = stage.estimated_seconds if isinstance(stage, CopyingStage) else 0
        found.append(_stage(stage, start, seconds))
        start += seconds
    return tuple(found)


def rack_spread(plan: Plan) -> RackSpread | None:
    """Return how the partitions that the plan moves stand on racks, None where a broker's rack is not known."""
    rack_of = {id_: ground.rack for id_, ground in plan.grounds.brokers.items()}
    moves = _moves(plan)
    if not moves or any(not rack_of.get(id_) for move in moves for id_ in (*move.from_replicas, *move.to_replicas)):
        return None
    count = len({rack for rack in rack_of.values() if rack})

    def is_short(replicas: tuple[int, ...]) -> bool:
        return len({rack_of[id_] for id_ in replicas}) < min(len(replicas), count)

    starts = {move.topic_partition: move.from_replicas for move in reversed(moves)}
    short = {key for key, replicas in starts.items() if is_short(replicas)}
    before = worst = len(short)
    for stage in plan.stages:
        if isinstance(stage, ReassignStage):
            for move in stage.moves:
                (short.add if is_short(move.to_replicas) else short.discard)(move.topic_partition)
            worst = max(worst, len(short))
    return RackSpread(before, worst, len(short))


def _moves(plan: Plan) -> list[Move]:
    return [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]


def _arrivals(move: Move) -> Iterator[tuple[int, int]]:
    """Yield each broker that gets a replica, with that replica's bytes."""
    for broker_id in move.added:
        yield broker_id, move.bytes // len(move.added)


def _copies(stage: CopyingStage) -> Iterator[tuple[int, int]]:
    """Yield the broker and the bytes of each copy."""
    if isinstance(stage, LogDirsStage):
        yield from ((move.broker, move.bytes) for move in stage.moves)
        return
    for move in stage.moves:
        yield from _arrivals(move)


def _stage(stage: Stage, start: int, seconds: int) -> StageFigures:
    if not isinstance(stage, CopyingStage):
        return StageFigures(stage, start, seconds, 0, 0)
    counts: Counter[int] = Counter()
    data: Counter[int] = Counter()
    for broker_id, count in _copies(stage):
        counts[broker_id] += 1
        data[broker_id] += count
    busiest = min(counts, key=lambda id_: (-data[id_], -counts[id_], id_), default=None)
    return StageFigures(
        stage,
        start,
        seconds,
        stage.bytes,
        sum(counts.values()),
        busiest,
        counts[busiest] if busiest is not None else 0,
        data[busiest] if busiest is not None else 0,
    )


def _sum(shares: Iterable[BrokerShare | None]) -> BrokerShare:
    known = [share for share in shares if share is not None]
    return reduce(_plus, known, BrokerShare(0, 0, 0, 0, 0, 0))


def _plus(left: BrokerShare, right: BrokerShare) -> BrokerShare:
    return BrokerShare(
        left.replicas + right.replicas,
        left.leaders + right.leaders,
        _added(left.bytes, right.bytes),
        _added(left.bytes_in_per_second, right.bytes_in_per_second),
        _added(left.bytes_out_per_second, right.bytes_out_per_second),
        _added(left.leader_bytes_in_per_second, right.leader_bytes_in_per_second),
    )


def _added(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right
