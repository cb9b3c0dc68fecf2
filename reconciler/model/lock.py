"""Who holds a cluster's lock: one run a cluster, wherever it was started."""

from dataclasses import dataclass
from typing import Self

from reconciler.model.problem import ReconcilerError, Refused

LOCK_GROUP = "__reconciler-lock"
"""The consumer group of a cluster whose leader holds its lock; Read on it is the right to take it."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a lock, or asks for it; `purpose` in words, `since` in ISO 8601, UTC."""

    purpose: str
    user: str
    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"{self.purpose} (started by {self.user} on {self.host}, process {self.pid}, at {self.since})"

    def written(self) -> str:
        """Return the text that `read` takes: one line a field."""
        fields = (self.purpose, self.user, self.host, str(self.pid), self.since)
        return "\n".join(" ".join(text.split()) for text in fields)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the holder that wrote this text, None where it is no such text."""
        try:
            purpose, user, host, pid, since = text.split("\n")
            return cls(purpose, user, host, int(pid), since)
        except ValueError:
            return None


class LockHeld(Refused):
    """Somebody else holds the cluster's lock (exit code 3); `holder` says who, None where it does not tell."""

    code = "KR450"

    def __init__(self, holder: Holder | None) -> None:
        self.holder = holder
        super().__init__(
            f"The cluster is locked by {holder or 'a process that does not say who it is'}: one run at a time. "
            "Wait until it has ended, or end it with SIGTERM, which takes its moves in flight back; then try again. "
            "`reconciler status` shows where it stands."
        )


class LockLost(ReconcilerError):
    """A lock that was held is not any more: nothing may be written; `holder` is who has it now, where known."""

    code = "KR730"

    def __init__(self, why: str, holder: Holder | None = None) -> None:
        self.why = why
        self.holder = holder
        now = f"; now it is held by {holder}" if holder else ""
        super().__init__(
            f"The cluster's lock was lost: {why}{now}. Nothing was written since. "
            "Run apply again, which goes on where the cluster stands, or cancel."
        )
