"""Imports topic files of Strimzi, Jikkou and topicctl as desired-state files; no cluster is asked."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from reconciler.diff.imported.classes import with_classes
from reconciler.files.foreign.read import read_foreign
from reconciler.files.foreign.topics import ForeignTopic
from reconciler.model.desired import CLUSTER_FILE, Balance
from reconciler.model.imported import Adopted, Imported
from reconciler.model.problem import Problem, ReconcilerError, Severity
from reconciler.workflow.import_target import (
    client_of,
    cluster_text,
    desired_texts,
    read_back,
    refuse_declared,
    write_new,
)
from reconciler.workflow.init import schemas_beside
from reconciler.workflow.inputs import Inputs, NotNamed, checked_name

NOTHING, OTHER_CLUSTER = "KR016", "KR017"


def import_files(inputs: Inputs, files: Sequence[str], tool: str | None = None) -> Imported:
    """Write what these files declare as desired state below the root; a file that is there is never touched.

    The cluster is the one that is named, else the one that the files speak of. Raises InvalidInput with every problem
    in every file.
    """
    reading = read_foreign(files, tool)
    name, topics, others = _of_one_cluster(inputs, reading.topics)
    if not topics:
        told = "".join(f"\n{problem}" for problem in reading.warnings)
        raise ReconcilerError(f"no topic of Strimzi, Jikkou or topicctl in {', '.join(files)}{told}", code=NOTHING)
    folder = Path(inputs.root) / checked_name(name)
    refuse_declared(folder)
    is_kept = (folder / CLUSTER_FILE).is_file()
    adopted = with_classes(Adopted({each.topic.name: each.topic for each in sorted(topics, key=_by_name)}))
    said = "topics of another tool's files. With --state or a client, `plan` says how they differ from the cluster."
    text = None if is_kept else cluster_text(name, said, client=client_of(inputs, folder))
    notes: Mapping[str, Sequence[str]] = {each.topic.name: each.notes for each in topics}
    texts = desired_texts(text, adopted, schemas_beside(inputs.root), notes)
    read_back(texts, folder, name)
    return Imported(
        cluster=name,
        folder=str(folder),
        files=write_new(folder, texts),
        source="files",
        adopted=adopted,
        kept=Balance(),
        is_cluster_file_kept=is_kept,
        warnings=(*others, *reading.warnings),
    )


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
    message = (
        f"{len(others)} topics of other clusters ({', '.join(n for n in named if n != inputs.cluster)}) are left out"
    )
    return inputs.cluster, mine, [Problem(OTHER_CLUSTER, message, others[0].at, Severity.WARNING)]
