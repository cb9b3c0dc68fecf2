"""One seed's play: a plan, its run in a bad world, whatever is needed until it has ended, and the judgement."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from random import Random

from simulation.cases import Case, drawn_case
from simulation.end import left_behind, not_as_planned, our_moves_in_flight, unfinished
from simulation.others import Others
from simulation.watch import Broken, Watch
from simulation.world import CALM, READ_FATES, WRITE_FATES, Weather, World

from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import Killed, planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import RunEnded, RunResult, RunState
from reconciler.model.topic_partition import TopicPartition

HERE, THERE = "here", "there"
STALLED = "KR702"
LONGEST_LAG = 60.0
ATTEMPTS_IN_PEACE = 2


class SeedFailed(AssertionError):
    """A seed's run broke an invariant, or did not end as it must; the text has the diary."""


@dataclass(slots=True)
class Play:
    """What became of a seed: how each run ended, and how much was written."""

    seed: int
    ends: list[str] = field(default_factory=list)
    faults: int = 0
    requests: int = 0
    calls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """How often each kind of trouble came: what befell a request, and what others did."""


def play(seed: int) -> Play:
    """Play a seed to its end and return what became of it; raises SeedFailed."""
    return _Stage(seed).played()


class _Stage:
    def __init__(self, seed: int) -> None:
        self.random = Random(f"play {seed}")
        self.case: Case = drawn_case(seed)
        self.told = Play(seed)
        weather, deeds = self._weather()
        self.watch = Watch(self.case, weather.lag)
        self.world = World(self.case.before, self.random, self.watch, weather, can_keep=seed % 4 > 0)
        self.others = Others(self.case, self.world, self.random)
        for call, deed in deeds:
            self.world.at_call.setdefault(call, []).append(partial(self._others_do, deed))
        self.journals = {HERE: MemoryJournal(), THERE: MemoryJournal()}
        self.machine = HERE
        self.crash_at = self.random.randint(1, 60) if self.random.random() < 0.2 else None
        self.stop_at = self.random.randint(1, 40) if self.random.random() < 0.15 else None
        self.deadline = self.random.choice((0.0, 5.0, 60.0)) if self.random.random() < 0.1 else None
        self.is_cancelled = self.random.random() < 0.3

    def _weather(self) -> tuple[Weather, list[tuple[int, str]]]:
        random = self.random
        kinds = [fate for fate in (*READ_FATES, *WRITE_FATES, "half") if random.random() < 0.3]
        rate = random.choice((0.0, 0.02, 0.05, 0.15))
        most = random.choice((0.0, 0.0, 1.0, 10.0, LONGEST_LAG))
        brokers = self.case.before.brokers
        lags = {broker: timedelta(seconds=random.uniform(0, most)) for broker in brokers} if most else {}
        kill_at = random.randint(3, 120) if random.random() < 0.2 else None
        deeds = [
            (int(2 ** random.uniform(0, 7.5)), random.choice(DEEDS)) for _ in range(random.choice((0, 1, 1, 2, 4)))
        ]
        fates = {kind: rate / 5 if kind in READ_FATES else rate for kind in kinds}
        return Weather(fates, lags, kill_at), deeds

    def played(self) -> Play:
        try:
            with planted(self._crash):
                self._first_run()
                self._until_the_end()
        except (Broken, AssertionError) as error:
            raise self._failed(str(error)) from error
        except Exception as error:
            raise self._failed(f"{type(error).__name__}: {error}") from error
        self.told.faults = sum(" ! " in line for line in self.world.diary)
        self.told.requests, self.told.calls = self.world.requests, self.world.calls
        self.told.kinds += self.world.befell
        return self.told

    def _failed(self, why: str) -> SeedFailed:
        return SeedFailed("\n".join([f"seed {self.told.seed}: {why}", *self._scene(), *self.world.diary[-120:]]))

    def _scene(self) -> list[str]:
        stages = [f"  {stage}" for stage in self.case.plan.stages]
        return [f"weather {self.world.weather}", f"runs ended: {self.told.ends}", *stages]

    def _others_do(self, deed: str) -> None:
        self.told.kinds[deed] += 1
        self.others.deeds[deed]()

    def _crash(self, name: str) -> None:
        if self.crash_at is not None:
            self.crash_at -= 1
            if self.crash_at == 0:
                self.crash_at = None
                self.world.diary.append(f"killed at {name}")
                raise Killed(name)

    # The run in the bad world

    def _first_run(self) -> None:
        for _ in range(6):
            end = self._run()
            if end not in {None, "KR600"}:
                return
            self.world.clock.sleep(self.random.choice((0, 3, 20)))
            if end is None and self.random.random() < 0.5:
                self._on_another_machine()

    def _on_another_machine(self) -> None:
        """Nobody starts there at once: what is read by then is not of the time before the crash."""
        self.machine = self.random.choice((HERE, THERE))
        self.world.diary.append(f"on machine {self.machine}")
        self.watch.contested |= set(self.watch.foreign_changes)
        self.world.clock.sleep(self.watch.lag.total_seconds() + 1)

    def _run(self) -> str | None:
        """Run the plan, and return how it ended; None if the process was killed."""
        self.world.diary.append("-- apply")
        deadline = self.world.clock.now() + timedelta(seconds=self.deadline) if self.deadline is not None else None
        try:
            result = run_plan(
                self.case.plan, self.world, self.journal, deadline=deadline, should_stop=self._should_stop
            )
        except Killed:
            end = None
            self.watch.forget()
        except ReconcilerError as error:
            end = error.code
            self.world.diary.append(f"-- {error.code} {error}")
            self._judge_stop(error)
        else:
            end = "done"
            assert result.state is RunState.DONE
            self.world.diary.append(f"-- done, leftover throttles {[str(each) for each in result.leftover_throttles]}")
            self._judge_leftover_throttles(result)
        self.told.ends.append(end or "killed")
        self._close_journal()
        return end

    @property
    def journal(self) -> MemoryJournal:
        return self.journals[self.machine]

    def _close_journal(self) -> None:
        self.journals[self.machine] = MemoryJournal([*self.journal.events, *self.journal.appended])

    def _should_stop(self) -> str | None:
        if self.stop_at is None:
            return None
        self.stop_at -= 1
        return "SIGTERM" if self.stop_at < 0 else None

    def _judge_stop(self, error: ReconcilerError) -> None:
        """A stop names what it leaves: moves not done, moves in flight, throttles."""
        text = str(error)
        if not isinstance(error, RunEnded):
            return
        result = error.result
        if result is None:
            return
        unnamed = sorted(set(unfinished(self.case, self.watch, self.world.cluster)) - set(result.left))
        assert not unnamed or self.watch.lag, f"a stop does not name {unnamed}, which are not done: {result.left}"
        reasons = "\n".join(line for line in text.splitlines() if " stages done" not in line)
        for key in our_moves_in_flight(self.watch, self.world.cluster):
            assert str(key) in reasons or "may still be in flight" in text, (
                f"{key} is left in flight, and nobody says why"
            )
        self._judge_order(text)
        if error.code == STALLED:
            stuck = [key for key in sorted(self.watch.moves) if str(key) in reasons]
            untold = [(key, broker) for key in stuck for broker in self._broken_on_the_way(key)]
            untold = [(key, broker) for key, broker in untold if f"of broker {broker} is offline" not in reasons]
            assert not untold, f"log dirs failed into which {untold} are moved, and nobody is told"
        self._judge_leftover_throttles(result)

    def _broken_on_the_way(self, key: TopicPartition) -> set[int]:
        """Return the destinations of a partition's moves without a working log dir for as long as the run waited."""
        broken = [broker for broker, _ in self.others.broken_dirs]
        dead = {b for b in broken if broken.count(b) == len(self.case.before.brokers[b].log_dirs)} - self.others.down
        partition = self.world.cluster.partition(key)
        went_back = dead.difference(partition.replicas if partition else ())
        return went_back.intersection(broker for _, move in self.watch.moves[key] for broker in move.added)

    def _judge_order(self, text: str) -> None:
        """What was taken back is on one of its lists, in order; where it "does not show yet", only metadata is late."""
        excuses = [line for line in text.splitlines() if "it does not show" not in line and " stages done" not in line]
        for key, chain in self.watch.moves.items():
            partition = self.world.cluster.partition(key)
            lists = [chain[0][1].from_replicas, *(move.to_replicas for _, move in chain)]
            if partition is None or partition.is_reassigning or self.watch.is_touched(key):
                continue
            if any(str(key) in line for line in excuses):
                continue
            assert partition.replicas in lists, f"{key} is left on {partition.replicas}, which is none of {lists}"

    def _judge_leftover_throttles(self, result: RunResult) -> None:
        told = "\n".join([*result.messages, *(str(each) for each in result.leftover_throttles)])
        if "throttles of this run are still on" in told or "left moves in flight under its throttles" in told:
            return
        for line in left_behind(self.watch, self.world.cluster):
            kind, name = line.split(" ")[:2]
            if kind in {"broker", "topic"}:
                assert f"{kind} {name} keeps" in told, f"not named as a leftover throttle: {line}"

    # Until the end, in peace

    def _until_the_end(self) -> None:
        self._peace()
        if self.is_cancelled:
            self._cancel()
        self.world.clock.sleep(3600)
        for attempt in range(ATTEMPTS_IN_PEACE):
            try:
                result = run_plan(self.case.plan, self.world, self.journal)
            except ReconcilerError as error:
                self.told.ends.append(error.code)
                self.world.diary.append(f"-- {error.code} {error}")
                self._close_journal()
                self.world.clock.sleep(600)
                if self._is_true_conflict(error):
                    self._judge_conflict()
                    return
                if attempt + 1 == ATTEMPTS_IN_PEACE:
                    raise
            else:
                self.told.ends.append("done")
                self._judge_end(result)
                return

    def _peace(self) -> None:
        """End all faults: what is under way may end, brokers come back, nothing is old any more."""
        self.world.diary.append("-- peace")
        self.crash_at = self.stop_at = self.deadline = None
        self.world.at_call = {}
        lag = self.watch.lag
        self.world.weather = CALM
        self.watch.lag = timedelta(0)
        self.others.heal()
        self.world.clock.sleep(lag.total_seconds() + 5)

    def _cancel(self) -> None:
        self.world.diary.append("-- cancel")
        text = ""
        try:
            cancel_run(self.case.plan, self.world, self.journal)
        except ReconcilerError as error:
            text = str(error)
            self.world.diary.append(f"-- {error.code} {error}")
            if not self._is_true_conflict(error):
                raise
        self._close_journal()
        self._judge_order(text)
        behind = left_behind(self.watch, self.world.cluster)
        assert not behind, f"cancel leaves {behind}"

    def _is_true_conflict(self, error: ReconcilerError) -> bool:
        is_cordoned_by_others = any(name.endswith(" cordoned.log.dirs") for name in self.watch.foreign_changes)
        # A broker that an operator cordons meanwhile takes no new replica: the run refuses its next stage.
        return (error.code == "KR461" and is_cordoned_by_others) or any(n in str(error) for n in self.others.names)

    def _judge_conflict(self) -> None:
        behind = left_behind(self.watch, self.world.cluster)
        assert not behind, f"a conflict leaves {behind}"

    def _judge_end(self, result: RunResult) -> None:
        assert result.state is RunState.DONE
        assert result.leftover_throttles == (), result.leftover_throttles
        self.world.clock.sleep(600)
        is_quiet = not self.watch.died
        wrong = not_as_planned(self.case, self.watch, self.world.cluster, are_leaders_kept=is_quiet)
        assert not wrong, wrong
        requests = self.world.requests
        run_plan(self.case.plan, self.world, MemoryJournal([*self.journal.events, *self.journal.appended]))
        assert self.world.requests == requests, "a second apply writes"
        if not self.watch.contested:
            run_plan(self.case.plan, self.world, MemoryJournal())
            assert self.world.requests == requests, "a second apply from another machine writes"


DEEDS = (
    "a broker dies",
    "a broker bounces",
    "the controller dies",
    *("a log dir fails",) * 2,
    *("takes over a partition of ours",) * 3,
    "moves another partition",
    *("cancels a move of ours",) * 2,
    "elects",
    "sets a rate",
    *("sets a throttle list",) * 3,
    "changes another config",
    "changes a config of ours",
    "adds partitions",
    "deletes a topic",
    *("makes a topic again",) * 2,
    "produces",
)
