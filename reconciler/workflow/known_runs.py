"""The runs that are known on this machine, and their debts: throttles that are theirs and are still on the cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from reconciler.admin.port import Admin
from reconciler.apply.journal import Journal, MemoryJournal, is_open, recorded_throttles
from reconciler.apply.kept_run import KeptRun, kept_run
from reconciler.apply.leftovers import known_run, restore_throttles
from reconciler.apply.observed import replaced_topics
from reconciler.apply.throttles import ThrottleRecord
from reconciler.files.plan_file import read_plan
from reconciler.model.cluster import Cluster
from reconciler.model.diagnosis import KnownRun
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError, Refused
from reconciler.model.run import RunResult
from reconciler.model.words import named_some
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.runs import kept_runs, run_journal

ON_ITS_WAY = "KR455"
Owner = TypeVar("Owner", int, str)
Configs = Mapping[Owner, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Kept:
    """A plan, its journal as it is on this machine, and its record where that stands in the cluster."""

    plan: Plan
    journal: Journal
    record: KeptRun | None = None

    @property
    def is_open(self) -> bool:
        """Whether its end is told neither here nor in the cluster."""
        if self.record is None:
            return is_open(self.journal.events)
        return not self.record.is_over and (not self.journal.events or is_open(self.journal.events))

    @property
    def throttles(self) -> ThrottleRecord:
        """What was put on and not taken off, by the record or else the journal."""
        return recorded_throttles(self.journal.events) if self.record is None else self.record.throttles

    @property
    def owes(self) -> bool:
        """Whether it has throttles that were put on and not taken off."""
        return not self.throttles.is_empty

    def known(self, brokers: Configs[int], topics: Configs[str]) -> KnownRun:
        """Return what is known of it beside these configs."""
        return known_run(self.plan, self.journal.events, brokers, topics, self.record)


def known_runs(inputs: Inputs, cluster: str | None, admin: Admin | None, plan: Plan | None = None) -> tuple[Kept, ...]:
    """Return the runs known here, with the record that the last one left in the cluster, whoever's it was.

    `plan`: only the run of that plan. `admin`: None where a snapshot is looked at.
    """
    here = known_here(inputs, cluster, plan)
    record = kept_run(admin) if admin is not None else None
    if admin is None or record is None:
        return here
    if all(one.plan.id != record.plan_id for one in here):
        other = (Kept(record.plan(admin.cluster_id()), MemoryJournal(), record),)
        return other + here if plan is None else here
    return tuple(replace(one, record=record) if one.plan.id == record.plan_id else one for one in here)


def known_here(inputs: Inputs, cluster: str | None, plan: Plan | None = None) -> tuple[Kept, ...]:
    """Return the run of that plan, else the latest one, and every other one that is open or owes; the latest first."""
    if plan is not None:
        return (Kept(plan, run_journal(inputs, plan)),)
    if cluster is None:
        return ()
    found = (
        (path, journal)
        for number, (path, journal) in enumerate(kept_runs(inputs, cluster))
        if number == 0 or is_open(journal.events) or not recorded_throttles(journal.events).is_empty
    )
    return tuple(Kept(read_plan(path), journal) for path, journal in found)


def as_known(kept: Sequence[Kept], cluster: Cluster) -> tuple[KnownRun, ...]:
    """Return what is known of these runs beside that cluster; of a dead broker, its configs are not."""
    brokers = {one.id: one.configs for one in cluster.brokers.values() if not one.is_fenced}
    return tuple(one.known(brokers, _own_topics(one.plan, cluster)) for one in kept)


def _own_topics(plan: Plan, cluster: Cluster) -> Mapping[str, Mapping[str, str]]:
    """Return the configs of topics, without those that were made again since the plan: these are others."""
    replaced = replaced_topics(cluster.topics, plan.topic_ids)
    return {topic.name: topic.configs for topic in cluster.topics.values() if topic.name not in replaced}


def take_off(kept: Sequence[Kept], admin: Admin) -> tuple[RunResult, ...]:
    """Bring back what these runs left, the latest first: what it found there may be an earlier one's.

    Raises Refused, before anything is changed, while moves of one of them are in flight: these need their throttles.
    """
    flights = {key: one.target_replicas for key, one in admin.reassignments().items()}
    for one in kept:
        targets = one.known({}, {}).targets
        moving = sorted(str(key) for key, target in flights.items() if target in targets.get(key, ()))
        if moving:
            raise Refused(
                f"moves of plan {one.plan.id} are in flight: {named_some(moving)}; their throttles stay on, and "
                "nothing was changed. Apply the plan again to finish it, or cancel to take it back: both put "
                "throttles back themselves.",
                code=ON_ITS_WAY,
            )
    return tuple(restore_throttles(one.plan, admin, one.journal) for one in kept)


def restore_leftovers(inputs: Inputs, cluster: str, admin: Admin, *, before: Plan | None = None) -> tuple[str, ...]:
    """Take off what ended runs owe, where their brokers are back, and return what was done in sentences.

    Only what their journals, or the record in the cluster, name. A run that has not told its end may be going on:
    nothing is paid then, but before a run of the plan `before`, which needs the cluster for itself; its own debts it
    pays itself. What fails is told too, never raised: a debt must not keep anybody from looking, or from applying.
    """
    try:
        kept = [one for one in known_runs(inputs, cluster, admin) if before is None or one.plan.id != before.id]
        owing = [one for one in kept if one.owes]
        if not owing or (before is None and _may_go_on(kept, admin)):
            return ()
        alive = [broker.id for broker in admin.brokers().values() if not broker.is_fenced]
        payable = [one for one in owing if _is_payable(one, alive)]
        told = [line for one in payable for line in _told(one, admin, alive)]
        ended = take_off(payable, admin)
    except ReconcilerError as error:
        return (f"what ended runs may owe was not looked after: {error}",)
    return (*told, *(str(debt) for result in ended for debt in result.leftover_throttles))


def _may_go_on(kept: Sequence[Kept], admin: Admin) -> bool:
    """Whether one of these runs may be going on, or has died and waits to be gone on with."""
    is_any_open = any(one.is_open for one in kept)
    return any(one.is_open and one.owes for one in kept) or (is_any_open and admin.lock_holder() is not None)


def _is_payable(kept: Kept, alive: Sequence[int]) -> bool:
    record = kept.throttles
    return bool(record.lists) or not set(record.brokers).isdisjoint(alive)


def _told(kept: Kept, admin: Admin, alive: Sequence[int]) -> Iterator[str]:
    record = kept.throttles
    brokers = admin.broker_configs(sorted(set(record.brokers) & set(alive)))
    topics = admin.topic_configs(record.topics) if record.topics else {}
    known = kept.known(brokers, topics)
    for (owner, key), after in known.throttles.items():
        now = _configs_of(owner, brokers, topics).get(key)
        yield f"{restored_line(owner, key, now, after)} (left by the run of plan {kept.plan.id})"


def _configs_of(
    owner: int | str, brokers: Mapping[int, Mapping[str, str]], topics: Mapping[str, Mapping[str, str]]
) -> Mapping[str, str]:
    return brokers.get(owner, {}) if isinstance(owner, int) else topics.get(owner, {})


def restored_line(owner: int | str, key: str, now: str | None, after: str | None) -> str:
    """Return a throttle's way back in words: `broker 4: follower.replication.throttled.rate 1000 -> not set`."""
    kind = "broker" if isinstance(owner, int) else "topic"
    return f"{kind} {owner}: {key} {_shown(now)} -> {_shown(after)}"


def _shown(value: str | None) -> str:
    return "not set" if value is None else value or "(empty)"
