"""Defines what verbs report of several clusters: what came of each, and which could not be looked at.

What a verb has to tell of each stands beside what it tells of one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class ClusterOutcome:
    """What came of one cluster."""

    cluster: Annotated[str, "The cluster's name."]
    result: Annotated[str, "What came of it, in a few words."]
    exit_code: Annotated[int, "The exit code of the verb for this cluster alone."]


Failed = Annotated[
    Mapping[str, Annotated[str, "What, where and what next, in words."]],
    "Of several clusters, those that could not be looked at, and why.",
]
Outcomes = Annotated[
    tuple[ClusterOutcome, ...], "Each cluster that was asked for; the worst exit code is that of the verb."
]
