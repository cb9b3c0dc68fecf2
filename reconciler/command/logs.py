"""Sets up what libraries and long calls log beside the result: on stderr, as much as was asked for.

Loaded once a verb runs: `logging` would slow down `--help`.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from reconciler.command.terminal import tell, without_secrets
from reconciler.render.escape import visible

OURS, CLIENT = "reconciler", "kafka"
PROPERTIES = "reconciler.admin.client.properties"
_OUR_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


@dataclass(slots=True)
class _Subject:
    """The cluster that is looked at now, as a line begins with it; empty where one was asked for."""

    said: str = ""


_SUBJECT = _Subject()


@contextmanager
def about(cluster: str) -> Iterator[None]:
    """Say within the block of which cluster each line is."""
    _SUBJECT.said = f"{cluster}: "
    try:
        yield
    finally:
        _SUBJECT.said = ""


class _Line(logging.Formatter):
    """One line a record, in the form of our other warnings."""

    def format(self, record: logging.LogRecord) -> str:
        """Return `warning: text`; whatever a library logged cannot steer the terminal, nor hold what it was given."""
        text = without_secrets(super().format(record), is_ours=record.name.partition(".")[0] == OURS)
        return "\n".join(visible(line) for line in f"{record.levelname.lower()}: {_SUBJECT.said}{text}".split("\n"))


class _Stderr:
    """Writes lines of logs as all else on stderr: above the bar of a terminal, if one is shown."""

    def write(self, text: str) -> None:
        """Write it."""
        tell(text)


class _Once(logging.Filter):
    """Drops what was said of the client properties before: a verb may connect several times."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether it is new."""
        if record.name != PROPERTIES:
            return True
        text = f"{_SUBJECT.said}{record.getMessage()}"
        is_new = text not in self._told
        self._told.add(text)
        return is_new


def set_up_logs(verbosity: int) -> None:
    """Log our own warnings, more with -v, and with -vv all that the Kafka client logs; secrets are hidden there.

    Called again in the same process it replaces what it set up.
    """
    handler = logging.StreamHandler(_Stderr())
    handler.setFormatter(_Line("%(message)s"))
    handler.addFilter(_Once())
    if logging.lastResort is not None:  # what any other library warns of
        logging.lastResort.setFormatter(_Line("%(message)s"))
    ours, client = logging.getLogger(OURS), logging.getLogger(CLIENT)
    for earlier in ours.handlers:
        client.removeHandler(earlier)
    ours.handlers = [handler]
    ours.propagate = False
    ours.setLevel(_OUR_LEVELS[min(verbosity, len(_OUR_LEVELS) - 1)])
    client.setLevel(logging.DEBUG if verbosity > 1 else logging.NOTSET)
    if verbosity > 1:
        client.addHandler(handler)
