"""A neighbour joins the lock's group with any metadata: it may stop a run, or change its rate, and nothing else.

The oracle reads the bytes line by line, and compares raw values of brokers, topics and replicas.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count as count_from
from types import SimpleNamespace

import click
import pytest
from apply.test_forged_record import VERBS, Dead
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.deaths import dies, nth
from helpers.plans.end_state import in_flight, shortcomings, throttles
from helpers.plans.forged_group import ForgedGroup, Forger, forgers, member_of, seat_among
from helpers.plans.forged_members import HUGE, forged_holder
from helpers.plans.small_runs import RATE, cluster, move, plan_of, whole_plan

from reconciler.admin import simulated_locks
from reconciler.admin.client import lock
from reconciler.admin.client.lock import lock_holder, take_lock
from reconciler.admin.client.lock_member import INCONSISTENT_PROTOCOL, REBALANCE
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.admin.simulated_locks import HeldLock, MemoryLocks
from reconciler.apply.crash import planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.command.terminal import tell, write
from reconciler.model.cluster import Cluster
from reconciler.model.lock import Holder, LockHeld, NotStopped, RateRequest
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import RunState, StoppedEarly
from reconciler.model.stage import ReassignStage

pytestmark = pytest.mark.long

UNKNOWN_SERVER_ERROR = -1
"""What a coordinator answers where the members say more than one record of it can hold."""
PLAN_ID = "0badcafe"
PURPOSE = f"apply of plan {PLAN_ID}"
ME = Holder(PURPOSE, "kim", "here", 1, "2026-11-21T10:00:00Z")
PLAN_IDS = [PLAN_ID, PLAN_ID, "0000beef"]
RATES = [RATE, 2 * RATE, 1_048_575, 1_048_576, 200_000_000, 200_000_001, 400_000_000, 400_000_001]
LOWEST = 1_048_576
"""What any run may be asked for at least: 1 MiB/s, as the stages below are throttled to more."""
HIGHEST = {"whole": 400_000_000, "short": 200_000_000}
"""Ten times the highest rate of the plan's stages."""


def _plans(before: Cluster) -> dict[str, Plan]:
    """Return a plan with every kind of step, and one of a single move, which runs faster."""
    short = ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"), move("clicks-1", "2,3,1", "4,3,1")), RATE)
    return {"whole": whole_plan(before), "short": plan_of([short], before)}


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "STOP_SECONDS", -1.0)
    monkeypatch.setattr(lock, "ASKING_SECONDS", 0.0)
    monkeypatch.setattr(simulated_locks, "STOP_SECONDS", -1.0)
    monkeypatch.setattr(lock, "_connected", lambda wire: wire)


def led_by_a_forger(chance: random.Random) -> ForgedGroup:
    """Return a group whose leader gives out its own text, that of another, or anything else."""
    found = forgers(chance, PLAN_IDS, RATES)
    holder = forged_holder(chance, PLAN_IDS)
    if chance.random() < 0.5:
        found[0] = Forger(holder, found[0].host)
    return ForgedGroup(found, chance.choice([found[0].metadata, found[0].metadata, found[-1].metadata, holder]))


def hosts_of(found: Sequence[Forger], word: bytes) -> set[str]:
    """Return where Kafka sees those that say exactly this, or all where none does."""
    return {one.host for one in found if one.metadata == word} or {one.host for one in found}


def shown(capsys: pytest.CaptureFixture[str], texts: Sequence[str]) -> str:
    """Return what the two streams show of these; fail where a terminal would obey anything in it."""
    for text in texts:
        tell(text, "always")
        write(text, "always")
    out, err = capsys.readouterr()
    wrong = [each for each in click.unstyle(out + err) if not each.isprintable() and each not in "\n\t"]
    assert wrong == []
    return out


@parts("count", 1_000, deep=100_000)
def test_a_forger_that_leads_is_named_with_its_host_and_only_blocks(
    count: int, capsys: pytest.CaptureFixture[str], figures: Tell
) -> None:
    chance, counts = random.Random(51), Counter[str]()
    for number in range(count):
        group = led_by_a_forger(chance)
        assert group.assignment is not None
        stopping = chance.choice([None, PURPOSE])
        with pytest.raises(LockHeld) as refused:
            take_lock(
                member_of(group, ME).wire, Holder(f"cancel of plan {PLAN_ID}", "kim", "here", 1, ""), None, stopping
            )
        told = shown(capsys, [str(refused.value)])
        group.mine = b""
        described = lock_holder(member_of(group, ME).wire)
        for holder in (described, refused.value.holder):
            assert holder is not None, f"{number}: {group}"
            seen_at = set(holder.client_host.split(" or "))
            assert hosts_of(group.forgers, group.assignment) <= seen_at <= {one.host for one in group.forgers}, group
            if refused.value.code == "KR450":
                assert f"Kafka sees it at {holder.client_host}" in told
            shown(capsys, [str(holder)])
        counts[f"{refused.value.code}"] += 1
        counts["without a name"] += described is not None and not described.user
    figures("forged holders", f"{count} that lead the lock's group: " + _listed(counts))


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


@parts("count", 1_000, deep=100_000)
def test_who_leads_hears_only_what_is_meant_for_it_and_from_which_host(count: int, figures: Tell) -> None:
    chance, counts = random.Random(52), Counter[str]()
    for _ in range(count):
        found = forgers(chance, PLAN_IDS, RATES)
        seat = seat_among(found, ME)
        assert (seat.is_leader, seat.holder) == (True, ME)
        meant = [one for one in found if one.metadata.startswith(f"{PURPOSE}\n".encode())]
        rates = [one for one in meant if b"\nrate=" in one.metadata]
        if seat.asked_by is not None:
            assert seat.asked_by.client_host in {one.host for one in meant if one not in rates}, found
            counts["asked to stop"] += 1
        if seat.rate_asked is not None:
            asked = [one for one in rates if f"\nrate={seat.rate_asked.rate}\n".encode() in one.metadata]
            assert seat.rate_asked.by.client_host in {one.host for one in asked}, found
            counts["asked for a rate"] += 1
    assert counts["asked to stop"] > count // 10
    assert counts["asked for a rate"] > count // 10
    figures("forged requests", f"{count} groups with forgers: {_listed(counts)}")


def test_a_request_for_a_rate_from_a_host_whose_name_is_a_number_asks_nobody_to_stop() -> None:
    by = Holder("throttle", "kim", "123456789012", 1, "2026-11-21T10:00:00Z")
    seat = seat_among([Forger(RateRequest(PURPOSE, by, RATE).written().encode(), "192.0.2.1")], ME)
    assert seat.asked_by is None
    assert seat.rate_asked == RateRequest(PURPOSE, by, RATE)


class Renaming(ForgedGroup):
    """A group whose leader is a run of the plan each time, with another process number."""

    def ask(self, build: Callable[[], object], node_id: int | None, seconds: float) -> object:
        if type(build()).__name__ == "HeartbeatRequest":
            self.assignment = replace(ME, pid=next(self.numbers)).written().encode()
            return SimpleNamespace(error_code=REBALANCE)
        return super().ask(build, node_id, seconds)

    numbers = count_from(2)


def test_a_leader_that_takes_ever_new_names_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = count_from(0, 10)
    monkeypatch.setattr(lock, "STOP_SECONDS", 120)
    monkeypatch.setattr(lock, "now", lambda: float(next(moments)))
    asked: list[str] = []
    group = Renaming([Forger(ME.written().encode(), "192.0.2.1")], ME.written().encode())
    cancel = replace(ME, purpose=f"cancel of plan {PLAN_ID}")
    with pytest.raises(NotStopped):
        take_lock(member_of(group, ME).wire, cancel, asked.append, PURPOSE)
    assert 1 < len(asked) < 100


@pytest.mark.parametrize(("error_code", "code"), [(INCONSISTENT_PROTOCOL, "KR452"), (UNKNOWN_SERVER_ERROR, "KR603")])
def test_who_makes_the_group_no_lock_is_named_on_one_line(
    monkeypatch: pytest.MonkeyPatch, error_code: int, code: str
) -> None:
    monkeypatch.setattr(lock, "COORDINATOR_SECONDS", -1.0)
    found = [Forger(b"x" * HUGE, f"192.0.2.{number}") for number in range(1, 9)]
    group = ForgedGroup(found, b"", error_code=error_code)
    with pytest.raises(ReconcilerError) as refused:
        take_lock(member_of(group, ME).wire, ME)
    assert refused.value.code == code
    assert "client forger-4 ::error:: on 192.0.2.5, member forger-4; 3 more" in str(refused.value)
    assert "\n" not in str(refused.value)


class LedLocks(MemoryLocks):
    """The locks of a cluster where a forger leads the group."""

    def __init__(self, group: ForgedGroup) -> None:
        super().__init__()
        self.group = group

    @property
    def holder(self) -> Holder | None:
        self.group.mine = b""
        return lock_holder(member_of(self.group, ME).wire)

    def take(self, holder: Holder, /) -> HeldLock:
        member = member_of(self.group, holder)
        raise LockHeld(member.seen(member.join().holder))


@pytest.fixture(scope="module")
def dead_runs() -> list[tuple[Dead, str]]:
    """Return the cluster before a run, and after runs of it died at various points, each with its record."""
    plan, before = whole_plan(cluster()), cluster()
    found = [(Dead(plan, before, before), "")]
    for at in range(9, 120, 22):
        locks = MemoryLocks()
        admin = SimulatedAdmin(before, locks=locks)
        with suppress(pytest.fail.Exception):
            dies(lambda: run_plan(plan, admin, MemoryJournal()), nth(at))  # noqa: B023 - it is called at once
            found.append((Dead(plan, before, admin.cluster), locks.kept))
    return found


@parts("count", 1_000, deep=100_000)
def test_while_a_forger_holds_the_lock_every_verb_refuses_or_looks(
    count: int, dead_runs: list[tuple[Dead, str]], capsys: pytest.CaptureFixture[str], figures: Tell
) -> None:
    chance, counts = random.Random(53), Counter[str]()
    for number in range(count):
        dead, record = dead_runs[number % len(dead_runs)]
        locks = LedLocks(led_by_a_forger(chance))
        locks.kept = record
        admin = SimulatedAdmin(dead.after, locks=locks)
        name = chance.choice(sorted(VERBS))
        try:
            VERBS[name](dead, admin)
        except ReconcilerError as error:
            shown(capsys, [str(error)])
            counts[f"{name}: {error.code}"] += 1
        else:
            counts[name] += 1
        assert admin.cluster == dead.after, f"{name}: {locks.group}"
        assert admin.writes == 0
    assert not any("KR003" in name for name in counts)
    assert not {"apply PLAN", "apply another PLAN"} & counts.keys(), counts
    figures("verbs beside a forged holder", _listed(counts))


class Intruders:
    """Forgers that join while a run is on, at some of its boundaries; watches the rates that the run sets."""

    def __init__(self, chance: random.Random, admin: SimulatedAdmin, locks: MemoryLocks, highest: int) -> None:
        self.moments = set(chance.sample(range(1, 60), 8))
        self.chance, self.admin, self.locks, self.highest = chance, admin, locks, highest
        self.looked_at = admin.cluster
        self.own = {value for where, value in throttles(admin.cluster).items() if "throttled.rate" in where}
        self.passed = 0
        self.joined: list[Forger] = []
        self.wrong: list[str] = []

    def __call__(self, _name: str) -> None:
        self.passed += 1
        held = self.locks.held
        if self.passed in self.moments and held is not None:
            found = forgers(self.chance, PLAN_IDS, RATES)
            self.joined += found
            seat = seat_among(found, held.holder)
            held.asked_by = held.asked_by or seat.asked_by
            held.rate_asked = seat.rate_asked or held.rate_asked
        if self.admin.cluster is not self.looked_at:
            self.looked_at = self.admin.cluster
            self.wrong += self._out_of_bounds(self.looked_at)

    def _out_of_bounds(self, now: Cluster) -> Iterator[str]:
        for where, value in throttles(now).items():
            is_own = "throttled.rate" not in where or value in self.own
            if not is_own and not LOWEST <= int(value) <= self.highest:
                yield f"{where}: {value}"


@parts("count", 1_000, deep=10_000)
def test_a_run_that_hears_forgers_ends_in_a_legal_state(
    count: int, capsys: pytest.CaptureFixture[str], figures: Tell
) -> None:
    chance, counts, before = random.Random(54), Counter[str](), cluster()
    plans, set_before = _plans(before), throttles(before)
    kept = {
        "whole": {where: one for where, one in set_before.items() if "topic old " not in where},
        "short": set_before,
    }
    for number in range(count):
        name = "short" if number % 10 else "whole"
        plan, locks, told = plans[name], MemoryLocks(), list[str]()
        admin, journal = SimulatedAdmin(before, locks=locks), MemoryJournal()
        intruders = Intruders(chance, admin, locks, HIGHEST[name])
        with planted(intruders):
            try:
                is_done = run_plan(plan, admin, journal, notify=told.append).state is RunState.DONE
            except StoppedEarly as error:
                told.append(str(error))
                is_done = False
        assert is_done or any(one.metadata.startswith(f"{PURPOSE}\n".encode()) for one in intruders.joined), number
        assert intruders.wrong == [], f"run {number}: {intruders.joined}"
        assert in_flight(admin.cluster) == []
        assert throttles(admin.cluster) == kept[name], f"run {number}: {intruders.joined}"
        shown(capsys, told)
        counts["ran on to the end" if is_done else "stopped in order"] += 1
        counts["answers to a rate"] += sum(event.step == "rate" for event in journal.appended)
        if is_done or number % 3 == 0:
            run_plan(plan, admin, MemoryJournal([*journal.events, *journal.appended]))
            assert shortcomings(plan, before, admin.cluster) == []
    assert min(counts.values()) > count // 20, counts
    figures("runs beside forgers", _listed(counts))
