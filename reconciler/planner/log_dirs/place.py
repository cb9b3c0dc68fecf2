"""Plans what lies in which log dir: the moves inside brokers, and the log dirs that arriving replicas are asked for."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reconciler.diff.log_dirs import DirOfBroker, DirsOfBroker, Lying, bands, dirs_of_brokers, is_asked
from reconciler.diff.rules import TopicRules
from reconciler.model.cluster import Cluster
from reconciler.model.columns import NONE, lists_of
from reconciler.model.desired import Desired, Even, Off, Within
from reconciler.model.move import DirMove, Reason
from reconciler.model.move_table import Moves
from reconciler.model.partition_table import PartitionTable
from reconciler.model.problem import InvalidInput, PlacementInfeasible, Problem, warning
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import MANY, listed, named_some, percent, size
from reconciler.planner.log_dirs.solve import NOWHERE, DirTask, Solved, solve

WORK = 0.1
"""How much CP-SAT may look on at one broker, in its own deterministic seconds; of all brokers the same, so that what a
plan reaches does not depend on how many there are."""


@dataclass(frozen=True, slots=True)
class DirsPlaced:
    """The moves between brokers, with log dirs where they are asked for, and the moves inside brokers.

    `least`: bytes that moves inside brokers copy at least in any plan that comes as near to limits and balance.
    """

    moves: Moves
    dir_moves: tuple[DirMove, ...] = ()
    least: int = 0
    warnings: tuple[Problem, ...] = ()


class _Item(NamedTuple):
    """A replica that a log dir is looked for: `came_from` None for one that comes from another broker."""

    key: TopicPartition
    size: int
    is_size_known: bool
    came_from: DirOfBroker | None
    row: int = NONE


_Free = Sequence[tuple[TopicPartition, Lying]]
"""The replicas of a broker that may be moved about in it."""


def place_log_dirs(
    desired: Desired,
    observed: Cluster,
    rules: Mapping[str, TopicRules],
    moves: Moves,
    *,
    deleted: Collection[str] = (),
    only: Collection[str] | None = None,
    crowded: Collection[int] = (),
    full: Collection[int] = (),
) -> DirsPlaced:
    """Return the least bytes moved inside brokers that empty what is draining and bring the balance asked for.

    `moves`: whole moves between brokers, one a partition. `deleted`: topics that the plan deletes; with `only`, no
    others than these topics move. `crowded`: brokers of which Kafka's own choice of log dirs would overfill one; their
    arriving replicas alone are placed. `full`: brokers with a log dir above `limits.diskUse`, of which replicas
    may move to other log dirs too. Raises PlacementInfeasible where a log dir cannot be emptied.
    """
    balance = desired.cluster.balance
    if isinstance(balance.log_dirs, Even):
        message = "balance.logDirs: whole replicas never fill log dirs exactly alike; write {within: 10%}"
        raise InvalidInput([Problem("KR342", message, balance.at.get("logDirs"))])
    found, unknown = dirs_of_brokers(desired, observed, {*crowded, *full})
    if not found:
        return DirsPlaced(moves, warnings=unknown)
    planning = _Planning(desired, table_of(observed), rules, moves, frozenset(deleted), only, frozenset(full))
    for one in found.values():
        planning.plan(one)
    if planning.refused:
        raise PlacementInfeasible(planning.refused)
    rows = moves.rows_of(planning.asked)
    log_dirs = {
        row: planning.asked[key] for row, key in zip(rows.tolist(), moves.part(rows).topic_partitions(), strict=True)
    }
    dir_moves = sorted(planning.dir_moves, key=lambda one: (one.broker, one.topic_partition))
    warnings = *unknown, *_outside(planning.outside, desired)
    return DirsPlaced(replace(moves, log_dirs=log_dirs), tuple(dir_moves), planning.least, warnings)


@dataclass(slots=True)
class _Planning:
    """Plans broker by broker."""

    desired: Desired
    table: PartitionTable
    rules: Mapping[str, TopicRules]
    moves: Moves
    deleted: frozenset[str]
    only: Collection[str] | None
    full: frozenset[int]
    leaving: set[tuple[TopicPartition, int]] = field(default_factory=set)
    after: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    arriving: dict[int, list[_Item]] = field(default_factory=dict)
    asked: dict[TopicPartition, dict[int, str]] = field(default_factory=dict)
    dir_moves: list[DirMove] = field(default_factory=list)
    least: int = 0
    refused: list[Problem] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    in_flight: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Tell what the moves between brokers take from each broker, and bring to it."""
        self.in_flight = frozenset(self.table.reassigning)
        for move in self.moves:
            self.after[move.topic_partition] = move.to_replicas
            self.leaving.update((move.topic_partition, broker_id) for broker_id in move.removed)
            added = move.added
            for broker_id in added:
                item = _Item(move.topic_partition, move.bytes // len(added), move.is_size_known, None)
                self.arriving.setdefault(broker_id, []).append(item)

    def plan(self, broker: DirsOfBroker) -> None:
        """Plan one broker; what it copies from dir to dir at this moment goes on, and is part of the plan if asked."""
        places = broker.open_places
        free = [*self._free(broker)]
        self.dir_moves += self._under_way(broker, free)
        drained = [*self._draining(broker, free)]
        arriving = self.arriving.get(broker.broker_id, []) if len(broker.dirs) > 1 else []
        target = self.desired.cluster.balance.log_dirs
        is_balanced = isinstance(target, Within) and is_asked(self.desired, broker.broker_id) and len(places) > 1
        is_full = broker.broker_id in self.full and len(places) > 1
        if not places or not (drained or is_balanced or is_full or arriving):
            if drained:
                self.refused.append(_nowhere(broker, drained))
            return
        is_free = bool(drained) or is_balanced or is_full
        staying = [*self._staying(broker, free)] if is_free else []
        items = sorted((*drained, *arriving, *(item for item, _ in staying)), key=lambda item: item.key)
        home = {item.key: places.index(place) for item, place in staying}
        dirs = [broker.dirs[place] for place in places]
        movable = [sum(item.size for item, at in staying if at == place) for place in places]
        fixed = [held - moving for held, moving in zip(self._held(broker, places), movable, strict=True)]
        whole = sum(fixed) + sum(item.size for item in items)
        low, high = (0,) * len(dirs), (whole,) * len(dirs)
        if is_balanced and isinstance(target, Within):
            low, high = bands([one.total for one in dirs], whole, target.fraction)
        share = self.desired.cluster.limits.disk_use
        task = DirTask(
            tuple(one.total for one in dirs),
            tuple(one.total if share is None else int(one.total * share) for one in dirs),
            low,
            high,
            tuple(fixed),
            tuple(item.size for item in items),
            tuple(home.get(item.key, NOWHERE) for item in items),
            is_free=is_free,
        )
        self._take(broker, items, dirs, task, solve(task, WORK))

    def _held(self, broker: DirsOfBroker, places: Sequence[int]) -> Iterator[int]:
        """Yield the bytes in each of these log dirs once what leaves has left, and copies under way have ended."""
        for place in places:
            held = broker.held(place)
            for one in broker.lying:
                is_leaving = self._is_leaving(self.table.key(one.row), broker.broker_id)
                if one.place == place and (is_leaving or one.goes_to not in {NONE, place}):
                    held -= max(0, one.size)
                if one.goes_to == place != one.place:
                    held += (0 if is_leaving else max(0, one.size)) - one.copied
            yield held

    def _is_leaving(self, key: TopicPartition, broker_id: int) -> bool:
        return key.topic in self.deleted or (key, broker_id) in self.leaving

    def _free(self, broker: DirsOfBroker) -> Iterator[tuple[TopicPartition, Lying]]:
        """Yield the replicas that stay on the broker and that the plan may move about: not what is in flight."""
        for one in broker.lying:
            key = self.table.key(one.row)
            is_in_reach = one.row not in self.in_flight and (self.only is None or key.topic in self.only)
            if is_in_reach and not self._is_leaving(key, broker.broker_id):
                yield key, one

    def _replicas(self, key: TopicPartition, row: int) -> tuple[int, ...]:
        """Return the partition's replicas once the moves between brokers have ended."""
        return self.after.get(key) or next(lists_of(self.table.target[row : row + 1]))

    def _under_way(self, broker: DirsOfBroker, free: _Free) -> Iterator[DirMove]:
        """Yield the copies under way out of log dirs that are to end empty: a run waits for their end."""
        for key, (row, held, place, goes_to, _) in free:
            one, size = broker.dirs[place], max(0, held)
            if one.is_draining and goes_to in broker.open_places:
                self.least += size
                to, replicas = broker.dirs[goes_to].path, self._replicas(key, row)
                yield DirMove(key, broker.broker_id, one.path, to, size, Reason.DRAINING, one.at, held >= 0, replicas)

    def _draining(self, broker: DirsOfBroker, free: _Free) -> Iterator[_Item]:
        """Yield what lies in log dirs that are to end empty; what is protected is refused."""
        for key, (row, held, place, goes_to, _) in free:
            one = broker.dirs[place]
            if not one.is_draining or goes_to != NONE:
                continue
            if self.rules[key.topic].is_frozen:
                message = (
                    f"{key} may not move: protect names move, but log dir {one.path} of broker {broker.broker_id}"
                    " is draining: drop one of the two"
                )
                self.refused.append(Problem("KR353", message, one.at))
            else:
                guess = int(self.table.bytes_to_copy[row])
                yield _Item(key, max(0, held if held >= 0 else guess), held >= 0, one, row)

    def _staying(self, broker: DirsOfBroker, free: _Free) -> Iterator[tuple[_Item, int]]:
        """Yield the replicas, with their log dirs, that may be moved for others or for the balance."""
        for key, (row, held, place, goes_to, _) in free:
            one, rule = broker.dirs[place], self.rules[key.topic]
            if held > 0 and goes_to == NONE and one.is_open and rule.is_managed and not rule.is_frozen:
                yield _Item(key, held, is_size_known=True, came_from=one, row=row), place

    def _take(
        self, broker: DirsOfBroker, items: Sequence[_Item], dirs: Sequence[DirOfBroker], task: DirTask, found: Solved
    ) -> None:
        """Take the places that were found for a broker."""
        used = task.used(found.dirs)
        is_full = any(held > one.total for held, one in zip(used, dirs, strict=True))
        drained = [item for item in items if item.came_from is not None and item.came_from.is_draining]
        if drained and is_full:
            self.refused.append(_no_room(broker, drained, dirs, task))
            return
        cluster = self.desired.cluster
        is_balanced = not isinstance(cluster.balance.log_dirs, Off)
        asked_at = cluster.balance.at.get("logDirs") if is_balanced else cluster.limits.at.get("diskUse")
        self.least += found.least + sum(item.size for item in drained)
        for item, place in zip(items, found.dirs, strict=True):
            to = dirs[place]
            if item.came_from is None:
                self.asked.setdefault(item.key, {})[broker.broker_id] = to.path
            elif item.came_from.path != to.path:
                is_drained = item.came_from.is_draining
                reason, at = (Reason.DRAINING, item.came_from.at) if is_drained else (Reason.LOG_DIRS, asked_at)
                way, replicas = (item.came_from.path, to.path), self._replicas(item.key, item.row)
                self.dir_moves.append(
                    DirMove(item.key, broker.broker_id, *way, item.size, reason, at, item.is_size_known, replicas)
                )
        if found.cost.outside:
            full = [f"{one.path} {percent(held / one.total)}" for one, held in zip(dirs, used, strict=True)]
            self.outside.append(f"broker {broker.broker_id}: {listed(full)}")


def _nowhere(broker: DirsOfBroker, drained: Sequence[_Item]) -> Problem:
    one = drained[0].came_from
    path, at = (one.path, one.at) if one is not None else ("", None)
    message = (
        f"log dir {path} of broker {broker.broker_id} cannot be emptied: every other log dir of the broker is draining,"
        " cordoned or offline. Keep one of them active, or declare the broker draining"
    )
    return Problem("KR354", message, at)


def _no_room(broker: DirsOfBroker, drained: Sequence[_Item], dirs: Sequence[DirOfBroker], task: DirTask) -> Problem:
    paths = sorted({item.came_from.path for item in drained if item.came_from is not None})
    going = sum(item.size for item in drained)
    free = sum(max(0, one.total - held) for one, held in zip(dirs, task.used(task.home), strict=True))
    lacking = "so no places fit them whole" if free >= going else f"{size(going - free)} less than that"
    message = (
        f"log dir {listed(paths)} of broker {broker.broker_id} cannot be emptied: {size(going)} have to go, and the"
        f" broker's other log dirs have {size(free)} free, {lacking}. Make room on them, keep it active, or let"
        " replicas leave the broker (balance.disk, or declare it draining)"
    )
    return Problem("KR352", message, next(item.came_from.at for item in drained if item.came_from is not None))


def _outside(brokers: Sequence[str], desired: Desired) -> Iterator[Problem]:
    target = desired.cluster.balance.log_dirs
    if brokers and isinstance(target, Within):
        message = (
            f"log dirs stay further than {percent(target.fraction)} from the mean of their broker, as no replica that"
            f" may move brings them nearer ({named_some(brokers, MANY, '; ')}): the plan is the nearest that was found"
        )
        yield warning("KR836", message, desired.cluster.balance.at.get("logDirs"))
