"""Names what kind of change a plan is, in the few words that a pull request is labelled with."""

from itertools import chain

from reconciler.model.change import class_of
from reconciler.model.effect import EffectClass
from reconciler.model.plan import Plan
from reconciler.model.stage import LogDirsStage, ReassignStage
from reconciler.render.effects import GRAVE

NO_CHANGES = "no changes"
DRIFT = "drift"
METADATA_ONLY = "metadata only"
LEADERS_ONLY = "leaders only"
MOVES_DATA = "moves data"
IRREVERSIBLE = "irreversible"
DESTROYS = "destroys"
LABELS = (NO_CHANGES, DRIFT, LEADERS_ONLY, METADATA_ONLY, MOVES_DATA, DESTROYS, IRREVERSIBLE)
"""All there are; of the first five a plan has one at most, the others stand beside it."""


def labels(plan: Plan) -> tuple[str, ...]:
    """Return the plan's labels: what it does at most, `destroys` where records go, `irreversible` where it is for good.

    For good is what `cancel --rollback` cannot bring back: destroyed records, and partitions, of which Kafka takes none
    away. A new topic loses nothing: it is not counted, though a rollback leaves it. What destroys is never called only
    metadata.
    """
    classes = {class_of(change) for change in plan.topic_changes}
    nature = _nature(plan)
    is_destroying = EffectClass.DESTROYS in classes
    return (
        *([] if is_destroying and nature == METADATA_ONLY else [nature]),
        *([DESTROYS] if is_destroying else []),
        *([IRREVERSIBLE] if classes & GRAVE else []),
    )


def _nature(plan: Plan) -> str:
    if plan.is_empty:
        return DRIFT if plan.drift else NO_CHANGES
    moves = list(chain.from_iterable(stage.moves for stage in plan.stages if isinstance(stage, ReassignStage)))
    if any(move.added for move in moves) or any(isinstance(stage, LogDirsStage) for stage in plan.stages):
        return MOVES_DATA
    return METADATA_ONLY if plan.topic_changes or any(move.removed for move in moves) else LEADERS_ONLY
