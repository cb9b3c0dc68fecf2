"""What an outside administrator, failing brokers and producers do to a simulated cluster while a plan runs on it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from helpers.plans.end_state import throttles
from simulation.cases import MB, Case
from simulation.world import World

from reconciler.model.change import AlterConfigs, ConfigChange, ConfigOperation, CreatePartitions, CreateTopic
from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES, Cluster, LogDir
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.configs import alter_broker_configs, alter_topic_configs
from reconciler.simulate.events import fail_log_dir, fence, repair_log_dir, unfence, with_records
from reconciler.simulate.requests import elect_preferred_leaders, reassign
from reconciler.simulate.topics import create_partitions, create_topics, delete_topics

T = TypeVar("T", int, str)

SET, DELETE, APPEND, _ = ConfigOperation

THEIR_RATE = "7777777"
CORDON, THEIR_CORDON = "cordoned.log.dirs", "/d1"
THEIR_ITEMS = "0:97,0:98"
LONGEST_DOWN = 150.0


class Others:
    """Everybody else. Each of `deeds` is done at once, to what the dice say."""

    def __init__(self, case: Case, world: World, random: Random) -> None:
        self.case = case
        self.world = world
        self.random = random
        self.down: set[int] = set()
        self.broken_dirs: list[tuple[int, LogDir]] = []
        self.names: set[str] = set()
        """What a true conflict may name: partitions and topics that others changed."""
        self.deeds: dict[str, Callable[[], None]] = {
            "a broker dies": self.kill,
            "a broker bounces": self.bounce,
            "the controller dies": self.kill_controller,
            "a log dir fails": self.fail_log_dir,
            "takes over a partition of ours": self.move_ours,
            "moves another partition": self.move_another,
            "cancels a move of ours": self.cancel_ours,
            "elects": self.elect,
            "sets a rate": self.set_rate,
            "sets a throttle list": self.set_list,
            "changes another config": self.change_other_config,
            "changes a config of ours": self.change_our_config,
            "adds partitions": self.add_partitions,
            "deletes a topic": self.delete_topic,
            "makes a topic again": self.make_again,
            "produces": self.produce,
        }

    @property
    def _cluster(self) -> Cluster:
        return self.world.cluster

    def _ours(self) -> TopicPartition | None:
        keys = [key for key in sorted(self.world.watch.moves) if self._cluster.partition(key) is not None]
        return self.random.choice(keys) if keys else None

    # Machines

    def kill(self, seconds: float | None = None) -> None:
        """Let a broker die; it comes back, or only with the end of all faults."""
        alive = [broker.id for broker in self._cluster.brokers.values() if not broker.is_fenced]
        if len(alive) > 2:
            self._kill(self.random.choice(alive), seconds)

    def bounce(self) -> None:
        """Let a broker die and come back soon."""
        self.kill(self.random.uniform(5, 25))

    def kill_controller(self) -> None:
        """Let the active controller's broker die: another is elected after a moment."""
        leader = self._cluster.controller_id
        if leader is not None and len(self.down) < 2:
            self.world.has_no_controller()
            self._kill(leader, self.random.uniform(5, LONGEST_DOWN))

    def _kill(self, broker: int, seconds: float | None) -> None:
        self.down.add(broker)
        self.world.watch.died[broker] = self.world.clock.now()
        self.world.happens(f"broker {broker} dies", fence(self._cluster, broker))
        if seconds is None and self.random.random() < 0.5:
            seconds = self.random.uniform(20, LONGEST_DOWN)
        if seconds is not None:
            self.world.events.after(seconds, lambda: self._return(broker))

    def _return(self, broker: int) -> None:
        if broker in self.down:
            self.down.discard(broker)
            self.world.watch.died[broker] = self.world.clock.now()
            self.world.happens(f"broker {broker} is back", unfence(self._cluster, broker))

    def fail_log_dir(self) -> None:
        """Let a log dir go offline, as a full disk does: its broker lives on."""
        alive = [broker.id for broker in self._cluster.brokers.values() if not broker.is_fenced]
        flying = [self._cluster.partition(key) for key in sorted(self.world.watch.ours)]
        destinations = sorted({broker for found in flying if found for broker in found.adding_replicas})
        broker = self._one_of([one for one in destinations if one in alive], alive)
        cluster = self._cluster
        for log_dir in self._cluster.brokers[broker].log_dirs[: self.random.choice((1, 2))]:
            if not log_dir.is_offline:
                self.broken_dirs.append((broker, log_dir))
                cluster = fail_log_dir(cluster, broker, log_dir.path)
        self.world.watch.died[broker] = self.world.clock.now()
        self.world.happens(f"log dirs of broker {broker} fail", cluster)

    def heal(self) -> None:
        """Let every broker come back, and every log dir."""
        broken, self.broken_dirs = self.broken_dirs, []
        for broker, log_dir in broken:
            repaired = repair_log_dir(self._cluster, broker, log_dir)
            self.world.happens(f"log dir {log_dir.path} of broker {broker} works again", unfence(repaired, broker))
        for broker in sorted(self.down):
            self._return(broker)

    # Partitions

    def move_ours(self) -> None:
        """Reassign a partition of the plan to somewhere else, over what is in flight, too."""
        key = self._ours()
        if key is not None:
            self._move(key)

    def move_another(self) -> None:
        """Reassign a partition that the plan does not touch."""
        keys = [key for key, _ in self._cluster.partitions() if key not in self.world.watch.moves]
        if keys:
            self._move(self.random.choice(keys))

    def _move(self, key: TopicPartition) -> None:
        partition = self._cluster.partition(key)
        alive = sorted(broker.id for broker in self._cluster.brokers.values() if not broker.is_fenced)
        if partition is None:
            return
        target = self.random.sample(alive, min(len(alive), len(partition.target_replicas)))
        lists = [m.to_replicas for _, m in self.world.watch.moves.get(key, [])]
        if tuple(target) in {partition.replicas, partition.target_replicas, *lists}:
            return
        self._touches(key)
        self.world.happens(f"others move {key} to {target}", reassign(self._cluster, {key: target}).cluster)

    def cancel_ours(self) -> None:
        """Cancel a move of the plan that is in flight."""
        flying = [key for key in sorted(self.world.watch.ours) if self._is_flying(key)]
        if flying:
            key = self.random.choice(flying)
            self._touches(key)
            self.world.happens(f"others cancel {key}", reassign(self._cluster, {key: None}).cluster)

    def _is_flying(self, key: TopicPartition) -> bool:
        partition = self._cluster.partition(key)
        return partition is not None and partition.is_reassigning

    def _touches(self, key: TopicPartition) -> None:
        self.names |= {str(key), f"topic {key.topic}:"}
        self.world.watch.others_move(key, self.world.clock.now())

    def elect(self) -> None:
        """Elect preferred leaders of some partitions."""
        keys = [key for key, _ in self._cluster.partitions() if self.random.random() < 0.3]
        self.world.happens(f"others elect {len(keys)}", elect_preferred_leaders(self._cluster, keys).cluster)

    # Configs

    def _one_of(self, ours: Sequence[T], all_of_them: Sequence[T]) -> T:
        """Return one of the plan's, mostly."""
        return self.random.choice(ours if ours and self.random.random() < 0.7 else all_of_them)

    def set_rate(self) -> None:
        """Set, or remove, the rate of a broker, or a cordon."""
        broker = self._one_of(sorted(self.world.watch.rates), sorted(self._cluster.brokers))
        key = self.random.choice(BROKER_THROTTLES)
        if self.random.random() < 0.2:
            broker, key = self._one_of(sorted(self.world.watch.cordons), sorted(self._cluster.brokers)), CORDON
        value = THEIR_CORDON if key == CORDON else THEIR_RATE
        request = ConfigChange(key, *self.random.choice(((SET, value), (SET, value), (DELETE, ""))))
        where = f"broker {broker} {key}"
        changed = alter_broker_configs(self._cluster, broker, [request]).cluster
        self.world.watch.others_throttle(where, throttles(changed).get(where), self.world.clock.now())
        self.world.happens(f"others {request.operation} {where}", changed)

    def set_list(self) -> None:
        """Set, add to, or remove a topic's throttle list."""
        there = self._cluster.topics
        topic = self._one_of([name for name, _ in sorted(self.world.watch.items) if name in there], sorted(there))
        key = self.random.choice(TOPIC_THROTTLES)
        value = self._cluster.topics[topic].configs.get(key)
        choices = [(SET, "*"), (SET, "*"), (SET, THEIR_ITEMS), (DELETE, "")]
        choices += [(APPEND, THEIR_ITEMS)] * 3 if value != "*" else []
        request = ConfigChange(key, *self.random.choice(choices))
        where = f"topic {topic} {key}"
        changed = alter_topic_configs(self._cluster, {topic: [request]}).cluster
        theirs = throttles(changed).get(where)
        if request.operation is APPEND:
            items = [item for item in self.world.watch.foreign.get(where, "").split(",") if item]
            theirs = ",".join([*items, *(item for item in THEIR_ITEMS.split(",") if item not in items)])
        self.world.watch.others_throttle(where, theirs, self.world.clock.now())
        if request.operation is DELETE and (topic, key) in self.world.watch.items:
            self.world.watch.contested.add(where)
        self.world.happens(f"others {request.operation} {where} {request.value}", changed)

    def change_other_config(self) -> None:
        """Change a config that the plan does not."""
        topic = self.random.choice(sorted(self._cluster.topics))
        changed = alter_topic_configs(self._cluster, {topic: [ConfigChange("max.message.bytes", SET, "99999")]})
        self.world.happens(f"others configure {topic}", changed.cluster)

    def change_our_config(self) -> None:
        """Change a config that the plan changes."""
        planned = [c for c in self.case.plan.topic_changes if isinstance(c, AlterConfigs)]
        planned = [change for change in planned if change.topic in self._cluster.topics]
        if planned:
            change = self.random.choice(planned)
            key = self.random.choice(sorted({*change.set, *change.delete}))
            value = str(3 * MB)
            self._touches_topic(change.topic)
            changed = alter_topic_configs(self._cluster, {change.topic: [ConfigChange(key, SET, value)]})
            self.world.happens(f"others set {key} of {change.topic}", changed.cluster)

    # Topics

    def add_partitions(self) -> None:
        """Add a partition to a topic."""
        topic = self._cluster.topics[self.random.choice(sorted(self._cluster.topics))]
        factor = len(topic.partitions[0].replicas)
        alive = sorted(broker.id for broker in self._cluster.brokers.values() if not broker.is_fenced)
        count = len(topic.partitions)
        if factor <= len(alive):
            self._touches_topic(topic.name)
            change = CreatePartitions(topic.name, count, count + 1, {count: tuple(self.random.sample(alive, factor))})
            self.world.happens(f"others grow {topic.name}", create_partitions(self._cluster, [change]).cluster)

    def delete_topic(self) -> None:
        """Delete a topic."""
        topic = self.random.choice(sorted(self._cluster.topics))
        self._touches_topic(topic)
        self.world.happens(f"others delete {topic}", delete_topics(self._cluster, [topic]).cluster)

    def make_again(self) -> None:
        """Delete a topic and make it again under the same name."""
        topic = self._cluster.topics[self.random.choice(sorted(self._cluster.topics))]
        alive = sorted(broker.id for broker in self._cluster.brokers.values() if not broker.is_fenced)
        factor = min(len(alive), len(topic.partitions[0].target_replicas))
        lists = {one.partition: tuple(self.random.sample(alive, factor)) for one in topic.partitions}
        if self.random.random() < 0.5 and all(set(alive) >= set(p.target_replicas) for p in topic.partitions):
            lists = {one.partition: one.target_replicas for one in topic.partitions}
        self._touches_topic(topic.name)
        gone = delete_topics(self._cluster, [topic.name]).cluster
        made = create_topics(gone, [CreateTopic(topic.name, len(lists), factor, {}, lists)], seed=self.world.calls)
        self.world.happens(f"others make {topic.name} again", made.cluster)

    def _touches_topic(self, name: str) -> None:
        self.names.add(name)
        self.world.watch.others_change_topic(name, self.world.clock.now())

    def produce(self) -> None:
        """Write to some partitions."""
        cluster = self._cluster
        for key, partition in cluster.partitions():
            if partition.leader is not None and self.random.random() < 0.5:
                cluster = with_records(cluster, key, size=self.random.choice((1000, MB)), records=10)
        self.world.happens("producers write", replace(cluster))
