"""Defines a plan's stages: steps in order, each safe to stop after."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from reconciler.model.codec import REQUIRED, AtLeast, Ids, Key
from reconciler.model.move import DirMove, Election, Move

_Number = Annotated[int, AtLeast(1), "Its place in the order, from 1."]
_KIND = "What this stage does."


@dataclass(frozen=True, slots=True)
class TopicsStage:
    """Topics are created, grown, reconfigured or deleted."""

    kind: ClassVar[Annotated[Literal["topics"], _KIND]] = "topics"
    number: _Number
    changes: Annotated[Ids, Key("topicChanges"), "Positions in the plan's topicChanges, from 0."]


@dataclass(frozen=True, slots=True)
class ReassignStage:
    """Partitions move: a set that is safe whatever part of it is done or in flight.

    A run begins moves in their order as slots become free (see `model.admission`). The stage ends when each partition
    is at its last replicas with all of them in sync, and its elections are held.
    """

    kind: ClassVar[Annotated[Literal["reassign"], _KIND]] = "reassign"
    number: _Number
    moves: Annotated[Sequence[Move], "What moves, in the order in which it may begin."]
    throttle_bytes_per_second: Annotated[
        int | None, AtLeast(1), REQUIRED, "The throttle per broker and direction; null: none."
    ] = None
    estimated_seconds: Annotated[int, REQUIRED, "How long it will take at the throttle."] = 0
    elections: Annotated[
        tuple[Election, ...], "Preferred leaders to elect once the moves have ended, in batches; not there: none."
    ] = ()

    @property
    def bytes(self) -> int:
        """Bytes copied between brokers in this stage."""
        from reconciler.model.move_table import Moves  # loads numpy

        moves = self.moves
        return sum(moves.bytes.tolist() if isinstance(moves, Moves) else (move.bytes for move in moves))


@dataclass(frozen=True, slots=True)
class ElectStage:
    """Preferred leaders are elected, in batches."""

    kind: ClassVar[Annotated[Literal["elect"], _KIND]] = "elect"
    number: _Number
    elections: Annotated[tuple[Election, ...], "What is elected, in order."]


@dataclass(frozen=True, slots=True)
class LogDirsStage:
    """Replicas move between the log dirs of their brokers; each move is safe whatever part of the others is done."""

    kind: ClassVar[Annotated[Literal["logDirs"], _KIND]] = "logDirs"
    number: _Number
    moves: Annotated[tuple[DirMove, ...], "What moves, in the order in which it may begin."]
    throttle_bytes_per_second: Annotated[
        int | None, AtLeast(1), REQUIRED, "The throttle per broker, of what it copies between its log dirs; null: none."
    ] = None
    estimated_seconds: Annotated[int, REQUIRED, "How long it will take at the throttle."] = 0

    @property
    def bytes(self) -> int:
        """Bytes copied between the log dirs of brokers in this stage."""
        return sum(move.bytes for move in self.moves)


Stage = ReassignStage | LogDirsStage | ElectStage | TopicsStage
CopyingStage = ReassignStage | LogDirsStage
"""The stages that copy data, and so take time and have a throttle."""


def numbered(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return the stages with their numbers, from one on."""
    return tuple(replace(stage, number=number) for number, stage in enumerate(stages, start=1))


def moves_of(stages: Iterable[Stage]) -> Iterator[Move]:
    """Return the moves between brokers of these stages, in order."""
    return (move for stage in stages if isinstance(stage, ReassignStage) for move in stage.moves)


def elections_of(stage: Stage) -> tuple[Election, ...]:
    """Return the elections that a stage holds."""
    return () if isinstance(stage, TopicsStage | LogDirsStage) else stage.elections
