"""Simulated groups as JSON for programs; that of a scenario is written by `files.scenario`."""

from collections.abc import Sequence

from reconciler.groups.model.simulation import Comparison, Sharing, Stats
from reconciler.model.assignment import Assignment
from reconciler.render.as_json import document


def comparisons(compared: Sequence[Comparison]) -> str:
    """Return `groups`: each with its changes, `now`, and `after`, one entry an assignor."""
    return document({"groups": [_comparison(each) for each in compared]})


def _comparison(compared: Comparison) -> dict[str, object]:
    return {
        "groupId": compared.group_id,
        "state": compared.state,
        "assignor": compared.own,
        "changes": list(compared.changes),
        "now": _sharing(compared.now),
        "after": [
            _sharing(sharing)
            | {
                "assignor": sharing.assignor,
                "isGroupsOwn": sharing.assignor == compared.own,
                "rebalances": sharing.rebalances,
                "moved": [{"topic": key.topic, "partition": key.partition} for key in sharing.moved],
                "doubts": list(sharing.doubts),
            }
            for sharing in compared.after
        ],
        "notes": list(compared.notes),
    }


def _sharing(sharing: Sharing) -> dict[str, object]:
    loads = sharing.bytes_per_second
    return {
        "assignment": _assignment(sharing.assignment),
        "partitionsPerMember": sharing.counts,
        "idle": list(sharing.idle),
        "mostOverMean": _rounded(sharing.count_imbalance),
        "bytesPerSecondPerMember": None if loads is None else dict(loads),
        "bytesMostOverMean": _rounded(sharing.load_imbalance),
        "stats": _stats(sharing.stats),
    }


def _stats(stats: Stats) -> dict[str, object]:
    told: dict[str, object] = {"max": stats.most, "min": stats.fewest, "pair_score": stats.pair_score}
    moved = stats.moved_from_survivors
    return told if moved is None else told | {"moved_from_survivors": moved}


def _assignment(assignment: Assignment) -> dict[str, dict[str, list[int]]]:
    return {
        member_id: {topic: list(partitions) for topic, partitions in topics.items()}
        for member_id, topics in assignment.items()
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
