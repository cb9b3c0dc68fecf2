"""Laws of any staging, and cases by seed: a small cluster runs the stages and shares no code with them."""

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from helpers.staging_cases import Run, desired, run

from reconciler.diff.rules import TopicRules
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import BrokerState, Desired, Limits, MovePolicy, Spread
from reconciler.model.move import Election, Move, Reason
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.staging.bound import lower_bound_seconds
from reconciler.staging.stages import Staging, stage_moves

DISK_CODES = ("KR413", "KR816")
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


def imbalance(case: Case, replicas: Sequence[int], racks: Sequence[str]) -> int:
    """Return how many replicas are too many, or too few, in their racks: the rule's words as plain sums."""
    held = Counter(case.rack_of[replica] for replica in replicas)
    most, fewest = -(-len(replicas) // len(racks)), len(replicas) // len(racks)
    too_many = sum(count - most for count in held.values() if count > most)
    too_few = sum(fewest - held[rack] for rack in racks if held[rack] < fewest)
    return max(too_many, too_few)


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
    draw: random.Random, partitions: Sequence[Partition], disks: Mapping[int, LogDir]
) -> tuple[list[Partition], dict[int, tuple[LogDir, ...]]]:
    """Return the partitions with a log dir for each replica, and each broker's dirs: one, or two or three."""
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
        sizes = [(path, used[number, path], draw.randint(2, 6)) for path in several]
        dirs[number] = tuple(LogDir(path, times * size, times * size - size) for path, size, times in sizes)
        if several == ["/d"]:
            dirs[number] = (disks[number],)
    return placed, dirs


def make_case(seed: int, *, is_strict: bool = True) -> Case:
    draw = random.Random(seed)
    racks = "abcd"[: draw.randint(1, 3)]
    count = draw.randint(3, 12)
    rack_of = {number: racks[number % len(racks)] for number in range(1, count + 1)}
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
            reason = draw.choice(list(Reason)) if goal != now else Reason.LEADERS
            moves.append(Move(TopicPartition("t", number), now, goal, size * added, reason))
        if leader is not None and draw.random() < 0.5 and now[0] != leader and now[0] in isr:
            elections.append(Election(TopicPartition("t", number), now[0]))
    used = dict.fromkeys(rack_of, 0)
    for partition in partitions:
        for replica in partition.replicas:
            used[replica] += partition.sizes[0] or 0
    disks = {number: LogDir("/d", 3 * size, 3 * size - size) for number, size in used.items() if draw.random() < 0.7}
    partitions, dirs_of = with_log_dirs(random.Random(seed + 1), partitions, disks)
    return Case(
        observed=Cluster(
            "c",
            brokers={
                number: Broker(number, rack=rack, is_fenced=number in dead, log_dirs=dirs_of.get(number, ()))
                for number, rack in rack_of.items()
            },
            topics={"t": Topic("t", tuple(partitions))},
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


def the_run_ends_where_the_moves_say_and_leads_where_the_lists_say(case: Case) -> None:
    seen = case.told()
    for move in case.moves:
        assert seen.replicas[move.topic_partition] == move.to_replicas
        assert seen.leaders[move.topic_partition] == move.to_replicas[0]
    moved = {move.topic_partition for move in case.moves}
    for election in case.elections:
        if election.topic_partition not in moved:
            assert seen.leaders[election.topic_partition] == election.leader
    touched = moved | {election.topic_partition for election in case.elections}
    for name, partition in case.observed.partitions():
        if name not in touched:
            assert (seen.replicas[name], seen.leaders[name]) == (partition.replicas, partition.leader)


def no_bytes_are_added_or_lost_on_the_way(case: Case) -> None:
    stages = [stage for stage in case.staged().stages if isinstance(stage, ReassignStage)]
    assert sum(stage.bytes for stage in stages) == sum(move.bytes for move in case.moves)
    assert sum(sum(copied.values()) for copied in case.told().copied) == sum(len(move.added) for move in case.moves)


def no_stage_takes_on_more_than_the_limits(case: Case) -> None:
    seen = case.told()
    assert max(seen.partitions, default=0) <= case.policy.per_stage
    for counts in (*seen.arriving, *seen.leaving):
        assert max(counts.values(), default=0) <= case.policy.per_broker
    dead_in = {
        name: sum(replica in case.dead for replica in partition.replicas)
        for name, partition in case.observed.partitions()
    }
    for copied in seen.copied:
        for name, copies in copied.items():
            assert copies <= max(case.policy.per_partition, dead_in[name])


def the_rack_rule_is_never_broken_worse_than_before(case: Case) -> None:
    racks = case.rules["t"].racks
    for name, lists in case.told().steps.items():
        partition = case.observed.partition(name)
        assert partition is not None
        before = imbalance(case, partition.replicas, racks)
        for replicas in lists:
            after = imbalance(case, replicas, racks)
            assert after <= before, (name, lists)
            before = after


def living_replicas_are_never_fewer_than_now_or_wanted_and_no_dead_one_is_kept_beside_a_copy(case: Case) -> None:
    goal = {move.topic_partition: len(move.to_replicas) for move in case.moves}
    for name, lists in case.told().steps.items():
        partition = case.observed.partition(name)
        assert partition is not None
        before = partition.replicas
        for replicas in lists:
            living = sum(replica not in case.dead for replica in replicas)
            assert living >= min(sum(replica not in case.dead for replica in before), goal[name])
            if set(replicas) != set(before):
                assert case.dead.isdisjoint(replicas), "a target with a dead replica never ends"
            assert min(len(before), goal[name]) <= len(replicas) <= max(len(before), goal[name])
            before = replicas


def leadership_leaves_an_unfit_broker_before_its_data_while_another_can_lead(case: Case) -> None:
    for leader, replicas, in_sync in case.told().led_away:
        if leader in case.unfit:
            assert not in_sync - case.unfit - case.dead, (leader, replicas)


def elections_are_needed_and_come_in_batches_spread_over_the_new_leaders(case: Case) -> None:
    assert case.told().useless_elections == 0
    stages = case.staged().stages
    for first, second in pairwise(stages):
        if isinstance(first, ElectStage):
            assert 0 < len(first.elections) <= case.policy.election_batch
            if isinstance(second, ElectStage):
                assert len(first.elections) == case.policy.election_batch
    for stage in stages:
        if isinstance(stage, ElectStage):
            turns = [election.leader for election in stage.elections]
            counts = Counter(turns)
            for index in range(1, len(turns)):
                assert counts[turns[index]] >= 1
                if turns[index] == turns[index - 1]:
                    assert set(turns[index:]) == {turns[index]}, "one broker twice in a row, while others still wait"


def each_estimate_is_its_busiest_brokers_and_none_beats_the_bound(case: Case) -> None:
    stages = [stage for stage in case.staged().stages if isinstance(stage, ReassignStage)]
    rate = case.policy.throttle_bytes_per_second or 100 * 2**20
    for stage, busiest, copied in zip(stages, case.told().bytes_per_stage, case.told().copied, strict=True):
        is_copying = any(copied.values())
        assert stage.estimated_seconds == (max(1, -(-busiest // rate)) if is_copying else 0)
        assert stage.throttle_bytes_per_second == (case.policy.throttle_bytes_per_second if is_copying else None)
    bound = lower_bound_seconds(case.staged().stages, case.observed, case.policy)
    assert bound <= sum(stage.estimated_seconds for stage in stages)


@dataclass
class Disks:
    """What lies on each disk while the stages run: a disk is a broker, or one of its log dirs where these are known."""

    case: Case
    held: Counter[tuple[int, str]]
    logs: Counter[tuple[int, str]]
    lies_in: dict[tuple[TopicPartition, int], str]
    peak: Counter[tuple[int, str]]
    filled: Counter[tuple[int, str]]

    @classmethod
    def of(cls, case: Case) -> "Disks":
        disks = cls(case, Counter(), Counter(), {}, Counter(), Counter())
        for name, partition in case.observed.partitions():
            for number, path in zip(partition.replicas, partition.log_dirs or [None] * 9, strict=False):
                disks.lies_in[name, number] = (path or "") if disks.is_told(number) else ""
                disks.held[number, disks.lies_in[name, number]] += partition.sizes[0] or 0
                disks.logs[number, disks.lies_in[name, number]] += 1
        disks.peak = Counter(disks.held)
        return disks

    def is_told(self, number: int) -> bool:
        """Whether the broker has several log dirs, and what lies in them is known."""
        told = all(
            partition.log_dirs for _, partition in self.case.observed.partitions() if number in partition.replicas
        )
        return told and len(self.case.observed.brokers[number].log_dirs) > 1

    def paths(self, number: int) -> list[str]:
        dirs = self.case.observed.brokers[number].log_dirs
        return sorted(one.path for one in dirs) if self.is_told(number) else [""]

    def most(self, number: int, path: str, arrivals: int) -> int:
        """Return how many of so many new replicas Kafka may put there: it takes the fewest logs, this one of equals."""
        logs = {one: self.logs[number, one] for one in self.paths(number)}
        for _ in range(arrivals):
            logs[min(logs, key=lambda one: (logs[one], one != path))] += 1
        return logs[path] - self.logs[number, path]

    def run(self, stage: ReassignStage) -> None:
        arriving: dict[int, list[tuple[TopicPartition, int]]] = {}
        for move in sorted(stage.moves, key=lambda move: move.topic_partition):
            for number in move.added:
                size = move.bytes // len(move.added)
                arriving.setdefault(number, []).append((move.topic_partition, size))
        for number, replicas in arriving.items():
            for path in self.paths(number):
                most = self.most(number, path, len(replicas))
                worst = self.held[number, path] + sum(sorted((size for _, size in replicas), reverse=True)[:most])
                if most:
                    self.filled[number, path] = max(self.filled[number, path], worst)
                    self.peak[number, path] = max(self.peak[number, path], worst)
            for name, size in replicas:
                path = min(self.paths(number), key=lambda one: (self.logs[number, one], one))
                self.lies_in[name, number] = path
                self.held[number, path] += size
                self.logs[number, path] += 1
        for move in stage.moves:
            partition = self.case.observed.partition(move.topic_partition)
            assert partition is not None
            for number in move.removed:
                path = self.lies_in[move.topic_partition, number]
                self.held[number, path] -= partition.sizes[0] or 0
                self.logs[number, path] -= 1


def disks_are_counted_with_old_replicas_until_their_move_has_ended(case: Case) -> None:
    disks = Disks.of(case)
    whole, peak = Counter[int](), Counter[int]()
    for (number, _), size in disks.held.items():
        whole[number] += size
    peak.update(whole)
    for stage in case.staged().stages:
        if isinstance(stage, ReassignStage):
            disks.run(stage)
            for move in stage.moves:
                whole.update(dict.fromkeys(move.added, move.bytes // max(1, len(move.added))))
            peak = Counter({number: max(peak[number], whole[number]) for number in whole})
            for move in stage.moves:
                partition = case.observed.partition(move.topic_partition)
                assert partition is not None
                whole.subtract(dict.fromkeys(move.removed, partition.sizes[0] or 0))
    assert case.staged().disk_peak == {number: peak[number] for number in sorted(case.observed.brokers)}
    told = case.staged().log_dirs
    assert told.keys() == {number for number in case.observed.brokers if disks.is_told(number)}
    for number, dirs in told.items():
        assert {one.path: one.peak_bytes for one in dirs} == {p: disks.peak[number, p] for p in disks.paths(number)}
    foretold = {
        (name, number): path for name, to in case.staged().foretold_log_dirs.items() for number, path in to.items()
    }
    assert foretold == {
        (move.topic_partition, number): disks.lies_in[move.topic_partition, number]
        for stage in case.staged().stages
        if isinstance(stage, ReassignStage)
        for move in stage.moves
        for number in move.added
        if disks.is_told(number)
    }
    _no_disk_is_too_full_unless_told(case, disks)


def _no_disk_is_too_full_unless_told(case: Case, disks: Disks) -> None:
    share = case.wanted.cluster.limits.disk_use
    found = [problem for problem in case.staged().violations + case.staged().warnings if problem.code in DISK_CODES]
    too_full = set()
    for (number, path), size in disks.filled.items():
        dirs = [one for one in case.observed.brokers[number].log_dirs if path in ("", one.path)]
        total = sum(one.total_bytes or 0 for one in dirs)
        if dirs and size > int(total * (1 if share is None else share)):
            too_full.add((number, dirs[0].path if len(dirs) == 1 else ""))
    named = [
        re.search(r"broker (\d+) would hold .*? of \S+ \S+?(?: in (\S+))? at the worst", problem.message)
        for problem in found
    ]
    assert {(int(match[1]), match[2] or "") for match in named if match} == too_full
    assert len(named) == len(too_full)
    assert {problem.code for problem in found} <= {"KR816" if share is None else "KR413"}


def stages_are_numbered_from_one_and_none_is_empty(case: Case) -> None:
    stages = case.staged().stages
    assert [stage.number for stage in stages] == list(range(1, len(stages) + 1))
    for stage in stages:
        assert not isinstance(stage, ReassignStage) or stage.moves


LAWS = (
    disks_are_counted_with_old_replicas_until_their_move_has_ended,
    the_run_ends_where_the_moves_say_and_leads_where_the_lists_say,
    no_bytes_are_added_or_lost_on_the_way,
    no_stage_takes_on_more_than_the_limits,
    the_rack_rule_is_never_broken_worse_than_before,
    living_replicas_are_never_fewer_than_now_or_wanted_and_no_dead_one_is_kept_beside_a_copy,
    leadership_leaves_an_unfit_broker_before_its_data_while_another_can_lead,
    elections_are_needed_and_come_in_batches_spread_over_the_new_leaders,
    each_estimate_is_its_busiest_brokers_and_none_beats_the_bound,
    stages_are_numbered_from_one_and_none_is_empty,
)
