"""Compares desired with observed: what topics need, who breaks a rule, which leaders to elect, what is drift."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from reconciler.diff.broken import broken_partitions
from reconciler.diff.effects import unknown_defaults, with_effects
from reconciler.diff.leaderless import has_source, leaderless_partitions
from reconciler.diff.managed import ambiguous_patterns, is_declared, is_ignored
from reconciler.diff.mirrors import is_copy, is_mirror_makers
from reconciler.diff.rules import TopicRules
from reconciler.diff.slips import look_alikes, without_slips
from reconciler.model.change import AlterConfigs, Changes, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import DEFAULT_PARTITIONS, DEFAULT_REPLICATION_FACTOR, DELETE_TOPICS, Cluster, Topic
from reconciler.model.config_value import is_same_value
from reconciler.model.desired import BrokerState, Desired, DesiredTopic, Protection
from reconciler.model.effect import EffectClass
from reconciler.model.in_sync import MIN_ISR, whole_number
from reconciler.model.move import Election
from reconciler.model.problem import (
    BROKER_LEFT,
    MIN_ISR_REFUSED,
    MISSING_BROKER,
    TOPIC_LEFT,
    UNDECLARED_TOPIC,
    InvalidInput,
    Problem,
    Severity,
    warning,
)
from reconciler.model.table_maker import table_of
from reconciler.model.words import counted, named_some

_SHOWN = 8
"""How many topics a message names; it says how many more there are."""
_DEFAULTS = {"partitions": DEFAULT_PARTITIONS, "replicationFactor": DEFAULT_REPLICATION_FACTOR}
"""The broker's setting that counts for a new topic where its document leaves a field open."""


def compare(desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules]) -> Changes:
    """Return all differences, sorted by topic and partition; only what is written is compared.

    Raises InvalidInput where the desired state cannot be meant for this cluster: another cluster id, a new topic
    without partitions or replication factor, growth of a protected topic, patterns that contradict each other, topics
    to delete where the brokers delete none.
    """
    topic_changes, problems = topic_findings(desired, observed, rules)
    topic_changes, spared = without_slips(topic_changes)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    errors += [*_refused_deletions(topic_changes, observed), *_colliding_names(topic_changes, observed)]
    if errors:
        raise InvalidInput(errors)
    doomed = {change.topic for change in topic_changes if isinstance(change, DeleteTopic)}
    broken = list(broken_partitions(desired, observed, rules, doomed))
    return Changes(
        topic_changes=topic_changes,
        broken_rules=tuple(found[0] for found in broken),
        elections=tuple(_elections(desired, observed, rules, doomed)),
        drift=(
            *problems,
            *look_alikes(topic_changes, spared, observed, desired),
            *unknown_defaults(topic_changes, observed),
        ),
        also_broken=tuple(rule for found in broken for rule in found[1:]),
        spared=spared,
        leaderless=tuple(leaderless_partitions(desired, observed, rules, doomed)),
    )


def topic_findings(
    desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules]
) -> tuple[tuple[TopicChange, ...], tuple[Problem, ...]]:
    """Return what topics need, each change with its effects, and what is wrong or cannot be fixed."""
    found: list[TopicChange | Problem] = [*_cluster_findings(desired, observed), *ambiguous_patterns(desired, observed)]
    for name in sorted({*observed.topics, *desired.topics}):
        found += _topic_findings(desired, rules, observed, name)
    changes = with_effects((finding for finding in found if not isinstance(finding, Problem)), observed)
    refused = (
        problem for change in changes if change.topic in rules for problem in _forbidden(rules[change.topic], change)
    )
    return changes, (*(finding for finding in found if isinstance(finding, Problem)), *refused)


def defaults_taken(changes: Iterable[TopicChange], declared: Mapping[str, DesiredTopic]) -> Iterator[Problem]:
    """Yield a warning for each new topic that is made as the cluster's defaults have it."""
    for change in changes:
        if not isinstance(change, CreateTopic):
            continue
        numbers = {"partitions": change.partitions, "replicationFactor": change.replication_factor}
        open_fields = [field for field, number in _written(declared[change.topic]).items() if number is None]
        taken = ", ".join(f"{field} {numbers[field]} ({_DEFAULTS[field]})" for field in open_fields)
        if taken:
            message = f"topic {change.topic} is new, and takes what the brokers have by default: {taken}"
            yield warning("KR835", message, change.at)


def other_cluster(desired: Desired, observed: Cluster) -> Problem | None:
    """Return the error that this is not the cluster whose id is declared; None where it is, or none is declared."""
    wanted = desired.cluster.cluster_id
    if wanted in {None, observed.cluster_id}:
        return None
    message = (
        f"{desired.cluster.name} declares clusterId {wanted}, but the observed cluster is {observed.cluster_id}: "
        "observe the right cluster, or correct clusterId"
    )
    return Problem("KR231", message, desired.cluster.at)


def _cluster_findings(desired: Desired, observed: Cluster) -> Iterator[Problem]:
    other = other_cluster(desired, observed)
    if other is not None:
        yield other
    for broker in desired.cluster.brokers.values():
        is_registered = broker.id in observed.brokers
        if not is_registered and broker.state not in {BrokerState.ABSENT, BrokerState.DRAINING}:
            message = f"broker {broker.id} is declared, but it is not registered in the cluster"
            yield warning(MISSING_BROKER, message, broker.at)
        if is_registered and broker.state is BrokerState.ABSENT:
            yield warning(BROKER_LEFT, f"broker {broker.id} is declared absent, but it is still registered", broker.at)


def _topic_findings(
    desired: Desired, rules: Mapping[str, TopicRules], observed: Cluster, name: str
) -> Iterator[TopicChange | Problem]:
    declared = rules[name].declared if name in rules else desired.topics[name]
    topic = observed.topics.get(name)
    if topic is None:
        if declared is not None and not declared.is_absent:
            yield _creation(declared, observed)
    elif declared is None or not is_declared(desired, name):
        yield from _undeclared(desired, topic)
    elif declared.is_absent:
        yield _deletion(desired, declared, topic)
    else:
        yield from _growth(declared, topic)
        yield from _config_changes(declared, topic)


def _creation(declared: DesiredTopic, observed: Cluster) -> CreateTopic | Problem:
    """Return the topic to create, or why it cannot be: what is not written is taken from what all brokers agree on."""
    if declared.name.startswith("__"):
        message = f"topic {declared.name} is internal: Kafka creates it, a plan never does; remove it from the files"
        return Problem("KR243", message, declared.where(""))
    shape = {
        field: number or observed.number_in_force(_DEFAULTS[field]) for field, number in _written(declared).items()
    }
    missing = " and ".join(field for field, number in shape.items() if number is None)
    if missing:
        return Problem("KR244", f"topic {declared.name} does not exist yet: write its {missing}", declared.where(""))
    configs = {key: value for key, value in sorted(declared.config.items()) if value is not None}
    partitions, factor = (number or 0 for number in shape.values())
    min_isr = whole_number(configs.get(MIN_ISR))
    if declared.replication_factor is None and min_isr is not None and min_isr > factor:
        message = (
            f"topic {declared.name} is new, and {MIN_ISR} {min_isr} is above {DEFAULT_REPLICATION_FACTOR} {factor}:"
            " Kafka then takes the smaller, so acks=all writes stop once any replica is missing; write a higher"
            " replicationFactor"
        )
        return Problem(MIN_ISR_REFUSED, message, declared.where(f"config.{MIN_ISR}"))
    return CreateTopic(declared.name, partitions, factor, configs, at=declared.where(""))


def _written(declared: DesiredTopic) -> Mapping[str, int | None]:
    placed = declared.placement.assignment
    return {
        "partitions": declared.partitions or (len(placed) if placed else None),
        "replicationFactor": declared.replication_factor or (len(placed[0]) if placed else None),
    }


def undeclared_topics(desired: Desired, observed: Cluster) -> tuple[Topic, ...]:
    """Return the topics that no file speaks of, by name, whether or not all topics are managed.

    Without internal and ignored ones, copies, and those that MirrorMaker 2 keeps for itself.
    """
    named = sorted(observed.topics.items())
    return tuple(one for name, one in named if not is_declared(desired, name) and not _is_left_alone(desired, one))


def _is_left_alone(desired: Desired, topic: Topic) -> bool:
    name = topic.name
    is_others = is_ignored(desired, name) or is_copy(desired, name) or is_mirror_makers(desired, name)
    return topic.is_internal or is_others


def _undeclared(desired: Desired, topic: Topic) -> Iterator[TopicChange | Problem]:
    policy = desired.cluster.topics
    if not policy.is_all_managed or _is_left_alone(desired, topic):
        return
    at = policy.at.get("delete", policy.at.get("managed", desired.cluster.at))
    if policy.is_delete_allowed:
        yield DeleteTopic(topic.name, topic.topic_id, at)
    else:
        message = f"topic {topic.name} is not declared; it stays, because topics.delete is never"
        yield warning(UNDECLARED_TOPIC, message, at)


def _deletion(desired: Desired, declared: DesiredTopic, topic: Topic) -> TopicChange | Problem:
    at = declared.where("state")
    if topic.is_internal:
        return Problem("KR243", f"topic {topic.name} is internal: a plan never deletes it", at)
    if Protection.DELETE in declared.protect:
        message = f"topic {topic.name} is to be absent, but protect names delete: drop one of the two"
        return Problem("KR246", message, at)
    if not desired.cluster.topics.is_delete_allowed:
        return warning(TOPIC_LEFT, f"topic {topic.name} is to be absent; it stays until topics.delete is allow", at)
    return DeleteTopic(topic.name, topic.topic_id, at, is_declared=True)


def _colliding_names(changes: Sequence[TopicChange], observed: Cluster) -> Iterator[Problem]:
    new = {change.topic.replace(".", "_"): change for change in changes if isinstance(change, CreateTopic)}
    for name in observed.topics if new else ():
        change = new.get(name.replace(".", "_"))
        if change is not None:
            message = (
                f"topic {change.topic} cannot be made beside {name}: in metrics, Kafka takes . and _ for the same;"
                " choose another name"
            )
            yield Problem("KR257", message, change.at)


def _refused_deletions(changes: Sequence[TopicChange], observed: Cluster) -> Iterator[Problem]:
    deletions = [change for change in changes if isinstance(change, DeleteTopic)]
    refusing = [str(broker_id) for broker_id, told in observed.in_force(DELETE_TOPICS).items() if told == "false"]
    if deletions and refusing:
        names = named_some((change.topic for change in deletions), _SHOWN)
        message = f"{DELETE_TOPICS} is false on brokers {', '.join(refusing)}, so that Kafka deletes no topic, and "
        message += f"{names} would be deleted: set it to true there, or keep the topics"
        yield Problem("KR256", message, deletions[0].at)


def _growth(declared: DesiredTopic, topic: Topic) -> Iterator[TopicChange | Problem]:
    wanted, there, at = declared.partitions, len(topic.partitions), declared.where("partitions")
    if wanted is None:
        yield from _assignment_problems(declared, topic)
    if wanted is None or wanted == there:
        return
    if wanted < there:
        message = f"topic {topic.name} has {there} partitions and {wanted} are declared: Kafka cannot take any away"
        yield Problem("KR248", f"{message}; declare {there}, or make a new topic", at)
    elif Protection.GROW in declared.protect:
        message = f"topic {topic.name} is to grow from {there} to {wanted} partitions, but protect names grow"
        yield Problem("KR249", f"{message}: drop one of the two", at)
    elif topic.is_internal:
        yield Problem("KR243", f"topic {topic.name} is internal: its partition count must not change", at)
    else:
        yield CreatePartitions(topic.name, there, wanted, at=at)


def _assignment_problems(declared: DesiredTopic, topic: Topic) -> Iterator[Problem]:
    """Yield an error for an assignment without one list a partition; where partitions is written, files check it."""
    lists, there = declared.placement.assignment, len(topic.partitions)
    if lists is None or len(lists) == there:
        return
    message = (
        f"topic {declared.name} has {counted(there, 'partition')} and its assignment {counted(len(lists), 'list')}"
    )
    more = (
        f", or partitions: {len(lists)} beside them to let it grow"
        if len(lists) > there and not topic.is_internal
        else ""
    )
    message = f"{message}: write one list for each partition{more}"
    yield Problem("KR258", message, declared.where("placement.assignment"))


def _config_changes(declared: DesiredTopic, topic: Topic) -> Iterator[TopicChange]:
    differing = {
        key: value
        for key, value in sorted(declared.config.items())
        if not is_same_value(key, value, topic.configs.get(key))
    }
    if not differing:
        return
    places = [place for key in differing if (place := declared.where(f"config.{key}"))]
    yield AlterConfigs(
        topic.name,
        set={key: value for key, value in differing.items() if value is not None},
        delete=tuple(key for key, value in differing.items() if value is None),
        before={key: topic.configs.get(key) for key in differing},
        at=min(places, default=declared.where("config")),
    )


def _forbidden(rules: TopicRules, change: TopicChange) -> Iterator[Problem]:
    """Yield an error for each config that destroys records of a topic which protects them."""
    declared = rules.declared
    if declared is None or not isinstance(change, AlterConfigs):
        return
    for effect in change.effects:
        if effect.kind is not EffectClass.DESTROYS:
            continue
        at, message = declared.where(f"config.{effect.key}"), f"topic {change.topic}: {effect.key} {effect.what}"
        if Protection.SHRINK in declared.protect:
            yield Problem("KR254", f"{message}, but protect names shrink: drop one of the two", at)
        elif effect.is_total and Protection.DELETE in declared.protect:
            yield Problem("KR255", f"{message}, but protect names delete: drop one of the two", at)


def _elections(
    desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules], doomed: Collection[str]
) -> Iterator[Election]:
    """Yield who is to lead a declared partition, but does not; unless that is wanted, only where the leader must go.

    Nobody who must not lead takes the place of one who may.
    """
    table = table_of(observed)
    rows = np.flatnonzero(table.waiting & has_source(observed))
    for (key, (leader, *_)), present in zip(table.targets(rows), table.leader[rows].tolist(), strict=True):
        rule = rules[key.topic]
        if rule.is_managed and key.topic not in doomed:
            is_fit, is_led_well = leader in rule.leadable, present in rule.leadable
            if (is_fit or not is_led_well) if desired.cluster.is_election_wanted else (is_fit and not is_led_well):
                yield Election(key, leader)
