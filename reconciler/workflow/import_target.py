"""Adds what an import found to a cluster's folder, or begins it; what is there keeps every byte, and is read back."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePosixPath

from reconciler.files.bounded import file_bytes
from reconciler.files.desired_writer import class_documents, first_homes, topic_files
from reconciler.files.inside import LINK, WRITTEN_THROUGH, required_inside
from reconciler.files.layout import LaidFile, class_home, homes, laid_files, with_added
from reconciler.files.load import load_desired, yaml_files
from reconciler.files.paths import is_folder, is_there
from reconciler.files.raw import write_atomically
from reconciler.files.strict_yaml import MAX_BYTES
from reconciler.model.desired import CLUSTER_FILE, Desired, DesiredTopic
from reconciler.model.imported import AddedTopic, Adopted, FileChange
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.init import EXISTS, NOT_WRITTEN, SCHEMAS, modeline

OUR_FAULT = "KR018"
NOTHING_WRITTEN = "internal error, please report it: nothing was written, as the files would not say what is"


@dataclass(frozen=True, slots=True)
class Target:
    """The folder of a cluster below the root, its files, and what they declare; None where it holds none yet."""

    root: Path
    cluster: str
    files: Sequence[LaidFile] = ()
    declared: Desired | None = None

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self.root / self.cluster

    @property
    def classes(self) -> Mapping[str, DesiredTopic]:
        """What the declared classes say, by name."""
        return {name: each for file in self.files for name, each in file.classes.items()}

    @property
    def is_begun(self) -> bool:
        """Whether more is there than a cluster.yaml that says how to reach the cluster."""
        declared = [file for file in self.files if file.topics or file.classes]
        return bool(declared) or any(file.name != CLUSTER_FILE for file in self.files)


def target_of(root: str, cluster: str) -> Target:
    """Return the folder that an import writes into; raises InvalidInput for what is wrong with the files in it."""
    target = Target(Path(root), cluster)
    required_inside(target.root, target.folder, f"{target.folder} {LINK}", None)
    if not yaml_files(target.root, cluster):
        return target
    declared = load_desired(target.root, cluster)
    return replace(target, files=laid_files(target.root, cluster), declared=declared)


def changes_for(
    target: Target, adopted: Adopted, cluster: str | None, notes: Mapping[str, Sequence[str]] | None = None
) -> tuple[Sequence[FileChange], Sequence[AddedTopic]]:
    """Return the files to write or to add to, the classes' first, and where each topic goes.

    `cluster`: the text of the Cluster document; None where there is one. `notes`: comments above topics.
    """
    declares_topics = any(file.topics for file in target.files)
    home = homes(sorted(adopted.topics), target.files) if declares_topics else first_homes(adopted)
    if target.is_begun:
        # The comment that tells what is left out is for those who first see the file; each import would add it anew.
        home = {name: file for name, file in home.items() if name in adopted.topics}
    texts: list[tuple[str, str, str]] = []
    if cluster is not None:
        texts.append((CLUSTER_FILE, "Cluster", cluster))
    if adopted.classes:
        texts.append((class_home(target.files), "TopicClass", class_documents(adopted.classes)))
    texts += [(file, "Topic", text) for file, text in topic_files(adopted, home, notes).items()]
    changes: dict[str, FileChange] = {}
    moved: dict[str, str] = {}
    for file, kind, text in texts:
        change = _change(target, changes, file, kind, text)
        classes = tuple(each.name for each in adopted.classes) if kind == "TopicClass" else ()
        earlier = changes[change.name].classes if change.name in changes else ()
        changes[change.name] = replace(change, classes=(*earlier, *classes))
        moved[file] = change.name
    added = [AddedTopic(name, moved[home[name]], adopted.class_of.get(name)) for name in sorted(adopted.topics)]
    return tuple(changes.values()), tuple(added)


def _change(target: Target, changes: Mapping[str, FileChange], file: str, kind: str, text: str) -> FileChange:
    """Return what becomes of a file that takes these documents, or of a new one where it cannot take them."""
    there = {each.name: each.content for each in target.files}
    written = there | {name: change.after for name, change in changes.items()}
    if file in written:
        after = with_added(written[file], text)
        if after is not None:
            return FileChange(file, there.get(file), after)
        path = PurePosixPath(file)
        free = (str(path.with_name(f"{path.stem}-{number}{path.suffix}")) for number in count(2))
        file = next(name for name in free if name not in written)
    up = "../" * file.count("/")  # a file may stand in a folder below the cluster's
    return FileChange(file, None, (modeline(up + SCHEMAS, kind) + text).encode())


def are_schemas_missing(target: Target, changes: Sequence[FileChange]) -> bool:
    """Whether a new file points editors to schemas that are not there."""
    return any(change.before is None for change in changes) and not is_folder(_schemas_of(target))


def _schemas_of(target: Target) -> Path:
    return Path(os.path.normpath(target.folder / SCHEMAS))  # the folder itself may not be there yet


def read_back(target: Target, changes: Sequence[FileChange]) -> Desired:
    """Return what the folder would declare with these changes; what it declares today it must declare then too."""
    with tempfile.TemporaryDirectory() as root:
        contents = {file.name: file.content for file in target.files} | {each.name: each.after for each in changes}
        for name, content in contents.items():
            path = Path(root) / target.cluster / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        desired = load_desired(Path(root), target.cluster)
    before = target.declared
    if before is not None:
        kept = {name: topic for name, topic in desired.topics.items() if name in before.topics}
        if replace(desired, topics=kept, digest=before.digest) != before:
            raise ReconcilerError(f"{NOTHING_WRITTEN}: {target.folder} would declare something else", code=OUR_FAULT)
    return desired


def write_changes(target: Target, changes: Sequence[FileChange]) -> None:
    """Write the files, each whole or not at all; raises ReconcilerError where one is not as it was read."""
    for change in changes:
        path = target.folder / change.name
        required_inside(target.root, path, f"{path}: {WRITTEN_THROUGH}", None)
        if change.before is None and is_there(path):
            raise ReconcilerError(f"{path} is there already, and import overwrites nothing: move it away", code=EXISTS)
        if change.before is not None and file_bytes(path, MAX_BYTES) != change.before:
            message = f"{path} was changed while import looked at the cluster; nothing was written: run import again"
            raise ReconcilerError(message, code=EXISTS)
    for change in changes:
        write_atomically(target.folder / change.name, change.after, "desired-state file", NOT_WRITTEN)
