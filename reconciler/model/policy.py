"""Describes a rule of the user's own: a query over a plan, each row of whose answer is a violation."""

from dataclasses import dataclass

from reconciler.model.problem import Location


@dataclass(frozen=True, slots=True)
class Policy:
    """One query with the rule it stands for in words; `query` keeps the file's lines, `at` is where it begins."""

    title: str
    query: str
    at: Location
