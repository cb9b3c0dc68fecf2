"""A run's own files: its journal, and beside it the plan that it runs, so that `status` and `cancel` can find it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from reconciler.files.journal import RunJournal, journal_path, read_journal
from reconciler.files.plan_file import read_plan, write_plan
from reconciler.model.plan import Plan
from reconciler.model.problem import InvalidInput
from reconciler.workflow.inputs import Inputs

T = TypeVar("T")

_PLAN_SUFFIX = ".plan.json"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def run_journal(inputs: Inputs, plan: Plan) -> RunJournal:
    """Return the journal of that plan's runs."""
    return RunJournal(_journal_path(inputs, plan))


def keep_plan(inputs: Inputs, plan: Plan) -> None:
    """Write the plan beside its journal."""
    write_plan(plan, _plan_beside(_journal_path(inputs, plan)))


def latest_plan(inputs: Inputs, cluster: str) -> Plan | None:
    """Return the plan of the run that was last heard of on that cluster, None where none is known here."""
    if inputs.journal:
        path = _plan_beside(Path(inputs.journal))
        return read_plan(path) if path.exists() else None
    found = sorted(_runs_folder(cluster).glob(f"*{_PLAN_SUFFIX}"), key=_last_heard_of)
    return read_plan(found[-1]) if found else None


def kept_plans(inputs: Inputs, cluster: str, *, holding: str) -> Iterator[Plan]:
    """Yield the plans kept for that cluster whose files hold that text, the one last heard of first.

    What is kept is an aid: a file that is damaged is passed over.
    """
    known = _runs_folder(cluster).glob(f"*{_PLAN_SUFFIX}")
    found = [_plan_beside(Path(inputs.journal))] if inputs.journal else known
    holders = [path for path in found if path.exists() and holding.encode() in path.read_bytes()]
    read = {path: plan for path in sorted(holders) if (plan := _sound(read_plan, path)) is not None}
    for path in sorted(read, key=lambda path: _sound(_last_heard_of, path) or (_LONG_AGO, ""), reverse=True):
        yield read[path]


def _sound(read: Callable[[Path], T], path: Path) -> T | None:
    """Return what is read of that file, None where it is damaged."""
    try:
        return read(path)
    except InvalidInput:
        return None


def of_rollback(inputs: Inputs) -> Inputs:
    """Return where a rollback of a run is told: beside that run's own journal, where one is named."""
    if not inputs.journal:
        return inputs
    return replace(inputs, journal=f"{inputs.journal.removesuffix('.jsonl')}.rollback.jsonl")


def kept_runs(inputs: Inputs, cluster: str) -> tuple[tuple[Path, RunJournal], ...]:
    """Return the file of each plan that was run on that cluster from here, and its journal; the latest first."""
    known = _runs_folder(cluster).glob(f"*{_PLAN_SUFFIX}")
    found = [_plan_beside(Path(inputs.journal))] if inputs.journal else known
    latest_first = sorted(found, key=_last_heard_of, reverse=True)
    return tuple((path, RunJournal(_journal_beside(path))) for path in latest_first if path.exists())


def _journal_path(inputs: Inputs, plan: Plan) -> Path:
    return Path(inputs.journal) if inputs.journal else journal_path(Path(), plan.cluster_name, plan.id)


def _runs_folder(cluster: str) -> Path:
    return journal_path(Path(), cluster, "any").parent


def _plan_beside(journal: Path) -> Path:
    return journal.with_name(journal.name.removesuffix(".jsonl") + _PLAN_SUFFIX)


def _journal_beside(plan_path: Path) -> Path:
    return plan_path.with_name(plan_path.name.removesuffix(_PLAN_SUFFIX) + ".jsonl")


def _last_heard_of(plan_path: Path) -> tuple[datetime, str]:
    journal = _journal_beside(plan_path)
    events = read_journal(journal) if journal.exists() else ()
    return (events[-1].time if events else _LONG_AGO, plan_path.name)
