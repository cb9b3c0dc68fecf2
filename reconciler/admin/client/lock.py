"""Holds the cluster's lock: the lead of a group of its own, kept up from a thread, and certain only while it is."""

import threading
import time
from contextlib import suppress
from typing import Self

from reconciler.admin.client.connecting import open_another
from reconciler.admin.client.lock_kept import keep
from reconciler.admin.client.lock_member import PAUSE_SECONDS, Forgotten, Member, Seat, Unsettled, now
from reconciler.admin.client.wire import Wire
from reconciler.admin.port import Answer, WaitHook
from reconciler.admin.waits import waiting_for
from reconciler.model.lock import (
    LOCK_GROUP,
    STOP_SECONDS,
    UNCERTAIN,
    Holder,
    LockHeld,
    LockLost,
    RateRequest,
    StopRequest,
)
from reconciler.model.problem import ClusterUnavailable, MissingRight, ReconcilerError

BEAT_SECONDS = 1.0
LOOK_SECONDS = 3.0
# A write must have arrived before the session ends, so the last part of it does not count.
MARGIN_SECONDS = 2.0
# So long a write waits for a coordinator that moves, before the run is told that the cluster does not answer.
SURE_SECONDS = 30.0
COORDINATOR_SECONDS = 30.0
# A free lock takes group.initial.rebalance.delay.ms, 3 s by default: that is not worth a word.
MOMENT_SECONDS = 3.5
# A run, and each cancel of it that came before, has STOP_SECONDS of its own. A leader that changes its name does not.
MOST_STOPS = 4
LEAVE_SECONDS = 2.0
ASKING_SECONDS = 0.5
HOLDER_SECONDS = 10.0
# A connection that cannot be made should not use up the session; to a broker that is far away it takes longer.
SETUP_SECONDS = 2.0
MOST_SETUP_SECONDS = 10.0


def take_lock(
    wire: Wire, holder: Holder, waiting: WaitHook | None = None, stopping: str | None = None
) -> "ClusterLock":
    """Return the lock, held, whose check guards every write of that wire; LockHeld says who has it.

    The broker answers when every other member has been heard of or given up: a holder that lives is told of within a
    second or so, one that died is waited for until its session ends. One whose purpose is `stopping` is asked to stop.
    """
    member = Member(_connected(wire), holder, StopRequest(stopping, holder) if stopping else None)
    try:
        seat = _seat_of_stopped(member, _seated(member, waiting), waiting)
        if seat.is_leader:
            return ClusterLock(member, seat, wire)
        held_by = member.seen(seat.holder)
    except BaseException:
        _go(member)
        raise
    _go(member)
    raise LockHeld(held_by)


def ask_rate(wire: Wire, request: RateRequest, waiting: WaitHook | None = None) -> Holder | None:
    """Ask the lock's holder for a rate; return who has read it, None where nobody holds the lock.

    The holder has read it once the group has settled with this member in it.
    """
    member = Member(_connected(wire), request.by, request)
    try:
        seat = _seated(member, waiting)
        return None if seat.is_leader else seat.holder
    finally:
        _go(member)


def lock_holder(wire: Wire) -> Holder | None:
    """Return who holds the lock, None where it is free or its holder cannot be told for some seconds."""
    asking = Member(wire, Holder("", "", "", 0, ""))
    deadline = now() + (wire.moment_seconds if any(map(wire.is_silent, wire.brokers())) else HOLDER_SECONDS)
    while True:
        try:
            found = asking.described()
            if not found.is_moving or now() > deadline:
                return found.holder
        except Unsettled as error:
            if now() > deadline:
                raise _without_coordinator(str(error)) from None
        time.sleep(PAUSE_SECONDS)


def _connected(wire: Wire) -> Wire:
    """Return a member's own connections; how long the first one took tells how far away the brokers are."""
    return open_another(wire, min(MOST_SETUP_SECONDS, max(SETUP_SECONDS, 2 * wire.opened_in_seconds)))


def _go(member: Member) -> None:
    member.leave()
    member.wire.close()


def _seated(member: Member, waiting: WaitHook | None) -> Seat:
    """Join, for as long as a coordinator takes to be found: a new cluster makes `__consumer_offsets` first."""
    hint = threading.Timer(MOMENT_SECONDS, waiting or (lambda _: None), [_waiting_text(member)])
    hint.daemon = True
    hint.start()
    deadline = now() + COORDINATOR_SECONDS
    try:
        with waiting_for("the cluster's lock"):
            while True:
                try:
                    return member.join()
                except Forgotten:
                    member.begin_anew()
                except Unsettled as error:
                    if now() > deadline:
                        raise _without_coordinator(str(error), member.others_named()) from None
                time.sleep(PAUSE_SECONDS)
    finally:
        hint.cancel()


def _seat_of_stopped(member: Member, seat: Seat, waiting: WaitHook | None = None) -> Seat:
    """Return the seat that is left to a member once the leader that it asks to stop has gone, else its own.

    The leader has read the request when it gave out this seat. To wait inside the group makes the lead pass over with
    nobody in between, and at once; a leader that dies is missed after its session, as ever. If the
    leader does the same job, as the first of two cancels does, it is waited for as well. Raises NotStopped, or LockHeld
    where such a leader takes too long.
    """
    request = member.request
    if not isinstance(request, StopRequest):
        return seat
    end = now() + MOST_STOPS * STOP_SECONDS
    while not seat.is_leader and seat.holder is not None and request.awaits(seat.holder):
        if now() > end:
            raise request.refusal(member.seen(seat.holder) or seat.holder)
        if waiting is not None:
            waiting(request.told(member.seen(seat.holder) or seat.holder))
        with waiting_for(f"the end of {seat.holder}"):
            seat = _seat_after(member, seat, seat.holder, request)
    return seat


def _seat_after(member: Member, seat: Seat, holder: Holder, request: StopRequest) -> Seat:
    """Return the seat once another leads than that holder, and is known; raises where it leads for too long."""
    deadline = now() + STOP_SECONDS
    while not seat.is_leader and seat.holder in {None, holder}:
        if now() > deadline:
            raise request.refusal(member.seen(seat.holder or holder) or holder)
        time.sleep(ASKING_SECONDS)
        seat = _still_seated(member, seat)
    return seat


def _still_seated(member: Member, seat: Seat) -> Seat:
    """Keep the place in the group for another moment, and return it, or what it has become."""
    try:
        if not member.member_id or not member.beat():
            return member.join()
    except Forgotten:
        member.begin_anew()
    except Unsettled:
        pass  # the coordinator moves: the next time says more
    return seat


def _waiting_text(member: Member) -> str:
    seconds = round(member.session_seconds)
    return f"Waiting for the cluster's lock: if its holder has died, it is free within {seconds} s."


def _without_coordinator(why: str, others: str = "") -> ClusterUnavailable:
    """Return the error; `others` names the group's other members: one may send more metadata than Kafka can write."""
    look = f"Look at the leaders of __consumer_offsets{' and at the members of the group' if others else ''}"
    return ClusterUnavailable(
        f"The coordinator of group {LOCK_GROUP}, which holds the cluster's lock, does not answer ({why}). "
        f"{look}, then try again{others}.",
        code=UNCERTAIN,
    )


class ClusterLock:
    """The lock, held. A thread says every second that its holder lives; what it hears decides what `check` says."""

    def __init__(self, member: Member, seat: Seat, guarded: Wire) -> None:
        self.member = member
        self._guarded = guarded
        self._changed = threading.Condition()
        self._sure_until = 0.0
        self._trouble = "no answer yet"
        self._lost: LockLost | None = None
        self._ended = threading.Event()
        self._beaten_at, self._still, self._beats = now(), 0.0, 0
        self._generation = member.generation
        self._is_out = self._was_empty = False
        self._asked_by, self._rate_asked = seat.asked_by, seat.rate_asked
        self._confirm(seat.at)
        guarded.guard = self.check
        self._thread = threading.Thread(target=self._live, name="cluster lock", daemon=True)
        self._thread.start()
        threading.Thread(target=self._look, name="cluster lock's coordinator", daemon=True).start()

    def is_held(self) -> bool:
        """Whether it is certainly held at this moment."""
        with self._changed:
            return self._lost is None and not self._ended.is_set() and now() < self._sure_until

    @property
    def holder(self) -> Holder:
        """Who holds it."""
        return self.member.holder

    @property
    def asked_by(self) -> Holder | None:
        """Who asks this holder to stop, None for nobody; whoever asked first, and for good."""
        return self._asked_by

    @property
    def rate_asked(self) -> RateRequest | None:
        """Which rate this holder was last asked for, None for none."""
        return self._rate_asked

    def keep(self, text: str) -> Answer:
        """Keep that text in the cluster in place of the one before; see `reconciler.admin.client.lock_kept`."""
        if self._ended.is_set():
            raise LockLost("it was given back")
        return keep(self._guarded, self.member, text)

    def check(self) -> None:
        """Return once it is certain that the lock is held; after a silence, that takes the coordinator's word."""
        end = now() + SURE_SECONDS
        with waiting_for(lambda: f"word that the cluster's lock is still held ({self._trouble})"), self._changed:
            while self._lost is None and now() >= self._sure_until:
                if now() >= end or not self._thread.is_alive():
                    raise _without_coordinator(self._trouble)
                self._changed.wait(PAUSE_SECONDS)
        self.raise_if_lost()

    def raise_if_lost(self) -> None:
        """Raise LockLost where the coordinator has said so."""
        with self._changed:
            if self._lost is not None:
                raise LockLost(self._lost.why, self._lost.holder)

    def release(self) -> None:
        """Give it back: the next one need not wait for the session's end."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._guarded.guard = None
        self._thread.join(LEAVE_SECONDS)
        _go(self.member)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _live(self) -> None:
        while not self._ended.wait(BEAT_SECONDS) and self._lost is None:
            self._still = now() - self._beaten_at
            self._beats += 1
            try:
                self._beat()
            except Unsettled as error:
                self._trouble = str(error)
            except MissingRight as error:
                self._trouble = f"{error.code}: {error}"
                if now() >= self._sure_until:
                    # Its session is over, and no try can make it anew: whoever waits for it would wait in vain.
                    self._lose(f"this user may not read group {LOCK_GROUP} any more ({error.code})")
            except ReconcilerError as error:
                self._trouble = f"{error.code}: {error}"
            self._beaten_at = now()

    def _look(self) -> None:
        """Ask others who the coordinator is; beside the beats, which a broker that cannot be reached must not delay."""
        while not self._ended.wait(LOOK_SECONDS) and self._lost is None:
            with suppress(Unsettled, ReconcilerError, RuntimeError):  # the last: connections are closed at the end
                self.member.look_elsewhere()

    def _beat(self) -> None:
        """Say once that we live, and follow the group where it moves."""
        if self._is_out:
            self._come_back()
            return
        sent_at = now()
        try:
            if self.member.beat():
                self._confirm(sent_at)
            else:
                self._keep(self.member.join())
        except Forgotten:
            self._doubt()
            if self._still > self.member.session_seconds:
                self._lose(f"this process stood still for {self._still:.0f} s")
            else:
                self._is_out = True
                self._come_back()

    def _keep(self, seat: Seat) -> None:
        if seat.is_leader:
            self._generation = self.member.generation
            self._asked_by = self._asked_by or seat.asked_by
            self._rate_asked = seat.rate_asked or self._rate_asked
            self._confirm(seat.at)
        else:
            self._lose("another process was made its holder", seat.holder)

    def _come_back(self) -> None:
        """Join as a new member, and go on only if it is certain that nobody held the lock in between.

        The session's end made one more generation, in which the group was empty, our coming back another. Had somebody
        been in between, there would be more of them, or the group would never have been seen empty.
        """
        self._was_empty = self._was_empty or self.member.described().is_empty
        try:
            seat = self.member.join()
        except Forgotten:
            self.member.begin_anew()
            return
        if self._was_empty and seat.is_leader and self.member.generation == self._generation + 2:
            self._is_out = self._was_empty = False
            self._keep(seat)
        else:
            self._lose("its coordinator did not hear of this process", None if seat.is_leader else seat.holder)

    def _confirm(self, sent_at: float) -> None:
        """Count the session from when we sent what was answered: the coordinator counts it from later."""
        with self._changed:
            self._sure_until = sent_at + self.member.session_seconds - MARGIN_SECONDS
            self._changed.notify_all()

    def _doubt(self) -> None:
        """Be sure of nothing until the coordinator confirms it: it may have forgotten us before our session's end."""
        with self._changed:
            self._sure_until = 0.0

    def _lose(self, why: str, holder: Holder | None = None) -> None:
        """Tell it, and be in nobody's way: a member that is silent keeps the others waiting."""
        self.member.leave()
        with self._changed:
            self._lost = LockLost(why, holder)
            self._changed.notify_all()
