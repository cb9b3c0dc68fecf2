"""What may never happen in a run, looked at with each request and each change; shares no code with what runs plans."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from helpers.plans.end_state import throttles
from simulation.cases import Case

from reconciler.model.change import AlterConfigs, ConfigChange, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES, Cluster, Partition, Topic
from reconciler.model.desired import BrokerState, Spread
from reconciler.model.move import Move
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition

Replicas = tuple[int, ...]
SOON = timedelta(seconds=10)
"""How long a request without an answer may take to show, at least."""
CORDON = "cordoned.log.dirs"
MIN_ISR = "min.insync.replicas"


class Broken(BaseException):
    """An invariant does not hold: unlike other exceptions, a run does not clean up after it."""


class Watch:
    """Knows the plan, what others did, and what was asked for; raises Broken where something must not be.

    `lag`: how old what a run reads may be; what somebody did later than that cannot be known to it. `foreign`: the
    throttles as they would be without us, by where they are set. `contested`: where somebody else changed a throttle
    so close to a change of ours that none can tell what it should be.
    """

    def __init__(self, case: Case, lag: timedelta) -> None:
        self.case = case
        self.lag = lag
        self.truth = case.before
        self.foreign = throttles(case.before)
        self.moves: dict[TopicPartition, list[tuple[int, Move]]] = defaultdict(list)
        self.elections: set[TopicPartition] = set()
        for stage in case.plan.stages:
            if isinstance(stage, ReassignStage):
                for move in stage.moves:
                    self.moves[move.topic_partition].append((stage.number, move))
            if isinstance(stage, ReassignStage | ElectStage):
                self.elections |= {election.topic_partition for election in stage.elections}
        self._names = sorted({key.topic for key in self.moves})
        self.items, self.rates = _allowed_throttles(case)
        self.cordons = _allowed_cordons(case)
        self.changed_by_others: dict[TopicPartition, datetime] = {}
        self.topics_of_others: dict[str, datetime] = {}
        self.died: dict[int, datetime] = {}
        self.ours: set[TopicPartition] = set()
        self.asked: dict[tuple[TopicPartition, Replicas], tuple[datetime, bool]] = {}
        self.listed_at: datetime | None = None
        self.configs_read_at: datetime | None = None
        self.foreign_changes: dict[str, datetime] = {}
        self.contested: set[str] = set()
        self.is_being_written = False
        self.copied: Counter[tuple[TopicPartition, int]] = Counter()

    # What others do

    def others_move(self, key: TopicPartition, now: datetime) -> None:
        """Take note that somebody else changed a partition."""
        self.changed_by_others[key] = now
        self.ours.discard(key)

    def others_change_topic(self, name: str, now: datetime) -> None:
        """Take note that somebody else changed, deleted or made a topic."""
        self.topics_of_others[name] = now

    def is_touched(self, key: TopicPartition) -> bool:
        """Whether somebody else changed that partition, or its topic."""
        return key in self.changed_by_others or key.topic in self.topics_of_others

    def others_throttle(self, where: str, value: str | None, now: datetime) -> None:
        """Take note that somebody else set a throttle, or removed it, and of its value without us."""
        self.foreign_changes[where] = now
        self.foreign.pop(where, None)
        if value is not None:
            self.foreign[where] = value
        if self.lag or self.is_being_written:
            self.contested.add(where)

    # What a run asks for

    def reassign(self, targets: Mapping[TopicPartition, Sequence[int] | None], now: datetime) -> None:
        """Look at a request for reassignments before it has any effect."""
        for key, target in targets.items():
            if key not in self.moves:
                raise Broken(f"{key} is not moved by the plan, but submitted to {target}")
            partition = self.truth.partition(key)
            if partition is None:
                continue
            if target is None:
                if partition.is_reassigning and key not in self.ours and not self._is_news(key, now):
                    raise Broken(f"cancels {key}, which somebody else is moving")
                continue
            self._submitted(key, tuple(target), partition, now)

    def _submitted(self, key: TopicPartition, target: Replicas, partition: Partition, now: datetime) -> None:
        was, topic = self.case.before.topics.get(key.topic), self.truth.topics[key.topic]
        if was is not None and was.topic_id != topic.topic_id and not self._is_news(key, now):
            raise Broken(f"submits {key} to {target}, but somebody has made {key.topic} again")
        if partition.is_reassigning and not self._is_news(key, now):
            raise Broken(f"submits {key} to {target} over its reassignment to {partition.target_replicas}")
        lists = [self.moves[key][0][1].from_replicas, *(move.to_replicas for _, move in self.moves[key])]
        if target not in lists:
            raise Broken(f"{key} is submitted to {target}, which is not in the plan: {lists}")
        is_known = not self.is_touched(key)
        if is_known and target == partition.replicas and self._is_known_to_be_there(key, target, now):
            raise Broken(f"submits {key} to {target}, where it is")
        if is_known and len(target) < min(len(partition.target_replicas), len(lists[-1])):
            raise Broken(f"{key} goes from {partition.target_replicas} to {target}: fewer than wanted")
        dead = [b for b in target if not self.truth.is_alive(b) and not self._died_lately(b, now)]
        if is_known and set(dead) - set(partition.replicas):
            raise Broken(f"{key} goes to {target}, of which {dead} are dead: it would never end")
        live = len(target) - len(dead)
        live_before = sum(self.truth.is_alive(b) for b in partition.replicas)
        if live < min(self._min_isr(key.topic, len(target)), live_before):
            raise Broken(f"{key} goes to {target}, of which {dead} are dead: fewer than min ISR")
        if is_known:
            self._in_order(key, target)
            self._racks(key, partition.target_replicas, target)
            self._throttled(key, target, partition)

    def _is_known_to_be_there(self, key: TopicPartition, target: Replicas, now: datetime) -> bool:
        """Whether a run sees, or must remember, that a request had its effect."""
        asked, is_answered = self.asked.get((key, target), (now - 2 * SOON - self.lag, True))
        return not self.lag or now - asked <= (self.lag if is_answered else SOON)

    def sent(self, targets: Mapping[TopicPartition, Sequence[int] | None], now: datetime) -> None:
        """Take note of a request whose answer is not there yet, and may never be."""
        self.asked.update({(key, tuple(target)): (now, False) for key, target in targets.items() if target})

    def answered(self, key: TopicPartition, target: Sequence[int] | None, now: datetime, *, is_ok: bool) -> None:
        """Take note of an answer; after a refusal a run may ask again."""
        if target is not None and is_ok:
            self.asked[key, tuple(target)] = (now, True)
        elif target is not None:
            self.asked.pop((key, tuple(target)), None)

    def forget(self) -> None:
        """Take note that the process died: what it was answered is forgotten, and may not show yet."""
        self.asked.clear()

    def _is_news(self, key: TopicPartition, now: datetime) -> bool:
        """Whether somebody else changed a partition after the run could see it."""
        changed = self.changed_by_others.get(key) or self.topics_of_others.get(key.topic)
        if changed is None or self.listed_at is None:
            return False
        return changed >= self.listed_at or (key.topic in self.topics_of_others and now - changed <= self.lag)

    def _died_lately(self, broker: int, now: datetime) -> bool:
        return broker in self.died and now - self.died[broker] <= self.lag + timedelta(seconds=1)

    def _min_isr(self, topic: str, factor: int) -> int:
        value = self.truth.topics[topic].configs.get(MIN_ISR, "1")
        return min(int(value), factor)

    def _in_order(self, key: TopicPartition, target: Replicas) -> None:
        """A move begins only when those of earlier stages have ended."""
        partition = self.truth.partition(key)
        number = next((n for n, move in self.moves[key] if move.to_replicas == target), None)
        is_back = number is None or (partition is not None and _is_cancelled(partition, self.moves[key]))
        if is_back:
            return
        for other, chain in self.moves.items():
            found = self.truth.partition(other)
            due = [move.to_replicas for n, move in chain if number is not None and n < number]
            later = [move.to_replicas for n, move in chain if number is not None and n >= number]
            if due and found is not None and not self.is_touched(other):
                if found.target_replicas not in [due[-1], *later]:
                    raise Broken(f"{key} is submitted in stage {number}, but {other} is on {found.target_replicas}")
                if found.is_reassigning and found.target_replicas in due:
                    raise Broken(f"{key} is submitted in stage {number}, but {other} is still on its way")

    def _racks(self, key: TopicPartition, before: Replicas, target: Replicas) -> None:
        """A strict spread that held still holds."""
        topic = self.case.desired.topics.get(key.topic)
        if topic is None or topic.placement.racks_spread is not Spread.STRICT:
            return
        racks = {broker.id: broker.rack for broker in self.truth.brokers.values()}
        leaving = {b.id for b in self.case.desired.cluster.brokers.values() if b.state.value in {"draining", "absent"}}
        counted = {racks[b] for b in racks if b not in leaving}
        if _is_spread(before, racks, counted) and not _is_spread(target, racks, counted):
            raise Broken(f"{key} goes from {before} to {target}: its racks were spread, and are not any more")

    def _throttled(self, key: TopicPartition, target: Replicas, partition: Partition) -> None:
        """A move that copies has its throttle on before it begins."""
        added = [broker for broker in target if broker not in partition.replicas]
        stage = next((s for s in self.case.plan.stages if isinstance(s, ReassignStage) and _has(s, key, target)), None)
        if not added or stage is None or stage.throttle_bytes_per_second is None:
            return
        leader, follower = TOPIC_THROTTLES
        wanted = [(leader, b) for b in partition.replicas] + [(follower, b) for b in added]
        for name, broker in wanted:
            value = self.truth.topics[key.topic].configs.get(name, "")
            if f"topic {key.topic} {name}" in self.foreign_changes:
                continue
            if value != "*" and f"{key.partition}:{broker}" not in value.split(","):
                raise Broken(f"{key} goes to {target}, but replica {broker} is not in the throttle list {value!r}")
        for broker in (*partition.replicas, *added):
            is_alive = self.truth.is_alive(broker)
            configs = self.truth.brokers[broker].configs if is_alive else dict.fromkeys(BROKER_THROTTLES)
            for name in set(BROKER_THROTTLES).difference(configs):
                if f"broker {broker} {name}" not in self.foreign_changes:
                    raise Broken(f"{key} goes to {target}, but broker {broker} has no {name}")

    def elect(self, keys: Collection[TopicPartition]) -> None:
        """Look at an election before it has any effect."""
        strangers = sorted(set(keys) - self.elections - set(self.moves))
        if strangers:
            raise Broken(f"elects leaders of {strangers}, which the plan does not touch")

    def topic_configs(self, changes: Mapping[str, Sequence[ConfigChange]]) -> None:
        """Look at a change of topic configs before it has any effect."""
        planned = {change.topic: change for change in self.case.plan.topic_changes if isinstance(change, AlterConfigs)}
        for topic, keys in changes.items():
            for change in keys:
                if change.key in TOPIC_THROTTLES:
                    self._contest(f"topic {topic} {change.key}")
                    if (topic, change.key) not in self.items:
                        raise Broken(f"{topic} {change.key} is changed, but the plan does not throttle it")
                elif topic not in planned or change.key not in {*planned[topic].set, *planned[topic].delete}:
                    raise Broken(f"{topic} {change.key} is changed, but the plan does not say so")

    def broker_configs(self, broker: int, changes: Sequence[ConfigChange]) -> None:
        """Look at a change of broker configs before it has any effect."""
        for change in changes:
            self._contest(f"broker {broker} {change.key}")
            is_ours = broker in self.cordons if change.key == CORDON else broker in self.rates
            if change.key not in {*BROKER_THROTTLES, CORDON} or not is_ours:
                raise Broken(f"broker {broker} {change.key} is changed, but the plan does not say so")

    def _contest(self, where: str) -> None:
        """What somebody sets between our look and our change, nobody can keep apart: Kafka compares nothing."""
        changed = self.foreign_changes.get(where)
        if changed is not None and self.configs_read_at is not None and changed >= self.configs_read_at:
            self.contested.add(where)

    def create(self, changes: Sequence[CreateTopic | CreatePartitions]) -> None:
        """Look at topics, or partitions, to be made."""
        planned = {c.topic: c for c in self.case.plan.topic_changes if isinstance(c, CreateTopic | CreatePartitions)}
        for change in changes:
            wanted = planned.get(change.topic)
            if wanted is None or any(wanted.assignment.get(p) != r for p, r in change.assignment.items()):
                raise Broken(f"{change} is not in the plan")

    def delete(self, names: Collection[str], now: datetime) -> None:
        """Look at topics to be deleted."""
        planned = {change.topic: change for change in self.case.plan.topic_changes if isinstance(change, DeleteTopic)}
        for name in names:
            found = self.truth.topics.get(name)
            if name not in planned:
                raise Broken(f"deletes {name}, which is not in the plan")
            made = self.topics_of_others.get(name)
            is_news = made is not None and now - made <= self.lag
            if found is not None and found.topic_id != planned[name].topic_id and not is_news:
                raise Broken(f"deletes {name}, which somebody has made again")

    # What is there

    def step(self, truth: Cluster, *, is_ours: bool = False) -> None:
        """Look at the cluster after something happened."""
        before, self.truth = self.truth, truth
        if truth.topics is before.topics and truth.brokers is before.brokers:
            return
        self._topics_gone(before, truth)
        for name in self._names:
            was, there = before.topics.get(name), truth.topics.get(name)
            if there is not None and there is not was:
                self._partitions(was, there)
        self._in_flight(truth)
        if is_ours:
            self._throttle_entries(before, truth)

    def _topics_gone(self, before: Cluster, truth: Cluster) -> None:
        """What was set for a topic goes with it."""
        for where in [where for where in self.foreign if where.startswith("topic ")]:
            was, there = (cluster.topics.get(where.split(" ")[1]) for cluster in (before, truth))
            if there is None or was is None or there.topic_id != was.topic_id:
                del self.foreign[where]

    def _partitions(self, before: Topic | None, topic: Topic) -> None:
        """Look at the partitions that the plan moves of a topic that changed."""
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition)
            was = before.partition(partition.partition) if before else None
            if key not in self.moves or (was is not None and was.replicas == partition.replicas):
                continue
            self.copied.update((key, broker) for broker in partition.replicas if was and broker not in was.replicas)
            chain = self.moves[key]
            least = min(len(chain[0][1].from_replicas), len(chain[-1][1].to_replicas))
            if len(partition.target_replicas) < least and not self.is_touched(key):
                raise Broken(f"{key} is on {partition.target_replicas}: fewer than {least}")

    def _in_flight(self, truth: Cluster) -> None:
        received: Counter[int] = Counter()
        served: dict[int, list[TopicPartition]] = defaultdict(list)
        ours = [(key, truth.partition(key)) for key in sorted(self.ours) if not self.is_touched(key)]
        flying = [(key, found) for key, found in ours if found is not None and found.is_reassigning]
        for key, partition in flying:
            received.update(partition.adding_replicas)
            # Who leads may change under the copies, and a run may not know it yet: then nobody can count them.
            if partition.leader is not None:
                served[partition.leader] += [key] * len(partition.adding_replicas)
        policy = self.case.desired.cluster.moves
        for broker, number in received.items():
            if number > policy.per_broker:
                raise Broken(f"broker {broker} receives {number} replicas, perBroker is {policy.per_broker}")
        for broker, keys in served.items() if not (self.died or self.changed_by_others or self.lag) else ():
            if len(keys) > policy.per_broker and len(set(keys)) > 1:
                raise Broken(f"broker {broker} serves {len(keys)} replicas, perBroker is {policy.per_broker}")
        if len(flying) > policy.per_stage:
            raise Broken(f"{len(flying)} partitions in flight, perStage is {policy.per_stage}")
        for key, partition in flying:
            if len(partition.adding_replicas) > policy.per_partition:
                raise Broken(f"{key} adds {partition.adding_replicas}, perPartition is {policy.per_partition}")

    def _throttle_entries(self, before: Cluster, truth: Cluster) -> None:
        was, there = throttles(before), throttles(truth)
        for where in sorted({*was, *there}):
            if was.get(where) != there.get(where) and where not in self.contested:
                self._throttle_entry(where, there.get(where))

    def _throttle_entry(self, where: str, value: str | None) -> None:
        theirs = self.foreign.get(where)
        kind, name, key = where.split(" ")
        if kind == "broker":
            ours = self.cordons if key == CORDON else self.rates
            if value not in {theirs, *ours.get(int(name), set())}:
                raise Broken(f"{where} is {value}, it was {theirs}")
            return
        if (value == "*") != (theirs == "*"):
            raise Broken(f"{where} is {value!r}, it was {theirs!r}")
        kept, found = set((theirs or "").split(",")) - {""}, set((value or "").split(",")) - {""}
        if kept - found:
            raise Broken(f"{where} is {value!r}, it was {theirs!r}: {sorted(kept - found)} gone")
        if found - kept - self.items.get((name, key), set()):
            raise Broken(f"{where} is {value!r}, it was {theirs!r}: something strange came")


def _allowed_cordons(case: Case) -> dict[int, set[str]]:
    """Return the cordons that a run may put on: all log dirs of a draining broker, from Kafka 4.3 on."""
    draining = [one.id for one in case.desired.cluster.brokers.values() if one.state is BrokerState.DRAINING]
    return {broker: {"*"} for broker in draining} if case.before.kafka_version == "4.3" else {}


def _allowed_throttles(case: Case) -> tuple[dict[tuple[str, str], set[str]], dict[int, set[str]]]:
    """Return the list items and rates that the plan may put on."""
    items: dict[tuple[str, str], set[str]] = defaultdict(set)
    rates: dict[int, set[str]] = defaultdict(set)
    leader, follower = TOPIC_THROTTLES
    for stage in case.plan.stages:
        if not isinstance(stage, ReassignStage) or stage.throttle_bytes_per_second is None:
            continue
        for move in stage.moves:
            topic, number = move.topic_partition
            new = [broker for broker in move.to_replicas if broker not in move.from_replicas]
            if new:
                items[topic, leader] |= {f"{number}:{broker}" for broker in move.from_replicas}
                items[topic, follower] |= {f"{number}:{broker}" for broker in new}
                for broker in (*move.from_replicas, *new):
                    rates[broker].add(str(stage.throttle_bytes_per_second))
    return items, rates


def _has(stage: ReassignStage, key: TopicPartition, target: Replicas) -> bool:
    return any(move.topic_partition == key and move.to_replicas == target for move in stage.moves)


def _is_cancelled(partition: Partition, chain: Sequence[tuple[int, Move]]) -> bool:
    """Whether a partition has the replicas of one of its lists in another order: what Kafka's cancel leaves."""
    lists = [chain[0][1].from_replicas, *(move.to_replicas for _, move in chain)]
    return partition.replicas not in lists and any(set(partition.replicas) == set(one) for one in lists)


def _is_spread(replicas: Replicas, racks: Mapping[int, str | None], counted: Collection[str | None]) -> bool:
    held = Counter(racks[broker] for broker in replicas)
    low, high = len(replicas) // len(counted), -(-len(replicas) // len(counted))
    return all((low if rack in counted else 0) <= held[rack] <= high for rack in set(racks.values()))
