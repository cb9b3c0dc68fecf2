"""Holds what the check of a plan's proof found."""

from dataclasses import dataclass

from reconciler.model.plan import PriceLevel

BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found: `wrong` is one sentence about the first thing wrong, None where the plan is proved.

    `levels` are the objectives whose value and bound were computed anew, with the plan's prices; `objective` names the
    one that says what is copied, bytes or replicas. `copied_partitions` counts the partitions with a replica to copy.
    `notes` say where what was checked is not quite what the plan was made from.
    """

    wrong: str | None
    levels: tuple[PriceLevel, ...] = ()
    objective: str = BYTES
    copied_partitions: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_proved(self) -> bool:
        """Whether the plan's own bound is true; without a gap no plan is better."""
        return self.wrong is None

    @property
    def gap_percent(self) -> float:
        """How far what is copied is above what the prices prove; 0.0 but for plans that balance measured loads."""
        bound = next((level.lower_bound for level in self.levels if level.objective == self.objective), 0)
        return round(100 * (self.copied - bound) / self.copied, 4) if self.copied else 0.0

    @property
    def copied(self) -> int:
        """What the plan copies, and no plan less of: bytes, or replicas where a size is unknown."""
        return next((level.value for level in self.levels if level.objective == self.objective), 0)
