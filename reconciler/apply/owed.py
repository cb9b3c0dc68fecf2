"""Names what a run could not take off: each broker and topic, its keys, and what they go back to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.apply.attempts import Trouble
from reconciler.apply.throttles import ThrottleRecord, parts
from reconciler.model.problem import Problem, Severity
from reconciler.model.wording import named_some

Key = tuple[int | str, str]
"""A broker or a topic, and the name of a config."""
_HINT = "the next reconciler apply, cancel or status of this cluster, or doctor --fix throttles, puts it back"
_NOT_PUT_BACK = Trouble("not put back")
MOST_ITEMS = 10


@dataclass(frozen=True, slots=True)
class Owed:
    """A throttle, or a cordon, that could not be taken off; `is_passing`: another try may succeed."""

    problem: Problem
    is_passing: bool


def owed_by(record: ThrottleRecord) -> list[Problem]:
    """Return a debt for each topic and broker of that record."""
    keys: list[Key] = [*record.lists, *record.rates]
    owed = owed_for(record, dict.fromkeys(keys, _NOT_PUT_BACK))
    return [one.problem for one in owed]


def owed_for(record: ThrottleRecord, troubles: Mapping[Key, Trouble]) -> list[Owed]:
    """Return what is owed of that record, topics first: those keys for which there is a trouble."""
    kept: dict[int | str, dict[str, str | None]] = {}
    for (topic, key), entry in sorted(record.lists.items()):
        kept.setdefault(topic, {})[key] = entry.before
    for (broker, key), before in sorted(record.rates.items()):
        kept.setdefault(broker, {})[key] = before
    owed = []
    for owner, keys in kept.items():
        found = {key: troubles[owner, key] for key in keys if (owner, key) in troubles}
        owed += [_owed(owner, {key: keys[key] for key in found}, list(found.values()))] if found else []
    return owed


def _owed(owner: int | str, before: Mapping[str, str | None], troubles: Sequence[Trouble]) -> Owed:
    name = f"broker {owner}" if isinstance(owner, int) else f"topic {owner}"
    keys = ", ".join(f"{key} (before: {_shown(value)})" for key, value in before.items())
    why = "; ".join(dict.fromkeys(one.why.removesuffix(".") for one in troubles))
    text = f"{name} keeps what this run set: {keys}: {why}; {_HINT}"
    return Owed(Problem("KR720", text, severity=Severity.WARNING), any(one.is_passing for one in troubles))


def _shown(value: str | None) -> str:
    if value is None:
        return "not set"
    items = parts(value)
    return value or "(empty)" if len(items) <= MOST_ITEMS else named_some(items, MOST_ITEMS)
