"""Brokers refuse a run's login midway: it ends soon, says so once, names once what it leaves, and claims no more."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import pytest
from helpers.plans.small_runs import RATE, admin_of, cluster, move, plan_of

from reconciler.admin.client.oauth import TokenUnavailable
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.run import run_plan
from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES
from reconciler.model.plan import Plan
from reconciler.model.problem import CheckFailed
from reconciler.model.run import RunFailed, RunState, StoppedEarly
from reconciler.model.stage import ReassignStage

SECONDS = 30


def refused_login() -> CheckFailed:
    return CheckFailed("The cluster refused the login. Renew it.", code="KR602")


REFUSALS: dict[str, Callable[[], CheckFailed]] = {
    "KR602": refused_login,
    "KR605": lambda: TokenUnavailable("The endpoint answered 401: check the secret."),
    "KR608": lambda: CheckFailed("The certificate of broker 1 has expired. Have it renewed.", code="KR608"),
}


def moving_plan() -> Plan:
    moves = (move("orders-0", "1,2,3", "1,2,4"), move("clicks-0", "1,2,3", "1,2,5"))
    return plan_of([ReassignStage(1, moves, RATE // 100)], cluster())


@dataclass
class Refusing:
    """Brokers that let this client in until copies are under way, and then no more."""

    admin: SimulatedAdmin
    error: Callable[[], CheckFailed]
    since: datetime | None = None
    is_over: bool = False
    asked: list[str] = field(default_factory=list)

    def __call__(self, name: str, moment: Moment) -> None:
        if self.is_over or moment is not Moment.BEFORE or not (self.since or self._is_moving()):
            return
        self.since = self.since or self.admin.clock.now()
        self.asked.append(name)
        raise self.error()

    def _is_moving(self) -> bool:
        return any(one.is_reassigning for topic in self.admin.cluster.topics.values() for one in topic.partitions)


def throttles(admin: SimulatedAdmin) -> dict[tuple[str, str], str]:
    """Return each throttle key that the cluster holds, by its broker or topic."""
    owners = {f"broker {one.id}": one.configs for one in admin.cluster.brokers.values()}
    owners |= {f"topic {one.name}": one.configs for one in admin.cluster.topics.values()}
    keys = {*BROKER_THROTTLES, *TOPIC_THROTTLES}
    return {(owner, key): value for owner, configs in owners.items() for key, value in configs.items() if key in keys}


@pytest.mark.parametrize("code", REFUSALS)
def test_a_run_that_is_let_in_no_more_ends_soon_and_names_once_what_it_leaves(code: str) -> None:
    admin = admin_of(cluster())
    before = throttles(admin)
    refusing = admin.fault = Refusing(admin, REFUSALS[code])
    with pytest.raises(RunFailed) as ended:
        run_plan(moving_plan(), admin, MemoryJournal())
    assert refusing.since is not None
    assert (admin.clock.now() - refusing.since).total_seconds() <= SECONDS
    assert len(refusing.asked) <= SECONDS, "each is one more login that is refused"
    lines = str(ended.value).splitlines()
    cause = str(REFUSALS[code]())
    assert (ended.value.code, lines[0]) == (code, f"{cause} Then run apply again: it goes on where the cluster stands.")
    assert [line for line in lines[1:] if cause in line] == []
    left = {key for key, value in throttles(admin).items() if before.get(key) != value}
    (named,) = (line for line in lines if "KR720" in line)
    for owner, key in left:
        assert f"{owner} keeps what this run set:" in named
        assert key in named
    assert len(left) > 4
    assert "once brokers let this client in again" in named
    assert "reconciler doctor PLAN --fix throttles" in named
    assert [line for line in lines if "put back" in line and "not put back" not in line] == []
    assert any("clicks-0, orders-0" in line or "orders-0, clicks-0" in line for line in lines)
    refusing.is_over = True
    assert run_plan(moving_plan(), admin, MemoryJournal()).state is RunState.DONE
    assert throttles(admin) == before


@pytest.mark.parametrize("code", REFUSALS)
@pytest.mark.parametrize("verb", ["cancel", "doctor", "signal"])
def test_what_cleans_up_asks_little_of_brokers_that_let_nobody_in_and_claims_nothing(code: str, verb: str) -> None:
    admin = admin_of(cluster())
    before = throttles(admin)
    refusing = admin.fault = Refusing(admin, REFUSALS[code])
    with pytest.raises(RunFailed):
        run_plan(moving_plan(), admin, MemoryJournal())
    refusing.asked.clear()
    began, said = admin.clock.now(), ""
    plan = moving_plan()
    verbs: dict[str, Callable[[], object]] = {
        "cancel": lambda: cancel_run(plan, admin, MemoryJournal()),
        "doctor": lambda: restore_throttles(plan, admin, MemoryJournal()),
        "signal": lambda: run_plan(plan, admin, MemoryJournal(), should_stop=lambda: "SIGINT came"),
    }
    with pytest.raises((CheckFailed, RunFailed, StoppedEarly)) as refused:
        said = str(verbs[verb]())
    said += str(refused.value)
    assert (admin.clock.now() - began).total_seconds() <= SECONDS
    assert len(refusing.asked) <= SECONDS
    assert "put back" not in said.replace("not put back", "")
    refusing.is_over = True
    cancel_run(plan, admin, MemoryJournal())
    assert throttles(admin) == before


@pytest.mark.parametrize("at", ["reassignments", "topics", "topic_configs", "broker_configs", "alter_topic_configs"])
def test_a_clean_up_during_which_the_login_is_refused_claims_nothing_that_is_not_so(at: str) -> None:
    """The first request of that name in a cancel is refused, and all after it."""
    admin = admin_of(cluster())
    before = throttles(admin)
    refusing = admin.fault = Refusing(admin, refused_login)
    with pytest.raises(RunFailed):
        run_plan(moving_plan(), admin, MemoryJournal())
    is_refused: list[str] = []

    def refuse(name: str, moment: Moment) -> None:
        if moment is Moment.BEFORE and (name == at or is_refused):
            is_refused.append(name)
            raise refused_login()

    admin.fault = refuse
    said: list[str] = []
    try:
        result = cancel_run(moving_plan(), admin, MemoryJournal(), notify=said.append)
        said += [*result.messages, *map(str, result.leftover_throttles)]
    except (CheckFailed, RunFailed) as error:
        said.append(str(error))
    text = "\n".join(said)
    left = {key for key, value in throttles(admin).items() if before.get(key) != value}
    assert is_refused
    assert len(is_refused) <= SECONDS
    assert text.count("(KR720)") <= 1
    assert "put back as recorded" not in text
    for owner, key in left if "KR720" in text else ():
        assert f"{owner} keeps what this run set" in text, key
    admin.fault = None
    cancel_run(moving_plan(), admin, MemoryJournal())
    assert throttles(admin) == before
    assert refusing.since is not None
