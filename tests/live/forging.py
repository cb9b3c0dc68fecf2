"""A forger in the lock's group of real brokers: a member that says, and gives out, any bytes.

with forging(kafka, b"apply of plan 0badcafe\\n...", b"..."):   # it leads the group, and follows it where it moves
    ...
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, cast

from helpers.brokers.cluster import KafkaCluster
from helpers.waiting import HANG

from reconciler.admin.client import connect
from reconciler.admin.client.lock_member import Forgotten, Member, Unsettled
from reconciler.model.problem import ReconcilerError

if TYPE_CHECKING:
    from reconciler.model.lock import Holder

PAUSE = 0.02


@dataclass
class Bytes:
    """Stands where a member has what it says of itself, and is written as it is."""

    content: bytes
    purpose: str = ""

    def written(self) -> "Bytes":
        return self

    def encode(self) -> bytes:
        return self.content


class _Forger(Member):
    """A member that says one thing and gives out another."""

    given_out = b""

    def _written(self) -> bytes:
        return self.given_out


@contextmanager
def forging(kafka: KafkaCluster, metadata: bytes, assignment: bytes, *, is_first: bool = True) -> Iterator[None]:
    """Be in the group for the time of the block, in it before the block begins where `is_first`."""
    admin = connect(kafka.properties)
    forger = _Forger(admin.wire, cast("Holder", Bytes(metadata)))
    forger.given_out = assignment
    is_over, is_there = Event(), Event()

    def live() -> None:
        while not is_over.wait(PAUSE):
            try:
                if not forger.member_id or not forger.beat():
                    forger.join()
                is_there.set()
            except Forgotten:
                forger.begin_anew()
            except (Unsettled, ReconcilerError):
                is_there.set()

    thread = Thread(target=live, name="forger")
    thread.start()
    try:
        assert not is_first or is_there.wait(HANG)
        yield
    finally:
        is_over.set()
        thread.join(HANG)
        with suppress(Unsettled, ReconcilerError):
            forger.leave()
        admin.close()
