"""Names who holds a cluster's lock, and what others ask of the holder: one run a cluster, wherever it was started.

The texts below are members' metadata of a consumer group, which DescribeGroups shows: other releases read them.
"""

from dataclasses import dataclass, field
from typing import Self

from reconciler.model.problem import ReconcilerError, Refused

LOCK_GROUP = "__reconciler-lock"
"""The consumer group of a cluster whose leader holds its lock; Read on it is the right to take it."""
_RATE = "rate="
OFFSETS_TOPIC = "__consumer_offsets"
"""Where groups' offsets are; the metadata of the lock group's own hold the run's record, which takes Read on it."""
UNCERTAIN = "KR603"
"""The code of an error: nobody can tell just now whether the lock is held, so nothing may be written."""
MOST_CHARACTERS = 2048
"""Of what a member of the group says of itself: anybody who may read the group can be one, and say anything."""
STOP_SECONDS = 120
"""How long whoever asks a run to stop waits for its end: metadata may show for so long that moves are not back."""


def purpose_of_run(plan_id: str) -> str:
    """Return the purpose of a lock that is held to run that plan: such a holder ends in order when it is asked to."""
    return f"apply of plan {plan_id}"


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock, or asks for it; `purpose` in words, `since` in ISO 8601, UTC.

    `digest`: of the plan that it runs, empty where it runs none, or does not tell. All of this is what the process says
    of itself; `client_host` is the address that Kafka sees it at, empty where Kafka was not asked.
    """

    purpose: str
    user: str
    host: str
    pid: int
    since: str
    digest: str = ""
    client_host: str = field(default="", compare=False)

    @classmethod
    def nameless(cls, client_host: str) -> Self:
        """Return the holder of a lock whose text is no such text: only where Kafka sees it is known."""
        return cls("a process that does not say who it is", "", "", 0, "", client_host=client_host)

    def __str__(self) -> str:
        if not (self.user or self.host or self.since):
            return f"{self.purpose} (Kafka sees it at {self.client_host or 'an unknown host'})"
        digest = f"; digest {self.digest}" if self.digest else ""
        by = f"started by {self.user} on {self.host}, process {self.pid}, at {self.since}"
        return f"{self.purpose} ({by}{self._seen_at}{digest})"

    @property
    def process(self) -> str:
        """Who it says that it is, and where Kafka sees it."""
        return f"{self.user} on {self.host} (process {self.pid}{self._seen_at})"

    @property
    def _seen_at(self) -> str:
        return f", as it says; Kafka sees it at {self.client_host}" if self.client_host else ""

    def written(self) -> str:
        """Return the text that `read` takes: one line a field."""
        fields = (self.purpose, self.user, self.host, str(self.pid), self.since, *filter(None, [self.digest]))
        return "\n".join(" ".join(text.split()) for text in fields)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the holder that wrote this text, None where it is no such text."""
        if len(text) > MOST_CHARACTERS:
            return None
        try:
            purpose, user, host, pid, since, *digest = text.split("\n")
            return cls(purpose, user, host, int(pid), since, "".join(digest)) if len(digest) < 2 else None  # noqa: PLR2004 - the last line may lack
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class StopRequest:
    """What `by` asks of a holder with the purpose `of`: to end in order, and give the lock back."""

    of: str
    by: Holder

    def written(self) -> str:
        """Return the text that `read` takes: one line more than a holder's."""
        return f"{' '.join(self.of.split())}\n{self.by.written()}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the request in this text, None where it is none."""
        of, _, rest = text[: 2 * MOST_CHARACTERS].partition("\n")
        # A request for a rate has one line more. From a host whose name is a number it would pass for a holder's text.
        by = Holder.read(rest) if not rest.startswith(_RATE) else None
        return cls(of, by) if by is not None else None

    def awaits(self, holder: Holder) -> bool:
        """Whether that holder's end is waited for: it is asked to stop, or does already what whoever asks wants to."""
        return holder.purpose in {self.of, self.by.purpose}

    def refusal(self, holder: Holder) -> "LockHeld":
        """Return the error for a holder that has not ended in time."""
        return NotStopped(holder) if holder.purpose == self.of else LockHeld(holder)

    def told(self, holder: Holder) -> str:
        """Return what to tell whoever waits for that holder's end."""
        if holder.purpose != self.of:
            return f"{holder} is on already: waiting for its end, {STOP_SECONDS} s at most."
        return f"Asked {holder} to stop: waiting until it has put everything back, {STOP_SECONDS} s at most."


@dataclass(frozen=True, slots=True)
class RateRequest:
    """What `by` asks of a holder with the purpose `of`: to throttle what it runs to that rate, in bytes per second."""

    of: str
    by: Holder
    rate: int

    def written(self) -> str:
        """Return the text that `read` takes: two lines more than a holder's."""
        return f"{' '.join(self.of.split())}\n{_RATE}{self.rate}\n{self.by.written()}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the request in this text, None where it is none."""
        of, rate, rest = (*text[: 2 * MOST_CHARACTERS].split("\n", 2), "", "")[:3]
        by = Holder.read(rest)
        number = rate.removeprefix(_RATE)
        is_number = number.isascii() and number.isdigit() and len(number) < len(str(2**63))
        if by is None or not rate.startswith(_RATE) or not is_number:
            return None
        return cls(of, by, int(number))


def author(text: str) -> Holder | None:
    """Return the process that a member's text names as its own, be it a request or not; None where it is no such text.

    A member that asked a run to stop holds the lock after it, and its text is the request still.
    """
    request = RateRequest.read(text) or StopRequest.read(text)
    return request.by if request is not None else Holder.read(text)


class LockHeld(Refused):
    """Somebody else holds the cluster's lock (exit code 3); `holder` says who, None where it does not tell."""

    code = "KR450"

    def __init__(self, holder: Holder | None, text: str = "") -> None:
        self.holder = holder
        super().__init__(
            text
            or f"The cluster is locked by {holder or 'a process that does not say who it is'}: one run at a time. "
            "Wait until it has ended, or stop it: an apply with `reconciler cancel` of its plan, anything else with "
            "SIGTERM; what it has in flight goes back. `reconciler status` shows where it stands."
        )


class NotStopped(LockHeld):
    """The holder was asked to stop, and holds the lock still (exit code 3)."""

    code = "KR453"

    def __init__(self, holder: Holder) -> None:
        super().__init__(
            holder,
            f"{holder} was asked to stop, and has not within {STOP_SECONDS} s: a cluster that answers late may keep "
            "it. Run cancel again, or end it with SIGTERM. `reconciler status` shows where it stands.",
        )


class LockLost(ReconcilerError):
    """A lock that was held is not any more: nothing may be written; `holder` is who has it now, where known."""

    code = "KR730"

    def __init__(self, why: str, holder: Holder | None = None) -> None:
        self.why = why
        self.holder = holder
        now = f"; now it is held by {holder}" if holder else ""
        super().__init__(f"The cluster's lock was lost: {why}{now}. Nothing was written since.")
