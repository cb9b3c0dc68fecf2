"""A consumer group over time: which members and topics there are at each rebalance."""

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.assignment import SubscribedTopic


@dataclass(frozen=True, slots=True)
class Member:
    """A member at one step.

    `owned` and `generation` stand for what it brings from before; None means what the step before left to it. They are
    a claim where the member says so itself: the coordinator of a KIP-848 group goes by its own target, not by claims.
    """

    member_id: str
    subscription: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    owned: Mapping[str, tuple[int, ...]] | None = None
    generation: int | None = None
    is_claim: bool = False

    @property
    def identity(self) -> tuple[bool, str]:
        """Who it is from step to step: a static member goes by its instance id, whatever its member id."""
        return (False, self.member_id) if self.instance_id is None else (True, self.instance_id)


@dataclass(frozen=True, slots=True)
class Step:
    """One rebalance: its members in the order in which they joined; `topics` None means as before."""

    members: tuple[Member, ...]
    topics: Mapping[str, SubscribedTopic] | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """Topics, and rebalance after rebalance; each step starts from what the one before left to the same members."""

    topics: Mapping[str, SubscribedTopic]
    steps: tuple[Step, ...]
    scenario_id: str | None = None

    def topics_at(self, number: int) -> Mapping[str, SubscribedTopic]:
        """Return the topics that exist at that step, counted from 0."""
        given = (step.topics for step in reversed(self.steps[: number + 1]) if step.topics is not None)
        return next(given, self.topics)
