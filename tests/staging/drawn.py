"""Inputs of staging by seed: brokers of every state, dead ones, disks and log dirs, moves, elections due."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from staging.cases import Run, desired, run

from reconciler.diff.rules import TopicRules
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import BrokerState, Desired, Limits, MovePolicy, Spread
from reconciler.model.move import Election, Move, Reason
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.stages import Staging, stage_moves

WHOLE = range(300)
DEAR = {0, 40, 50, 270, 290}
"""Seeds whose stages take seconds to find."""
PART = tuple(seed for seed in WHOLE[::10] if seed not in DEAR)
# How large log dirs are, in tenths of what lies in them.
WIDE, TIGHT = range(20, 61, 10), range(11, 21)
UNFIT = (BrokerState.DRAINING, BrokerState.MAINTENANCE)


@dataclass
class Case:
    observed: Cluster
    wanted: Desired
    rules: Mapping[str, TopicRules]
    moves: list[Move]
    elections: list[Election]
    _staged: Staging | None = None
    _run: Run | None = None

    @property
    def rack_of(self) -> dict[int, str]:
        return {number: broker.rack or "" for number, broker in self.observed.brokers.items()}

    @property
    def dead(self) -> set[int]:
        return {number for number, broker in self.observed.brokers.items() if broker.is_fenced}

    @property
    def unfit(self) -> set[int]:
        return {number for number, broker in self.wanted.cluster.brokers.items() if broker.state in UNFIT}

    @property
    def policy(self) -> MovePolicy:
        return self.wanted.cluster.moves

    def staged(self) -> Staging:
        """Return the stages, made once."""
        if self._staged is None:
            self._staged = stage_moves(
                self.moves, (), self.elections, observed=self.observed, desired=self.wanted, rules=self.rules
            )
        return self._staged

    def told(self) -> Run:
        """Return what the stages did, run once."""
        if self._run is None:
            self._run = run(self.observed, self.staged().stages)
        return self._run


def balanced(draw: random.Random, brokers: Sequence[int], rack_of: Mapping[int, str], size: int) -> tuple[int, ...]:
    """Return that many of the brokers in random order, their racks as even as the rule asks; empty if there is none."""
    racks = sorted({rack_of[broker] for broker in brokers})
    chosen: list[int] = []
    for turn in range(size):
        if turn % len(racks) == 0:
            draw.shuffle(racks)
        free = [broker for broker in brokers if rack_of[broker] == racks[turn % len(racks)] and broker not in chosen]
        if not free:
            return ()
        chosen.append(draw.choice(free))
    draw.shuffle(chosen)
    return tuple(chosen)


def with_log_dirs(
    draw: random.Random, partitions: Sequence[Partition], disks: Mapping[int, LogDir], tenths: Sequence[int]
) -> tuple[list[Partition], dict[int, tuple[LogDir, ...]]]:
    """Return the partitions with a log dir for each replica, and each broker's dirs: one, or two or three.

    A log dir is as large as so many tenths of what lies in it.
    """
    paths = {number: ["/d1", "/d2", "/d3"][: draw.randint(2, 3)] if draw.random() < 0.4 else ["/d"] for number in disks}
    is_told = draw.random() < 0.9
    placed, used = [], Counter[tuple[int, str]]()
    for partition in partitions:
        chosen = tuple(draw.choice(paths[one]) if one in paths else None for one in partition.replicas)
        used.update(
            {(one, path): partition.sizes[0] or 0 for one, path in zip(partition.replicas, chosen, strict=True) if path}
        )
        placed.append(replace(partition, log_dirs=chosen if is_told else ()))
    dirs = {}
    for number, several in paths.items():
        sizes = [(path, used[number, path], draw.choice(tenths)) for path in several]
        dirs[number] = tuple(LogDir(path, total * size // 10, total * size // 10 - size) for path, size, total in sizes)
        if several == ["/d"]:
            dirs[number] = (disks[number],)
    return placed, dirs


def make_case(seed: int, *, is_strict: bool = True, is_tight: bool = False) -> Case:
    """Return a case; a tight one has racks of unequal size, log dirs almost full, and a min.insync.replicas."""
    draw = random.Random(seed)
    racks = "abcd"[: draw.randint(1, 3)]
    count = draw.randint(3, 12)
    rack_of = {number: racks[number % len(racks)] for number in range(1, count + 1)}
    if is_tight:
        rack_of = {number: draw.choice(racks + racks[0]) for number in rack_of}
    states = {
        number: draw.choice([BrokerState.DRAINING, BrokerState.MAINTENANCE])
        for number in rack_of
        if draw.random() < 0.15
    }
    dead = {number for number in rack_of if draw.random() < 0.12}
    draining = {number for number, state in states.items() if state is BrokerState.DRAINING}
    staying = [number for number in rack_of if number not in draining]
    living = [number for number in staying if number not in dead]
    racks_that_count = tuple(sorted({rack_of[number] for number in staying}))
    moves, partitions, elections = [], [], []
    for number in range(draw.randint(1, 30)):
        now = tuple(draw.sample(sorted(rack_of), draw.randint(1, min(4, count))))
        if is_strict and draw.random() < 0.7:
            now = balanced(draw, sorted(rack_of), rack_of, draw.randint(1, min(4, count))) or now
        alive = [replica for replica in now if replica not in dead]
        leader = draw.choice(alive) if alive else None
        isr = tuple(replica for replica in alive if replica == leader or draw.random() < 0.8)
        size = draw.choice([0, 1, draw.randint(1, 1000)])
        partitions.append(Partition(number, leader, now, isr, sizes=(size,) * len(now)))
        goal = balanced(draw, living, rack_of, draw.choice([len(now), draw.randint(1, 4)])) if living else ()
        if set(racks_that_count) != {rack_of[replica] for replica in living}:
            goal = ()
        keeps_dead = any(replica in dead and replica in now for replica in goal)
        if leader is not None and goal and not keeps_dead:
            added = len(set(goal) - set(now))
            reasons = [one for one in Reason if one is not Reason.LOG_DIRS]  # of moves inside a broker alone
            reason = draw.choice(reasons) if goal != now else Reason.LEADERS
            moves.append(Move(TopicPartition("t", number), now, goal, size * added, reason))
        if leader is not None and draw.random() < 0.5 and now[0] != leader and now[0] in isr:
            elections.append(Election(TopicPartition("t", number), now[0]))
    used = dict.fromkeys(rack_of, 0)
    for partition in partitions:
        for replica in partition.replicas:
            used[replica] += partition.sizes[0] or 0
    disks = {number: LogDir("/d", 3 * size, 3 * size - size) for number, size in used.items() if draw.random() < 0.7}
    partitions, dirs_of = with_log_dirs(random.Random(seed + 1), partitions, disks, TIGHT if is_tight else WIDE)
    return Case(
        observed=Cluster(
            "c",
            brokers={
                number: Broker(number, rack=rack, is_fenced=number in dead, log_dirs=dirs_of.get(number, ()))
                for number, rack in rack_of.items()
            },
            topics={"t": Topic("t", tuple(partitions), configs={"min.insync.replicas": "2"} if is_tight else {})},
        ),
        wanted=desired(
            states,
            MovePolicy(
                throttle_bytes_per_second=draw.choice([None, 1, 7]),
                per_broker=draw.randint(1, 4),
                per_partition=draw.randint(1, 3),
                per_stage=draw.choice([1, 3, 500]),
                election_batch=draw.choice([1, 2, 100]),
            ),
            Limits(disk_use=draw.choice([None, Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)])),
        ),
        rules={
            "t": TopicRules(
                "t",
                None,
                receivable=frozenset(living),
                keepable=frozenset(living),
                leadable=frozenset(living).difference(states),
                spread=Spread.STRICT,
                racks=racks_that_count,
                rack_of=rack_of,
            )
        },
        moves=[move for move in moves if move.from_replicas != move.to_replicas],
        elections=elections,
    )


known_case = cache(make_case)
"""The same case by its seed, staged once for all who look at it: not where staging is tampered with."""
