"""A plan's topic changes the other way round: configs come back, what Kafka cannot undo is named."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem
from reconciler.staging.way_back import warning


@dataclass(slots=True)
class UndoneChanges:
    """Configs to bring back; `told`: what stays because Kafka cannot undo it; `left`: what somebody else has changed.

    `deleted`: topics that the plan has deleted.
    """

    changes: list[AlterConfigs] = field(default_factory=list)
    told: list[Problem] = field(default_factory=list)
    left: list[Problem] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)

    def overrides(self, observed: Cluster, key: str) -> Mapping[str, str | None]:
        """Return the override of that config that each topic has once these changes are made."""
        found = {name: topic.configs.get(key) for name, topic in observed.topics.items()}
        for change in self.changes:
            if key in change.before:
                found[change.topic] = change.set.get(key)
        return found


def undone_changes(undone: Plan, observed: Cluster, others: Collection[str] = ()) -> UndoneChanges:
    """Return what undoes the plan's topic changes, as far as they have been made.

    `others`: topics that were made since under the name of one that the plan touched; they are left alone.
    """
    found = UndoneChanges()
    for name in sorted(others):
        text = f"topic {name} is another one, made since under the same name: it is left alone"
        found.left.append(warning("KR854", text))
    altered: dict[str, list[AlterConfigs]] = {}
    for change in undone.topic_changes:
        if change.topic in others:
            continue
        if isinstance(change, AlterConfigs):
            altered.setdefault(change.topic, []).append(change)
        else:
            found.told += _irreversible(change, observed.topics.get(change.topic))
        if isinstance(change, DeleteTopic) and change.topic not in observed.topics:
            found.deleted.add(change.topic)
    for name in sorted(altered):
        _configs_back(name, altered[name], observed.topics.get(name), found)
    return found


def _irreversible(change: TopicChange, topic: Topic | None) -> Iterator[Problem]:
    """Yield what stays as the plan made it."""
    match change:
        case CreateTopic():
            if topic is not None:
                text = f"topic {change.topic}, which the plan created, stays: a rollback deletes no data"
                yield warning("KR851", f"{text}. Where nobody needs it, declare it absent, or delete it yourself")
        case CreatePartitions():
            if topic is not None and len(topic.partitions) > change.from_count:
                text = f"topic {change.topic} keeps {len(topic.partitions)} partitions, {change.from_count} before"
                yield warning("KR852", f"{text}: Kafka takes none away")
        case DeleteTopic():
            if topic is None:
                text = f"topic {change.topic} stays deleted: its data is gone"
                yield warning("KR853", f"{text}. Where it is needed, declare it and plan again")
            elif None not in {change.topic_id, topic.topic_id} and change.topic_id != topic.topic_id:
                yield warning("KR853", f"topic {change.topic} is another one, made since under the same name: it stays")
        case AlterConfigs():
            pass
        case _:
            assert_never(change)


def _configs_back(name: str, changes: list[AlterConfigs], topic: Topic | None, found: UndoneChanges) -> None:
    if topic is None:
        found.left.append(warning("KR858", f"topic {name} is gone, and so are its configs"))
        return
    made: dict[str, str | None] = {}
    before: dict[str, str | None] = {}
    for change in changes:
        made |= {**change.set, **dict.fromkeys(change.delete)}
        before |= change.before
    back = {}
    for key in sorted(made):
        now = topic.configs.get(key)
        if key not in before:
            text = f"topic {name}: what {key} was before the plan is not known, so it stays {_told(now)}"
            found.left.append(warning("KR858", text))
        elif now == before[key]:
            continue
        elif now == made[key]:
            back[key] = before[key]
        else:
            text = f"topic {name}: {key} is {_told(now)}, not {_told(made[key])} as by the plan"
            found.left.append(warning("KR858", f"{text}: somebody else changed it, so it is left alone"))
    if back:
        found.changes.append(
            AlterConfigs(
                name,
                {key: value for key, value in back.items() if value is not None},
                tuple(key for key, value in back.items() if value is None),
                {key: made[key] for key in back},
            )
        )


def _told(value: str | None) -> str:
    return "unset" if value is None else repr(value)
