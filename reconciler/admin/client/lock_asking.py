"""Asks the leader of the lock's group to stop: a member whose metadata says so, and who stays until it leads."""

import time

from reconciler.admin.client.lock_member import Forgotten, Member, Seat, Unsettled, now
from reconciler.admin.port import WaitHook
from reconciler.admin.waits import waiting_for
from reconciler.model.lock import STOP_SECONDS, Holder, StopRequest

ASKING_SECONDS = 0.5


def seat_of_stopped(member: Member, seat: Seat, waiting: WaitHook | None = None) -> Seat:
    """Return the seat that is left to a member once the leader that it asks to stop has gone, else its own.

    The leader has read the request when it gave out this seat. To wait inside the group makes the lead pass over with
    nobody in between, and at once; a leader that dies is missed after its session, as ever. If the
    leader does the same job, as the first of two cancels does, it is waited for as well. Raises NotStopped, or LockHeld
    where such a leader takes too long.
    """
    request = member.request
    if not isinstance(request, StopRequest):
        return seat
    while not seat.is_leader and seat.holder is not None and request.awaits(seat.holder):
        if waiting is not None:
            waiting(request.told(seat.holder))
        with waiting_for(f"the end of {seat.holder}"):
            seat = _seat_after(member, seat, seat.holder, request)
    return seat


def _seat_after(member: Member, seat: Seat, holder: Holder, request: StopRequest) -> Seat:
    """Return the seat once another leads than that holder, and is known; raises where it leads for too long."""
    deadline = now() + STOP_SECONDS
    while not seat.is_leader and seat.holder in {None, holder}:
        if now() > deadline:
            raise request.refusal(seat.holder or holder)
        time.sleep(ASKING_SECONDS)
        seat = _kept(member, seat)
    return seat


def _kept(member: Member, seat: Seat) -> Seat:
    """Keep the place in the group for another moment, and return it, or what it has become."""
    try:
        if not member.member_id or not member.beat():
            return member.join()
    except Forgotten:
        member.begin_anew()
    except Unsettled:
        pass  # the coordinator moves: the next time says more
    return seat
