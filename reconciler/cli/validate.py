"""Declares `reconciler validate`: checks files, with annotations under GitHub Actions."""

from typing import TYPE_CHECKING

from reconciler.command.exits import Exit
from reconciler.command.options import JSON, SARIF, TEXT, Asked
from reconciler.command.terminal import tell, write
from reconciler.command.verbs import verb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.model.problem import Problem
    from reconciler.model.several import ClusterOutcome
    from reconciler.workflow.validate import Validated


@verb(
    "validate",
    outputs=(TEXT, JSON, SARIF),
    examples="""
        reconciler validate
        reconciler validate --cluster prod-eu -o json
        reconciler validate -o sarif > reconciler.sarif
        reconciler validate --cluster 'environment=prod'
    """,
    notes="""
        It ends with 3 where files break what an Owner allows, and nothing else is wrong with them.
        In a step of GitHub Actions, stderr also has the annotations that mark the lines in a pull request.
    """,
)
def command(asked: Asked) -> int:
    """Check the desired state's files: syntax, schema and meaning, every problem at once. No cluster is asked."""
    from reconciler.model.words import counted
    from reconciler.workflow.validate import is_on_github, validate_files

    found = validate_files(asked.inputs)
    _write(asked, found)
    if is_on_github(asked.inputs.environ) and found.problems:
        _annotate(asked, found)
    checked = f"{counted(len(found.clusters), 'cluster')}, {counted(found.topics, 'topic')}"
    tell(f"{checked}: {counted(len(found.problems), 'problem') if found.problems else 'no problems'}.")
    return _exit_of(found.problems)


def _exit_of(problems: "Iterable[Problem]") -> Exit:
    """Return 3 where files break what an owner allows, and nothing else is wrong with them."""
    from reconciler.model.problem import Severity

    weights = {problem.severity for problem in problems}
    return Exit.DONE if not weights else Exit.REFUSED if weights == {Severity.VIOLATION} else Exit.ERROR


def _write(asked: Asked, found: "Validated") -> None:
    from reconciler.model.problem import Reported, ReportedProblem
    from reconciler.render import as_several
    from reconciler.render.as_json import document
    from reconciler.render.as_text import input_problem

    summary = _summary(found) if asked.inputs.are_several_named else None
    if asked.output == SARIF:
        _write_sarif(asked, found)
    elif asked.is_json:
        write(document(Reported(tuple(map(ReportedProblem.of, found.problems)), summary)))
    else:
        for problem in found.problems:
            write(input_problem(problem, root=asked.inputs.root), asked.color)
        if summary is not None:
            write(as_several.text(("",) if found.problems else (), summary), asked.color)


def _summary(found: "Validated") -> tuple["ClusterOutcome", ...]:
    """Return a line a cluster; each problem itself begins with its file, so with its cluster."""
    from reconciler.model.several import ClusterOutcome
    from reconciler.model.words import counted

    problems = {name: found.of(name) for name in found.clusters}
    return tuple(
        ClusterOutcome(name, counted(len(own), "problem") if own else "no problems", _exit_of(own))
        for name, own in problems.items()
    )


def _write_sarif(asked: Asked, found: "Validated") -> None:
    from importlib.metadata import version

    from reconciler.files.codes import code_pages
    from reconciler.render import as_sarif
    from reconciler.workflow.validate import placed

    shown = placed(found.found, asked.inputs.root, asked.inputs.environ)
    write(as_sarif.problems(shown, code_pages(), version("kafka-reconciler")))
    if len(shown) > as_sarif.MOST_RESULTS:
        tell(f"{len(shown) - as_sarif.MOST_RESULTS} problems are left out: code scanning takes no more in one file.")


def _annotate(asked: Asked, found: "Validated") -> None:
    """Tell annotations on stderr, which the runner reads as it reads stdout: stdout holds what was asked for alone."""
    from reconciler.files.codes import code_pages
    from reconciler.render.as_annotations import annotations
    from reconciler.workflow.validate import placed

    tell(annotations(placed(found.found, asked.inputs.root, asked.inputs.environ), code_pages()))
