"""Writes the pipelines of a repository: for each cluster, which is a folder, a plan, a review of it, and its apply.

A file that a person has edited since is never written over: it is kept while there is nothing new to write, and
otherwise nothing is written at all.
"""

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from reconciler.files.inside import WRITTEN_THROUGH, required_inside
from reconciler.files.pipelines import (
    BASE,
    GITHUB,
    GITLAB_HOME,
    KUBERNETES,
    RECORD,
    digest_of,
    pipeline_texts,
    read_record,
    record_text,
)
from reconciler.files.raw import read_bytes, write_atomically
from reconciler.model.codec import Key
from reconciler.model.problem import ReconcilerError
from reconciler.model.words import named_some
from reconciler.workflow.init import NOT_WRITTEN
from reconciler.workflow.inputs import DEFAULT_ROOT, cluster_names
from reconciler.workflow.pipeline_jobs import JobSettings, check_settings, fitted
from reconciler.workflow.sources import default_branch

DISTRIBUTION = "kafka-reconciler"
_EACH = "CLUSTER"
"""Stands for a cluster's name: a file whose name has it is written for each, and in any other a line that has it."""
_BLOCK = re.compile(r"^ *# each (\w+)\n(.*?)^ *# end\n", re.MULTILINE | re.DOTALL)
"""Lines of a cluster's file that are repeated for each neighbour, target and so on; without any they are left out."""
_IN_KUBERNETES = re.compile(r"[a-z0-9]([a-z0-9-]{,39}[a-z0-9])?")
"""What fits behind `reconciler-` as the name of a CronJob."""
_INDEX = re.compile(r"https://[^\s@]+")
"""A password in an address would be committed."""
_WHEEL = ".whl"
_PLAIN = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Pipelines:
    """The pipelines of a repository, and what was done to have them."""

    folder: Annotated[str, "The repository's top."]
    system: Annotated[str, Key("ci"), "What runs them."]
    branch: Annotated[str, "The default branch, as Git knows it; main if Git does not."]
    clusters: Annotated[tuple[str, ...], "The clusters that there are: folders of the root."]
    files: Annotated[tuple[str, ...], "All files of the pipelines, below the folder."]
    written: Annotated[tuple[str, ...], "Those that are new, or were brought up to date."]
    kept: Annotated[tuple[str, ...], "Those that a person has edited, left as they are."]
    removed: Annotated[tuple[str, ...], "Those of an earlier call that the pipelines no longer have."]


class NotNameable(ReconcilerError):
    """The root has no path, or a cluster no name, that a pipeline could use."""

    code = "KR032"


class NotInstallable(ReconcilerError):
    """The pipelines could not install this very version from there."""

    code = "KR034"


class Edited(ReconcilerError):
    """Files that a person wrote or edited stand where others are to be written; `differences`: a diff of each."""

    code = "KR033"

    def __init__(self, theirs: Mapping[str, bytes], ours: Mapping[str, bytes]) -> None:
        self.differences = {name: _difference(name, theirs[name], ours[name]) for name in sorted(theirs)}
        named = named_some(tuple(self.differences), _MOST_NAMED)
        way_out = "move each away, run init again, and bring back by hand what is yours"
        super().__init__(
            f"{named}: init did not write this text and would write another, so nothing is written; {way_out}"
        )


def _difference(name: str, theirs: bytes, ours: bytes) -> str:
    if name.endswith(_WHEEL):
        return f"{name} is another file\n"
    before, after = (content.decode("utf-8", "replace").splitlines(keepends=True) for content in (theirs, ours))
    return "".join(difflib.unified_diff(before, after, f"{name} (there)", f"{name} (init)", n=1))


def write_pipelines(folder: Path, root: str, system: str, settings: JobSettings) -> Pipelines:
    """Write the pipelines of the clusters below that root, and say what was done.

    The default branch is the one that Git knows as that of `origin`, else the one of `settings`.
    Raises NotNameable, NotUsable, NotInstallable, Edited, and a ReconcilerError if a file cannot be written; before the
    first is.
    """
    clusters, below = cluster_names(root), _root_from(folder, root)
    settings = replace(settings, branch=default_branch(folder) or settings.branch)
    texts = _texts(system, below, settings)
    if system == KUBERNETES:
        texts = _for_each(texts, clusters, root)
    ours = {name: text.encode() for name, text in texts.items()}
    if system != KUBERNETES:
        home = ".github/locks" if system == GITHUB else GITLAB_HOME
        ours |= {f"{home}/{name}": content for name, content in _installed(settings.wheel, settings.index).items()}
    record = read_record(folder)
    before = record.get(system, {})
    there = {name: content for name in {*ours, *before} if (content := _content(folder, name)) is not None}
    unedited = {name for name in there if before.get(name) == digest_of(there[name])}
    new = {name for name in ours if there.get(name) != ours[name]}
    kept = {name for name in new - unedited if name in there and before.get(name) == digest_of(ours[name])}
    in_the_way = (new - unedited - kept) & set(there)
    if in_the_way:
        raise Edited({name: there[name] for name in in_the_way}, ours)
    written = sorted(new - kept)
    removed = sorted((set(before) - set(ours)) & unedited)
    for name in written:
        _write(folder, name, ours[name])
    for name in removed:
        (folder / name).unlink()
    after = {**record, system: {name: digest_of(content) for name, content in ours.items()}}
    if after != record:
        write_atomically(folder / RECORD, record_text(after), "record of the pipelines", NOT_WRITTEN)
    return Pipelines(
        str(folder),
        system,
        settings.branch,
        clusters,
        tuple(sorted(ours)),
        tuple(written),
        tuple(sorted(kept)),
        tuple(removed),
    )


def _root_from(folder: Path, root: str) -> str:
    """Return the root's path from the repository's top, as the pipelines name it."""
    found = Path(os.path.relpath(os.path.realpath(root), os.path.realpath(folder))).as_posix()
    if found.startswith("../") or not _PLAIN.fullmatch(found) or found in {".", ".."}:
        raise NotNameable(
            f"the root {root} is no folder below {folder} whose path has only a-z A-Z 0-9 . _ - and /, so no pipeline "
            "can name it: give the repository's top as DIR, and the root below it with -C"
        )
    return found


def _texts(system: str, below: str, settings: JobSettings) -> Mapping[str, str]:
    """Return the files as they are for that root; they are made for one called `desired-state`."""
    check_settings(system, settings)
    shipped = pipeline_texts(system, settings.extras or BASE)
    return fitted(system, {name: text.replace(DEFAULT_ROOT, below) for name, text in shipped.items()}, settings)


def _installed(wheel: str | None, index: str) -> Mapping[str, bytes]:
    """Return the lock of the reconciler itself, and the wheel that it names by its hash."""
    pin = f"{DISTRIBUTION}=={version(DISTRIBUTION)}"
    if wheel is None:
        if not _INDEX.fullmatch(index):
            raise NotInstallable(f"{index} is no index of packages: give an https address without a name or password")
        return {"reconciler.txt": f"--index-url {index}\n{pin}\n".encode()}
    name = f"{DISTRIBUTION.replace('-', '_')}-{version(DISTRIBUTION)}-py3-none-any{_WHEEL}"
    if Path(wheel).name != name:
        raise NotInstallable(f"{wheel} is not the wheel of this version: give the file {name}")
    content = read_bytes(wheel, "wheel", NotInstallable.code)
    # pip looks for links beside the file that names them, and takes nothing else.
    lock = f"--no-index\n--find-links .\n{pin} --hash={digest_of(content)}\n"
    return {name: content, "reconciler.txt": lock.encode()}


def _for_each(texts: Mapping[str, str], clusters: Sequence[str], root: str) -> Mapping[str, str]:
    for cluster in clusters:
        if not _IN_KUBERNETES.fullmatch(cluster):
            raise NotNameable(
                f"Kubernetes takes no object called reconciler-{cluster}: "
                "rename the cluster, with at most 41 of a-z 0-9 and -"
            )
    blocks = _blocks(root, clusters)
    made = {}
    for name, text in texts.items():
        if _EACH in name:
            for one in clusters:
                made[name.replace(_EACH, one)] = _with_blocks(text, blocks[one]).replace(_EACH, one)
        else:
            lines = text.splitlines(keepends=True)
            repeated = ([line.replace(_EACH, one) for one in clusters] if _EACH in line else [line] for line in lines)
            made[name] = "".join(line for several in repeated for line in several)
    return made


def _with_blocks(text: str, blocks: Mapping[str, Sequence[Mapping[str, str]]]) -> str:
    def repeated(block: re.Match[str]) -> str:
        made = []
        for words in blocks[block[1]]:
            lines = block[2]
            for word, replacement in words.items():
                lines = lines.replace(word, replacement)
            made.append(lines)
        return "".join(made)

    return _BLOCK.sub(repeated, text)


def _blocks(root: str, clusters: Sequence[str]) -> Mapping[str, Mapping[str, Sequence[Mapping[str, str]]]]:
    """Return for each cluster the blocks of its file: a list of replaced words for each copy of a block.

    prod-eu copies from prod-us and prod-ap: the file of prod-us has both neighbours, as the plan of prod-eu is made
    there, too, to see that the copies have grown. A simulated cluster is a file of the repository: it needs no state.
    """
    from reconciler.workflow.mirrors import is_simulated, mirrors_of

    known = set(clusters)
    sources = {
        name: {mirror.source for mirror in mirrors} & known - {name}
        for name, mirrors in mirrors_of(root, clusters).items()
    }
    simulated = {name for name in clusters if is_simulated(root, name)}
    return {name: _blocks_of(name, sources, simulated) for name in clusters}


def _blocks_of(
    cluster: str, sources: Mapping[str, AbstractSet[str]], simulated: AbstractSet[str]
) -> Mapping[str, Sequence[Mapping[str, str]]]:
    targets = sorted(name for name in sources if cluster in sources[name])
    neighbours = (
        {*sources[cluster], *targets, *(one for name in targets for one in sources[name])} - {cluster} - simulated
    )
    own = _states(sources[cluster] - simulated)
    orders = []
    for target in targets:
        live = {"--state /states/TARGET.json ": ""} if target in simulated else {}
        states = _states(sources[target] - simulated - {cluster})
        orders.append({**live, "OTHER_SOURCES": states, "TARGET": target})
    return {
        "NEIGHBOUR": [{"NEIGHBOUR": name} for name in sorted(neighbours)],
        "SOURCES": [{"SOURCES": own}] if own else [],
        "STATES": [{}] if neighbours else [],
        "TARGET": orders,
    }


def _states(names: AbstractSet[str]) -> str:
    return " ".join(f"{name}=/states/{name}.json" for name in sorted(names))


def _content(folder: Path, name: str) -> bytes | None:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReconcilerError(f"{folder / name} cannot be read: {error.strerror}", code=NOT_WRITTEN) from None


def _write(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    required_inside(folder, path, f"{path} {WRITTEN_THROUGH}", None)
    write_atomically(path, content, "pipeline's file", NOT_WRITTEN)
    if content.startswith(b"#!"):
        path.chmod(0o755)
