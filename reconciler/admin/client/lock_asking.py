"""Asking the leader of the lock's group to stop: a member whose metadata says so, and who stays until it leads."""

import time

from reconciler.admin.client.lock_member import Forgotten, Member, Seat, Unsettled, now
from reconciler.admin.port import WaitHook
from reconciler.admin.waits import waiting_for
from reconciler.model.lock import STOP_SECONDS, NotStopped, StopRequest

ASKING_SECONDS = 0.5


def seat_of_stopped(member: Member, seat: Seat, waiting: WaitHook | None = None) -> Seat:
    """Return the seat that is left to a member once the leader that it asks to stop has gone, else its own.

    The leader has read the request when it gave out this seat. To wait inside the group makes the lead pass over with
    nobody in between, and at once; a leader that dies is missed after its session, as ever. Raises NotStopped.
    """
    asked = seat.holder
    if asked is None or not _is_asked(member, seat):
        return seat
    if waiting is not None and isinstance(member.request, StopRequest):
        waiting(member.request.told(asked))
    deadline = now() + STOP_SECONDS
    with waiting_for(f"{asked} to stop"):
        while _is_asked(member, seat):
            if now() > deadline:
                raise NotStopped(seat.holder or asked)
            time.sleep(ASKING_SECONDS)
            seat = _kept(member, seat)
    return seat


def _is_asked(member: Member, seat: Seat) -> bool:
    """Whether somebody leads whom this member asks to stop, or who is not known just now."""
    return (
        member.request is not None
        and not seat.is_leader
        and (seat.holder is None or seat.holder.purpose == member.request.of)
    )


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
