"""Puts moves inside brokers into stages: before all others where they make room for what arrives, else after them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.model.desired import MovePolicy
from reconciler.model.move import DirMove
from reconciler.model.stage import LogDirsStage
from reconciler.staging.disk import DiskUse
from reconciler.staging.estimate import SECONDS_A_COPY, SECONDS_A_STAGE, seconds
from reconciler.staging.log_dirs import BrokerDirs
from reconciler.staging.step import Step


def dir_stages(sets: Iterable[Sequence[DirMove]], policy: MovePolicy) -> Iterator[LogDirsStage]:
    """Yield stages of these sets, each of which is safe whatever part of it is done, and so is a part of one."""
    for some in sets:
        for start in range(0, len(some), policy.per_stage):
            moves = tuple(some[start : start + policy.per_stage])
            rate = policy.throttle_bytes_per_second
            yield LogDirsStage(0, moves, rate, SECONDS_A_STAGE + _seconds(moves, policy))


def _seconds(moves: Sequence[DirMove], policy: MovePolicy) -> int:
    """Return how long the busiest broker copies: each has the rate of the throttle for itself."""
    copied, counts = Counter[int](), Counter(move.broker for move in moves)
    for move in moves:
        copied[move.broker] += move.bytes
    copying = seconds(max(copied.values()), policy.throttle_bytes_per_second)
    return max(copying, SECONDS_A_COPY * -(-max(counts.values()) // policy.per_broker))


def makes_room(moves: Sequence[DirMove], steps: Iterable[Step], disk: DiskUse) -> frozenset[int]:
    """Return the brokers whose moves inside have to end before their new replicas come: else a log dir is overfull."""
    coming: dict[int, Counter[str]] = {}
    for step in steps:
        for broker_id in step.added if step.move.log_dirs else ():
            if broker_id in step.move.log_dirs:
                coming.setdefault(broker_id, Counter())[step.move.log_dirs[broker_id]] += step.load
    tried = disk.copy()
    found = set[int]()
    for broker_id in sorted(coming.keys() & {move.broker for move in moves}):
        late = _too_much(tried.dirs[broker_id], coming[broker_id])
        if late:
            tried.moved_inside([move for move in moves if move.broker == broker_id])
            early = tried.dirs[broker_id].excess + _too_much(tried.dirs[broker_id], coming[broker_id])
            found.update({broker_id} if early < late else ())
    return frozenset(found)


def _too_much(dirs: BrokerDirs, coming: Mapping[str, int]) -> int:
    return sum(dirs.over(path, size) for path, size in coming.items())
