"""Keeps a run's journal and plan on this machine, finds the runs known here, and takes off the throttles they left.

`runs/CLUSTER/PLAN-ID.jsonl` and `PLAN-ID.plan.json`. With `--journal NAME.jsonl` one journal holds all plans' runs, of
whatever cluster, and each plan is kept as `NAME.CLUSTER.PLAN-ID.plan.json`.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from reconciler.admin.port import Admin
from reconciler.apply.journal import Journal, MemoryJournal, recorded
from reconciler.apply.leftovers import known_run, restore_throttles, with_configs
from reconciler.apply.observed import Observed, disks_of, lasting, look, replaced_topics
from reconciler.apply.partition_path import paths_of
from reconciler.apply.run_record import RunRecord, read_record
from reconciler.apply.session import Belief
from reconciler.apply.throttles import Entry, ThrottleRecord, parts, undecided_problems
from reconciler.files.inside import WRITTEN_THROUGH, foreign_reason, required_inside
from reconciler.files.journal import RunJournal, journal_path, read_journal
from reconciler.files.paths import expanded, is_there
from reconciler.files.plan_file import read_plan, write_plan
from reconciler.files.raw import make_folder
from reconciler.model.cluster import Cluster
from reconciler.model.diagnosis import FoundThrottle, KnownRun, Whose
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput, MissingRight, Problem, ReconcilerError, Refused
from reconciler.model.run import UNDECIDED, RunResult
from reconciler.model.vitals import Vitals
from reconciler.model.words import named_some, owner_name
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import tracked_names

logger = logging.getLogger(__name__)

_SUFFIX, _PLAN_SUFFIX = ".jsonl", ".plan.json"
_WARNED: set[str] = set()
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
"""When a plan was last heard of whose journal tells nothing: before any other."""
ON_ITS_WAY = "KR455"


def run_journal(inputs: Inputs, plan: Plan) -> Journal:
    """Return the journal of that plan's runs; one in memory where the file is not this user's own."""
    path = _journal_path(inputs, plan)
    return RunJournal(path, plan.id) if _is_own(path) else MemoryJournal()


def keep_plan(inputs: Inputs, plan: Plan) -> None:
    """Write the plan beside its journal, where that is this user's own."""
    journal = _journal_path(inputs, plan)
    before = f"{journal.name.removesuffix(_SUFFIX)}.{plan.cluster_name}." if inputs.journal else ""
    path = journal.with_name(f"{before}{plan.id}{_PLAN_SUFFIX}")
    if _is_own(journal) and _is_own(path):
        _hide_from_git(journal)
        write_plan(plan, path)


def _is_own(path: Path) -> bool:
    """Whether that file is this user's own, or none yet; if not, say once why it is neither believed nor written.

    What it says is put back on the cluster, so a link, another user's file, and one that Git tracks are not believed:
    whoever may push could have written it.
    """
    tracked = tracked_names(Path(os.path.realpath(path.parent)))
    is_tracked = tracked is None or path.name in tracked
    why = foreign_reason(path) or (f"{path} is tracked by Git" if is_tracked else None)
    if why is not None and why not in _WARNED:
        _WARNED.add(why)
        logger.warning(
            "%s, so others can write it: runs are neither read from it nor written to it; remove it, or name another "
            "place with --journal (KR222)",
            why,
        )
    return why is None


def _hide_from_git(journal: Path) -> None:
    """Have Git ignore the folder of runs, so that nobody commits by accident what only this machine may write."""
    ignored = Path("runs", ".gitignore")
    if journal.parts[:1] == ("runs",) and not is_there(ignored):
        with suppress(OSError):
            make_folder(ignored.parent)
            ignored.write_text("*\n")


def _journal_path(inputs: Inputs, plan: Plan) -> Path:
    """Return the journal's place; raises InvalidInput where the runs are kept in the root, and a link leads out."""
    if inputs.journal:
        return Path(inputs.journal)
    path, root = journal_path(Path(), plan.cluster_name, plan.id), Path(inputs.root)
    if Path(os.path.realpath(root)) in {Path.cwd(), *Path.cwd().parents}:
        required_inside(root, path, f"{path}: {WRITTEN_THROUGH}, or name another place with --journal", None)
    return path


class _PlanFile(NamedTuple):
    """Where a plan is kept, its id as the name has it, and the journal that tells of its runs."""

    path: Path
    plan_id: str
    journal: Path

    def last_heard_of(self) -> datetime:
        is_known = is_there(self.journal) and _is_own(self.journal)
        events = read_journal(self.journal, self.plan_id) if is_known else ()
        return events[-1].time if events else _LONG_AGO


def _plan_files(inputs: Inputs, cluster: str) -> Iterator[_PlanFile]:
    """Yield the plans kept for that cluster: in its folder of runs, or beside the one journal that is named."""
    one = Path(inputs.journal) if inputs.journal else None
    if one is not None and not is_there(one):
        return
    folder = one.parent if one is not None else journal_path(Path(), cluster, "any").parent
    for path in sorted(expanded(folder, [f"*{_PLAN_SUFFIX}"])):
        stem = path.name.removesuffix(_PLAN_SUFFIX)
        if not _is_own(path):
            continue
        if one is None:
            yield _PlanFile(path, stem, path.with_name(f"{stem}{_SUFFIX}"))
            continue
        own = one.name.removesuffix(_SUFFIX)
        if stem == own or stem.startswith(f"{own}.{cluster}."):
            yield _PlanFile(path, stem.removeprefix(f"{own}.{cluster}."), one)


def _latest_first(inputs: Inputs, cluster: str) -> list[_PlanFile]:
    files = _plan_files(inputs, cluster)
    return sorted(files, key=lambda one: (one.last_heard_of(), one.path.name), reverse=True)


def latest_plan(inputs: Inputs, cluster: str) -> Plan | None:
    """Return the plan of the run that was last heard of on that cluster, None where none is known here."""
    found = _latest_first(inputs, cluster)
    return read_plan(found[0].path) if found else None


def kept_plans(inputs: Inputs, cluster: str, *, holding: str) -> Iterator[Plan]:
    """Yield the plans kept for that cluster whose files hold that text, the one last heard of first.

    What is kept is an aid: a file that is damaged is passed over.
    """
    found = []
    for one in _plan_files(inputs, cluster):
        if holding.encode() in one.path.read_bytes():
            moment = _LONG_AGO
            with suppress(InvalidInput):
                plan = read_plan(one.path)
                with suppress(InvalidInput):
                    moment = one.last_heard_of()
                found.append((moment, one.path.name, plan))
    for _, _, plan in sorted(found, key=lambda each: each[:2], reverse=True):
        yield plan


def kept_plan(inputs: Inputs, cluster: str, plan_id: str) -> Plan | None:
    """Return the plan of that id, if it is kept here for that cluster."""
    return next((one for one in kept_plans(inputs, cluster, holding=plan_id) if one.id == plan_id), None)


@dataclass(frozen=True, slots=True)
class RunTraces:
    """A plan, its journal as it is on this machine, and its record where that stands in the cluster."""

    plan: Plan
    journal: Journal
    record: RunRecord | None = None

    @property
    def throttles(self) -> ThrottleRecord:
        """What was put on and not taken off, by the journal."""
        return recorded(self.journal.events).throttles

    @property
    def is_of_record(self) -> bool:
        """Whether the cluster's record alone tells of it, which others can write."""
        return paths_of(self.plan).is_of_record

    def known(self, observed: Observed) -> KnownRun:
        """Return the run as its traces and that look show it."""
        return known_run(self.plan, self.journal.events, observed, self.record)


def known_runs(
    inputs: Inputs, cluster: str | None, admin: Admin | None, plan: Plan | None = None
) -> tuple[RunTraces, ...]:
    """Return the runs known here, with the record that the last one left in the cluster, whoever's it was.

    `plan`: only the run of that plan. `admin`: None where a snapshot is looked at.
    """
    here = known_here(inputs, cluster, plan)
    record = read_record(admin) if admin is not None else None
    if admin is None or record is None:
        return here
    if all(one.plan.id != record.plan_id for one in here):
        other = (RunTraces(record.plan(admin.cluster_id()), MemoryJournal(), record),)
        return other + here if plan is None else here
    return tuple(replace(one, record=record) if one.plan.id == record.plan_id else one for one in here)


def known_here(inputs: Inputs, cluster: str | None, plan: Plan | None = None) -> tuple[RunTraces, ...]:
    """Return the run of that plan, else the latest one, then each other one that is open or left throttles."""
    if plan is not None:
        return (RunTraces(plan, run_journal(inputs, plan)),)
    if cluster is None:
        return ()
    files = _latest_first(inputs, cluster)
    found = (
        (one.path, RunJournal(one.journal, one.plan_id) if _is_own(one.journal) else MemoryJournal()) for one in files
    )
    return tuple(
        RunTraces(read_plan(path), journal)
        for number, (path, journal) in enumerate(found)
        if number == 0 or (told := recorded(journal.events)).is_open or not told.throttles.is_empty
    )


def as_known(runs: Sequence[RunTraces], cluster: Cluster, admin: Admin | None = None) -> tuple[KnownRun, ...]:
    """Return what is known of these runs beside that cluster; without `admin` no log dir is asked for its replicas."""
    configs = {topic.name: topic.configs for topic in cluster.topics.values()}
    observed = Observed(topics=cluster.topics, brokers=cluster.brokers, configs=configs)

    def known(run: RunTraces) -> KnownRun:
        disks = None
        with suppress(MissingRight):  # without the right the moves between log dirs stay unseen
            disks = disks_of(admin, cluster.brokers, paths_of(run.plan).dir_moves) if admin is not None else None
        replaced = replaced_topics(cluster.topics, run.plan.topic_ids)
        return run.known(replace(observed, disks=disks).without(replaced))

    return tuple(map(known, runs))


def take_off(runs: Sequence[RunTraces], admin: Admin, belief: Belief = Belief.NOTHING) -> tuple[RunResult, ...]:
    """Bring back what these runs left, the latest first: the values that it found may have been set by an earlier run.

    Raises Refused, before anything is changed, while moves of one of them are in flight: these need their throttles.
    """
    flights = {key: one.target_replicas for key, one in admin.reassignments().items()}
    for one in runs:
        paths = paths_of(one.plan).by_partition
        moving = sorted(str(key) for key, target in flights.items() if key in paths and target in paths[key].lists)
        if moving:
            raise Refused(
                f"moves of plan {one.plan.id} are in flight: {named_some(moving)}; their throttles stay on, and "
                "nothing was changed. Apply the plan again to finish it, or cancel to take it back: both put "
                "throttles back themselves.",
                code=ON_ITS_WAY,
            )
    return tuple(restore_throttles(one.plan, admin, one.journal, belief=belief) for one in runs)


def restore_leftovers(inputs: Inputs, admin: Admin, following: Plan) -> tuple[str, ...]:
    """Take off the throttles that ended runs of other plans left; return what a look afterwards shows, in sentences.

    Only of runs whose plan and journal are on this machine, where brokers are back. `following`: the plan that is run
    next, which restores its own. An error is a sentence too, and never raised: the apply goes on.
    """
    try:
        known = known_runs(inputs, following.cluster_name, admin)
        runs = [one for one in known if one.plan.id != following.id and not one.is_of_record]
        alive = [broker.id for broker in admin.brokers().values() if not broker.is_fenced]
        restorable = [
            one
            for one in runs
            if one.record is not None or one.throttles.lists or not set(one.throttles.brokers).isdisjoint(alive)
        ]
        wanted = [throttle for one in restorable for throttle in _left_by(one, admin)]
        ended = take_off(restorable, admin)
        remaining = still_on(wanted, admin)
    except ReconcilerError as error:
        return (f"what ended runs may have left was not looked after: {error}",)
    back = (f"{restored_line(one)} (left by the run of plan {one.plan_id})" for one in wanted if one not in remaining)
    return (*back, *(str(each) for result in ended for each in result.leftover_throttles))


def _left_by(run: RunTraces, admin: Admin) -> Iterator[FoundThrottle]:
    """Yield each throttle that a run left, as the cluster shows it now."""
    observed = look(admin, paths_of(run.plan).topics, ids=run.plan.topic_ids)
    observed = with_configs(observed, admin, run.throttles.brokers, run.throttles.topics)
    for (owner, key), after in run.known(observed).throttles.items():
        configs = observed.brokers[owner].configs if isinstance(owner, int) else observed.configs[owner]
        yield FoundThrottle(owner, key, configs.get(key, ""), Whose.LEFTOVER, run.plan.id, after)


def still_on(wanted: Sequence[FoundThrottle], admin: Admin) -> tuple[FoundThrottle, ...]:
    """Look at the throttles that were to be put back, and return those that are not."""
    brokers = sorted({one.owner for one in wanted if isinstance(one.owner, int)})
    topics = sorted({one.owner for one in wanted if isinstance(one.owner, str)})

    def remaining() -> tuple[FoundThrottle, ...]:
        found: dict[int | str, Mapping[str, str]] = {}
        found.update((admin.broker_configs(brokers) if brokers else {}).items())
        found.update((admin.topic_configs(topics) if topics else {}).items())
        return tuple(one for one in wanted if _is_on(one, found))

    return lasting(admin.clock, remaining, is_gone=lambda shown: not shown)


def perhaps_of_a_run(admin: Admin) -> tuple[Problem, ...]:
    """Return a problem for each throttle and reassignment that may be of a run whose plan and record are gone.

    Empty if the cluster shows none.
    """
    from reconciler.diff.doctor.runs import found_throttles

    cluster = admin.observe()
    throttles = found_throttles(Vitals(cluster), ())
    perhaps = [one for one in throttles if one.whose is Whose.UNDECIDED]
    undecided = {(one.owner, one.key): Entry(None, frozenset(parts(one.value))) for one in perhaps}
    moving = [
        Problem(UNDECIDED, f"{key} is being reassigned to {list(one.target_replicas)}, and nothing shows by whom")
        for key, one in sorted(cluster.partitions())
        if one.is_reassigning
    ]
    return (*moving, *undecided_problems(undecided))


def _is_on(one: FoundThrottle, found: Mapping[int | str, Mapping[str, str]]) -> bool:
    # A topic that is gone has taken its lists with it; a broker that does not answer keeps what it had.
    is_gone = isinstance(one.owner, str) and one.owner not in found
    return not is_gone and found.get(one.owner, {}).get(one.key) != one.restored


def restored_line(one: FoundThrottle) -> str:
    """Return a throttle's way back in words: `broker 4: follower.replication.throttled.rate 1000 -> not set`."""
    value, after = ("not set" if each is None else each or "(empty)" for each in (one.value, one.restored))
    by = ", as only the run's record in the cluster says" if one.whose is Whose.RECORDED else ""
    return f"{owner_name(one.owner)}: {one.key} {value} -> {after}{by}"
