"""One link of a partition's chain of moves, with what packing needs to know about it."""

from enum import IntEnum
from typing import NamedTuple

from reconciler.model.move import Move, Reason


class Urgency(IntEnum):
    """Which steps go first; a repair's urgency is its number of in-sync replicas, the fewest first."""

    REPAIR = 0
    REPAIRED = 900
    DRAINING = 1000
    RULE = 2000
    BALANCE = 3000
    LEADERS = 4000


URGENCY_OF = {
    Reason.DEAD_BROKER: Urgency.REPAIRED,
    Reason.DRAINING: Urgency.DRAINING,
    Reason.ASSIGNMENT: Urgency.RULE,
    Reason.REPLICATION_FACTOR: Urgency.RULE,
    Reason.RACKS: Urgency.RULE,
    Reason.ELIGIBILITY: Urgency.RULE,
    Reason.NEW_PARTITION: Urgency.RULE,
    Reason.BALANCE: Urgency.BALANCE,
    Reason.LEADERS: Urgency.LEADERS,
}


class Step(NamedTuple):
    """A move that fits one stage.

    `load`: bytes that each added replica copies. `source`: the leader that serves them. `rest`: bytes of the
    partition's chain from here on. `elected`: the leader to elect once the move has ended, None where Kafka has the
    right one by then. `is_handover`: it only takes the leadership off a broker that must lose it before its data.
    """

    move: Move
    added: tuple[int, ...]
    removed: tuple[int, ...]
    load: int
    source: int | None
    urgency: int
    rest: int
    elected: int | None = None
    is_handover: bool = False
