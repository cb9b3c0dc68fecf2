"""Runs that move replicas between log dirs in a bad world, each decided by one seed: they end as planned or say why."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.deaths import Bomb
from helpers.plans.small_runs import MB, plan_of

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import Killed, planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.move import DirMove, Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, OutcomeUnknown, ReconcilerError
from reconciler.model.stage import LogDirsStage
from reconciler.model.topic_partition import TopicPartition

pytestmark = [pytest.mark.long, pytest.mark.simulation]

KEY = "replica.alter.log.dirs.io.max.bytes.per.second"
RATE, OWN = "20000000", "7000000"
PATHS = ("/d1", "/d2", "/d3")
SIZE = 600 * MB
ATTEMPTS_IN_PEACE = 6
LEFT_ALONE = 33
"""The first seed in which a replica is left alone to the end."""


def cluster(random: Random) -> Cluster:
    """Return three brokers with two or three log dirs each; on some an operator has a rate of their own."""
    lines = [f"a-{number}: 1,2,3 size {random.randrange(1, SIZE)}" for number in range(random.randrange(1, 8))]
    rates = {broker: {KEY: OWN} for broker in (1, 2, 3) if random.random() < 0.3}
    made = small_cluster(*lines, brokers=(1, 2, 3), rates=rates)
    dirs = tuple(LogDir(path, 10**12, 10**12) for path in PATHS[: random.choice((2, 3))])
    for broker in made.brokers.values():
        object.__setattr__(broker, "log_dirs", dirs)
    return made


def drawn_plan(before: Cluster, random: Random) -> Plan:
    """Return a plan of one to three stages in which each replica moves once at most."""
    paths = [one.path for one in before.brokers[1].log_dirs]
    moves = [
        DirMove(
            key, broker, str(path), random.choice([one for one in paths if one != path]), size or 0, Reason.LOG_DIRS
        )
        for key, partition in before.partitions()
        for broker, path, size in zip(partition.replicas, partition.log_dirs, partition.sizes, strict=True)
        if random.random() < 0.7
    ]
    random.shuffle(moves)
    some = max(1, -(-len(moves) // random.choice((1, 2, 3))))
    rate = int(RATE) if random.random() < 0.8 else None
    stages = [
        LogDirsStage(number, tuple(moves[start : start + some]), rate)
        for number, start in enumerate(range(0, len(moves), some), start=1)
    ]
    return plan_of(stages, before, per_broker=random.choice((1, 2, 10)), topic_ids={"a": "id-of-a"})


@dataclass
class World:
    """The world of one seed. `judge` looks at the cluster by itself, at each call of the run."""

    seed: int
    is_at_peace: bool = False
    befell: Counter[str] = field(default_factory=Counter)
    others: set[tuple[TopicPartition, int]] = field(default_factory=set)
    """The replicas in which somebody else, or a failed log dir, had a hand."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.before = cluster(self.random)
        self.plan = drawn_plan(self.before, self.random)
        self.moves = {m.replica: m for s in self.plan.stages if isinstance(s, LogDirsStage) for m in s.moves}
        self.rates = {id_: broker.configs.get(KEY) for id_, broker in self.before.brokers.items()}
        self.admin = SimulatedAdmin(self.before, fault=self.hook)

    def hook(self, name: str, moment: Moment) -> Answer | None:
        self.judge()
        if self.is_at_peace:
            return None
        self.admin.fault = None
        try:
            self.happens()
        finally:
            self.admin.fault = self.hook
        is_write = name in {"choose_log_dirs", "alter_broker_configs"}
        if self.random.random() > (0.08 if is_write else 0.006):
            return None
        self.befell[f"no answer {moment.value}"] += 1
        if is_write:
            raise OutcomeUnknown(f"{name}: no answer")
        raise ClusterUnavailable(f"{name}: no answer")

    def happens(self) -> None:
        """Let something happen to the cluster, now and then."""
        deed = self.random.choice(("bounce", "other", "fail", "produce", "produce", "time"))
        if self.random.random() > {"other": 0.02, "fail": 0.01}.get(deed, 0.05):
            return
        self.befell[deed] += 1
        broker, key = (
            self.random.choice((1, 2, 3)),
            self.random.choice([key for key, _ in self.admin.cluster.partitions()]),
        )
        match deed:
            case "bounce":
                self.admin.kill_broker(broker)
                self.admin.clock.sleep(self.random.choice((1, 12, 60)))
                self.admin.return_broker(broker)
            case "other":
                path = self.random.choice(self.admin.cluster.brokers[broker].log_dirs).path
                self.others.add((key, broker))
                self.admin.choose_log_dirs(broker, {key: path})
            case "fail":
                log_dir = self.random.choice(self.admin.cluster.brokers[broker].log_dirs)
                self.others |= {replica for replica in self.moves if replica[1] == broker}
                self.admin.fail_log_dir(broker, log_dir.path)
                self.admin.clock.sleep(self.random.choice((1, 60)))
                self.admin.repair_log_dir(broker, LogDir(log_dir.path, 10**12, 10**12))
            case "produce":
                self.admin.produce(key, size=self.random.randrange(MB))
            case _:
                self.admin.clock.sleep(self.random.choice((1, 5)))

    def judge(self) -> None:
        """Assert that nothing is copied that should not be, and nothing without its throttle."""
        for broker in self.admin.cluster.brokers.values():
            ours = 0
            for future in broker.future_replicas:
                replica = (future.topic_partition, broker.id)
                if replica in self.others:
                    continue
                ours += 1
                move = self.moves.get(replica)
                assert move is not None, f"{replica} is copied, and no move of the plan"
                assert future.path in {move.from_dir, move.to_dir}, f"{replica} is copied to {future.path}"
                is_throttled = any(s.throttle_bytes_per_second for s in self.plan.stages if isinstance(s, LogDirsStage))
                assert not is_throttled or broker.configs.get(KEY) == RATE, f"{replica} is copied without the throttle"
            assert ours <= (self.plan.per_broker or 0), f"{ours} copies at once at broker {broker.id}"

    # One play

    def play(self) -> None:
        """Run the plan, die, go on elsewhere, cancel, until it has ended in peace; assert what is left then."""
        journal = MemoryJournal()
        for _ in range(self.random.randrange(1, 5)):
            journal = self.random.choice((journal, MemoryJournal()))
            verb = self.random.choice((run_plan, run_plan, cancel_run))
            with planted(self.bomb()):
                try:
                    verb(self.plan, self.admin, journal)
                    self.not_copied()
                except Killed:
                    self.befell["killed"] += 1
                except ReconcilerError as error:
                    self.befell[error.code] += 1
            journal = MemoryJournal([*journal.events, *journal.appended])
        self.is_at_peace = True
        if self.random.random() < 0.5:
            self.cancelled()
        self.admin.clock.sleep(3600)
        self.end()

    def bomb(self) -> Bomb:
        """Return what kills the process at one of its boundaries, or never."""
        return Bomb(self.random.choice((None, self.random.randrange(1, 20), self.random.randrange(1, 60))))

    def cancelled(self) -> None:
        """Cancel, by the plan alone; assert that nothing of the plan is copied from then on."""
        cancel_run(self.plan, self.admin, MemoryJournal())
        self.not_copied()
        self.at_rest()

    def not_copied(self) -> None:
        """Assert that a run or a cancel that has ended well leaves no copy of the plan under way."""
        brokers = self.admin.cluster.brokers.values()
        copied = {(one.topic_partition, broker.id) for broker in brokers for one in broker.future_replicas}
        assert copied <= self.others, f"it leaves {copied - self.others}"

    def end(self) -> None:
        for _ in range(ATTEMPTS_IN_PEACE):
            try:
                run_plan(self.plan, self.admin, MemoryJournal())
            except ReconcilerError as error:
                told = str(error)
                self.befell[error.code] += 1
                assert any(f"{key}" in told for key, _ in self.others), f"nobody had a hand in it: {told}"
                self.admin.clock.sleep(600)
                continue
            self.at_rest()
            for replica, move in self.moves.items():
                assert self.place(replica) == move.to_dir, f"{move} is in {self.place(replica)}"
            self.befell["done"] += 1
            writes = self.admin.writes
            run_plan(self.plan, self.admin, MemoryJournal())
            assert self.admin.writes == writes, "a second apply writes"
            return
        self.at_rest()
        self.befell["left alone"] += 1

    def place(self, replica: tuple[TopicPartition, int]) -> str | None:
        partition = self.admin.cluster.partition(replica[0])
        assert partition is not None
        return partition.log_dirs[partition.replicas.index(replica[1])]

    def at_rest(self) -> None:
        """Assert that nothing of the plan is copied, and that every rate is as it was."""
        self.admin.clock.sleep(3600)
        brokers = self.admin.cluster.brokers.values()
        assert not [one for broker in brokers for one in broker.future_replicas]
        assert {broker.id: broker.configs.get(KEY) for broker in brokers} == self.rates
        for (number, path), size in self.held().items():
            found = next(one for one in self.admin.cluster.brokers[number].log_dirs if one.path == path)
            assert not self.befell["fail"] or found.usable_bytes is not None
            if not self.befell["fail"]:
                assert 10**12 - (found.usable_bytes or 0) == size - self.held(self.before)[number, path]

    def held(self, seen: Cluster | None = None) -> Counter[tuple[int, str]]:
        """Return the bytes of the replicas in each log dir."""
        found: Counter[tuple[int, str]] = Counter()
        for _, one in (seen or self.admin.cluster).partitions():
            for broker, path, size in zip(one.replicas, one.log_dirs, one.sizes, strict=True):
                found[broker, str(path)] += size or 0
        return found


@parts("seeds", (*range(25), LEFT_ALONE), deep=range(1500))
def test_whatever_happens_every_replica_ends_where_it_belongs_or_it_is_said_why(
    seeds: Sequence[int], figures: Tell
) -> None:
    befell: Counter[str] = Counter()
    failed = []
    for seed in seeds:
        world = World(seed)
        try:
            world.play()
        except (AssertionError, ReconcilerError) as error:
            failed.append(f"seed {seed}: {type(error).__name__} {error}")
        befell += world.befell
    assert not failed, "\n".join([f"{len(failed)} of {len(seeds)} seeds", *failed[:3]])
    assert befell["done"] > len(seeds) / 2
    assert befell.keys() >= {"killed", "bounce", "other", "fail", "no answer before", "no answer after", "left alone"}
    told = ", ".join(f"{count} {what}" for what, count in sorted(befell.items()))
    figures("simulation of log dirs", f"{len(seeds)} seeds: {told}")
