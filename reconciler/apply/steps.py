"""Defines what the executor can do in one turn: small values, which `decide` returns and `perform` handles."""

from dataclasses import dataclass

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.move import DirMove, Election, Move
from reconciler.model.problem import Problem
from reconciler.model.stage import CopyingStage
from reconciler.model.topic_partition import TopicPartition

ATTEMPTS = 5
"""How often one thing is asked for before the run gives it up: each attempt first waits until metadata may show it."""
SLOWEST_POLL = 5.0
"""Seconds between two looks at most: a broker that dies is seen soon enough, and a controller is not kept busy."""


@dataclass(frozen=True, slots=True)
class PutThrottles:
    """Put the stage's throttles on, added to what is there."""

    stage: CopyingStage


@dataclass(frozen=True, slots=True)
class ChooseLogDirs:
    """Have one broker copy replicas to other log dirs of its own, one request's worth."""

    moves: tuple[DirMove, ...]


@dataclass(frozen=True, slots=True)
class LeaveDirAlone:
    """Give up one move between log dirs; the rest of the stage goes on."""

    move: DirMove
    problem: Problem


@dataclass(frozen=True, slots=True)
class SubmitMoves:
    """Hand moves to the controller, one request's worth; all of them change the replication factor, or none does."""

    moves: tuple[Move, ...]
    is_factor_change: bool


@dataclass(frozen=True, slots=True)
class WithdrawMoves:
    """Take moves back to where they came from, each because of a problem that the run ends with."""

    moves: tuple[Move, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class LeaveAlone:
    """Give up one partition, which somebody else moves or a dead broker blocks; the rest of the stage goes on."""

    topic_partition: TopicPartition
    problem: Problem


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell once what the run can only wait for; `key` tells one warning from another."""

    key: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class TakeThrottlesOff:
    """Take the stage's rates and throttle lists off."""


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Elect preferred leaders, one request's worth."""

    elections: tuple[Election, ...]


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """Create topics, one request's worth."""

    changes: tuple[CreateTopic, ...]


@dataclass(frozen=True, slots=True)
class GrowTopics:
    """Add partitions, one request's worth."""

    changes: tuple[CreatePartitions, ...]


@dataclass(frozen=True, slots=True)
class ChangeConfigs:
    """Set and delete topic configs, one request's worth."""

    changes: tuple[AlterConfigs, ...]


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Delete topics, one request's worth."""

    changes: tuple[DeleteTopic, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again after a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class FinishStage:
    """The stage is done."""


@dataclass(frozen=True, slots=True)
class FailRun:
    """The run cannot go on."""

    problem: Problem


TopicsRequest = CreateTopics | GrowTopics | ChangeConfigs | DeleteTopics
Request = PutThrottles | SubmitMoves | ChooseLogDirs | WithdrawMoves | TakeThrottlesOff | ElectLeaders | TopicsRequest
Step = Request | LeaveAlone | LeaveDirAlone | Warn | Wait | FinishStage | FailRun


def poll(polls: int) -> Wait:
    """Return the wait before the next look, after so many that showed nothing new: short at first, then longer."""
    return Wait(min(SLOWEST_POLL, 0.25 * 1.5 ** min(polls, 20)))
