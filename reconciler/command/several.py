"""Runs what a verb does for one cluster for each of several: one that fails does not stop the others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import click

from reconciler.command.exits import Exit, exit_of, of_anything, tell_error
from reconciler.command.options import Asked
from reconciler.model.problem import Problem, ReconcilerError
from reconciler.model.several import ClusterOutcome
from reconciler.workflow.inputs import Inputs

T = TypeVar("T")
_WORST_LAST = (Exit.DONE, Exit.CHANGES, Exit.STOPPED, Exit.STALE, Exit.REFUSED, Exit.ERROR, Exit.USAGE)


@dataclass(frozen=True, slots=True)
class OfEach(Generic[T]):
    """What was made of each cluster, by its name, and why nothing was made of the others."""

    made: Mapping[str, T]
    failed: Mapping[str, ReconcilerError]
    names: tuple[str, ...] = ()
    """All of them, in their order."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why each of the others failed, in words, as `-o json` has it."""
        return {name: str(error) for name, error in self.failed.items()}

    def summary(self, judge: Callable[[T], tuple[str, Exit]]) -> tuple[ClusterOutcome, ...]:
        """Return a line a cluster; `judge` says what came of one in a few words, and the exit code for it alone."""
        return tuple(
            ClusterOutcome(name, *judge(self.made[name])) if name in self.made else failure(name, self.failed[name])
            for name in self.names
        )


def failure(name: str, error: ReconcilerError) -> ClusterOutcome:
    """Return what came of a cluster that could not be looked at."""
    return ClusterOutcome(name, f"failed ({error.code})", exit_of(error))


def of_each(asked: Asked, make: Callable[[Inputs], T]) -> OfEach[T]:
    """Return what is made of each of the clusters that are named, each by itself."""
    from reconciler.command.logs import about
    from reconciler.workflow.several import clusters_named

    if asked.inputs.is_one_given:
        raise click.UsageError("With several clusters, --state and a client are not taken: look at one at a time.")
    made, failed = dict[str, T](), dict[str, ReconcilerError]()
    names = clusters_named(asked.inputs)
    for name in names:
        try:
            with about(name):
                made[name] = make(replace(asked.inputs, cluster=name))
        except (click.ClickException, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - a fault of our own is one cluster's, too
            failed[name] = of_anything(error, is_traceback_shown=asked.verbosity > 0)
    return OfEach(made, failed, names)


def of_one_or_each(asked: Asked, make: Callable[[Inputs], T]) -> OfEach[T]:
    """Return the same, or what is made of the one cluster that is meant, whose error is raised."""
    return of_each(asked, make) if asked.inputs.are_several_named else OfEach({"": make(asked.inputs)}, {})


def tell_of(asked: Asked, name: str, found: Iterable[Problem]) -> None:
    """Tell warnings of one cluster under its name, if there are any; without a name, where one was meant."""
    from reconciler.render.as_text import problems
    from reconciler.render.escape import visible

    lines = problems(found, root=asked.inputs.root)
    asked.tell([f"{visible(name)}:", *lines] if lines and name else lines)


def tell_failed(asked: Asked, failed: Mapping[str, ReconcilerError], others: Iterable[int] = ()) -> Exit:
    """Tell why clusters failed, and return the worst exit code, of theirs and of the others'."""
    for name, error in failed.items():
        tell_error(error, exit_of(error), is_json=asked.is_json, root=asked.inputs.root, cluster=name)
    return worst([*map(Exit, others), *map(exit_of, failed.values())])


def worst(codes: Iterable[Exit]) -> Exit:
    """Return the worst of these exit codes, 0 for none."""
    return max(codes, key=_WORST_LAST.index, default=Exit.DONE)
