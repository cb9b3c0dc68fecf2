"""A member of the lock's group beside brokers that do not agree who coordinates it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from reconciler.admin.client.lock_member import Member
from reconciler.model.lock import Holder

if TYPE_CHECKING:
    from reconciler.admin.client.wire import Wire

ME = Holder("a test", "kim", "here", 1, "2026-11-21T10:00:00Z")


@dataclass
class TwoMinds:
    """Brokers 1 to 4; `cut_off` says that it coordinates, the others name `coordinator`; both take heartbeats."""

    cut_off: int
    coordinator: int
    avoided: dict[int, float] = field(default_factory=dict)
    beaten: list[int] = field(default_factory=list)
    asked: list[int | None] = field(default_factory=list)

    def brokers(self) -> list[int]:
        return [1, 2, 3, 4]

    def ask(self, build: Callable[[], object], node_id: int | None, _seconds: float) -> object:
        if type(build()).__name__ == "HeartbeatRequest":
            assert node_id is not None
            self.beaten.append(node_id)
            return SimpleNamespace(error_code=0)
        self.asked.append(node_id)
        named = self.cut_off if node_id == self.cut_off else self.coordinator
        return SimpleNamespace(coordinators=[SimpleNamespace(error_code=0, node_id=named)])


def beats(brokers: TwoMinds) -> Iterator[int]:
    """Yield who took each heartbeat of a member that found the broker that is cut off."""
    member = Member(cast("Wire", brokers), ME, coordinator=brokers.cut_off)
    while True:
        member.beat()
        yield brokers.beaten[-1]
        member.look_elsewhere()


def test_a_coordinator_that_is_cut_off_is_not_believed_for_long() -> None:
    taken = list(islice(beats(TwoMinds(cut_off=3, coordinator=1)), 40))
    assert taken[0] == 3
    assert taken[1] == 1
    assert all(1 in pair for pair in pairwise(taken[1:])), "never twice in turn beside the real one"


def test_a_broker_that_did_not_answer_is_not_asked_where_the_coordinator_is() -> None:
    brokers = TwoMinds(cut_off=3, coordinator=1, avoided={2: float("inf"), 4: float("inf")})
    list(islice(beats(brokers), 5))
    assert not {2, 4} & set(brokers.asked)
