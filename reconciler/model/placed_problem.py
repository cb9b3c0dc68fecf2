"""Places a problem for tools outside of this program: in a file of a repository, on a line that may move."""

from dataclasses import dataclass

from reconciler.model.problem import Problem


@dataclass(frozen=True, slots=True)
class PlacedProblem:
    """A problem and its place in the repository.

    `path` has slashes, and is absolute where the file is outside of the repository. Lines and columns count from 1,
    columns in characters; `end_column` is that behind the line's last character. `fingerprint` stays the same while
    the line, and what follows it closely, does, wherever the line moves.
    """

    problem: Problem
    path: str
    line: int
    column: int
    end_column: int
    fingerprint: str
