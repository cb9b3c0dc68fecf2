"""Loads what is desired from a cluster's files, and finds every problem in every file at once."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from reconciler.files.bounded import file_bytes
from reconciler.files.cluster_document import cluster_from
from reconciler.files.inside import CLIENT_FILE, LINK, SIMULATION, inside, outside, secret_outside
from reconciler.files.json_text import collector_paused
from reconciler.files.mirror_document import mirror_from, mirror_problems
from reconciler.files.owner_document import owner_from
from reconciler.files.paths import is_folder
from reconciler.files.properties import relative_files
from reconciler.files.schema_check import checked_form
from reconciler.files.semantics import cluster_problems, config_problems, semantic_problems
from reconciler.files.strict_yaml import MAX_BYTES, Steps, YamlMap, pieces_of, read_yaml, visible
from reconciler.files.topic_document import config_of, declared_in, merged, topics_from, with_factor, without_class_of
from reconciler.model.desired import (
    CLUSTER_FILE,
    POLICIES_FOLDER,
    Desired,
    DesiredCluster,
    DesiredMirror,
    DesiredOwner,
    DesiredTopic,
)
from reconciler.model.problem import InvalidInput, Location, Problem

SUFFIXES = (".yaml", ".yml")
NAMELESS = "the topic"
MAX_DEPTH = 64
_LONGEST_NAME = 250
_Declaring = TypeVar("_Declaring", DesiredTopic, DesiredMirror, DesiredOwner)


@dataclass(frozen=True, slots=True)
class Declared:
    """What the files of a cluster declare, as far as it can be understood; how many topics they name; what is wrong."""

    desired: Desired
    topics: int
    problems: tuple[Problem, ...] = ()


def load_desired(root: Path, cluster: str) -> Desired:
    """Return all that the files below `root/cluster` declare.

    Client properties keep their `${env:}` and `${file:}` references: `resolve_client` reads them where they are used.
    Raises InvalidInput with every problem in every file, by place.
    """
    read = read_declared(root, cluster)
    if read.problems:
        raise InvalidInput(read.problems)
    return read.desired


def read_declared(root: Path, cluster: str) -> Declared:
    """Return all that the files below `root/cluster` declare, beside every problem in every file, by place.

    What has not its form is left out, and nothing is told that only follows from that. Raises InvalidInput where there
    is nothing to read.
    """
    folder = _folder(root, cluster)
    found = _Found()
    files = sorted(_files(folder, root, found.problems, (), {}))
    if not files and not found.problems:
        raise InvalidInput([Problem("KR100", f"{folder} holds no YAML files: check -C and --cluster")])
    digest = hashlib.sha256()
    with collector_paused():
        for path in files:
            content = _content(path, root, found.problems)
            digest.update(os.fsencode(path.relative_to(folder)) + f"\0{len(content)}\0".encode())
            digest.update(content)
            _read(content, _name(path, root), found)
        desired = _assembled(found, cluster, folder, root)
    desired = replace(desired, digest=f"sha256:{digest.hexdigest()}")
    return Declared(desired, found.topics, tuple(sorted(dict.fromkeys(found.problems), key=by_place)))


def yaml_files(root: Path, cluster: str) -> Sequence[Path]:
    """Return the files that `load_desired` reads, sorted; what cannot be listed it tells, and is left out here."""
    return sorted(_files(_folder(root, cluster), root, [], (), {}))


def load_cluster(root: Path, cluster: str) -> DesiredCluster:
    """Return what the Cluster document of that folder declares, whatever is wrong with every other document in it.

    It is looked for in cluster.yaml, and in the other files only where there is no such file. Raises InvalidInput with
    what is wrong with it or, where there is not exactly one that can be told from the rest, with what keeps it hidden.
    """
    folder = _folder(root, cluster)
    own = folder / CLUSTER_FILE
    files: Iterable[Path] = [own] if os.path.lexists(own) else _files(folder, root, [], (), {})
    if _not_listed(folder, root, 0) is not None:
        files = ()
    pieces = [(_name(path, root), piece) for path in files for piece in pieces_of(_content(path, root, []), "Cluster")]
    if len(pieces) != 1:
        return _found_among_all(root, cluster)
    name, piece = pieces[0]
    found = _Found()
    _read(piece, name, found)
    declared = _cluster(found, cluster, folder)
    found.problems += [*_ways_out(found, folder, root), *cluster_problems(declared)]
    if found.problems:
        raise InvalidInput(sorted(found.problems, key=by_place))
    return declared


def load_mirrors(root: Path, cluster: str) -> tuple[DesiredMirror, ...]:
    """Return the mirrors that the files below `root/cluster` declare, without their classes and as far as they can be.

    For plans of other clusters: what is wrong with these files is told where they are read for their own.
    """
    found = _Found()
    for path in _files(_folder(root, cluster), root, [], (), {}):
        for piece in pieces_of(_content(path, root, []), "Mirror"):
            _read(piece, _name(path, root), found)
    return _mirrors(found, {})


def _found_among_all(root: Path, cluster: str) -> DesiredCluster:
    """Return what only a look at all files finds; where cluster.yaml has problems, no others are told."""
    try:
        return load_desired(root, cluster).cluster
    except InvalidInput as error:
        own = [one for one in error.problems if one.at is None or one.at.file == f"{cluster}/{CLUSTER_FILE}"]
        raise InvalidInput(own or error.problems) from None


def _folder(root: Path, cluster: str) -> Path:
    if cluster in {"", ".", ".."} or "/" in cluster or "\0" in cluster:
        raise InvalidInput([Problem("KR100", f"{cluster!r} is no cluster's name: it is that of a folder in {root}")])
    if cluster.casefold() == POLICIES_FOLDER:
        raise InvalidInput([Problem("KR100", f"{root / cluster} holds policies, and is never a cluster: rename it")])
    return root / cluster


def _files(
    folder: Path, root: Path, problems: list[Problem], above: tuple[Path, ...], seen: dict[Path, Path]
) -> Iterator[Path]:
    """Yield the YAML files of a folder and those below it, through links inside the root too, but for hidden ones.

    A folder that cannot be listed is a problem: what it declares would look as if nobody wanted it. So is one that is
    there twice, through links: among few folders there can be millions of ways. So is one outside the root.
    """
    at = Location(_name(folder, root), 1)
    wrong = _not_listed(folder, root, len(above))
    if wrong is not None:
        problems.append(wrong)
        return
    try:
        real, entries = Path(os.path.realpath(folder)), sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(Problem("KR101", f"cannot be listed: {error.strerror}", at))
        return
    if real in above:
        return
    if real in seen:
        message = f"is the folder {_name(seen[real], root)} again, through a link: keep one"
        problems.append(Problem("KR101", message, at))
        return
    seen[real] = folder
    for path in entries:
        if path.name.startswith("."):
            continue
        if is_folder(path, if_unknown=path.suffix.lower() not in SUFFIXES):  # listing it says why, or reading it
            yield from _files(path, root, problems, (*above, real), seen)
        elif path.suffix.lower() in SUFFIXES:  # a limit in owners.YAML is meant to hold, too
            yield path


def _not_listed(folder: Path, root: Path, depth: int) -> Problem | None:
    """Return why a folder is not even looked into, None where it is."""
    at = Location(_name(folder, root), 1)
    if depth > MAX_DEPTH:
        return Problem("KR101", f"is more than {MAX_DEPTH} folders below the cluster's: move it up", at)
    is_link = os.path.islink(folder)  # noqa: PTH114 - on no Python does it raise; listing the folder says what is wrong
    return outside(LINK, at) if is_link and inside(root, folder) is None else None


def _name(path: Path, root: Path) -> str:
    """Return what messages call a file: its path below the root, with nothing that a terminal could obey."""
    return visible(os.fsencode(path.relative_to(root).as_posix()).decode(errors="backslashreplace"))


@dataclass(frozen=True, slots=True)
class _Document:
    """One document, and the paths of what was taken out of it because it has not its form."""

    content: YamlMap
    taken: frozenset[Steps] = frozenset()


@dataclass(slots=True)
class _Found:
    """The documents of all files, and the problems; `topics`: how many documents name a topic.

    `is_partial`: some document cannot be understood, so that what seems not declared may be.
    """

    problems: list[Problem] = field(default_factory=list)
    documents: list[_Document] = field(default_factory=list)
    topics: int = 0
    is_partial: bool = False

    def of_kind(self, kind: str) -> Iterator[_Document]:
        return (document for document in self.documents if document.content["kind"] == kind)


def _content(path: Path, root: Path, problems: list[Problem]) -> bytes:
    at = Location(_name(path, root), 1)
    try:
        real = inside(root, path) if path.is_symlink() else path
        if real is None:
            problems.append(outside(LINK, at))
            return b""
        return file_bytes(real, MAX_BYTES, is_link_followed=False)
    except OSError as error:
        problems.append(Problem("KR101", f"cannot be read: {error.strerror}", at))
        return b""


def _read(content: bytes, name: str, found: _Found) -> None:
    read = read_yaml(content, name)
    found.problems += read.problems
    if read.problems:
        found.is_partial = True
        return
    for document in read.documents:
        if isinstance(document, YamlMap):
            _take(document, found)
        elif document is not None:
            found.is_partial = True
            message = "a document must be a mapping with apiVersion, kind, metadata and spec"
            found.problems.append(Problem("KR102", message, getattr(document, "at", Location(name, 1))))


def _take(document: YamlMap, found: _Found) -> None:
    """Keep a document, or what has its form in it."""
    is_topic = document.get("kind") == "Topic"
    if is_topic:
        found.topics += "names" not in document.part("metadata")
    form = checked_form(document)
    found.problems += form.problems
    is_named = form.is_usable and document["metadata"].get("name") != ""
    if form.is_usable and (is_named or document["kind"] not in {"TopicClass", "Mirror", "Owner"}):
        found.documents.append(_Document(document, form.taken))
        return
    found.is_partial |= not is_topic
    config_of(document, found.problems)  # its units are told, whatever else is wrong


def _assembled(found: _Found, cluster: str, folder: Path, root: Path) -> Desired:
    declared = _cluster(found, cluster, folder)
    found.problems += _ways_out(found, folder, root)
    classes = _classes(found)
    topics: dict[str, DesiredTopic] = {}
    first_patterns: dict[str, DesiredTopic] = {}
    patterns: list[DesiredTopic] = []
    nameless: list[DesiredTopic] = []
    for document in found.of_kind("Topic"):
        for topic in topics_from(document.content, found.problems):
            full = _with_class(topic, document, classes, found)
            if not topic.name:
                nameless.append(with_factor(replace(full, name=NAMELESS)))
            elif "names" in document.content["metadata"]:
                # Which of two equal patterns speaks for a topic would hang on their order.
                _keep_first("the pattern", topic, first_patterns, found, ": keep one")
                patterns.append(with_factor(replace(full, replication_factor=None)))
            else:
                _keep_first("topic", with_factor(full), topics, found)
    mirrors = _mirrors(found, classes)
    desired = Desired(declared, dict(sorted(topics.items())), tuple(patterns), mirrors, _owners(found))
    found.problems += semantic_problems(desired, nameless)
    return desired


def _mirrors(found: _Found, classes: Mapping[str, DesiredTopic]) -> tuple[DesiredMirror, ...]:
    """Return the mirrors with the class of their copies: the one they name, else the only one there is."""
    mirrors: dict[str, DesiredMirror] = {}
    for document in found.of_kind("Mirror"):
        mirror = mirror_from(document.content)
        like = _with_class(mirror.like, document, classes, found)
        if "class" not in document.content["spec"] and len(classes) == 1:
            like = merged(next(iter(classes.values())), like)
        elif "class" not in document.content["spec"] and classes:
            message = (
                f"mirror {mirror.name} names no class: write which its copies take, of {', '.join(sorted(classes))}"
            )
            found.problems.append(Problem("KR118", message, document.content.at))
        mirror = replace(mirror, like=with_factor(like))
        found.problems += mirror_problems(mirror)
        _keep_first("Mirror", mirror, mirrors, found)
    return tuple(mirrors.values())


def _owners(found: _Found) -> tuple[DesiredOwner, ...]:
    owners: dict[str, DesiredOwner] = {}
    for document in found.of_kind("Owner"):
        _keep_first("Owner", owner_from(document.content, found.problems), owners, found)
    return tuple(owners[name] for name in sorted(owners))


def _cluster(found: _Found, cluster: str, folder: Path) -> DesiredCluster:
    documents = list(found.of_kind("Cluster"))
    if not documents:
        if not found.problems:
            found.problems.append(Problem("KR111", f"{folder} declares no Cluster: write one in {folder}/cluster.yaml"))
        return DesiredCluster(cluster)
    document = documents[0].content
    for other in documents[1:]:
        message = f"a second Cluster in this folder, the first is in {document.at.file}: keep one"
        found.problems.append(Problem("KR111", message, other.content.at))
    declared = cluster_from(document, found.problems)
    if declared.name and declared.name != cluster:
        message = f"the Cluster is called {declared.name}, but its folder {cluster}: give both one name"
        found.problems.append(Problem("KR111", message, document["metadata"].value_at["name"]))
    return declared


def _ways_out(found: _Found, folder: Path, root: Path) -> Iterator[Problem]:
    """Yield each path of a Cluster document that leads out of the root."""
    for document in found.of_kind("Cluster"):
        spec = document.content["spec"]
        client = spec.part("client")
        named = [(spec, "simulation", spec.get("simulation"), SIMULATION)]
        named += [(client, "file", client.get("file"), CLIENT_FILE)]
        named += [
            (client, key, name, secret_outside(key, name))
            for key, value in client.items()
            for name in relative_files(str(value))
        ]
        for entries, key, name, said in named:
            if isinstance(name, str) and inside(root, folder / name) is None:
                yield outside(said, entries.value_at[key])


def _classes(found: _Found) -> dict[str, DesiredTopic]:
    classes: dict[str, DesiredTopic] = {}
    for document in found.of_kind("TopicClass"):
        read = declared_in(document.content, found.problems)
        alone = DesiredTopic(NAMELESS, config=read.config, custom_configs=read.custom_configs, at=read.at)
        found.problems += config_problems(alone)
        _keep_first("TopicClass", read, classes, found)
    return classes


def _with_class(
    topic: DesiredTopic, document: _Document, classes: Mapping[str, DesiredTopic], found: _Found
) -> DesiredTopic:
    """Return the topic over its class, without what a field that was taken out of either might have said instead."""
    spec = document.content["spec"]
    wanted = spec.get("class")
    if wanted is None:
        return topic
    if wanted in classes:
        return without_class_of(document.taken, topic, merged(classes[wanted], topic))
    if found.is_partial:
        return topic
    close = get_close_matches(wanted, list(classes), n=1) if len(wanted) < _LONGEST_NAME else []
    hint = f"did you mean {close[0]!r}?" if close else f"declared are: {', '.join(sorted(classes)) or 'none'}"
    message = f"there is no TopicClass {wanted[:_LONGEST_NAME]!r}; {hint}"
    found.problems.append(Problem("KR112", message, spec.value_at["class"]))
    return topic


def _keep_first(what: str, one: _Declaring, seen: dict[str, _Declaring], found: _Found, advice: str = "") -> None:
    """Add what was declared to what is seen under its name; where something is there already, tell it."""
    first = seen.setdefault(one.name, one)
    if first is not one:
        message = f"{what} {one.name} is declared twice, first at {first.at['']}{advice}"
        found.problems.append(Problem("KR110", message, one.at[""]))


def by_place(problem: Problem) -> tuple[str, int, int, str]:
    """Return what problems are sorted by: file, line and column, then what they say."""
    at = problem.at or Location("", 0, 0)
    return at.file, at.line, at.column, problem.message
