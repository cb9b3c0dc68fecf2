"""Checks a plan on the simulated controller before anybody sees it: each stage must run, and every state be safe."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.diff.rules import TopicRules, topic_rules
from reconciler.model.change import AlterConfigs, CreateTopic, TopicChange
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import Desired, Spread
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr, needed_in_sync
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, ReconcilerError
from reconciler.model.stage import ElectStage, ReassignStage, Stage, TopicsStage
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.configs import value_problem
from reconciler.simulate.reach import check_stage, reach


class UnsafePlan(ReconcilerError):
    """A plan of ours has a stage that Kafka would refuse, or that is not safe: our fault, told before it is saved."""

    code = "KR399"


def refuse_unsafe(plan: Plan, observed: Cluster, rules: Mapping[str, TopicRules]) -> None:
    """Raise UnsafePlan unless each stage in turn can run and breaks no rack rule and no min ISR that held before it."""
    before, changes = _as_we_know_it(observed), tuple(map(_change_as_we_know_it, plan.topic_changes))
    for stage in plan.stages:
        after = reach(before, stage, changes)
        found = [
            *check_stage(before, stage, changes),
            *_broken(_touched(stage, before), before, after, rules),
        ]
        if found:
            raise UnsafePlan(_told(stage, found))
        before = after


def refuse_unsafe_return(plan: Plan, observed: Cluster, desired: Desired) -> None:
    """Refuse the same of a rollback but for rack rules: it goes back to what was there."""
    rules = {name: replace(rule, spread=None) for name, rule in topic_rules(desired, observed).items()}
    refuse_unsafe(plan, observed, rules)


def _as_we_know_it(observed: Cluster) -> Cluster:
    """Return the cluster as a plan takes it: what is in flight has arrived.

    Of overrides only min.insync.replicas stays: what the cluster takes of the others it judges itself.
    """
    topics = {
        name: replace(
            topic,
            configs=_min_isr(topic.configs),
            partitions=tuple(_arrived(each, observed) if each.is_reassigning else each for each in topic.partitions),
        )
        for name, topic in observed.topics.items()
    }
    return replace(observed, topics=topics)


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


def _touched(stage: Stage, cluster: Cluster) -> Iterable[TopicPartition]:
    """Return the partitions that a stage could change."""
    match stage:
        case ReassignStage():
            # Its elections are of what it moves.
            return [move.topic_partition for move in stage.moves]
        case ElectStage():
            return [election.topic_partition for election in stage.elections]
        case TopicsStage():
            return [key for key, _ in cluster.partitions()]


def _broken(
    touched: Iterable[TopicPartition], before: Cluster, after: Cluster, rules: Mapping[str, TopicRules]
) -> Iterator[Problem]:
    default = brokers_min_isr(before)
    for key in touched:
        was, now = before.partition(key), after.partition(key)
        if was is None or now is None or was is now:
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
