"""Tells what lies in which log dir of a broker, what is wished of these log dirs, and where the two differ."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from reconciler.diff.rules import LEAVING
from reconciler.model.change import DirDifference
from reconciler.model.cluster import Broker, Cluster
from reconciler.model.columns import NONE
from reconciler.model.desired import Desired, DesiredBroker, LogDirState, Off, Within
from reconciler.model.problem import Location, PlacementInfeasible, Problem, warning
from reconciler.model.table_maker import table_of
from reconciler.model.words import MANY, counted, labelled, named_some, percent, size

UNKNOWN = "KR837"


class Lying(NamedTuple):
    """A replica: its row in the table, its bytes (below 0: not known), and the position of its log dir.

    `goes_to`: the log dir that the broker copies it to at this moment, NONE for no such copy; `copied`: bytes so far.
    """

    row: int
    size: int
    place: int
    goes_to: int = NONE
    copied: int = 0


@dataclass(frozen=True, slots=True)
class DirOfBroker:
    """A log dir that is online, and its size known. `is_open`: replicas may come in.

    `is_draining`: it is to end empty; `at`: where that is written.
    """

    path: str
    total: int
    used: int
    is_open: bool = True
    is_draining: bool = False
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class DirsOfBroker:
    """A broker's log dirs by path, and the replicas in them; those in a log dir that is offline are not among them."""

    broker_id: int
    dirs: tuple[DirOfBroker, ...]
    lying: tuple[Lying, ...]

    @property
    def open_places(self) -> tuple[int, ...]:
        """The positions of the log dirs that replicas may come to: a balance is one of these alone."""
        return tuple(place for place, one in enumerate(self.dirs) if one.is_open)

    def known(self, place: int) -> int:
        """Return the bytes of the replicas in a log dir, as far as their sizes are known."""
        return sum(max(0, one.size) for one in self.lying if one.place == place)

    def held(self, place: int) -> int:
        """Return the bytes in a log dir: what its replicas have, and what is there beside them."""
        return max(self.dirs[place].used, self.known(place))


def bands(totals: Sequence[int], used: int, within: Fraction) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the least and the most bytes of each log dir: as full as all are together, within that part of it."""
    whole = max(1, sum(totals))
    shares = [Fraction(used * total, whole) for total in totals]
    low = tuple(max(0, -int(-share * (1 - within) // 1)) for share in shares)
    return low, tuple(int(share * (1 + within)) for share in shares)


def is_asked(desired: Desired, broker_id: int) -> bool:
    """Whether anything is wished of what lies in which log dir of that broker."""
    declared = desired.cluster.broker(broker_id)
    if declared.state in LEAVING:
        return False
    states = {one.state for one in declared.log_dirs}
    return not isinstance(desired.cluster.balance.log_dirs, Off) or bool(states - {LogDirState.ACTIVE})


def dirs_of_brokers(
    desired: Desired, observed: Cluster, more: Collection[int] = ()
) -> tuple[Mapping[int, DirsOfBroker], tuple[Problem, ...]]:
    """Return the living brokers of whose log dirs something is asked, and `more`; and what is not known of them.

    Raises PlacementInfeasible for log dirs that are not there, and for a broker of which none would be left.
    """
    written = desired.cluster.brokers.values()
    refused = [problem for each in written for problem in _refused(each, observed.brokers.get(each.id))]
    if refused:
        raise PlacementInfeasible(refused)
    asked = {id_ for id_ in observed.brokers if observed.is_alive(id_) and (id_ in more or is_asked(desired, id_))}
    several = {id_ for id_ in asked if len(observed.brokers[id_].log_dirs) != 1}
    sized = {id_ for id_ in several if len(observed.brokers[id_].sized_dirs) > 1}
    lying = _lying(observed, sized)
    unknown = sorted(id_ for id_ in several - lying.keys() if is_asked(desired, id_))
    found = {id_: DirsOfBroker(id_, _dirs(desired, observed.brokers[id_]), lying[id_]) for id_ in sorted(lying)}
    return found, tuple(_not_known(unknown, desired))


def log_dir_differences(desired: Desired, observed: Cluster) -> Iterator[DirDifference]:
    """Yield each log dir that is to be empty and is not, or that is fuller or emptier than the balance asks."""
    target = desired.cluster.balance.log_dirs
    for one in dirs_of_brokers(desired, observed)[0].values():
        for place, each in enumerate(one.dirs):
            there = [lying for lying in one.lying if lying.place == place]
            if each.is_draining and there:
                held = f"{counted(len(there), 'replica')}, {size(sum(max(0, lying.size) for lying in there))}"
                yield DirDifference(one.broker_id, each.path, f"draining: it holds {held}", each.at)
        if isinstance(target, Within):
            dirs, used = [one.dirs[place] for place in one.open_places], [*map(one.held, one.open_places)]
            low, high = bands([each.total for each in dirs], sum(used), target.fraction)
            for each, full, least, most in zip(dirs, used, low, high, strict=True):
                if not least <= full <= most:
                    wanted = f"{percent(least / each.total)} to {percent(most / each.total)}"
                    detail = f"balance: {percent(full / each.total)} full, {wanted} wanted"
                    at = desired.cluster.balance.at.get("logDirs")
                    yield DirDifference(one.broker_id, each.path, detail, at)


def _refused(declared: DesiredBroker, broker: Broker | None) -> Iterator[Problem]:
    if broker is None or not broker.log_dirs:
        return
    known = [one.path for one in broker.log_dirs]
    for one in declared.log_dirs:
        if one.path not in known:
            near = get_close_matches(one.path, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {named_some(known, MANY)}"
            yield Problem("KR350", f"broker {broker.id} has no log dir {one.path}; {hint}", one.at)
    draining = {one.path: one.at for one in declared.log_dirs if one.state is LogDirState.DRAINING}
    if draining.keys() >= {*known}:
        message = (
            f"all log dirs of broker {broker.id} are declared draining, so nothing can take their replicas:"
            " keep one of them, or declare the broker draining"
        )
        yield Problem("KR351", message, next(iter(draining.values())))


def _dirs(desired: Desired, broker: Broker) -> tuple[DirOfBroker, ...]:
    written = {one.path: one for one in desired.cluster.broker(broker.id).log_dirs}
    found = []
    for path, used, total, _ in sorted(broker.sized_dirs):
        one = written.get(path)
        state = one.state if one is not None else LogDirState.ACTIVE
        # Kafka takes no replica into a log dir that it cordons (KIP-1066), whatever a file says.
        is_open = state is LogDirState.ACTIVE and path not in broker.cordoned_dirs
        is_draining = state is LogDirState.DRAINING
        at = one.at if one is not None else None
        found.append(DirOfBroker(path, total, used, is_open and total > 0, is_draining, at))
    return tuple(found)


def _lying(observed: Cluster, brokers: Collection[int]) -> Mapping[int, tuple[Lying, ...]]:
    """Return the replicas of each of these brokers, in the order of rows; of those alone that tell where each lies."""
    if not brokers:
        return {}
    table = table_of(observed)
    rows, seats = np.nonzero(np.isin(table.replicas, [*brokers]))
    holder, place = table.replicas[rows, seats], table.log_dirs[rows, seats]
    unknown = {*holder[place < 0].tolist()}
    position = {path: number for number, path in enumerate(table.paths)}
    paths: dict[int, dict[int, int]] = {}
    copies: dict[tuple[int, int], tuple[int, int]] = {}  # of a replica that is copied: where to, and how much so far
    for id_ in sorted(set(brokers) - unknown):
        ordered = sorted(one.path for one in observed.brokers[id_].sized_dirs)
        paths[id_] = {position[path]: number for number, path in enumerate(ordered) if path in position}
        futures = [one for one in observed.brokers[id_].future_replicas if one.path in ordered]
        at = table.rows_of(one.topic_partition for one in futures).tolist()
        copies |= {
            (id_, row): (ordered.index(one.path), one.size_bytes or 0) for row, one in zip(at, futures, strict=True)
        }
    found: dict[int, list[Lying]] = {id_: [] for id_ in paths}
    columns = (holder.tolist(), rows.tolist(), table.sizes[rows, seats].tolist(), place.tolist())
    for id_, row, held, where in zip(*columns, strict=True):
        if id_ in paths and where in paths[id_]:
            found[id_].append(Lying(row, held, paths[id_][where], *copies.get((id_, row), ())))
    return {id_: tuple(each) for id_, each in found.items()}


def _not_known(brokers: Sequence[int], desired: Desired) -> Iterator[Problem]:
    if brokers:
        first = next((one.at for id_ in brokers for one in desired.cluster.broker(id_).log_dirs), None)
        message = (
            f"what lies in which log dir of {labelled('broker', brokers, MANY)} is not known, so nothing is moved"
            " between them: a snapshot of the live cluster tells it, once all log dirs are online"
        )
        yield warning(UNKNOWN, message, first or desired.cluster.balance.at.get("logDirs"))
