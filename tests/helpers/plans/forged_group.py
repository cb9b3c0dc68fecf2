"""The lock's group as its coordinator shows it, with forgers among its members: what a member's wire is answered."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from helpers.plans.forged_members import forged_member

from reconciler.admin.client.lock_member import Member, Seat
from reconciler.model.lock import Holder, StopRequest

if TYPE_CHECKING:
    from reconciler.admin.client.wire import Wire


class Forger(NamedTuple):
    """One member that is none of ours: what it says of itself, and where Kafka sees it."""

    metadata: bytes
    host: str


@dataclass
class ForgedGroup:
    """Answers as the coordinator does; the first forger leads where `assignment` is what it gives out."""

    forgers: Sequence[Forger]
    assignment: bytes | None = None
    mine: bytes = b""
    error_code: int = 0
    avoided: Mapping[int, float] = field(default_factory=dict)
    opened_in_seconds = 0.0
    moment_seconds = 0.0

    def brokers(self) -> list[int]:
        return [1]

    def is_silent(self, _broker: int) -> bool:
        return False

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def ask(self, build: Callable[[], object], _node_id: int | None, _seconds: float) -> object:
        request: Any = build()
        answers: Mapping[str, Callable[[Any], object]] = {
            "FindCoordinatorRequest": lambda _: SimpleNamespace(
                coordinators=[SimpleNamespace(error_code=0, node_id=1)]
            ),
            "JoinGroupRequest": self._joined,
            "SyncGroupRequest": lambda _: SimpleNamespace(error_code=self.error_code, assignment=self.assignment),
            "DescribeGroupsRequest": lambda _: self._described(),
        }
        name = type(request).__name__
        return answers[name](request) if name in answers else SimpleNamespace(error_code=0)

    def _joined(self, request: Any) -> object:  # noqa: ANN401 - kafka-python makes its classes when it is loaded
        self.mine = bytes(request.protocols[0].metadata)
        members = [
            SimpleNamespace(member_id=f"forger-{n}", metadata=one.metadata) for n, one in enumerate(self.forgers)
        ]
        is_ours = self.assignment is None
        return SimpleNamespace(
            error_code=0,
            member_id="me",
            leader="me" if is_ours else "forger-0",
            generation_id=1,
            members=[SimpleNamespace(member_id="me", metadata=self.mine), *members] if is_ours else [],
        )

    def _described(self) -> object:
        rows = [("me", self.mine, "192.0.2.99")] if self.mine else []
        rows += [(f"forger-{number}", *one) for number, one in enumerate(self.forgers)]
        members = [
            SimpleNamespace(
                member_id=name,
                client_id=f"{name}\n::error::",
                member_metadata=metadata,
                member_assignment=self.assignment,
                client_host=f"/{host}",
            )
            for name, metadata, host in rows
        ]
        return SimpleNamespace(
            groups=[SimpleNamespace(error_code=0, group_state="Stable", protocol_type="x", members=members)]
        )


def forgers(chance: random.Random, plan_ids: Sequence[str], rates: Sequence[int]) -> list[Forger]:
    """Return one to four of them; some say the very same."""
    drawn = [forged_member(chance, plan_ids, rates) for _ in range(chance.randint(1, 4))]
    return [Forger(chance.choice(drawn), f"192.0.2.{number}") for number in range(1, len(drawn) + 1)]


def member_of(group: ForgedGroup, holder: Holder, request: StopRequest | None = None) -> Member:
    """Return this process as a member of that group."""
    return Member(cast("Wire", group), holder, request)


def seat_among(found: Sequence[Forger], holder: Holder) -> Seat:
    """Return what the holder of the lock learns once these have joined it."""
    return member_of(ForgedGroup(found), holder).join()
