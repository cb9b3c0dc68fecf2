"""What one partition's explanation is read from: its way through the plan, its rules, what its brokers hold."""

from dataclasses import dataclass

from reconciler.diff.rules import LEAVING, TopicRules, topic_rules
from reconciler.model.cluster import Broker, Cluster, LogDir, Topic
from reconciler.model.desired import Desired, DesiredBroker, DesiredCluster, DesiredTopic, Placement
from reconciler.model.explanation import Counts
from reconciler.model.grounds import BrokerGround, PlacementGround
from reconciler.model.plan import Plan
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class View:
    """One partition's way through one plan."""

    plan: Plan
    key: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def rules(self) -> TopicRules:
        """The rules of the topic, as the planner resolved them."""
        return _rules(self.plan, self.key.topic)

    @property
    def placement(self) -> PlacementGround | None:
        """What is declared of the topic's placement, None where nobody declared it."""
        number = self.plan.grounds.topics[self.key.topic].placement
        return None if number is None else self.plan.grounds.placements[number]

    @property
    def is_assigned(self) -> bool:
        """Whether its replicas are written one by one."""
        return self.placement is not None and self.placement.is_assigned

    @property
    def added(self) -> tuple[int, ...]:
        """Brokers that get a replica."""
        return tuple(one for one in self.after if one not in self.before)

    @property
    def removed(self) -> tuple[int, ...]:
        """Brokers that give one up."""
        return tuple(one for one in self.before if one not in self.after)

    def rack(self, broker_id: int) -> str:
        """Return a broker's rack."""
        ground = self.plan.grounds.brokers.get(broker_id)
        return ground.rack if ground is not None else ""


def _rules(plan: Plan, topic: str) -> TopicRules:
    """Return the topic's rules, resolved again from what the plan keeps of brokers and placements."""
    grounds = plan.grounds
    number = grounds.topics[topic].placement
    brokers = {
        broker_id: DesiredBroker(broker_id, ground.state, ground.capacity)
        for broker_id, ground in grounds.brokers.items()
    }
    topics = {}
    if number is not None:
        kept = grounds.placements[number]
        topics[topic] = DesiredTopic(topic, placement=placement_of(kept))
    observed = Cluster(
        plan.cluster_id,
        {id_: _broker(id_, one) for id_, one in grounds.brokers.items()},
        {topic: Topic(topic)},
    )
    return topic_rules(Desired(DesiredCluster(plan.cluster_name, brokers=brokers), topics), observed)[topic]


def _broker(broker_id: int, ground: BrokerGround) -> Broker:
    log_dirs = (LogDir("", is_cordoned=True),) if ground.is_cordoned else ()
    return Broker(broker_id, ground.rack or None, is_fenced=not ground.is_alive, log_dirs=log_dirs)


def placement_of(kept: PlacementGround | None) -> Placement:
    """Return the placement that a topic was declared with; none was, nothing is written."""
    if kept is None:
        return Placement()
    return Placement(
        racks_spread=kept.spread,
        racks_only=None if kept.racks_only is None else frozenset(kept.racks_only),
        racks_leader=None if kept.racks_leader is None else frozenset(kept.racks_leader),
        brokers_only=None if kept.brokers_only is None else frozenset(kept.brokers_only),
        brokers_except=frozenset(kept.brokers_except),
    )


def counts_of(view: View, broker_id: int) -> Counts:
    """Return the broker's replicas, and its share of those on the brokers that stay."""
    before, after = view.plan.balance_before, view.plan.balance_after
    held = [share.replicas if (share := found.get(broker_id)) else 0 for found in (before, after)]
    fair = _share(view.plan, broker_id, sum(one.replicas for one in after.values()))
    if not any(level.load_prices for level in view.plan.proof.levels):
        return Counts(held[0], held[1], fair)
    size = [share.bytes if (share := found.get(broker_id)) else None for found in (before, after)]
    return Counts(held[0], held[1], fair, size[0], size[1])


def leader_counts_of(view: View, broker_id: int) -> Counts:
    """Return the broker's preferred leaders, and its share of them."""
    before, after = view.plan.balance_before, view.plan.balance_after
    held = [share.leaders if (share := found.get(broker_id)) else 0 for found in (before, after)]
    return Counts(held[0], held[1], _share(view.plan, broker_id, sum(one.leaders for one in after.values())))


def _share(plan: Plan, broker_id: int, total: int) -> float | None:
    """Return the broker's fair share by capacity; None for one that is not to hold anything."""
    staying = {id_: ground for id_, ground in plan.grounds.brokers.items() if ground.is_alive and not _leaves(ground)}
    capacity = sum(ground.capacity for ground in staying.values())
    return round(total * staying[broker_id].capacity / capacity, 1) if broker_id in staying else None


def _leaves(ground: BrokerGround) -> bool:
    return ground.state in LEAVING
