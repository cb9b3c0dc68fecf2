"""Writes GitHub Actions' workflow commands that mark lines of files in a pull request."""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.model.problem import CodePage, PlacedProblem, Severity
from reconciler.render.escape import visible

MOST = 10
"""GitHub keeps so many annotations of a kind from one step, and drops the others without a word."""
ERROR, WARNING, NOTICE = "error", "warning", "notice"


def annotations(found: Sequence[PlacedProblem], pages: Mapping[str, CodePage]) -> str:
    """Return one command a line for each problem that is shown, and a notice that counts the others."""
    by_kind = {
        kind: [each for each in found if (each.problem.severity is Severity.WARNING) is (kind == WARNING)]
        for kind in (ERROR, WARNING)
    }
    lines = [_command(kind, each, pages) for kind, members in by_kind.items() for each in members[:MOST]]
    return "".join(f"{line}\n" for line in [*lines, *_left_out(by_kind)])


def _command(kind: str, placed: PlacedProblem, pages: Mapping[str, CodePage]) -> str:
    problem = placed.problem
    page = pages.get(problem.code)
    properties = {
        "file": placed.path,
        "line": str(placed.line),
        "col": str(placed.column),
        "title": f"{problem.code} {page.title}" if page else problem.code,
    }
    told = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{kind} {told}::{_data(f'{problem.message} ({problem.code})')}"


def _left_out(by_kind: Mapping[str, Sequence[PlacedProblem]]) -> Iterator[str]:
    counts = [f"{len(members) - MOST} {kind}s" for kind, members in by_kind.items() if len(members) > MOST]
    if counts:
        text = (
            f"{' and '.join(counts)} more are in the output, and not marked: GitHub marks {MOST} of a kind for a step"
        )
        yield f"::{NOTICE} title=reconciler validate::{_data(text)}"


def _data(text: str) -> str:
    """Return text as the runner's ActionCommand takes it behind the second `::`."""
    shown = "\n".join(visible(line) for line in text.split("\n"))
    return shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
