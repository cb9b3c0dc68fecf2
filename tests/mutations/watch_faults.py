"""Deeds that the simulation's checkers must not let pass, done by hand: which of them go unnoticed."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from helpers.plans.small_runs import RATE, cluster, move, plan_of
from simulation.cases import Case
from simulation.end import left_behind, not_as_planned
from simulation.watch import Broken, Watch

from reconciler.admin.simulated import START
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import LEADER_THROTTLED_RATE, LEADER_THROTTLED_REPLICAS, Cluster
from reconciler.model.desired import Desired, DesiredCluster, MovePolicy
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.configs import alter_topic_configs
from reconciler.simulate.events import fence
from reconciler.simulate.requests import reassign

ORDERS_0, ORDERS_1, QUIET_0 = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("quiet", 0)
FIRST, SECOND = (1, 2, 4), (2, 3, 4)


def watch() -> Watch:
    """Return a watch over a plan that moves two partitions to broker 4, one after the other."""
    before = cluster()
    stages = [
        ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),)),
        ReassignStage(2, (move("orders-1", "2,3,1", "2,3,4"),)),
    ]
    desired = Desired(DesiredCluster("small", moves=MovePolicy(per_broker=1)))
    return Watch(Case(desired, before, plan_of(stages, before)), timedelta(0))


def unnoticed() -> list[str]:
    """Return the deeds that no checker notices."""
    return [name for name, deed in DEEDS.items() if not _is_noticed(deed)]


def _is_noticed(deed: Callable[[Watch], list[str] | None]) -> bool:
    try:
        return bool(deed(watch()))
    except Broken:
        return True


def _submits(key: TopicPartition, target: tuple[int, ...], truth: Cluster | None = None) -> Callable[[Watch], None]:
    def deed(watch: Watch) -> None:
        watch.truth = truth or watch.truth
        watch.listed_at = START
        watch.reassign({key: target}, START)

    return deed


def _becomes(truth: Cluster, *ours: TopicPartition) -> Callable[[Watch], None]:
    def deed(watch: Watch) -> None:
        watch.ours |= set(ours)
        watch.step(truth, is_ours=True)

    return deed


def _flying() -> Cluster:
    return reassign(cluster(), {ORDERS_0: FIRST}).cluster


def _both_flying() -> Cluster:
    return reassign(cluster(), {ORDERS_0: FIRST, ORDERS_1: SECOND}).cluster


def _with_list(value: str) -> Cluster:
    request = ConfigChange(LEADER_THROTTLED_REPLICAS, ConfigOperation.SET, value)
    return alter_topic_configs(cluster(), {"orders": [request]}).cluster


def _ends_on(truth: Cluster) -> Callable[[Watch], list[str]]:
    return lambda watch: not_as_planned(watch.case, watch, truth, are_leaders_kept=True)


def _reached() -> Cluster:
    """Return the cluster with all lists as planned, but not in sync."""
    after = cluster()
    topic = after.topics["orders"]
    lists = {0: FIRST, 1: SECOND}
    partitions = tuple(replace(p, replicas=lists.get(p.partition, p.replicas)) for p in topic.partitions)
    return replace(after, topics={**after.topics, "orders": replace(topic, partitions=partitions)})


def _leaves_in_flight(watch: Watch) -> list[str]:
    watch.ours.add(ORDERS_0)
    return left_behind(watch, _flying())


_SET = ConfigChange(LEADER_THROTTLED_RATE, ConfigOperation.SET, str(RATE))

DEEDS: dict[str, Callable[[Watch], list[str] | None]] = {
    "a partition that is not the plan's is moved": _submits(QUIET_0, (3, 1)),
    "a partition goes where the plan has it not": _submits(ORDERS_0, (1, 2, 5)),
    "a move is submitted over one in flight": _submits(ORDERS_0, (1, 2, 3), _flying()),
    "a move goes to a dead broker": _submits(ORDERS_0, FIRST, fence(cluster(), 4)),
    "a stage begins before the one before it has ended": _submits(ORDERS_1, SECOND),
    "a move is submitted that has ended": _submits(ORDERS_0, FIRST, _reached()),
    "more arrive at a broker than may": _becomes(_both_flying(), ORDERS_0, ORDERS_1),
    "a replica is lost": _becomes(reassign(cluster(), {ORDERS_0: (1, 2)}).cluster),
    "an operator's list loses an entry": _becomes(_with_list("0:1")),
    "an operator's list becomes all": _becomes(_with_list("*")),
    "a strange entry is left on a list": _becomes(_with_list("0:1,2:3,1:1")),
    "leaders of other partitions are elected": lambda watch: watch.elect([QUIET_0]),
    "another topic is deleted": lambda watch: watch.delete(["old"], START),
    "a rate is set that the plan does not set": lambda watch: watch.broker_configs(1, [_SET]),
    "the end is said before the moves are done": _ends_on(cluster()),
    "the end is said before all is in sync": _ends_on(_reached()),
    "a throttle is left": lambda watch: left_behind(watch, _with_list("0:1")),
    "a move is left in flight": _leaves_in_flight,
}
