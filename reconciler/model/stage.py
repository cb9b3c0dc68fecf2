"""A plan's steps, each safe to stop after."""

from dataclasses import dataclass

from reconciler.model.move import Election, Move


@dataclass(frozen=True, slots=True)
class TopicsStage:
    """Creates, grows, reconfigures or deletes topics; `changes` are positions in the plan's `topic_changes`."""

    number: int
    changes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReassignStage:
    """Moves partitions, all at once; ends when each is at its `to_replicas` with all of them in sync."""

    number: int
    moves: tuple[Move, ...]
    throttle_bytes_per_second: int | None = None
    estimated_seconds: int = 0

    @property
    def bytes(self) -> int:
        """Bytes copied between brokers in this stage."""
        return sum(move.bytes for move in self.moves)


@dataclass(frozen=True, slots=True)
class ElectStage:
    """Elects preferred leaders, one request's worth."""

    number: int
    elections: tuple[Election, ...]


Stage = TopicsStage | ReassignStage | ElectStage
