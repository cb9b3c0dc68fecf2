"""Tries what must not end at its first error: what was refused, denied or not answered is a value, not an end."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from reconciler.admin.port import Answer
from reconciler.apply.session import NO_RIGHT, TRANSIENT, told_answer
from reconciler.model.lock import UNCERTAIN, LockLost
from reconciler.model.problem import ClusterUnavailable, MissingRight, ReconcilerError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something was not done. `is_passing`: another try may succeed. `is_of_all`: nothing else can be done either.

    `is_of_one`: Kafka refused something in the request, which need not be all of it.
    """

    why: str
    is_passing: bool = False
    is_of_all: bool = False
    is_of_one: bool = False


def tried(request: Callable[[], T]) -> T | Trouble:
    """Return what a request brings, or why it brings nothing; only a lost lock ends everything."""
    try:
        return request()
    except LockLost:
        raise
    except ClusterUnavailable as error:
        return Trouble(str(error), is_passing=error.is_passing, is_of_all=error.code == UNCERTAIN)
    except ReconcilerError as error:
        return Trouble(str(error))
    except Exception as error:  # noqa: BLE001 - a fault of a library or of ours: the others must be tried all the same
        return Trouble(type(error).__name__, is_passing=True)  # its text may quote what a library was given


def trouble_of(answer: Answer) -> Trouble | None:
    """Return what Kafka's answer to one item means; None where it is done."""
    if answer.is_ok:
        return None
    if answer.error in NO_RIGHT and answer.message:
        return Trouble(answer.message)
    if answer.error in TRANSIENT:
        return Trouble(told_answer(answer), is_passing=True)
    return Trouble(told_answer(answer), is_of_one=answer.error not in NO_RIGHT)


def as_far_as_visible(ask: Callable[[Collection[str]], T], names: Collection[str]) -> tuple[T, dict[str, Trouble]]:
    """Return what is told of those topics that may be seen, and why the others may not."""
    hidden: dict[str, Trouble] = {}
    while True:
        try:
            return ask([name for name in names if name not in hidden]), hidden
        except MissingRight as error:
            more = error.names.intersection(names) - hidden.keys()
            if not more:
                raise
            hidden |= dict.fromkeys(sorted(more), Trouble(str(error)))
