"""Drawn journals: where others could write them they are neither believed nor written; this user's own do no harm.

The oracle compares raw values of brokers and topics, and reads the journal's lines as plain JSON.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from unittest.mock import patch

import pytest
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.deaths import dies, nth
from helpers.plans.end_state import throttles
from helpers.plans.forged_journals import forged_journal
from helpers.plans.small_runs import RATE, cluster, whole_plan
from workflow.test_own_journal import FOLLOWING, FORGED, INPUTS, PLACE, WAYS, git

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.run import run_plan
from reconciler.apply.status import Watcher
from reconciler.files.plan_file import with_id
from reconciler.model.cluster import Cluster
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import StoppedEarly
from reconciler.workflow import cancel as verb
from reconciler.workflow import runs
from reconciler.workflow.runs import (
    as_known,
    keep_plan,
    known_here,
    known_runs,
    latest_plan,
    restore_leftovers,
    run_journal,
)
from reconciler.workflow.sources import tracked_names

pytestmark = pytest.mark.long

TOPICS = sorted(cluster().topics)
KEYS = (
    *(f"{side}.replication.throttled.{what}" for side in ("leader", "follower") for what in ("rate", "replicas")),
    "cordoned.log.dirs",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


@pytest.fixture(autouse=True)
def _checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runs, "_WARNED", set())
    tracked_names.cache_clear()
    git("init", "-q")


def written_at(folder: Path) -> Mapping[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*.json*")) if file.is_file()}


@pytest.mark.parametrize("way", WAYS)
@parts("count", 150, deep=2_000)
def test_a_journal_that_others_could_write_is_neither_believed_nor_written(
    count: int, way: Callable[[], None], tmp_path: Path
) -> None:
    way()
    tracked_names.cache_clear()
    chance, place = random.Random(55), (PLACE / f"{FORGED.id}.jsonl").resolve()
    clean = throttles(cluster())
    for number in range(count):
        place.write_bytes(forged_journal(chance, FORGED.id, TOPICS))
        before, admin = written_at(tmp_path), SimulatedAdmin(cluster())
        assert restore_leftovers(INPUTS, admin, FOLLOWING) == ()
        assert (latest_plan(INPUTS, "small"), known_here(INPUTS, "small")) == (None, ())
        assert run_journal(INPUTS, FORGED).events == ()
        if number % 10 == 0:
            run_plan(FORGED, admin, run_journal(INPUTS, FORGED))
        assert throttles(admin.cluster) == clean
        assert written_at(tmp_path) == before, number


def values(now: Cluster) -> Mapping[tuple[str | int, str], str]:
    """Return every config of every broker and topic."""
    owners: list[tuple[str | int, Mapping[str, str]]] = [(one.id, one.configs) for one in now.brokers.values()]
    owners += [(one.name, one.configs) for one in now.topics.values()]
    return {(owner, key): value for owner, configs in owners for key, value in configs.items()}


def named_in(journal: bytes, plan: Plan) -> Mapping[tuple[object, object], set[object]]:
    """Return the values that the plan, or a row of the journal, names for each place as set there before a run."""
    found: dict[tuple[object, object], set[object]] = {}
    for owner, keys in (*plan.rollback.broker_throttles.items(), *plan.rollback.topic_throttles.items()):
        for key, value in keys.items():
            found.setdefault((owner, key), set()).add(value)
    for line in journal.splitlines():
        detail: object = None
        with suppress(ValueError, RecursionError, AttributeError):
            detail = json.loads(line).get("detail")
        for name in ("rates", "lists", "seen"):
            rows = detail.get(name) if isinstance(detail, dict) else None
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, list) and len(row) > 2 and isinstance(row[0], str | int) and isinstance(row[1], str):
                    found.setdefault((row[0], row[1]), set()).add(row[2] if isinstance(row[2], str) else None)
    return found


def wrong(after: Cluster, now: Cluster, unaided: Cluster, journal: bytes, plan: Plan) -> Iterator[str]:
    """Yield each config that changed to what neither the plan, nor the journal, nor a run without it, has there."""
    was, alone, named = values(after), values(unaided), named_in(journal, plan)
    for place, value in {**dict.fromkeys(was), **values(now)}.items():
        if value in {was.get(place), alone.get(place)}:
            continue
        if place[1] not in KEYS:
            yield f"{place}: {was.get(place)} -> {value}, which is no throttle"
        known = {*named.get(place, ()), None, *(OWN_RATES if place[1].endswith(".rate") else ())}
        items = {item for one in (*known, was.get(place), alone.get(place)) for item in str(one or "").split(",")}
        is_list = place[1].endswith("replicas") and {*str(value or "").split(",")} <= items
        if value not in known and not is_list:
            yield f"{place}: {was.get(place)} -> {value}"


def _cancelled(admin: SimulatedAdmin) -> None:
    with (
        patch.multiple(verb, cluster_admin=lambda *_: nullcontext(admin), declared_cluster=lambda *_: None),
        suppress(StoppedEarly),
    ):
        verb.cancel(INPUTS, is_confirmed=lambda _lines: False)


VERBS: Mapping[str, Callable[[Plan, SimulatedAdmin], object]] = {
    "cancel PLAN": lambda plan, admin: cancel_run(plan, admin, run_journal(INPUTS, plan)),
    "cancel": lambda _plan, admin: _cancelled(admin),
    "doctor PLAN --fix throttles": lambda plan, admin: restore_throttles(plan, admin, run_journal(INPUTS, plan)),
    "apply another PLAN": lambda _plan, admin: restore_leftovers(INPUTS, admin, FOLLOWING),
    "apply PLAN": lambda plan, admin: run_plan(plan, admin, run_journal(INPUTS, plan)),
    "status": lambda plan, admin: Watcher(plan, admin).look(run_journal(INPUTS, plan).events),
    "doctor": lambda _plan, admin: as_known(known_runs(INPUTS, "small", admin), admin.cluster, admin),
}


@pytest.fixture(scope="module")
def dead_runs() -> list[Cluster]:
    """Return the cluster before a run, and after runs that died at various points."""
    found = [cluster()]
    for at in range(9, 120, 15):
        admin = SimulatedAdmin(cluster())
        with suppress(pytest.fail.Exception):
            dies(lambda: run_plan(PLAN, admin, MemoryJournal()), nth(at))  # noqa: B023 - it is called at once
            found.append(admin.cluster)
    return found


PLAN = with_id(whole_plan(cluster()))
OWN_RATES = (str(RATE), str(2 * RATE))
"""What stages of the plan are throttled to: a run whose throttles cannot be put back leaves, and names, such a rate."""


@parts("count", 1_000, deep=10_000)
def test_this_users_own_journal_sets_what_it_names_and_nothing_else(
    count: int, dead_runs: list[Cluster], figures: Tell
) -> None:
    chance, counts = random.Random(56), Counter[str]()
    alone = {}
    for number, after in enumerate(dead_runs):
        for name, run in VERBS.items():
            admin = SimulatedAdmin(after)
            with suppress(ReconcilerError):
                run(PLAN, admin)
            alone[number, name] = admin.cluster
            for path in PLACE.glob("*") if PLACE.exists() else ():
                path.unlink()
    for plan in (PLAN, FOLLOWING):
        keep_plan(INPUTS, plan)
    path = PLACE / f"{PLAN.id}.jsonl"
    for number in range(count):
        after, name = dead_runs[number % len(dead_runs)], chance.choice(sorted(VERBS))
        journal = forged_journal(chance, PLAN.id, TOPICS)
        path.write_bytes(journal)
        admin = SimulatedAdmin(after)
        try:
            VERBS[name](PLAN, admin)
        except ReconcilerError as error:
            counts[f"{name}: {error.code}"] += 1
        except Exception as error:
            raise AssertionError(f"journal {number}, {name}: {error!r}\n{journal[:3000]!r}") from error
        else:
            counts[name] += 1
        found = list(wrong(after, admin.cluster, alone[number % len(dead_runs), name], journal, PLAN))
        assert found == [], f"journal {number}, {name}: {found}\n{journal[:3000]!r}"
    assert not any("KR003" in name for name in counts)
    figures("drawn journals of this user", ", ".join(f"{each} {what}" for what, each in sorted(counts.items())))
