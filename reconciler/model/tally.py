"""Counts where the moves of a plan stand, and writes it as one sentence: all that speak of a run print from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Self

from reconciler.model.codec import HIDDEN, INLINE, AtLeast
from reconciler.model.topic_partition import PartitionObject, TopicPartition
from reconciler.model.words import counted, named_some

_FEW = 5
"""So many moves that are to do are named; what else is not done always is, the first of them."""


class Standing(StrEnum):
    """Where one move stands: its name in JSON, its word in text, and what it is about."""

    word: str
    about: str

    def __new__(cls, value: str, word: str, about: str) -> Self:
        """Return the member, with its word and what it is about beside its value."""
        member = str.__new__(cls, value)
        member._value_, member.word, member.about = value, word, about
        return member

    DONE = "done", "done", "Done: in order and in sync."
    UNSYNCED = "unsynced", "arrived but not in sync", "Arrived, and a replica fell out of sync."
    IN_FLIGHT = "inFlight", "in flight", "In flight: a cancel takes it back."
    TAKEN_BACK = "takenBack", "taken back", "Taken back by this run, or by the run that this cancel stopped."
    LEFT = "left", "to do", "To do."
    FOREIGN = (
        "foreign",
        "changed by somebody else",
        "The partition is where neither the plan nor its undoing puts it: somebody else has changed it.",
    )


ARRIVED = frozenset({Standing.DONE, Standing.UNSYNCED})


@dataclass(frozen=True, slots=True)
class StageTally:
    """Where the moves of one stage stand."""

    stage: Annotated[int, AtLeast(1), "The stage's number."]
    partitions: Annotated[Mapping[Standing, tuple[PartitionObject, ...]], INLINE]


@dataclass(frozen=True, slots=True)
class Tally:
    """Where every move of a plan stands: by the number of its stage, and its partition.

    `inside`: those between log dirs, of which a partition has one a replica.
    """

    stages: Annotated[Mapping[int, Mapping[TopicPartition, Standing]], HIDDEN]
    inside: Annotated[Mapping[int, Sequence[tuple[TopicPartition, Standing]]], HIDDEN] = field(default_factory=dict)

    @property
    def _all(self) -> Mapping[int, Sequence[tuple[TopicPartition, Standing]]]:
        found = {number: tuple(moves.items()) for number, moves in self.stages.items()}
        return dict(sorted({**found, **self.inside}.items()))

    def of(self, *standings: Standing) -> tuple[TopicPartition, ...]:
        """Return the partitions with moves that stand so, sorted."""
        found = {key for moves in self._all.values() for key, one in moves if one in standings}
        return tuple(sorted(found))

    @property
    def counts(self) -> Annotated[Mapping[Standing, int], INLINE]:
        """How many moves stand how: every word of `Standing` is there."""
        found = [one for moves in self._all.values() for _, one in moves]
        return {standing: found.count(standing) for standing in Standing}

    @property
    def by_stage(
        self,
    ) -> Annotated[tuple[StageTally, ...], "Each stage that moves partitions, with the partitions that stand so."]:
        """The partitions of each stage by where they stand."""
        return tuple(
            StageTally(
                number, {each: tuple(dict.fromkeys(key for key, one in moves if one is each)) for each in Standing}
            )
            for number, moves in self._all.items()
        )

    @property
    def moves(self) -> int:
        """How many moves the plan has."""
        return sum(map(len, self._all.values()))

    @property
    def undone(self) -> tuple[TopicPartition, ...]:
        """The partitions with moves that are not done, sorted."""
        return self.of(*set(Standing) - {Standing.DONE})

    @property
    def has_arrived(self) -> bool:
        """Whether every move has arrived, in sync or not."""
        return all(one in ARRIVED for moves in self._all.values() for _, one in moves)

    def __str__(self) -> str:
        """Return the sentence: `8 moves: 1 done (orders-2), 3 taken back (…), 4 to do`."""
        return self._sentence(has_names=True)

    @property
    def summary(self) -> str:
        """The sentence without names."""
        return self._sentence(has_names=False)

    def _sentence(self, *, has_names: bool) -> str:
        moves, counts = self.moves, self.counts
        if counts[Standing.DONE] == moves:
            return {0: "no moves", 1: "its 1 move done"}.get(moves, f"all {moves} moves done")
        there = [one for one in Standing if counts[one]]
        parts = [f"{counts[one]} {one.word}{self._named(one) if has_names else ''}" for one in there]
        return f"{counted(moves, 'move')}: {', '.join(parts)}"

    def _named(self, standing: Standing) -> str:
        """Return the names in brackets: of what is done, those of a stage that is not, so that no partition is lost."""
        if standing is not Standing.DONE:
            keys = self.of(standing)
            return f" ({_some(keys)})" if standing is not Standing.LEFT or len(keys) <= _FEW else ""
        open_stages = {n: moves for n, moves in self._all.items() if {one for _, one in moves} - {Standing.DONE}}
        is_all = sum(one is Standing.DONE for moves in open_stages.values() for _, one in moves)
        keys = Tally({}, open_stages).of(Standing.DONE)
        some = "" if is_all == self.counts[Standing.DONE] else f"of stage {', '.join(map(str, open_stages))}: "
        return f" ({some}{_some(keys)})" if keys else ""


def _some(keys: tuple[TopicPartition, ...]) -> str:
    return named_some(map(str, keys), _FEW)
