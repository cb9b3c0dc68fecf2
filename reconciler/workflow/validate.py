"""Validates the files alone, and places their problems as code scanning wants them; no cluster is asked."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.diff.owners import owner_problems
from reconciler.files.inside import inside
from reconciler.files.line_marks import LineMark, line_marks
from reconciler.files.load import by_place, load_cluster, read_declared
from reconciler.files.policies import read_policies
from reconciler.model.desired import CLUSTER_FILE, DesiredCluster
from reconciler.model.problem import InvalidInput, Location, PlacedProblem, Problem
from reconciler.workflow.inputs import EVERY, Inputs, cluster_names, require_cluster
from reconciler.workflow.mirrors import file_problems
from reconciler.workflow.several import clusters_named

SAME_ID = "KR134"


@dataclass(frozen=True, slots=True)
class Validated:
    """What was read, and everything that is wrong with it; `topics`: how many are named, rightly written or not."""

    clusters: tuple[str, ...]
    topics: int
    found: tuple[tuple[Problem, Location], ...]

    def of(self, cluster: str) -> tuple[Problem, ...]:
        """Return the problems of one of the clusters."""
        return tuple(problem for problem, at in self.found if at.file.partition("/")[0] == cluster)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem, as it was found; one of a whole folder has no place."""
        return tuple(problem for problem, _ in self.found)


def validate_files(inputs: Inputs) -> Validated:
    """Return every problem in every file, and its place, of the cluster that is named, or of all clusters of the root.

    Of policies it is seen that they only ask; what they ask, Spark alone understands.
    """
    names = clusters_named(inputs if inputs.cluster else replace(inputs, cluster=EVERY))
    topics = 0
    found: dict[Problem, Location] = {}
    clusters: dict[str, DesiredCluster] = {}
    for name in names:
        # What is wrong with a whole folder is shown where its Cluster stands, or should.
        home = Location(f"{name}/{CLUSTER_FILE}", 1)
        problems: list[Problem] = []
        try:
            require_cluster(inputs.root, name)
            read = read_declared(Path(inputs.root), name)
            topics += read.topics
            clusters[name] = read.desired.cluster
            problems += [*read.problems, *file_problems(inputs.root, read.desired)]
            # Of files of which some was left out nobody knows how much they declare.
            problems += [] if read.problems else sorted(owner_problems(read.desired), key=by_place)
        except InvalidInput as error:
            problems += error.problems
        try:
            read_policies(Path(inputs.root), name)
        except InvalidInput as error:
            problems += error.problems
        found |= {problem: problem.at or home for problem in problems}
    found |= {problem: at for problem in _same_ids(inputs.root, clusters) if (at := problem.at) is not None}
    return Validated(tuple(names), topics, tuple(found.items()))


def _same_ids(root: str, clusters: Mapping[str, DesiredCluster]) -> Iterator[Problem]:
    """Yield each of these clusters whose clusterId another folder of the root has; of two of these, the later one.

    A folder whose Cluster has another name is left out: that is told, and it may be a link to the right one.
    """
    every = dict(clusters)
    for name in set(cluster_names(root)) - clusters.keys():
        with suppress(InvalidInput):
            every[name] = load_cluster(Path(root), name)
    first: dict[str, Location] = {}
    for name in sorted(every, key=lambda name: (name in clusters, name)):
        declared = every[name]
        at = declared.cluster_id_at
        if declared.cluster_id is None or at is None or declared.name != name:
            continue
        there = first.setdefault(declared.cluster_id, at)
        if there != at and name in clusters:
            message = f"{there} has this clusterId too: a cluster is declared in one folder, keep one of the two"
            yield Problem(SAME_ID, message, at, beside=(there,))


def is_on_github(environ: Mapping[str, str]) -> bool:
    """Return whether this is a step of GitHub Actions."""
    return environ.get("GITHUB_ACTIONS") == "true"


def placed(
    found: Iterable[tuple[Problem, Location]], root: str, environ: Mapping[str, str]
) -> tuple[PlacedProblem, ...]:
    """Return each problem, given with its place below `root`, in its place in the repository that holds the root.

    The repository is GitHub's workspace in a step of its Actions, else the nearest folder above with a `.git`, else
    the current folder. A link within it is followed: code scanning shows what it leads to.
    """
    known = list(found)
    lines: dict[str, set[int]] = {}
    for _, at in known:
        lines.setdefault(at.file, set()).add(at.line)
    repository = _repository(Path(os.path.realpath(root)), environ)
    paths = {file: _path(Path(root, file), repository) for file in lines}
    marks: dict[str, Mapping[int, LineMark]] = {}
    for file, numbers in lines.items():
        path = inside(Path(root), Path(root, file))  # the lines of a file outside the root are nobody's to know
        marks[file] = {} if path is None else line_marks(path, numbers)
    return tuple(_placed(problem, at, paths[at.file], marks[at.file].get(at.line)) for problem, at in known)


def _placed(problem: Problem, at: Location, path: str, mark: LineMark | None) -> PlacedProblem:
    unmarked = hashlib.sha256(f"{problem.code}\0{path}\0{problem.message}".encode(errors="replace")).hexdigest()[:16]
    end, fingerprint = mark or (0, f"{unmarked}:1")
    return PlacedProblem(problem, path, at.line, at.column, max(end, at.column + 1), fingerprint)


def _repository(root: Path, environ: Mapping[str, str]) -> Path:
    workspace = environ.get("GITHUB_WORKSPACE")
    if is_on_github(environ) and workspace and root.is_relative_to(Path(workspace).resolve()):
        return Path(workspace).resolve()
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), Path.cwd())


def _path(file: Path, repository: Path) -> str:
    """Return the path from the repository's root: of what a link leads to, or of the link where that is outside."""
    linked = Path(os.path.realpath(file.parent), file.name)
    real = Path(os.path.realpath(file))  # of links in a circle, too, where resolve() would raise
    inside = next((path for path in (real, linked) if path.is_relative_to(repository)), None)
    return linked.as_posix() if inside is None else inside.relative_to(repository).as_posix()
