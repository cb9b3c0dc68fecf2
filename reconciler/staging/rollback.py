"""Plans the undoing of another plan: what it moved goes back to the ordered replicas and leaders that it found."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from reconciler.diff.effects import with_effects
from reconciler.diff.min_isr import min_isr_warnings
from reconciler.diff.rules import TopicRules, topic_rules
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import BROKER_LEASES, TOPIC_THROTTLES, Cluster, Partition, Topic
from reconciler.model.config_value import UNREADABLE, is_same_value
from reconciler.model.desired import Desired, DesiredCluster, MovePolicy, Spread
from reconciler.model.in_sync import MIN_ISR
from reconciler.model.move import DirMove, Move, Reason
from reconciler.model.move_table import Moves
from reconciler.model.plan import Plan, Proof
from reconciler.model.problem import Problem, warning
from reconciler.model.stage import CopyingStage, LogDirsStage, ReassignStage, Stage, moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import MANY, named_some
from reconciler.planner.shares import Target, shares
from reconciler.staging.assembly import assemble
from reconciler.staging.dir_stages import dir_moves_of, dirs_back, with_dirs_back
from reconciler.staging.problems import PLAN_FEWER
from reconciler.staging.return_path import return_path
from reconciler.staging.stages import stage_moves
from reconciler.staging.step import situation


@dataclass(frozen=True, slots=True)
class GoingBack:
    """A plan without its id, and what it leaves as it is although it could be undone: each with the reason.

    `left` is among the plan's warnings; so is what Kafka cannot undo at all, which is not in `left`.
    """

    plan: Plan
    left: tuple[Problem, ...] = ()


def rollback_of(undone: Plan, observed: Cluster, desired: Desired) -> GoingBack:
    """Return the plan that undoes what has ended of another, a function of its arguments alone.

    `observed` has nothing of the plan in flight: see `as_if_cancelled`. `desired` gives the limits that stages keep.
    The moves are given by what was there before, so none is searched for: the bytes are those of the replicas that are
    missing, which is what any other way copies; that, and no price, is its proof.
    """
    # Leaders are put back too: `elections: off` is about leaders that nobody moved.
    desired = replace(desired, cluster=replace(desired.cluster, is_election_wanted=True))
    rules = topic_rules(desired, observed)
    others = _made_again(undone, observed)
    topics = undone_changes(undone, observed, others)
    at = situation(observed, desired, rules, {})
    back = return_path(undone, at, topics.overrides(observed, MIN_ISR), topics.deleted | others)
    changes = with_effects(topics.changes, observed)
    # Disks may be as full again as they were before the plan that is undone.
    staged = stage_moves(
        back.moves, changes, back.elections, observed=observed, desired=desired, rules=rules, relieved=()
    )
    inside, left_inside = dirs_back(undone, observed)
    staged = replace(staged, stages=with_dirs_back(undone, staged.stages, inside, desired.cluster.moves))
    left = (*topics.left, *back.left, *left_inside)
    before, after = shares(observed, Target.of(Moves.of(back.moves)))
    plan = assemble(
        staged,
        observed=observed,
        desired=desired,
        source=replace(undone.source, observed_at=observed.observed_at, rolls_back=undone.id),
        proof=_proof(back.moves),
        balance_before=before,
        balance_after=after,
        warnings=(
            *topics.told,
            *back.told,
            *left,
            *_against_racks(back.moves, rules),
            *min_isr_warnings(_rules_going_back(rules, back.moves, changes), observed, changes, rules.keys()),
        ),
    )
    violations = tuple(replace(one, message=one.message.replace(PLAN_FEWER, "")) for one in plan.violations)
    return GoingBack(replace(plan, cluster_name=undone.cluster_name, violations=violations), left)


def _made_again(undone: Plan, observed: Cluster) -> set[str]:
    """Return the topics that only have the name of one that the plan touched."""
    known = undone.topic_ids
    ids = {name: topic.topic_id for name, topic in observed.topics.items() if name in known}
    return {name for name, found in ids.items() if found is not None and found != known[name]}


def policy_of(plan: Plan) -> Desired:
    """Return the limits that a plan itself tells of, for where nothing is declared: its throttle, batches, time-out."""
    rates = [stage.throttle_bytes_per_second for stage in plan.stages if isinstance(stage, CopyingStage)]
    moves = MovePolicy(
        # A run may have been asked for another rate, but a plan has one: stages without copies have none.
        throttle_bytes_per_second=max((rate for rate in rates if rate is not None), default=None),
        election_batch=plan.election_batch,
        per_broker=plan.per_broker or MovePolicy().per_broker,
        timeout_seconds=plan.timeout_seconds,
    )
    return Desired(DesiredCluster(plan.cluster_name, moves=moves), digest=plan.source.desired_digest)


def every_throttle_back(undone: Plan, desired: Desired) -> Plan:
    """Return a plan with all throttles that any rollback of that plan could set: by it one that was lost is found.

    It moves each partition between each list that the plan gives it and the first, both ways: never to be run.
    """
    goals = {restore.topic_partition: restore.replicas for restore in undone.rollback.assignments}
    ends = {
        (move.topic_partition, end)
        for move in moves_of(undone.stages)
        for end in (move.from_replicas, move.to_replicas)
        if end != goals.get(move.topic_partition, end)
    }
    ways = [Move(key, end, goals[key], 0, Reason.ASSIGNMENT) for key, end in sorted(ends)]
    # Both ways, since a throttle's lists differ: the leader's has what a move starts from, the follower's what it adds.
    ways += [replace(way, from_replicas=way.to_replicas, to_replicas=way.from_replicas) for way in ways]
    rate = desired.cluster.moves.throttle_bytes_per_second
    inside = tuple(dir_moves_of(undone))
    traces: list[Stage] = [ReassignStage(1, tuple(ways), rate)] if ways else []
    traces += [LogDirsStage(len(traces) + 1, inside, rate)] if inside else []
    return replace(undone, stages=tuple(traces), topic_changes=(), cordoned=())


def as_if_cancelled(observed: Cluster, undone: Plan, in_flight: Collection[Move | DirMove]) -> Cluster:
    """Return the cluster as a cancel leaves it: these moves at their ordered start, throttles as before the plan."""
    if not in_flight:
        return observed
    starts = {move.topic_partition: move.from_replicas for move in in_flight if isinstance(move, Move)}
    topics = {name: _topic_back(topic, starts, undone) for name, topic in observed.topics.items()}
    rates = undone.rollback.broker_throttles
    brokers = {
        id_: replace(broker, configs=_restored(broker.configs, BROKER_LEASES, rates.get(id_, {})))
        for id_, broker in observed.brokers.items()
    }
    return replace(observed, topics=topics, brokers=brokers)


def _topic_back(topic: Topic, starts: Mapping[TopicPartition, tuple[int, ...]], undone: Plan) -> Topic:
    keys = [TopicPartition(topic.name, partition.partition) for partition in topic.partitions]
    if not any(key in starts for key in keys):
        return topic
    partitions = tuple(
        _at_start(partition, starts[key]) if key in starts else partition
        for key, partition in zip(keys, topic.partitions, strict=True)
    )
    before = undone.rollback.topic_throttles.get(topic.name, {})
    return replace(topic, partitions=partitions, configs=_restored(topic.configs, TOPIC_THROTTLES, before))


def _at_start(partition: Partition, start: tuple[int, ...]) -> Partition:
    # What was being added is gone and never was in sync; the others are as they are.
    return replace(
        partition.on_replicas(start),
        leader=start[0] if start[0] in partition.isr else partition.leader,
        isr=tuple(replica for replica in start if replica in partition.isr),
        adding_replicas=(),
        removing_replicas=(),
    )


def _restored(configs: Mapping[str, str], keys: Collection[str], before: Mapping[str, str]) -> Mapping[str, str]:
    others = {key: value for key, value in configs.items() if key not in keys}
    return {**others, **{key: value for key, value in before.items() if key in keys}}


def _proof(moves: Sequence[Move]) -> Proof:
    """Return what these moves copy: no way to the same lists copies less."""
    if all(move.is_size_known for move in moves):
        value = sum(move.bytes for move in moves)
        return Proof("bytes", value, value)
    copies = sum(len(move.added) for move in moves)
    return Proof("replicas", copies, copies)


def _rules_going_back(
    rules: Mapping[str, TopicRules], moves: Iterable[Move], changes: Iterable[TopicChange]
) -> Mapping[str, TopicRules]:
    """Return the rules of the topics that go back, with the fewest replicas that a partition of it moves to."""
    fewest: dict[str, int | None] = {change.topic: None for change in changes}
    for move in moves:
        name, count = move.topic_partition.topic, len(move.to_replicas)
        fewest[name] = min(count, fewest.get(name) or count)
    return {
        name: replace(rules[name], replication_factor=count, assignment=None) for name, count in sorted(fewest.items())
    }


def _against_racks(moves: Iterable[Move], rules: Mapping[str, TopicRules]) -> Iterable[Problem]:
    broken = [
        str(move.topic_partition)
        for move in moves
        if (rule := rules[move.topic_partition.topic]).spread is Spread.STRICT and rule.rack_excess(move.to_replicas)
    ]
    if broken:
        text = f"{len(broken)} partitions go back to where they break racks.spread strict ({named_some(broken, MANY)})"
        yield warning("KR857", f"{text}: the next plan moves them again")


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
        if key not in before or before[key] == UNREADABLE:
            text = f"topic {name}: what {key} was before the plan is not known, so it stays {_told(now)}"
            found.left.append(warning("KR858", text))
        elif is_same_value(key, now, before[key]):
            continue
        elif is_same_value(key, now, made[key]):
            back[key] = before[key]
        else:
            text = f"topic {name}: {key} is {_told(now)}, not {_told(made[key])} as by the plan"
            found.left.append(warning("KR858", f"{text}: somebody else changed it, so it is left alone"))
    if back:
        set_again = {key: value for key, value in back.items() if value is not None}
        gone = tuple(key for key, value in back.items() if value is None)
        found.changes.append(AlterConfigs(name, set_again, gone, {key: made[key] for key in back}))


def _told(value: str | None) -> str:
    return "unset" if value is None else repr(value)
