"""Holds gates: bounds that measured loads must keep. A verb refuses, or ends with exit code 3, where they do not."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum

from reconciler.model.problem import Problem, Refused
from reconciler.model.words import duration, number, percent

FAILED, THIN, UNTOLD, NOT_TOLD = "KR268", "KR269", "KR270", "KR277"
COVERAGE, AGE = "coverage", "age"
_FORM = re.compile(r"\s*([A-Za-z0-9]+)\s*([<>])\s*([0-9]{1,12}(?:[.][0-9]{1,6})?)\s*(%|[smhd])?\s*")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_EXAMPLES = "coverage<95%, age>2h, negative>1%, counterReset>0"


class Unit(StrEnum):
    """What a bound counts."""

    SHARE = "%"
    TIME = "s"
    COUNT = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure and the bound that it must not be beyond: below it for `coverage`, above it for all others."""

    name: str
    bound: float
    unit: Unit
    is_default: bool = False
    """Whether nobody wrote it."""

    def __str__(self) -> str:
        return f"{self.name}{_operator(self.name)}{_written(self.bound, self.unit)}"


LEAST_COVERAGE = Gate(COVERAGE, 0.75, Unit.SHARE, is_default=True)
"""What a plan by measured loads wants where nothing else is said: three of four time buckets."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one cluster, or of all clusters of a job. None is not known."""

    name: str
    """What a message calls it."""
    coverage: float | None = None
    """Share of the time buckets that have samples, 0 to 1."""
    age_seconds: float | None = None
    """Time since the last time bucket began."""
    samples: int = 0
    counts: Mapping[str, int] | None = None
    """How often each rule was broken, by its name, zeros included; one that is not there was not looked at."""


def age_of(last_bucket: str | None, now: datetime) -> float | None:
    """Return the seconds since that time bucket began; None where it is not known."""
    return None if last_bucket is None else (now - datetime.fromisoformat(last_bucket)).total_seconds()


class WrongGate(ValueError):
    """A text is no gate; the message says what would be one."""


class GateFailed(Refused):
    """Measured loads are worth less than a gate wants (exit code 3)."""

    code = FAILED

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems), code=self.problems[0].code)


def parse_gate(text: str, rules: Sequence[str]) -> Gate:
    """Return the gate that the text says; `rules` are the names of all rules about samples.

    Raises WrongGate for a text that is none, or that can be read in two ways.
    """
    names = (COVERAGE, AGE, *rules)
    found = _FORM.fullmatch(text)
    if found is None:
        raise WrongGate(f"{text!r} is no gate: write a name, < or >, and a bound, such as {_EXAMPLES}.")
    name, operator, value, unit = found.groups()
    if name not in names:
        spelt = {each.lower(): each for each in names}
        near = get_close_matches(name.lower(), spelt, n=1)
        hint = f"did you mean {spelt[near[0]]}?" if near else f"the names are {', '.join(names)}."
        raise WrongGate(f"{text!r}: there is no figure {name}: {hint}")
    if operator != _operator(name):
        meant = f"{name}{_operator(name)}{value}{unit or ''}"
        raise WrongGate(f"{text!r} would fail where all is well: did you mean {meant}?")
    return _gate(text, name, float(value), unit)


def _gate(text: str, name: str, value: float, unit: str | None) -> Gate:
    if name == AGE:
        if unit not in _SECONDS:
            raise WrongGate(f"{text!r}: an age is a time: did you mean {name}>{value:g}h?")
        return Gate(name, value * _SECONDS[unit], Unit.TIME)
    if unit == "%":
        if value > 100:  # noqa: PLR2004 - all of it
            raise WrongGate(f"{text!r}: a share is at most 100%.")
        return Gate(name, value / 100, Unit.SHARE)
    if unit is not None or name == COVERAGE:
        share = value if value > 1 else value * 100
        raise WrongGate(f"{text!r}: did you mean {name}{_operator(name)}{share:g}%?")
    return Gate(name, value, Unit.COUNT)


def failures(gates: Sequence[Gate], seen: Seen, *, but: str, advice: str) -> Iterator[Problem]:
    """Yield a problem for each gate that fails, or whose figure is not known.

    The message ends with `but`, what became of the result, and with `advice`, what to do next.
    """
    for gate in gates:
        figure = _figure(gate, seen)
        if figure is None:
            message = f"{seen.name}: {gate.name} is not known, so --fail-on '{gate}' cannot be held: {but}; {advice}"
            yield Problem(NOT_TOLD, message)
        elif figure < gate.bound if gate.name == COVERAGE else figure > gate.bound:
            side = "below" if gate.name == COVERAGE else "above"
            told = f"{gate.name} is {_told(figure, gate.unit)}, {side} {_written(gate.bound, gate.unit)}"
            yield Problem(THIN if gate.is_default else FAILED, f"{seen.name}: {told}: {but}; {advice}")


def _operator(name: str) -> str:
    """Return the sign between a figure and its bound: of coverage less is worse, of all others more."""
    return "<" if name == COVERAGE else ">"


def _figure(gate: Gate, seen: Seen) -> float | None:
    if gate.name == COVERAGE:
        return seen.coverage
    if gate.name == AGE:
        return seen.age_seconds
    count = None if seen.counts is None else seen.counts.get(gate.name)
    if count is None:
        return None
    if gate.unit is Unit.COUNT:
        return count
    return count / seen.samples if seen.samples else float(count > 0)


def _told(figure: float, unit: Unit) -> str:
    if unit is Unit.SHARE:
        # Rounded down, as everywhere: 100% says that nothing is missing.
        return percent(int(figure * 1000 + 1e-6) / 1000)
    return duration(figure) if unit is Unit.TIME else number(int(figure))


def _written(bound: float, unit: Unit) -> str:
    if unit is Unit.SHARE:
        return percent(bound, 6)
    return duration(bound).replace(" ", "") if unit is Unit.TIME else f"{bound:g}"
