"""How long a run waits, how often it asks, and what for."""

from reconciler.apply.record import RunRecord
from reconciler.apply.steps import Wait
from reconciler.model.stage import ReassignStage, Stage
from reconciler.model.wording import named_some

ATTEMPTS = 5
"""How often one thing is asked for before the run gives it up."""
SLOWEST_POLL = 5.0


def poll(record: RunRecord) -> Wait:
    """Return the wait before the next look: short at first, then longer."""
    return Wait(min(SLOWEST_POLL, 0.25 * 1.5 ** min(record.polls, 20)))


def awaited(stages: int, stage: Stage, record: RunRecord) -> str:
    """Return what a stage waits for, in words; of moves only what keeps them, as progress tells of the copying."""
    if not isinstance(stage, ReassignStage):
        return f"stage {stage.number}/{stages} to show what it changed"
    unclear = [str(key) for key, one in record.histories.items() if one.off_since or one.lagging_since]
    told = [f"broker {broker}, which is not alive" for broker in sorted(record.fenced_since)]
    told += [f"log dirs of broker {broker}" for broker in sorted(record.bad_disks)]
    if unclear:
        told.append(f"a second look at {named_some(unclear)}, not where this run left it")
    return ", ".join(told)
