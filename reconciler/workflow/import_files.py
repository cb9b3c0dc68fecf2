"""Imports topic files of Strimzi, Jikkou and topicctl as desired-state files; no cluster is asked."""

from collections.abc import Iterable, Sequence

from reconciler.diff.imported.classes import with_classes
from reconciler.diff.imported.joining import with_declared_classes
from reconciler.files.foreign.read import TOOL_NAMES, read_foreign
from reconciler.files.foreign.topics import COLLIDING, WRONG, ForeignTopic
from reconciler.files.layout import usual_classes
from reconciler.files.raw import display_name
from reconciler.model.desired import Balance
from reconciler.model.imported import Adopted, Imported
from reconciler.model.problem import InvalidInput, Problem, ReconcilerError, Severity
from reconciler.model.words import counted
from reconciler.workflow.cluster_text import client_of, cluster_text
from reconciler.workflow.import_target import are_schemas_missing, changes_for, read_back, target_of, write_changes
from reconciler.workflow.inputs import Inputs, NotNamed, checked_name

NOTHING, OTHER_CLUSTER = "KR016", "KR017"


def import_files(inputs: Inputs, files: Sequence[str], tool: str | None = None, *, is_dry: bool = False) -> Imported:
    """Declare the topics of these files that nothing declares yet, below the root; what is there keeps every byte.

    The cluster is the one that is named, else the one that the files speak of. `is_dry`: nothing is written. Raises
    InvalidInput with every problem in every file.
    """
    reading = read_foreign(files, tool)
    name, topics, others = _of_one_cluster(inputs, reading.topics)
    if not topics:
        told = "".join(f"\n{problem}" for problem in reading.warnings)
        raise ReconcilerError(f"no topic of {TOOL_NAMES} in {', '.join(map(display_name, files))}{told}", code=NOTHING)
    target = target_of(inputs.root, checked_name(name))
    there = target.declared.topics if target.declared is not None else {}
    new = {each.topic.name: each for each in sorted(topics, key=_by_name) if each.topic.name not in there}
    _refuse_colliding(new.values(), there)
    found = Adopted({name: each.topic for name, each in new.items()})
    if target.is_begun:
        found = with_declared_classes(found, target.classes, usual_classes(new, target.files))
    if target.classes or not there:
        found = with_classes(found, target.classes)
    said = "topics of another tool's files. With --state or a client, `plan` says how they differ from the cluster."
    text = cluster_text(name, said, client=client_of(inputs, target.folder))
    notes = {name: each.notes for name, each in new.items()}
    changes, added = changes_for(target, found, None if target.declared is not None else text, notes)
    read_back(target, changes)
    if not is_dry:
        write_changes(target, changes)
    return Imported(
        cluster=name,
        folder=str(target.folder),
        changes=tuple(changes),
        added=tuple(added),
        source="files",
        adopted=found,
        kept=Balance(),
        declared=len(topics) - len(new) if target.is_begun else None,
        is_dry=is_dry,
        are_schemas_missing=are_schemas_missing(target, changes),
        is_cluster_file_kept=target.declared is not None,
        warnings=(*others, *reading.warnings),
    )


def _refuse_colliding(new: Iterable[ForeignTopic], there: Iterable[str]) -> None:
    taken = {name.replace(".", "_"): name for name in there}
    problems = [
        Problem(WRONG, f"topic {each.topic.name} collides with {taken[key]}, which is declared: {COLLIDING}", each.at)
        for each in new
        if (key := each.topic.name.replace(".", "_")) in taken
    ]
    if problems:
        raise InvalidInput(problems, is_below_root=False)


def _by_name(each: ForeignTopic) -> str:
    return each.topic.name


def _of_one_cluster(
    inputs: Inputs, topics: Sequence[ForeignTopic]
) -> tuple[str, Sequence[ForeignTopic], Sequence[Problem]]:
    """Return the cluster's name, its topics, and a warning for those of other clusters, which are left out."""
    named = sorted({each.cluster for each in topics if each.cluster is not None})
    if inputs.cluster is None:
        if len(named) == 1:
            return named[0], topics, ()
        which = (
            f"the files speak of {len(named)} clusters ({', '.join(named)})" if named else "the files name no cluster"
        )
        raise NotNamed(f"{which}: name one with --cluster, such as {named[0] if named else 'prod-eu'}")
    if len(named) <= 1:
        return inputs.cluster, topics, ()
    if inputs.cluster not in named:
        message = (
            f"the files speak of {', '.join(named)}, and not of {inputs.cluster}: name one of these, or fewer files"
        )
        raise NotNamed(message)
    mine = [each for each in topics if each.cluster in {None, inputs.cluster}]
    others = [each for each in topics if each.cluster not in {None, inputs.cluster}]
    names = ", ".join(name for name in named if name != inputs.cluster)
    many = "is" if len(others) == 1 else "are"
    message = f"{counted(len(others), 'topic')} of other clusters ({names}) {many} left out"
    return inputs.cluster, mine, [Problem(OTHER_CLUSTER, message, others[0].at, Severity.WARNING)]
