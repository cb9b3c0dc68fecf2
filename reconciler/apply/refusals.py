"""Asks, before anything is changed, whether this user may do what a plan asks for, and whether Kafka would take it.

Topic changes are asked with `validateOnly`. A plan asks as it is made, a run before its first change: if Kafka refuses
half-way, the first half has been applied already.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.admin.port import Admin, Answer
from reconciler.apply.answers import ALREADY, NO_RIGHT, TRANSIENT, removed_key, told_answer
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import PlanPaths
from reconciler.apply.session import Session
from reconciler.apply.throttles import throttled_brokers, throttled_lists
from reconciler.apply.topic_changes import ChangeState, config_changes, remaining, standing, what
from reconciler.model.change import AlterConfigs, ConfigChange, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import DELETE_TOPICS, TOPIC_THROTTLES
from reconciler.model.move_table import table_of_moves
from reconciler.model.plan import Plan
from reconciler.model.problem import MissingRight, NotOffered, WouldBeRefused
from reconciler.model.stage import LogDirsStage, ReassignStage, Stage, TopicsStage, elections_of
from reconciler.model.vitals import LACKABLE, Rights
from reconciler.model.words import FEW, MANY, labelled, named_some

RIGHTS = {CreateTopic: "Create", CreatePartitions: "Alter", AlterConfigs: "AlterConfigs", DeleteTopic: "Delete"}

_ANY_REPLICA = "0:0"
"""An item of a throttle list, to ask whether Kafka takes one: it looks at the form alone."""
_NOT_YET = "INVALID_REPLICA_ASSIGNMENT"
"""The answer to new partitions whose assignment has another replication factor than the topic's first partition."""


class PlanNeed(NamedTuple):
    """An operation that a plan needs on the cluster (no topics named), or on topics that exist, and what for."""

    operation: str
    topics: tuple[str, ...]
    purpose: str


def plan_needs(plan: Plan) -> tuple[PlanNeed, ...]:
    """Return the rights that running this plan takes, beside those of the first look.

    Creating topics is left out: a right on a topic that does not exist yet is not told; Kafka refuses it by name.
    """
    changes = plan.topic_changes
    throttled = {topic for topic, _ in throttled_lists(plan)}
    configured = {change.topic for change in changes if isinstance(change, AlterConfigs)}
    grown = {change.topic for change in changes if isinstance(change, CreatePartitions)}
    deleted = {change.topic for change in changes if isinstance(change, DeleteTopic)}
    needs = (
        PlanNeed("DescribeConfigs", tuple(sorted(throttled | configured)), "reading these topics' configs"),
        PlanNeed("AlterConfigs", tuple(sorted(throttled | configured)), "throttled replicas and configs"),
        PlanNeed("Alter", tuple(sorted(grown)), "new partitions"),
        PlanNeed("Delete", tuple(sorted(deleted)), "deleting them"),
    )
    return (*_on_cluster(plan), *(need for need in needs if need.topics))


def _on_cluster(plan: Plan) -> Iterator[PlanNeed]:
    if any(not isinstance(stage, TopicsStage) for stage in plan.stages):
        yield PlanNeed("Alter", (), "moves and elections")
    if throttled_brokers(plan) or plan.cordoned:
        yield PlanNeed("DescribeConfigs", (), "reading brokers' throttles and cordons")
    if throttled_brokers(plan):
        yield PlanNeed("AlterConfigs", (), "throttle rates of brokers")
    elif plan.cordoned:
        yield PlanNeed("AlterConfigs", (), "cordoning the brokers that it empties (moves.cordon)")


def check_rights(plan: Plan, admin: Admin) -> None:
    """Raise MissingRight, which names every right that this plan needs and this user lacks. Changes nothing."""
    needs = plan_needs(plan)
    if not needs:
        return
    rights = admin.rights(sorted({topic for need in needs for topic in need.topics}))
    missing = list(_missing_needs(needs, rights))
    if missing:
        told = "\n".join(f"{need.operation} on {_where_needed(need)}, for {need.purpose}" for need in missing)
        raise MissingRight(
            f"this user lacks {'rights' if len(missing) > 1 else 'a right'} that the plan needs, and nothing has been "
            f"changed: {told}\nGrant it, for example with `kafka-acls --add --allow-principal User:NAME --operation "
            f"{missing[0].operation} {_option(missing[0])}`, and apply again."
        )


def requests_lacking(plan: Plan, admin: Admin) -> Iterator[str]:
    """Yield what the plan needs of these brokers, and they do not take at all, in a sentence each. Changes nothing."""
    instead_of = {
        "AlterPartitionReassignments": (_has_moves, "replication factors and racks as they are, and balance off"),
        "AlterReplicaLogDirs": (lambda stage: isinstance(stage, LogDirsStage), "balance.logDirs off"),
        "ElectLeaders": (elections_of, "balance.leaders off"),
    }
    lacking = admin.lacking()
    for name, (needs, instead) in instead_of.items():
        if name in lacking and any(map(needs, plan.stages)):
            yield f"{NotOffered.of(name)}, so there are no {LACKABLE[name]}: declare {instead}"


def _has_moves(stage: Stage) -> bool:
    return isinstance(stage, ReassignStage) and bool(stage.moves)


def check_offered(plan: Plan, admin: Admin) -> None:
    """Raise NotOffered where the plan needs a request that these brokers do not take."""
    told = [*requests_lacking(plan, admin)]
    if told:
        raise NotOffered(f"nothing has been changed: {'; '.join(told)}")


def _missing_needs(needs: Iterable[PlanNeed], rights: Rights) -> Iterator[PlanNeed]:
    for need in needs:
        if not need.topics:
            if need.operation not in rights.cluster:
                yield need
            continue
        # A topic that is neither told nor hidden does not exist: what that means is for the plan's own checks.
        lacking = [topic for topic in need.topics if need.operation not in rights.topics.get(topic, {need.operation})]
        lacking += [topic for topic in need.topics if topic in rights.hidden]
        if lacking:
            yield need._replace(topics=tuple(sorted(lacking)))


def _where_needed(need: PlanNeed) -> str:
    if not need.topics:
        return "the cluster"
    return labelled("topic", need.topics, FEW)


def _option(need: PlanNeed) -> str:
    if not need.topics:
        return "--cluster"
    return f"--topic {need.topics[0]}" if len(need.topics) == 1 else "--topic '*'"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A topic change that Kafka would refuse, and its answer."""

    change: TopicChange
    answer: Answer

    @property
    def removed_key(self) -> str | None:
        """The override of the topic that Kafka has removed and that the change does not delete."""
        key = removed_key(self.answer)
        return None if key in _configs(self.change) else key

    @property
    def keys(self) -> tuple[str, ...]:
        """The configs of the change that Kafka's answer names."""
        told = self.answer.message
        return tuple(
            key for key in sorted(_configs(self.change)) if re.search(rf"(?<![\w.]){re.escape(key)}\b(?!\.\w)", told)
        )

    def __str__(self) -> str:
        configs = _configs(self.change)
        shown = [f"{key}={configs[key]}" if configs[key] is not None else f"{key} removed" for key in self.keys]
        is_of_lists = configs.keys() == {*TOPIC_THROTTLES}
        asked = "its throttle lists" if is_of_lists else ", ".join(shown) or what(self.change)
        text = f"topic {self.change.topic}: Kafka would refuse {asked}: {told_answer(self.answer)}"
        if self.removed_key is None:
            return text
        return f"{text}; this release has removed the key: declare {self.removed_key}: null, which deletes it there"


@dataclass(frozen=True, slots=True)
class Said:
    """What Kafka says to topic changes: those it would refuse, and sentences on what it was not asked, and why.

    `lacking` are those of the latter for which a right is missing.
    """

    refused: tuple[Refusal, ...] = ()
    unasked: tuple[str, ...] = ()
    lacking: tuple[TopicChange, ...] = ()


def list_changes(stages: Iterable[Stage], changes: Collection[TopicChange]) -> Iterator[AlterConfigs]:
    """Yield a change of throttle lists for each topic that these stages throttle.

    A topic whose configs are among the changes is left out: Kafka judges all of its configs together.
    """
    throttled = (s for s in stages if isinstance(s, ReassignStage) and s.throttle_bytes_per_second is not None)
    moves = table_of_moves(throttled)
    configured = {change.topic for change in changes if isinstance(change, CreateTopic | AlterConfigs)}
    for topic in sorted(moves.part(moves.copies.nonzero()[0]).topics_moved - configured):
        yield AlterConfigs(topic, dict.fromkeys(TOPIC_THROTTLES, _ANY_REPLICA), (), {})


def said_to(plan: Plan, changes: Sequence[TopicChange], admin: Admin) -> Said:
    """Return what Kafka says to these changes of the plan; hundreds of topics are one request.

    Each change is judged as if it came first. A growth whose topic gets another replication factor before is not judged
    by its assignment, which is of the new factor.
    """
    waiting = _with_another_factor(plan)
    refused: list[Refusal] = []
    unasked: dict[str, list[TopicChange]] = {}
    lacking: list[TopicChange] = []
    for change, answer in _answers(changes, admin):
        # A missing right says nothing of the change itself: Kafka looks at rights before it looks at values.
        if answer.error in NO_RIGHT:
            lacking.append(change)
        elif answer.error in TRANSIENT:
            unasked.setdefault(f"it answered {told_answer(answer)}", []).append(change)
        elif answer.error == _NOT_YET and isinstance(change, CreatePartitions) and change.topic in waiting:
            unasked.setdefault("the replication factor changes first", []).append(change)
        elif not answer.is_ok:
            refused.append(Refusal(change, answer))
    told = (not_asked(unasked[why], why) for why in sorted(unasked))
    return Said(tuple(refused), (*_rights_lacked(lacking), *told), tuple(lacking))


def not_asked(changes: Iterable[TopicChange], why: str) -> str:
    """Return in words what Kafka was not asked about, and why."""
    return f"Kafka was not asked whether it takes the changes of {_topics(changes)}: {why}"


def _rights_lacked(lacking: Sequence[TopicChange]) -> Iterator[str]:
    for right in sorted({RIGHTS[type(change)] for change in lacking}):
        topics = _topics(change for change in lacking if RIGHTS[type(change)] == right)
        yield f"Kafka was not asked whether it takes all topic changes: this user lacks {right} on {topics}"


def _topics(changes: Iterable[TopicChange]) -> str:
    names = sorted({change.topic for change in changes})
    return labelled("topic", names, FEW)


def check_not_refused(session: Session, observed: Observed) -> None:
    """Raise WouldBeRefused, or MissingRight, unless Kafka would take each topic change and throttle list that is left.

    What an earlier request may have done already is no refusal, nor is an answer that may be another one soon.
    """
    paths = session.paths
    left = [_rest(change, observed) for change in paths.plan.topic_changes if _is_left(change, observed, paths)]
    lists = list_changes(paths.plan.stages[session.stages_done :], left)
    said = said_to(paths.plan, [*left, *lists], session.admin)
    # Metadata may not show yet what a request of a run that died has done.
    refused = [one for one in said.refused if one.answer.error not in ALREADY]
    if said.lacking:
        raise _missing_right(said.lacking)
    if refused:
        told = named_some((f"{_place(one.change)}{one}" for one in refused), MANY, "\n")
        changes = "a change" if len(refused) == 1 else f"{len(refused)} changes"
        raise WouldBeRefused(
            f"Kafka would refuse {changes} of this plan, so nothing has been changed: {told}\n"
            "Put that right in the desired state, then plan again: this plan would ask for the same."
        )
    for told in said.unasked:
        session.say(told)


def _missing_right(lacking: Sequence[TopicChange]) -> MissingRight:
    first, right = lacking[0], RIGHTS[type(lacking[0])]
    told = "\n".join(f"{RIGHTS[type(change)]} on topic {change.topic}, for {what(change)}" for change in lacking[:MANY])
    return MissingRight(
        f"this user lacks a right that the plan needs, and nothing has been changed: {told}\n"
        f"Grant it, for example with `kafka-acls --add --allow-principal User:NAME --operation {right} "
        f"--topic {first.topic}`, and apply again."
    )


def _is_left(change: TopicChange, observed: Observed, paths: PlanPaths) -> bool:
    return standing(change, observed, paths).state is not ChangeState.DONE


def _rest(change: TopicChange, observed: Observed) -> TopicChange:
    return remaining(change, observed) if isinstance(change, CreatePartitions) else change


def _place(change: TopicChange) -> str:
    return f"{change.at}: " if change.at is not None else ""


def _answers(changes: Sequence[TopicChange], admin: Admin) -> Iterator[tuple[TopicChange, Answer]]:
    """Yield each change with Kafka's answer, in the order of the changes."""
    created = [change for change in changes if isinstance(change, CreateTopic)]
    grown = [change for change in changes if isinstance(change, CreatePartitions)]
    altered: dict[str, list[ConfigChange]] = {}
    for change in changes:
        if isinstance(change, AlterConfigs):
            # What a plan makes in two steps is asked as one: Kafka judges all of a topic's keys together.
            altered.setdefault(change.topic, []).extend(config_changes(change))
    told: Mapping[type, Mapping[str, Answer]] = {
        CreateTopic: admin.create_topics(created, is_validated_only=True) if created else {},
        CreatePartitions: admin.create_partitions(grown, is_validated_only=True) if grown else {},
        AlterConfigs: admin.alter_topic_configs(altered, is_validated_only=True) if altered else {},
        DeleteTopic: _deletions([change.topic for change in changes if isinstance(change, DeleteTopic)], admin),
    }
    for change in changes:
        yield change, told[type(change)].get(change.topic, Answer())


def _deletions(names: Collection[str], admin: Admin) -> Mapping[str, Answer]:
    """Return the answers to deletions, which Kafka cannot validate: a setting of the brokers forbids all or none."""
    if not names:
        return {}
    alive = [broker.id for broker in admin.brokers().values() if not broker.is_fenced]
    settings = admin.broker_settings(alive, [DELETE_TOPICS])
    forbidding = [broker for broker, found in sorted(settings.items()) if found.get(DELETE_TOPICS) == "false"]
    if not forbidding:
        return {}
    answer = Answer("TOPIC_DELETION_DISABLED", f"{DELETE_TOPICS} is false on broker {forbidding[0]}")
    return dict.fromkeys(names, answer)


def _with_another_factor(plan: Plan) -> frozenset[str]:
    moves = (move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves)
    return frozenset(m.topic_partition.topic for m in moves if len(m.from_replicas) != len(m.to_replicas))


def _configs(change: TopicChange) -> Mapping[str, str | None]:
    match change:
        case CreateTopic():
            return change.configs
        case AlterConfigs():
            return {**change.set, **dict.fromkeys(change.delete)}
        case _:
            return {}
