"""Writes the check of a plan's proof as text."""

from collections.abc import Iterator

from reconciler.model.plan import BYTES, Verdict
from reconciler.model.words import counted, number, size
from reconciler.render.facts import could_be_saved

_EVEN = ("replicas balance", "topics balance")


def text(verdict: Verdict) -> str:
    """Return the verdict in a sentence, and where it is proved each objective with its value and its bound."""
    return "\n".join(_lines(verdict)) + "\n"


def _lines(verdict: Verdict) -> Iterator[str]:
    if verdict.wrong is not None:
        yield f"Not proved: {verdict.wrong}."
    else:
        yield f"{_heading(verdict)}: {_least(verdict)}{_tightest(verdict)}."
        if verdict.unproved:
            budget = "" if verdict.budget_bytes is None else " without its budget"
            yield f"It is not proved that no plan{budget} is better in: {', '.join(verdict.unproved)}."
        width = max((len(level.objective) for level in verdict.levels), default=0)
        for level in verdict.levels:
            bound = "no less" if level.lower_bound == level.value else f"no less than {number(level.lower_bound)}"
            yield f"  {level.objective.ljust(width)}  {number(level.value)}, and {bound} by the plan's prices"
    yield from verdict.notes


def _heading(verdict: Verdict) -> str:
    """Return what is proved: all, what is copied alone, or a bound that the plan does not reach."""
    copied = verdict.objective.capitalize()
    if verdict.unproved:
        return f"{copied} bounded, balance not proved" if verdict.gap_percent else f"{copied} proved, balance not"
    # The proof leaves leaders open within bands of measured loads, so it does not cover the whole plan.
    return "Bound" if verdict.gap_percent or verdict.is_within_bands else "Proved"


def _least(verdict: Verdict) -> str:
    none = "no plan within the bands" if verdict.is_within_bands else "no plan"
    has_own_counts = verdict.budget_bytes is not None or (
        verdict.is_within_bands and "replicas balance" in verdict.unproved
    )
    none = "no plan with the same counts" if has_own_counts else none
    if verdict.gap_percent:
        bound = next(level.lower_bound for level in verdict.levels if level.objective == verdict.objective)
        least, copied = (_amount(verdict, value) for value in (bound, verdict.value or 0))
        return (
            f"{none} copies fewer than {least}, by the plan's prices; "
            f"this one copies {copied}, and {could_be_saved(verdict.gap_percent)}"
        )
    if not verdict.copied_partitions:
        return "no plan copies less, for this one copies nothing"
    copied = _amount(verdict, verdict.value or 0)
    of = counted(verdict.copied_partitions, "partition")
    return f"{none} copies fewer than {copied} (of {of}), by the plan's prices"


def _amount(verdict: Verdict, count: int) -> str:
    return size(count) if verdict.objective == BYTES else f"{number(count)} replicas"


def _tightest(verdict: Verdict) -> str:
    asked = [level for level in verdict.levels if level.objective in _EVEN]
    are_tight = bool(asked) and all(level.value == level.lower_bound for level in asked)
    if verdict.budget_bytes is None:
        return "; counts are the tightest attainable" if are_tight and not verdict.unproved else ""
    within = f"that copies at most {size(verdict.budget_bytes)}"
    if are_tight:
        return f"; counts are the tightest of every plan {within}"
    return f"; no plan {within} has a balance below the bounds here"
