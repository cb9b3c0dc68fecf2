"""What kind of change a plan is, in the few words that a pull request is labelled with."""

from collections.abc import Iterator
from itertools import chain

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage

NO_CHANGES = "no changes"
METADATA_ONLY = "metadata only"
LEADERS_ONLY = "leaders only"
MOVES_DATA = "moves data"
IRREVERSIBLE = "irreversible"
LABELS = (NO_CHANGES, LEADERS_ONLY, METADATA_ONLY, MOVES_DATA, IRREVERSIBLE)
"""All there are; of the first four a plan has exactly one, the last stands beside it."""

_RETENTION = {"retention.ms": 604_800_000, "retention.bytes": -1}
"""Kafka's own defaults, for a topic without an override: what a broker's own are, a plan does not tell."""
_CLEANUP = "cleanup.policy"
_CLEANUP_DEFAULT = "delete"


def labels(plan: Plan) -> tuple[str, ...]:
    """Return the plan's labels: what it does at most and, where no rollback takes it all back, `irreversible`."""
    is_final = any(is_irreversible(change) for change in plan.topic_changes)
    return (_nature(plan), *([IRREVERSIBLE] if is_final else []))


def is_irreversible(change: TopicChange) -> bool:
    """Whether `cancel --rollback` cannot bring back what was there before this change.

    Kafka takes no partitions away, and data that is deleted is gone, also where a config lets Kafka delete more of it.
    A new topic loses nothing: it is not counted, though a rollback leaves it.
    """
    match change:
        case CreatePartitions() | DeleteTopic():
            return True
        case AlterConfigs():
            return any(True for _ in lossy_configs(change))
        case CreateTopic():
            return False


def lossy_configs(change: AlterConfigs) -> Iterator[str]:
    """Yield the keys whose new value lets Kafka delete data that it keeps today: retention, clean-up policies."""
    after: dict[str, str | None] = {**change.set, **dict.fromkeys(change.delete)}
    for key in sorted(after):
        old, new = change.before.get(key), after[key]
        is_shorter = key in _RETENTION and _kept(new, key) < _kept(old, key)
        if is_shorter or (key == _CLEANUP and _policies(new) - _policies(old)):
            yield key


def _nature(plan: Plan) -> str:
    if plan.is_empty:
        return NO_CHANGES
    moves = list(chain.from_iterable(stage.moves for stage in plan.stages if isinstance(stage, ReassignStage)))
    if any(move.added for move in moves):
        return MOVES_DATA
    return METADATA_ONLY if plan.topic_changes or any(move.removed for move in moves) else LEADERS_ONLY


def _kept(value: str | None, key: str) -> float:
    """Return how much a retention keeps; a negative one, and what is no number, keeps everything."""
    try:
        kept = _RETENTION[key] if value is None else int(value)
    except ValueError:
        return float("inf")
    return float("inf") if kept < 0 else kept


def _policies(value: str | None) -> set[str]:
    return {each.strip() for each in (_CLEANUP_DEFAULT if value is None else value).split(",")}
