"""Holds what a run brought into a lake: the files it took, the days it made."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from reconciler.model.codec import REQUIRED, Pattern


@dataclass(frozen=True, slots=True)
class MadeDay:
    """One day of one cluster that silver and gold were made of; both are null for samples that have no day."""

    cluster: Annotated[str | None, REQUIRED, "The cluster; null for samples of none."]
    date: Annotated[str | None, REQUIRED, "The day in UTC; null for samples without a time, or from the future."]


@dataclass(frozen=True, slots=True)
class LakeReport:
    """What a run brought into a lake."""

    format_version: ClassVar[
        Annotated[str, Pattern(r"^1\.[0-9]+$"), "Version of this form; another major one would be another form."]
    ] = "1.0"
    bucket_seconds: Annotated[int, "Length of a time bucket of silver."]
    taken: Annotated[int, "Files of samples that were taken."] = 0
    made: Annotated[tuple[MadeDay, ...], REQUIRED, "The days that were made anew, by cluster."] = ()
    days: Annotated[int, "Days that the lake has, of all clusters."] = 0
    notes: Annotated[tuple[str, ...], REQUIRED, "Files that were left out, and why."] = ()
