"""Checks a plan on the simulated controller before anybody sees it: each stage must run, and every state be safe.

What the controller makes of a partition follows from which of its lists name the same broker, who lives, and what its
topic asks for; so of partitions that are alike in all that, one is tried. A plan has very many, of few kinds.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from reconciler.diff.rules import TopicRules, topic_rules
from reconciler.model.change import AlterConfigs, CreateTopic, TopicChange
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import Desired, Spread
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr, needed_in_sync
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, ReconcilerError
from reconciler.model.stage import ReassignStage, Stage, TopicsStage, elections_of
from reconciler.model.table_maker import table_of
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.configs import value_problem
from reconciler.simulate.reach import Ran, run_stage
from reconciler.simulate.storage import with_put

_MOVED, _LED, _NEXT_STAGE = -2, -3, -4  # marks between brokers' ids


class UnsafePlan(ReconcilerError):
    """A plan of ours has a stage that Kafka would refuse, or that is not safe: our fault, told before it is saved."""

    code = "KR399"


def refuse_unsafe(plan: Plan, observed: Cluster, rules: Mapping[str, TopicRules]) -> None:
    """Raise UnsafePlan unless each stage in turn can run and breaks no rack rule and no min ISR that held before it."""
    before, changes = _as_we_know_it(observed), tuple(map(_change_as_we_know_it, plan.topic_changes))
    tried = _one_of_each_kind(plan, observed, rules)
    for stage in plan.stages:
        ran = run_stage(before, _stage_of(stage, tried), changes)
        found = [*ran.problems, *_broken(ran, before, rules)]
        if found:
            raise UnsafePlan(_told(stage, found))
        before = ran.cluster


def refuse_unsafe_return(plan: Plan, observed: Cluster, desired: Desired) -> None:
    """Refuse the same of a rollback but for rack rules: it goes back to what was there."""
    rules = {name: replace(rule, spread=None) for name, rule in topic_rules(desired, observed).items()}
    refuse_unsafe(plan, observed, rules)


def _stage_of(stage: Stage, tried: Collection[TopicPartition]) -> Stage:
    """Return the stage with these partitions alone."""
    if isinstance(stage, TopicsStage):
        return stage
    elections = tuple(each for each in stage.elections if each.topic_partition in tried)
    if not isinstance(stage, ReassignStage):
        return replace(stage, elections=elections)
    moves = tuple(move for move in stage.moves if move.topic_partition in tried)
    return replace(stage, moves=moves, elections=elections)


def _one_of_each_kind(plan: Plan, observed: Cluster, rules: Mapping[str, TopicRules]) -> Collection[TopicPartition]:
    """Return the first partition of each kind, and all in flight, unknown, or of a topic that the plan changes."""
    table, steps = table_of(observed), _steps(plan)
    rows = table.rows_of(steps)
    columns = (table.replicas[rows].tolist(), table.isr[rows].tolist(), table.leader[rows].tolist())
    changed = {change.topic for change in plan.topic_changes}
    fenced = {broker.id: broker.is_fenced for broker in observed.brokers.values()}
    first: dict[object, TopicPartition] = {}
    for (key, (_, *brokers)), row, replicas, isr, leader in zip(steps.items(), rows.tolist(), *columns, strict=True):
        rare = table.rare.get(row)
        if row < 0 or key.topic in changed or (rare is not None and any(rare)):
            first[key] = key
            continue
        # A broker is the place where it is named first, a rack likewise: two kinds differ in who is the same as whom.
        place: dict[int, int] = {}
        listed = (*replicas, *isr, leader, *brokers)
        named = [one if one < 0 else place.setdefault(one, len(place)) for one in listed]
        kind = (*named, *map(fenced.get, place), rare, observed.topics[key.topic].configs.get(MIN_ISR))
        if (rule := rules[key.topic]).spread is Spread.STRICT:
            racks: dict[str | None, int] = {}
            near = [racks.setdefault(rule.rack_of.get(one), len(racks)) for one in place]
            kind = (*kind, *near, len(rule.racks), *map(rule.racks.__contains__, racks))
        first.setdefault(kind, key)
    return frozenset(first.values())


def _steps(plan: Plan) -> Mapping[TopicPartition, list[int]]:
    """Return what happens to each partition, as brokers with marks between, behind the number of its last stage."""
    steps: dict[TopicPartition, list[int]] = {}
    for stage in plan.stages:
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            _add(steps, stage, move.topic_partition, (_MOVED, *move.from_replicas, _MOVED, *move.to_replicas))
        for election in elections_of(stage):
            _add(steps, stage, election.topic_partition, (_LED, election.leader))
    return steps


def _add(steps: dict[TopicPartition, list[int]], stage: Stage, key: TopicPartition, step: tuple[int, ...]) -> None:
    known = steps.setdefault(key, [stage.number])
    if known[0] != stage.number:
        known[0] = stage.number
        known.append(_NEXT_STAGE)
    known.extend(step)


def _as_we_know_it(observed: Cluster) -> Cluster:
    """Return the cluster as a plan takes it: what is in flight has arrived.

    Of overrides only min.insync.replicas stays: what the cluster takes of the others it judges itself.
    """
    table = table_of(observed)
    topics = {name: replace(topic, configs=_min_isr(topic.configs)) for name, topic in observed.topics.items()}
    moving = {key: observed.partition(key) for key in map(table.key, table.reassigning)}
    arrived = {key: _arrived(partition, observed) for key, partition in moving.items() if partition is not None}
    return with_put(replace(observed, topics=topics), arrived)


def _arrived(partition: Partition, observed: Cluster) -> Partition:
    """Return the partition at its target, with all replicas in sync that live; a run waits for that."""
    target = partition.target_replicas
    isr = tuple(replica for replica in target if observed.is_alive(replica))
    return replace(
        partition.on_replicas(target),
        leader=partition.leader if partition.leader in isr else next(iter(isr), None),
        isr=isr,
        adding_replicas=(),
        removing_replicas=(),
    )


def _min_isr(configs: Mapping[str, str]) -> Mapping[str, str]:
    value = configs.get(MIN_ISR, "")
    return {} if value_problem(MIN_ISR, value, TOPIC_CONFIGS[MIN_ISR].newest) else {MIN_ISR: value}


def _change_as_we_know_it(change: TopicChange) -> TopicChange:
    match change:
        case CreateTopic():
            return replace(change, configs=_min_isr(change.configs))
        case AlterConfigs():
            return replace(change, set=_min_isr(change.set))
        case _:
            return change


def _broken(ran: Ran, before: Cluster, rules: Mapping[str, TopicRules]) -> Iterator[Problem]:
    default = brokers_min_isr(before)
    for key, was in ran.was.items():
        now = ran.now.get(key)
        if was is None or now is None or was == now:
            continue
        rule = rules[key.topic]
        is_strict = rule.spread is Spread.STRICT
        if is_strict and not rule.rack_excess(was.target_replicas) and rule.rack_excess(now.replicas):
            yield Problem("KR391", f"{key} would break its rack rule on brokers {list(now.replicas)}")
        least = min(needed_in_sync(before.topics[key.topic], was, default), len(was.isr), len(now.replicas))
        if len(now.isr) < least:
            yield Problem("KR392", f"{key} would have {len(now.isr)} replicas in sync, fewer than {least}")


def _told(stage: Stage, found: list[Problem]) -> str:
    told = "; ".join(problem.message for problem in found[:3])
    return f"internal error, please report it: stage {stage.number} of the plan made is not safe: {told}"
