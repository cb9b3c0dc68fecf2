"""What a run must leave on real brokers: all of it, seen without the program under test and without its client.

    checker = Checker(kafka, "orders")                       # throttles, groups and lists as they are before the run
    with Delivery(kafka.bootstrap, "orders", 8) as delivery:
        ...                                                  # a run of plan.json, and a fault
    checker.finished(folder, "plan.json", delivery)          # all is as planned; a second plan and apply do nothing
    checker.stopped(folder, "plan.json", delivery, back={3}) # or: all but partition 3, which is where it was

`leftover` names the brokers whose rates are allowed to stand, because the broker was down when they were to go.
"""

import json
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import PartitionState, reassignments
from helpers.brokers.delivery import Delivery, delivery_faults, duplicates
from helpers.brokers.observer import Observer
from helpers.brokers.sent_requests import requests_of
from helpers.program.warm import reconciler
from helpers.waiting import ATTEMPT, asked_again, what_stays

FREE = frozenset({"Empty", "Dead"})
REPLICA = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)(?P<is_future>\.[0-9a-f]{32}-future)?")
"""A replica's data folder; those that end in -delete or -stray are on their way out, and Kafka removes them."""
Assignments = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at the cluster. `stored` holds the brokers on whose disks a partition has a replica."""

    partitions: Mapping[str, PartitionState]
    stored: Mapping[str, frozenset[int]]
    throttles: Mapping[str, str] = field(default_factory=dict)
    in_flight: Collection[str] = ()
    groups: Mapping[str, str] = field(default_factory=dict)


def state_faults(before: Seen, after: Seen, wanted: Assignments, leftover: Collection[int] = ()) -> list[str]:
    """Return what is not as it must be once a run has ended: with these lists, and all else as before."""
    faults = [f"{name} is still being reassigned" for name in sorted(after.in_flight)]
    for name, replicas in sorted(wanted.items()):
        faults += _partition_faults(name, replicas, after)
    faults += [f"{name} is not wanted, and is there" for name in sorted({*after.partitions} - {*wanted})]
    faults += _throttle_faults(before.throttles, after.throttles, leftover)
    faults += [f"group {name} is {after.groups[name]}" for name in busy_groups(before, after)]
    return faults


def busy_groups(before: Seen, after: Seen) -> list[str]:
    """Return the groups that have members now and had none before: the lock, while somebody holds it."""
    held = {group for group, state in after.groups.items() if state not in FREE}
    return sorted(group for group in held if before.groups.get(group, "Dead") in FREE)


def _partition_faults(name: str, replicas: tuple[int, ...], after: Seen) -> list[str]:
    found = after.partitions.get(name)
    if found is None:
        return [f"{name} is gone"]
    faults = []
    if found.replicas != replicas:
        faults.append(f"{name} is on {list(found.replicas)}, wanted {list(replicas)}")
    if found.isr != set(replicas):
        faults.append(f"{name} has {sorted(found.isr)} in sync of {list(replicas)}")
    if found.leader != replicas[0]:
        faults.append(f"{name} is led by {found.leader}, wanted {replicas[0]}")
    stored = after.stored.get(name, frozenset())
    if stored != set(replicas):
        faults.append(f"{name} is stored on {sorted(stored)}, wanted {sorted(replicas)}")
    return faults


def _throttle_faults(before: Mapping[str, str], after: Mapping[str, str], leftover: Collection[int]) -> list[str]:
    kept_by = {str(broker) for broker in leftover}
    changed = {where for where in {*before, *after} if before.get(where) != after.get(where)}
    return [
        f"{where} is {after.get(where)!r}, it was {before.get(where)!r}"
        for where in sorted(changed)
        if where.partition(":")[0] not in kept_by
    ]


PAID = ("unthrottle", "done")
"""A throttle that comes off: after the end of a run, a leftover throttle."""


def journal_faults(lines: Iterable[str]) -> list[str]:
    """Return what is wrong with a run's journal: lines that are no events, or a run whose end it does not tell."""
    events: list[tuple[object, object]] = []
    faults = []
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line)
            events.append((event["step"], event["outcome"]))
        except (ValueError, KeyError, TypeError):
            faults.append(f"line {number} of the journal is no event: {line[:80]!r}")
    steps = [event for event in events if event[0] in {"run", "cancel"}]
    if not steps:
        return [*faults, "the journal has no run"]
    last = next(event for event in reversed(events) if event != PAID)
    if last != steps[-1] or steps[-1][1] == "started":
        faults.append(f"the journal's last event is {last}, not the end of a run")
    return faults


def lists_wanted(plan: Mapping[str, object], before: Assignments, back: Collection[str] = ()) -> Assignments:
    """Return the lists that a finished plan leaves, read off its file; those in `back` are as they were."""
    wanted = dict(before)
    stages = plan["stages"]
    assert isinstance(stages, list)
    for stage in stages:
        for move in stage.get("moves", ()):
            name = f"{move['topic']}-{move['partition']}"
            if name not in back and "to" in move:
                wanted[name] = tuple(move["to"])
    return wanted


class Checker:
    """Remembers what a cluster is before a run, and judges what it is after.

    `copies`: how many records stood once more than they should when it last looked.
    """

    def __init__(self, kafka: KafkaCluster, *topics: str) -> None:
        self.kafka, self.topics = kafka, topics
        self.before = self.look()
        self.copies = 0

    def look(self) -> Seen:
        """Return what the brokers and their disks hold now; a broker that has just come may not know a topic yet."""
        return asked_again(self._looked, KafkaException, TimeoutError)

    def _looked(self) -> Seen:
        observer = Observer(self.kafka.bootstrap)  # a new one: it knows only the brokers that run now
        partitions = {f"{t}-{number}": state for t in self.topics for number, state in observer.topic(t).items()}
        return Seen(
            partitions=partitions,
            stored=self._stored(),
            throttles=observer.throttles(self.topics, self.kafka.alive),
            in_flight=tuple(reassignments(self.kafka.bootstrap)),
            groups=self._groups(),
        )

    def finished(self, folder: Path, plan: str, delivery: Delivery, *options: str) -> None:
        """Assert that the plan is done, that nothing else changed, and that neither plan nor apply does any more.

        `options` name the cluster, where the folder has no desired state for it.
        """
        self._assert_state(folder, plan, delivery)
        reconciler("plan", "--detailed-exitcode", *options, cwd=folder)
        again = requests_of("apply", plan, "--yes", *options, cwd=folder)
        assert again.counts, "no request was counted"
        assert again.writes == {}, f"a second apply wrote\n{again.outcome.err}"

    def stopped(
        self, folder: Path, plan: str, delivery: Delivery, *, back: Collection[str], leftover: Collection[int] = ()
    ) -> None:
        """Assert that a run that stopped left the partitions `back` as they were, the others as planned."""
        self._assert_state(folder, plan, delivery, back, leftover)

    def faults(self, wanted: Assignments, delivery: Delivery, leftover: Collection[int] = ()) -> list[str]:
        """Return what is wrong with the cluster and the records, once it has had the time to show its end."""
        found = what_stays(lambda: state_faults(self.before, self.look(), wanted, leftover))
        sent = delivery.sent  # before the records are read: it may go on
        read = Observer(self.kafka.bootstrap).records(delivery.topic)
        self.copies = duplicates(sent.acks, read)
        return [*found, *delivery_faults(sent, read, delivery.partitions)]

    @property
    def lists(self) -> Assignments:
        """The ordered lists before the run."""
        return {name: state.replicas for name, state in self.before.partitions.items()}

    def _assert_state(
        self, folder: Path, plan: str, delivery: Delivery, back: Collection[str] = (), leftover: Collection[int] = ()
    ) -> None:
        content = json.loads((folder / plan).read_text())
        faults = self.faults(lists_wanted(content, self.lists, back), delivery, leftover)
        faults += journal_faults(_journal(folder, str(content["id"])))
        assert faults == [], "\n".join(faults)

    def _stored(self) -> Mapping[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for broker in self.kafka.alive:
            for folder in (one for log_dir in self.kafka.log_dirs(broker) for one in log_dir.iterdir()):
                name = REPLICA.fullmatch(folder.name)
                if name and name["topic"] in self.topics:
                    found.setdefault(folder.name, set()).add(broker)
        return {name: frozenset(brokers) for name, brokers in found.items()}

    def _groups(self) -> Mapping[str, str]:
        """Return the state of every group, of whatever protocol: the lock's is no consumers' protocol."""
        admin = AdminClient({"bootstrap.servers": self.kafka.bootstrap})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # its successor lists consumers' groups alone
            return {group.id: group.state for group in admin.list_groups(timeout=ATTEMPT)}


def _journal(folder: Path, plan_id: str) -> Sequence[str]:
    (path,) = folder.glob(f"**/{plan_id}.jsonl")
    return path.read_text().splitlines()
