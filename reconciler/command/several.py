"""Runs what a verb does for one cluster for each of several: one that fails does not stop the others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import click

from reconciler.command.exits import Exit, exit_of, tell_error
from reconciler.command.options import Asked
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.inputs import Inputs, clusters_named

T = TypeVar("T")
_WORST_LAST = (Exit.DONE, Exit.CHANGES, Exit.STOPPED, Exit.STALE, Exit.REFUSED, Exit.ERROR, Exit.USAGE)


@dataclass(frozen=True, slots=True)
class OfEach(Generic[T]):
    """What was made of each cluster, by its name, and why nothing was made of the others."""

    made: Mapping[str, T]
    failed: Mapping[str, ReconcilerError]

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why each of the others failed, in words, as `-o json` has it."""
        return {name: str(error) for name, error in self.failed.items()}


def of_each(asked: Asked, make: Callable[[Inputs], T]) -> OfEach[T]:
    """Return what is made of each of the clusters that are named, each by itself."""
    made, failed = dict[str, T](), dict[str, ReconcilerError]()
    for name in clusters_named(asked.inputs):
        try:
            made[name] = make(replace(asked.inputs, cluster=name))
        except ReconcilerError as error:
            failed[name] = error
    return OfEach(made, failed)


def of_one_or_each(asked: Asked, make: Callable[[Inputs], T]) -> OfEach[T]:
    """Return the same, or what is made of the one cluster that is meant, whose error is raised."""
    if not asked.inputs.are_several_named:
        return OfEach({"": make(asked.inputs)}, {})
    if asked.inputs.is_one_given:
        raise click.UsageError("With several clusters, --state and a client are not taken: look at one at a time.")
    return of_each(asked, make)


def tell_failed(asked: Asked, failed: Mapping[str, ReconcilerError], others: Iterable[Exit] = ()) -> Exit:
    """Tell why clusters failed, and return the worst exit code, of theirs and of the others'."""
    for error in failed.values():
        tell_error(error, exit_of(error), is_json=asked.is_json, root=asked.inputs.root)
    return max([*others, *map(exit_of, failed.values())], key=_WORST_LAST.index, default=Exit.DONE)
