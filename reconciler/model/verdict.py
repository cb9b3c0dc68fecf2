"""Holds what the check of a plan's proof found."""

from dataclasses import dataclass
from typing import Annotated

from reconciler.model.codec import REQUIRED, Integer
from reconciler.model.plan import gap_percent

BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Bound:
    """One objective, computed anew with the plan's prices."""

    objective: Annotated[str, "What is least: see the levels of the plan's proof."]
    value: Annotated[Integer, "The plan's value."]
    lower_bound: Annotated[Integer, "No plan has less."]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a plan's proof holds; what is not known where it does not is None, which is null in JSON."""

    wrong: Annotated[str | None, "One sentence about the first thing that is wrong; null: the plan is proved."]
    levels: Annotated[tuple[Bound, ...], REQUIRED, "Each objective, the first the most important."] = ()
    objective: Annotated[str, REQUIRED, "Which of them says what is copied: bytes, or replicas."] = BYTES
    copied_partitions: Annotated[int | None, REQUIRED, "Partitions with a replica to copy."] = None
    is_within_bands: Annotated[
        bool, REQUIRED, "Measured loads are balanced: the bound holds for the plans that keep each load in its band."
    ] = False
    notes: Annotated[tuple[str, ...], REQUIRED, "Where what was checked is not quite what the plan was made from."] = ()

    @property
    def is_proved(self) -> Annotated[bool, "The plan's own bounds are true; without a gap, no plan copies less."]:
        """Whether the plan's own bounds are true."""
        return self.wrong is None

    @property
    def value(
        self,
    ) -> Annotated[int | None, "What the plan copies: bytes, or replicas where a size is unknown."]:
        """What the plan copies, in the unit of its objective."""
        return None if self.wrong is not None else self._of_objective().value

    @property
    def gap_percent(
        self,
    ) -> Annotated[
        float | None, "How much of that is above what the prices prove; 0 but for plans that balance measured loads."
    ]:
        """How much of what is copied is above what the prices prove."""
        if self.wrong is not None:
            return None
        copied = self._of_objective()
        return gap_percent(copied.value, copied.lower_bound)

    def _of_objective(self) -> Bound:
        none = Bound(self.objective, 0, 0)
        return next((level for level in self.levels if level.objective == self.objective), none)
