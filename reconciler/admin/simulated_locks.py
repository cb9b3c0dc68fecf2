"""Locks a simulated cluster: in memory, or wherever the cluster itself is kept."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

from reconciler.admin.port import Answer, WaitHook
from reconciler.model.lock import STOP_SECONDS, Holder, LockHeld, LockLost, RateRequest, StopRequest

PAUSE_SECONDS = 0.02


class HeldLock(Protocol):
    """A lock that somebody has; see `reconciler.admin.port.Lock`."""

    def is_held(self) -> bool:
        """Whether it is held."""

    @property
    def holder(self) -> Holder:
        """Who has it."""

    @property
    def asked_by(self) -> Holder | None:
        """Who asks its holder to stop, None for nobody."""

    @property
    def rate_asked(self) -> RateRequest | None:
        """Which rate its holder was last asked for."""

    def release(self) -> None:
        """Give it back."""


class Locks(Protocol):
    """Where the lock of one simulated cluster is kept."""

    @property
    def holder(self) -> Holder | None:
        """Who holds the lock, None while it is free."""

    def take(self, holder: Holder, /) -> HeldLock:
        """Return the lock; raises LockHeld where somebody else has it."""

    @property
    def kept(self) -> str:
        """The text that its last holder kept, "" for none."""

    def keep(self, text: str, /) -> None:
        """Keep a text in place of the one before."""

    def ask_to_stop(self, request: StopRequest, /) -> None:
        """Let the holder know, if it is one that is meant; may be said again and again."""

    def ask_rate(self, request: RateRequest, /) -> None:
        """Let the holder know, if it is one that is meant."""


def taken(locks: Locks, holder: Holder, *, waiting: WaitHook | None = None, stopping: str | None = None) -> HeldLock:
    """Return the lock; a holder whose purpose is `stopping` is asked to stop, and waited for, as is this same one."""
    deadline, awaited = 0.0, None
    while True:
        try:
            return locks.take(holder)
        except LockHeld as error:
            other = error.holder
            request = StopRequest(stopping or "", holder)
            if stopping is None or not (request.awaits(other) if other else awaited):
                raise
            if other is not None and other != awaited:
                deadline, awaited = time.monotonic() + STOP_SECONDS, other
                if waiting is not None:
                    waiting(request.told(other))
            if other is not None and time.monotonic() > deadline:
                raise request.refusal(other) from None
            locks.ask_to_stop(request)
        time.sleep(PAUSE_SECONDS)


class MemoryLocks:
    """The `Locks` of a cluster in memory. Give them to several admins, and they are processes on one cluster."""

    def __init__(self) -> None:
        self.held: _Held | None = None
        self.kept = ""

    def keep(self, text: str, /) -> None:
        self.kept = text

    @property
    def holder(self) -> Holder | None:
        return self.held.holder if self.held else None

    def take(self, holder: Holder, /) -> HeldLock:
        if self.held is not None:
            raise LockHeld(self.held.holder)
        self.held = _Held(self, holder)
        return self.held

    def ask_to_stop(self, request: StopRequest, /) -> None:
        held = self.held
        if held is not None and held.holder.purpose == request.of:
            held.asked_by = request.by

    def ask_rate(self, request: RateRequest, /) -> None:
        held = self.held
        if held is not None and held.holder.purpose == request.of:
            held.rate_asked = request

    def expire(self) -> None:
        """End the holder's session, as when its process was frozen, or cut off, for too long."""
        self.held = None


@dataclass(slots=True, eq=False)
class _Held:
    locks: MemoryLocks
    holder: Holder
    asked_by: Holder | None = None
    rate_asked: RateRequest | None = None

    def is_held(self) -> bool:
        return self.locks.held is self

    def release(self) -> None:
        if self.is_held():
            self.locks.held = None


@dataclass(slots=True)
class SimulatedLock:
    """The port's Lock over one that is kept somewhere; `release` lets the admin write freely again."""

    held: HeldLock
    keeping: Callable[[str], Answer]
    released: bool = False

    def is_held(self) -> bool:
        return not self.released and self.held.is_held()

    @property
    def holder(self) -> Holder:
        return self.held.holder

    @property
    def asked_by(self) -> Holder | None:
        return self.held.asked_by

    @property
    def rate_asked(self) -> RateRequest | None:
        return self.held.rate_asked

    def keep(self, text: str) -> Answer:
        if self.released:
            raise LockLost("it was given back")
        self.check()
        return self.keeping(text)

    def check(self) -> None:
        self.raise_if_lost()

    def raise_if_lost(self) -> None:
        if not self.released and not self.held.is_held():
            raise LockLost("its session ended")

    def release(self) -> None:
        self.released = True
        self.held.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
