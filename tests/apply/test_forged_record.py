"""A neighbour who may read the lock's group writes a record: unasked, no verb changes anything by it.

The oracle compares raw values of brokers, topics and replicas, and shares nothing with what decides about them.
"""

import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from unittest.mock import patch

import pytest
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.deaths import dies, nth
from helpers.plans.forged import CORDON, INSIDE, LISTS, RATES, forged
from helpers.plans.small_runs import RATE, cluster, plan_of, whole_plan

from reconciler.admin.client.lock_kept import joined, pieces
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.admin.simulated_locks import MemoryLocks
from reconciler.apply.cancel import cancel_run
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.run import run_plan
from reconciler.apply.run_record import MOST_CHARACTERS, KeptRecord, read_record
from reconciler.apply.status import Watcher
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import Cluster
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import StoppedEarly
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow import cancel as verb
from reconciler.workflow.inputs import Inputs

pytestmark = pytest.mark.long

Values = Mapping[tuple[str, str], str]


def operators(before: Cluster) -> Cluster:
    """Return the cluster with what an operator set after the plan was made: the plan's own rate, other rates, lists."""
    admin = SimulatedAdmin(before)
    for broker, value in ((2, str(RATE)), (5, "7000000"), (6, str(2 * RATE))):
        admin.alter_broker_configs(broker, [ConfigChange(key, ConfigOperation.SET, value) for key in RATES])
    admin.alter_topic_configs({"quiet": [ConfigChange(LISTS[0], ConfigOperation.SET, "0:3")]})
    admin.reassign({TopicPartition("quiet", 0): (3, 2, 6)})
    return admin.cluster


def values(found: Cluster) -> Values:
    """Return every throttle and cordon that is set."""
    owners = [(f"broker {one.id}", one.configs) for one in found.brokers.values()]
    owners += [(f"topic {one.name}", one.configs) for one in found.topics.values()]
    keys = (*RATES, *LISTS, CORDON, INSIDE)
    return {(name, key): configs[key] for name, configs in owners for key in keys if key in configs}


def replicas(found: Cluster) -> Mapping[str, tuple[int, ...]]:
    return {str(key): partition.replicas for key, partition in found.partitions()}


@dataclass(frozen=True)
class Dead:
    """The cluster before a run of the plan, and after that run died."""

    plan: Plan
    before: Cluster
    after: Cluster

    def wrong(self, found: Cluster, unforged: Cluster) -> Iterator[str]:
        """Yield each value and each replica list that changed although no run of the plan had set it.

        `unforged`: what the same verb comes to without any record, by the plan and the cluster alone.
        """
        before, after, now = values(self.before), values(self.after), values(found)
        planned = {(key[0], key[1]): value for key, value in self._planned().items()}
        for place in sorted({*before, *after, *now}):
            known = {before.get(place), after.get(place), planned.get(place)}
            ours = before.get(place) != after.get(place)
            if now.get(place) in {after.get(place), values(unforged).get(place)}:
                continue
            if not ours:
                yield f"{place}: {after.get(place)} -> {now.get(place)}, which no run of ours had set"
            elif place[1] in LISTS:
                least, most = ({*(one.get(place) or "").split(",")} - {""} for one in (before, after))
                if not least <= {*(now.get(place) or "").split(",")} - {""} <= most:
                    yield f"{place}: {before.get(place)}, {after.get(place)} -> {now.get(place)}"
            elif now.get(place) not in known:
                yield f"{place}: {before.get(place)}, {after.get(place)} -> {now.get(place)}"
        paths = self._lists()
        was, alone = replicas(self.after), replicas(unforged)
        for name, there in replicas(found).items():
            if there not in {was.get(name), alone.get(name)} and there not in paths.get(name, ()):
                yield f"{name}: {was.get(name)} -> {there}"

    def _planned(self) -> dict[tuple[str, str], str | None]:
        """Return what the plan found at each key, None where it found none."""
        found: dict[tuple[str, str], str | None] = {}
        for broker, keys in self.plan.rollback.broker_throttles.items():
            found |= {(f"broker {broker}", key): value for key, value in keys.items()}
        return found

    def _lists(self) -> Mapping[str, set[tuple[int, ...]]]:
        """Return the lists that the plan's moves go from and to."""
        found: dict[str, set[tuple[int, ...]]] = {}
        for stage in self.plan.stages:
            for one in stage.moves if isinstance(stage, ReassignStage) else ():
                found.setdefault(str(one.topic_partition), set()).update((one.from_replicas, one.to_replicas))
        return found


@pytest.fixture(scope="module")
def dead_runs() -> list[tuple[Dead, str]]:
    """Return runs that died at various points, each with its own record; the first has never begun."""
    plan = whole_plan(cluster())
    before = operators(cluster())
    found = [(Dead(plan, before, before), "")]
    for at in range(9, 120, 6):
        locks = MemoryLocks()
        admin = SimulatedAdmin(before, locks=locks)
        with suppress(pytest.fail.Exception):
            dies(lambda: run_plan(plan, admin, MemoryJournal()), nth(at))  # noqa: B023 - it is called at once
            found.append((Dead(plan, before, admin.cluster), locks.kept))
    assert len(found) > 5
    return found


VERBS: Mapping[str, Callable[[Dead, SimulatedAdmin], object]] = {
    "cancel PLAN": lambda dead, admin: cancel_run(dead.plan, admin, MemoryJournal()),
    "cancel": lambda _dead, admin: _cancelled_unasked(admin),
    "doctor PLAN --fix throttles": lambda dead, admin: restore_throttles(dead.plan, admin, MemoryJournal()),
    "apply another PLAN": lambda dead, admin: run_plan(empty_plan(dead), admin, MemoryJournal()),
    "apply PLAN": lambda dead, admin: run_plan(dead.plan, admin, MemoryJournal()),
    "status": lambda dead, admin: Watcher(dead.plan, admin, record=read_record(admin)).look(),
}


def empty_plan(dead: Dead) -> Plan:
    return replace(plan_of([], dead.after), id="00000002")


def _cancelled_unasked(admin: SimulatedAdmin) -> None:
    """Cancel without a plan, where nobody says yes to what the record names."""
    with (
        patch.multiple(verb, cluster_admin=lambda *_: nullcontext(admin), declared_cluster=lambda *_: None),
        suppress(StoppedEarly),
    ):
        verb.cancel(Inputs(cluster="small"), is_confirmed=lambda _lines: False)


@parts("count", 1_500, deep=100_000)
def test_unasked_no_verb_changes_what_no_run_of_ours_had_set(
    count: int, dead_runs: list[tuple[Dead, str]], figures: Tell
) -> None:
    chance, counts = random.Random(50), Counter[str]()
    alone = {}
    for number, (dead, _) in enumerate(dead_runs):
        for name, run in VERBS.items():
            admin = SimulatedAdmin(dead.after, locks=MemoryLocks())
            with suppress(ReconcilerError):
                run(dead, admin)
            alone[number, name] = admin.cluster
    for number in range(count):
        dead, _ = dead_runs[number % len(dead_runs)]
        text = forged(chance, dead.plan.id, replicas(dead.after), [str(RATE), str(2 * RATE)])
        name = chance.choice(sorted(VERBS))
        locks = MemoryLocks()
        locks.kept = text
        admin = SimulatedAdmin(dead.after, locks=locks)
        try:
            VERBS[name](dead, admin)
        except ReconcilerError as error:
            counts[f"{name}: {error.code}"] += 1
        else:
            counts[name] += 1
        wrong = list(dead.wrong(admin.cluster, alone[number % len(dead_runs), name]))
        assert wrong == [], f"record {number}, {name}: {wrong}\n{text}"
        if name == "apply another PLAN":
            assert locks.kept == text or KeptRecord.of(text).run is not None, f"record {number} is gone: {text}"
        counts["sound"] += KeptRecord.of(text).run is not None
    figures("forged records", ", ".join(f"{each} {what}" for what, each in sorted(counts.items())) + ", 0 wrong")


def test_a_bomb_is_no_text_and_takes_little_memory() -> None:
    bombs = ["a" * 14 * 2**20, "[" * MOST_CHARACTERS, "[" + "[]," * (2**20) + "[]]", '{"by":' * 1000]
    for bomb in bombs:
        found = pieces(bomb, 5000)
        assert found is not None
        tracemalloc.start()
        text = joined(found)
        KeptRecord.of(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 200 * 2**20
        assert text in {"", bomb}
        assert KeptRecord.of(text).run is None
    assert joined(pieces("a" * MOST_CHARACTERS, 5000) or []) == "a" * MOST_CHARACTERS
