"""Problems as the repository's own tools want them: by paths from its root, each line with what marks it."""

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from reconciler.files.inside import inside
from reconciler.files.line_marks import LineMark, line_marks
from reconciler.model.placed_problem import PlacedProblem
from reconciler.model.problem import Location, Problem


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
    files = sorted({at.file for _, at in known})
    lines: dict[str, set[int]] = {file: set() for file in files}
    for _, at in known:
        lines[at.file].add(at.line)
    marks = {file: _marks(Path(root), file, numbers) for file, numbers in lines.items()}
    repository = _repository(Path(root).resolve(), environ)
    paths = {file: _path(Path(root, file), repository) for file in files}
    return tuple(_placed(problem, at, paths[at.file], marks[at.file].get(at.line)) for problem, at in known)


def _marks(root: Path, file: str, numbers: Collection[int]) -> Mapping[int, LineMark]:
    """Return the marks of those lines; none of a file outside the root, whose lines are nobody's to know."""
    path = inside(root, root / file)
    return {} if path is None else line_marks(path, numbers)


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
