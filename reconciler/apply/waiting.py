"""How long a run waits, and how often it asks."""

from reconciler.apply.record import RunRecord
from reconciler.apply.steps import Wait

ATTEMPTS = 5
"""How often one thing is asked for before the run gives it up."""
SLOWEST_POLL = 5.0


def poll(record: RunRecord) -> Wait:
    """Return the wait before the next look: short at first, then longer."""
    return Wait(min(SLOWEST_POLL, 0.25 * 1.5 ** min(record.polls, 20)))
