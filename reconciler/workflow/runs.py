"""A run's own files: its journal, and beside it the plan that it runs, so that `status` and `cancel` can find it.

`runs/CLUSTER/PLAN-ID.jsonl` and `PLAN-ID.plan.json`. With `--journal NAME.jsonl` one journal holds all plans' runs, of
whatever cluster, and each plan is kept as `NAME.CLUSTER.PLAN-ID.plan.json`.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from reconciler.files.inside import WRITTEN_THROUGH, required_inside
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
    return RunJournal(_journal_path(inputs, plan), plan.id)


def keep_plan(inputs: Inputs, plan: Plan) -> None:
    """Write the plan beside its journal."""
    journal = _journal_path(inputs, plan)
    before = _before_id(journal, plan.cluster_name) if inputs.journal else ""
    write_plan(plan, journal.with_name(f"{before}{plan.id}{_PLAN_SUFFIX}"))


def latest_plan(inputs: Inputs, cluster: str) -> Plan | None:
    """Return the plan of the run that was last heard of on that cluster, None where none is known here."""
    found = _latest_first(inputs, cluster)
    return read_plan(found[0].path) if found else None


def kept_plans(inputs: Inputs, cluster: str, *, holding: str) -> Iterator[Plan]:
    """Yield the plans kept for that cluster whose files hold that text, the one last heard of first.

    What is kept is an aid: a file that is damaged is passed over.
    """
    holders = [one for one in _kept_files(inputs, cluster) if holding.encode() in one.path.read_bytes()]
    read = {one: plan for one in holders if (plan := _sound(lambda one: read_plan(one.path), one)) is not None}
    for one in sorted(read, key=lambda one: (_sound(_last_heard_of, one) or _LONG_AGO, one.path.name), reverse=True):
        yield read[one]


def kept_plan(inputs: Inputs, cluster: str, plan_id: str) -> Plan | None:
    """Return the plan of that id, if it is kept here for that cluster."""
    return next((one for one in kept_plans(inputs, cluster, holding=plan_id) if one.id == plan_id), None)


def kept_runs(inputs: Inputs, cluster: str) -> tuple[tuple[Path, RunJournal], ...]:
    """Return the file of each plan that was run on that cluster from here, and its journal; the latest first."""
    return tuple((one.path, RunJournal(one.journal, one.plan_id)) for one in _latest_first(inputs, cluster))


class _KeptFile(NamedTuple):
    """Where a plan is kept, its id as the name has it, and the journal that tells of its runs."""

    path: Path
    plan_id: str
    journal: Path


def _kept_files(inputs: Inputs, cluster: str) -> tuple[_KeptFile, ...]:
    if not inputs.journal:
        stems = _stems(_runs_folder(cluster))
        return tuple(_KeptFile(path, stem, path.with_name(f"{stem}.jsonl")) for path, stem in stems.items())
    journal = Path(inputs.journal)
    if not journal.exists():
        return ()
    before, own = _before_id(journal, cluster), _stem(journal)
    stems = {path: stem for path, stem in _stems(journal.parent).items() if stem == own or stem.startswith(before)}
    return tuple(_KeptFile(path, stem.removeprefix(before), journal) for path, stem in stems.items())


def _stems(folder: Path) -> Mapping[Path, str]:
    return {path: path.name.removesuffix(_PLAN_SUFFIX) for path in sorted(folder.glob(f"*{_PLAN_SUFFIX}"))}


def _latest_first(inputs: Inputs, cluster: str) -> list[_KeptFile]:
    files = _kept_files(inputs, cluster)
    return sorted(files, key=lambda one: (_last_heard_of(one), one.path.name), reverse=True)


def _last_heard_of(kept: _KeptFile) -> datetime:
    events = read_journal(kept.journal, kept.plan_id) if kept.journal.exists() else ()
    return events[-1].time if events else _LONG_AGO


def _sound(read: Callable[[_KeptFile], T], kept: _KeptFile) -> T | None:
    """Return what is read of that file, None where it is damaged."""
    try:
        return read(kept)
    except InvalidInput:
        return None


def _journal_path(inputs: Inputs, plan: Plan) -> Path:
    """Return the journal's place; raises InvalidInput where the runs are kept in the root, and a link leads out."""
    if inputs.journal:
        return Path(inputs.journal)
    path, root = journal_path(Path(), plan.cluster_name, plan.id), Path(inputs.root)
    if root.resolve() in {Path.cwd(), *Path.cwd().parents}:
        required_inside(root, path, f"{path}: {WRITTEN_THROUGH}, or name another place with --journal", None)
    return path


def _runs_folder(cluster: str) -> Path:
    return journal_path(Path(), cluster, "any").parent


def _before_id(journal: Path, cluster: str) -> str:
    return f"{_stem(journal)}.{cluster}."


def _stem(journal: Path) -> str:
    return journal.name.removesuffix(".jsonl")
