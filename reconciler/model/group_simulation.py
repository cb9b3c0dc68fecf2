"""What a rebalance would give, as values: what the simulation returns and every view shows."""

from dataclasses import dataclass

from reconciler.model.assignment import Assignment


@dataclass(frozen=True, slots=True)
class Stats:
    """How even an assignment is, in partitions of one member, and what it cost.

    `pair_score` is Kafka's getBalanceScore: the sum over all pairs of members of the difference of their counts.
    `moved_from_survivors` counts partitions whose previous owner is still there and that now belong to another member;
    None where nothing came before.
    """

    most: int
    fewest: int
    pair_score: int
    moved_from_survivors: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step comes to under one assignor: its rebalances in order, the last one being stable.

    An eager assignor needs one. A cooperative one first withholds what has to change hands, so that its owner can let
    it go, and hands it out in the next (KIP-429).
    """

    rounds: tuple[Assignment, ...]
    stats: Stats
    is_cooperative: bool = False

    @property
    def assignment(self) -> Assignment:
        """What each member owns in the end."""
        return self.rounds[-1]
