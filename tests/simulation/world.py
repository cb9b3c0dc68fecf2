"""A simulated cluster in a bad world: answers get lost, metadata is old, brokers die; one seed decides all of it."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TypeVar, cast

from simulation.watch import Watch

from reconciler.admin.port import Answer, Reassignment
from reconciler.admin.simulated import SimulatedAdmin, SimulatedClock
from reconciler.apply.crash import Killed
from reconciler.model.change import ConfigChange, CreatePartitions, CreateTopic
from reconciler.model.cluster import Broker, Cluster, Topic
from reconciler.model.problem import ClusterUnavailable, OutcomeUnknown
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import Outcome

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

CALL_SECONDS = 0.01
NETWORK = 10_000_000
"""Slow, so that what runs without a throttle takes a while, too."""
TICK_SECONDS = 0.1
TIME_OUT_SECONDS = 30.0
LATEST_SECONDS = 0.9
"""How long a request whose connection broke may go on to its effect: less than any pause before it is repeated."""
FAILOVER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad the world is. `fates`: what befalls a request, and how often. `lags`: how old each broker's image is."""

    fates: Mapping[str, float]
    lags: Mapping[int, timedelta]
    kill_at: int | None = None
    """The process is killed at that request."""

    @property
    def lag(self) -> timedelta:
        """How old what is read may be."""
        return max(self.lags.values(), default=timedelta(0))


CALM = Weather({}, {})
READ_FATES = ("lost", "late")
_WRITES = frozenset(
    {
        "alter_broker_configs",
        "alter_topic_configs",
        "create_partitions",
        "create_topics",
        "delete_topics",
        "elect_preferred_leaders",
        "reassign",
    }
)
WRITE_FATES = ("lost", "late", "answer lost", "answer late", "effect late", "repeated", "not controller")


class EventClock(SimulatedClock):
    """The cluster's time, which stops at each event that is due."""

    def __init__(self, start: datetime, pass_time: Callable[[float], None]) -> None:
        super().__init__(start, pass_time)
        self._queue: list[tuple[datetime, int, Callable[[], object]]] = []
        self._numbers = count()

    def after(self, seconds: float, event: Callable[[], object]) -> None:
        """Let something happen that much later."""
        heappush(self._queue, (self.now() + timedelta(seconds=seconds), next(self._numbers), event))

    def sleep(self, seconds: float) -> None:
        end = self.now() + timedelta(seconds=seconds)
        while self._queue and self._queue[0][0] <= end:
            time, _, event = heappop(self._queue)
            super().sleep((time - self.now()).total_seconds())
            event()
        super().sleep((end - self.now()).total_seconds())


class World(SimulatedAdmin):
    """The cluster as a run meets it. `diary` tells what happened, `requests` counts the writes that were sent.

    `can_keep`: whether its user has the right to keep a run's record there.
    """

    def __init__(
        self, before: Cluster, random: Random, watch: Watch, weather: Weather = CALM, *, can_keep: bool = True
    ) -> None:
        self.random = random
        self.watch = watch
        self.weather = weather
        self.can_keep = can_keep
        self.diary: list[str] = []
        self.calls = self.requests = 0
        self.befell: Counter[str] = Counter()
        self.at_call: dict[int, list[Callable[[], None]]] = {}
        self.is_ours = False
        self._past: list[Cluster] = []
        self._times: list[datetime] = []
        self._no_controller_until: datetime | None = None
        self._at_rest = Cluster("none")
        self._unpassed = 0.0
        self._shown: dict[int, tuple[object, object]] = {}
        super().__init__(before, network_bytes_per_second=NETWORK)
        self.events = EventClock(self.clock.now(), self._pass_time)
        self.clock = self.events
        self._past.append(before)
        self._times.append(self.clock.now())

    # What a run reads

    def brokers(self) -> Mapping[int, Broker]:
        self._before("brokers")
        image = self._image()
        return self._as_shown(image.brokers, SimulatedAdmin(image).brokers)

    def topics(self, names: Collection[str] | None) -> Mapping[str, Topic]:
        self._before("topics")
        image = self._image()
        known = [name for name in sorted(image.topics if names is None else names) if name in image.topics]
        return {n: self._as_shown(image.topics[n], lambda n=n: SimulatedAdmin(image).topics([n])[n]) for n in known}  # type: ignore[misc]

    def topic_configs(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        self._before("topic_configs")
        self.watch.configs_read_at = self.clock.now()
        return SimulatedAdmin(self._image()).topic_configs(names)

    def broker_configs(self, broker_ids: Collection[int]) -> Mapping[int, Mapping[str, str]]:
        self._before("broker_configs")
        self.watch.configs_read_at = self.clock.now()
        alive = [broker for broker in sorted(broker_ids) if self.cluster.is_alive(broker)]
        return {broker: dict(self._image(broker).brokers[broker].configs) for broker in alive}

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        found = super().reassignments()
        self.watch.listed_at = self.clock.now()
        return found

    # What a run asks for

    def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        is_replication_factor_change_allowed: bool = True,
    ) -> Mapping[TopicPartition, Answer]:
        self._told("reassign", {str(key): list(to) if to else None for key, to in targets.items()})
        self.watch.reassign(targets, self.clock.now())
        self.watch.ours |= {key for key, target in targets.items() if target is not None}
        taken, dropped = dict(targets), list[TopicPartition]()
        if len(targets) > 1 and self._fate(("half",)) is not None:
            dropped = sorted(targets)[len(targets) // 2 :]
            taken = {key: target for key, target in targets.items() if key not in dropped}
        self.watch.sent(targets, self.clock.now())
        answers = super().reassign(taken, is_replication_factor_change_allowed=is_replication_factor_change_allowed)
        answers = {**answers, **dict.fromkeys(dropped, Answer("UNKNOWN_SERVER_ERROR"))}
        for key, answer in answers.items():
            self.watch.answered(key, targets[key], self.clock.now(), is_ok=answer.is_ok)
        return answers

    def elect_preferred_leaders(self, topic_partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Answer]:
        self._told("elect", [str(key) for key in topic_partitions])
        self.watch.elect(topic_partitions)
        return super().elect_preferred_leaders(topic_partitions)

    def create_topics(self, changes: Sequence[CreateTopic], *, is_validated_only: bool = False) -> Mapping[str, Answer]:
        if is_validated_only:
            return super().create_topics(changes, is_validated_only=True)
        self._told("create", [change.topic for change in changes])
        self.watch.create(changes)
        return super().create_topics(changes)

    def create_partitions(
        self, changes: Sequence[CreatePartitions], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        if is_validated_only:
            return super().create_partitions(changes, is_validated_only=True)
        self._told("grow", [f"{change.topic} to {change.to_count}" for change in changes])
        self.watch.create(changes)
        return super().create_partitions(changes)

    def delete_topics(self, names: Collection[str]) -> Mapping[str, Answer]:
        self._told("delete", sorted(names))
        self.watch.delete(names, self.clock.now())
        return super().delete_topics(names)

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        if is_validated_only:
            return super().alter_topic_configs(changes, is_validated_only=True)
        self._told("topic configs", {name: [_short(one) for one in keys] for name, keys in changes.items()})
        self.watch.topic_configs(changes)
        return super().alter_topic_configs(changes)

    def alter_broker_configs(self, broker_id: int, changes: Sequence[ConfigChange]) -> Answer:
        self._told("broker configs", {broker_id: [_short(one) for one in changes]})
        self.watch.broker_configs(broker_id, changes)
        return super().alter_broker_configs(broker_id, changes)

    # What befalls it

    def happens(self, event: str, cluster: Cluster) -> None:
        """Let somebody, or something, else change the cluster."""
        self._told("!", event)
        self.is_ours = False
        self._become(cluster)

    def has_no_controller(self) -> None:
        """Leave the cluster without a controller until another one is elected."""
        self._no_controller_until = self.clock.now() + timedelta(seconds=FAILOVER_SECONDS)

    def _before(self, name: str) -> Answer | None:
        self.clock.sleep(CALL_SECONDS)
        self.calls += 1
        self.watch.is_being_written = name.startswith("alter_")
        for event in self.at_call.pop(self.calls, []):
            event()
        self.watch.is_being_written = False
        if name not in _WRITES:
            if self.calls == self.weather.kill_at:
                self._told("!", f"killed before {name}")
                raise Killed(name)
            if name == "reassignments" and self._is_without_controller():
                raise ClusterUnavailable(f"{name}: no controller")
            self._unanswered(name, self._fate(READ_FATES))
        return Answer("TOPIC_AUTHORIZATION_FAILED") if name == "keep" and not self.can_keep else None

    def _send(
        self,
        name: str,
        items: Collection[K],
        effect: Callable[[Cluster], Outcome[K]],
        *,
        is_validated_only: bool = False,
    ) -> Mapping[K, Answer]:
        if is_validated_only:
            return super()._send(name, items, effect, is_validated_only=True)
        self.requests += 1
        self._before(name)
        is_fatal = self.calls == self.weather.kill_at
        if is_fatal and self.random.random() < 0.5:
            self._told("!", f"killed before {name}")
            raise Killed(name)
        fate = self._fate(WRITE_FATES)
        if self._is_without_controller():
            fate = "not controller"
        self._unanswered(name, fate if fate in READ_FATES else None)
        if fate == "not controller":
            return dict.fromkeys(items, Answer("NOT_CONTROLLER", "This is not the correct controller."))
        if fate == "effect late":
            self.events.after(self.random.uniform(0, LATEST_SECONDS), lambda: self._take_effect(effect))
            raise OutcomeUnknown(f"{name}: the connection broke")
        outcome = self._take_effect(effect)
        if fate == "repeated":
            outcome = self._take_effect(effect)
        self._after(name)
        if is_fatal:
            self._told("!", f"killed after {name}")
            raise Killed(name)
        if fate == "answer late":
            self.clock.sleep(TIME_OUT_SECONDS)
        if fate in {"answer late", "answer lost"}:
            raise OutcomeUnknown(f"{name}: no answer")
        told = {item: outcome.answers[item] for item in items}
        return {item: Answer() if no is None else Answer(no.error, no.message) for item, no in told.items()}

    def _take_effect(self, effect: Callable[[Cluster], Outcome[K]]) -> Outcome[K]:
        outcome = effect(self.cluster)
        self.writes += 1
        self.is_ours = True
        self._become(outcome.cluster)
        self.is_ours = False
        return outcome

    def _unanswered(self, name: str, fate: str | None) -> None:
        if fate == "late":
            self.clock.sleep(TIME_OUT_SECONDS)
        if fate is not None:
            raise ClusterUnavailable(f"{name}: no answer")

    def _fate(self, fates: Sequence[str]) -> str | None:
        for fate in fates:
            chance = self.weather.fates.get(fate, 0.0)
            if chance and self.random.random() < chance:
                self._told("!", fate)
                self.befell[fate] += 1
                return fate
        return None

    def _is_without_controller(self) -> bool:
        return self._no_controller_until is not None and self.clock.now() < self._no_controller_until

    def _as_shown(self, state: object, shown: Callable[[], T]) -> T:
        """Return what a client is shown of a part of the cluster's state, computed once."""
        known = self._shown.get(id(state))
        if known is None or known[0] is not state:
            self._shown[id(state)] = known = (state, shown())
        return cast("T", known[1])

    def _image(self, broker_id: int | None = None) -> Cluster:
        """Return the cluster as that broker knows it by now; without one, as the broker does that happens to answer."""
        alive = [broker.id for broker in self.cluster.brokers.values() if not broker.is_fenced]
        if not self.weather.lags or not alive:
            return self.cluster
        lag = self.weather.lags.get(broker_id or self.random.choice(alive), timedelta(0))
        return self._past[max(0, bisect_right(self._times, self.clock.now() - lag) - 1)]

    def _pass_time(self, seconds: float) -> None:
        """Let followers copy; nothing is computed while there is nothing to copy, or for less than a tenth of one."""
        self._unpassed += seconds
        was = self.cluster
        if self._unpassed < TICK_SECONDS:
            return
        passed, self._unpassed = self._unpassed, 0.0
        if was.topics is not self._at_rest.topics or was.brokers is not self._at_rest.brokers:
            super()._pass_time(passed)
            if self.cluster.topics is was.topics and self.cluster.brokers is was.brokers:
                self._at_rest = was

    def _become(self, cluster: Cluster) -> None:
        super()._become(cluster)
        self._past.append(self.cluster)
        self._times.append(self.clock.now())
        self.watch.step(self.cluster, is_ours=self.is_ours)

    def _told(self, what: str, detail: object) -> None:
        self.diary.append(f"{(self.clock.now() - self._times[0]).total_seconds():9.2f} #{self.calls} {what} {detail}")


def _short(change: ConfigChange) -> str:
    return f"{change.operation} {change.key.replace('replication.throttled.', '')} {change.value}".strip()
