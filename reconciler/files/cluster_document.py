"""Reads the Cluster document, its form already checked, as a value."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from reconciler.files.properties import STRANGE, has_strange_reference
from reconciler.files.strict_yaml import YamlMap
from reconciler.files.units import parse_bytes, parse_percent, parse_rate, parse_seconds
from reconciler.model.client_properties import name_shown
from reconciler.model.desired import (
    Balance,
    BalanceTarget,
    BrokerState,
    DesiredBroker,
    DesiredCluster,
    Even,
    Limits,
    MovePolicy,
    Off,
    TopicPolicy,
    Window,
    Within,
)
from reconciler.model.problem import Location, Problem

Value = TypeVar("Value")
_PROPERTY = re.compile("[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class _Written:
    """A mapping of one file, and where to tell what is wrong with it."""

    entries: YamlMap
    name: str
    problems: list[Problem]

    def parsed(self, key: str, parse: Callable[[str], Value]) -> Value | None:
        """Return the value of that key with its unit, None where it is not written or cannot be meant."""
        if key not in self.entries:
            return None
        try:
            return parse(self.entries[key])
        except ValueError:
            place = Location(self.name, *self.entries.value_at[key])
            message = f"{key} is {self.entries[key][:40]!r}: write a number that fits 64 bits, with its unit"
            self.problems.append(Problem("KR104", message, place))
            return None

    def places(self) -> Mapping[str, Location]:
        """Return where each key stands."""
        return {key: Location(self.name, *place) for key, place in self.entries.key_at.items()}


def cluster_from(document: YamlMap, name: str, problems: list[Problem]) -> DesiredCluster:
    """Return what the document declares; what cannot be meant is added to `problems`."""
    spec = document["spec"]

    def written(key: str) -> _Written:
        return _Written(spec.get(key) or YamlMap((1, 1)), name, problems)

    return DesiredCluster(
        name=document["metadata"]["name"],
        labels=dict(document["metadata"].get("labels", {})),
        cluster_id=spec.get("clusterId"),
        client=_client(spec.get("client"), name, problems),
        simulation=spec.get("simulation"),
        brokers=_brokers(spec, name, problems),
        is_election_wanted=spec.get("elections", "preferred") == "preferred",
        topics=_topic_policy(written("topics")),
        balance=_balance(written("balance")),
        moves=_moves(written("moves")),
        limits=_limits(written("limits")),
        windows=_windows(spec, name),
        at=Location(name, *document.at),
        cluster_id_at=Location(name, *spec.value_at["clusterId"]) if "clusterId" in spec else None,
    )


def _client(client: YamlMap | None, name: str, problems: list[Problem]) -> Mapping[str, str] | None:
    if client is None:
        return None
    for key, value in client.items():
        if not _PROPERTY.fullmatch(key):
            message = "this is no client property: write its name, a colon, a space and its value"
            problems.append(Problem("KR103", message, Location(name, *client.key_at[key])))
        if isinstance(value, str) and has_strange_reference(value):
            problems.append(Problem("KR130", f"{name_shown(key)} {STRANGE}", Location(name, *client.value_at[key])))
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in client.items()}


def _brokers(spec: YamlMap, name: str, problems: list[Problem]) -> Mapping[int, DesiredBroker]:
    brokers: dict[int, DesiredBroker] = {}
    for entry in spec.get("brokers", []):
        broker = DesiredBroker(
            entry["id"],
            BrokerState(entry.get("state", "active")),
            entry.get("capacity", 1),
            entry.get("reason"),
            Location(name, *entry.at),
            has_state="state" in entry,
        )
        if broker.id in brokers:
            first = brokers[broker.id].at
            message = f"broker {broker.id} is declared twice, first at {first}"
            problems.append(Problem("KR110", message, broker.at, beside=(first,) if first else ()))
        brokers[broker.id] = broker
    return dict(sorted(brokers.items()))


def _topic_policy(written: _Written) -> TopicPolicy:
    topics = written.entries
    return TopicPolicy(
        is_all_managed=topics.get("managed") == "all",
        ignore=tuple(topics.get("ignore", TopicPolicy().ignore)),
        is_delete_allowed=topics.get("delete") == "allow",
        at=written.places(),
    )


def _balance(written: _Written) -> Balance:
    def target(key: str) -> BalanceTarget:
        wish = written.entries.get(key, "off")
        if isinstance(wish, str):
            return Even() if wish == "even" else Off()
        return Within(replace(written, entries=wish).parsed("within", parse_percent) or Fraction(0))

    return Balance(
        replicas=target("replicas"),
        leaders=target("leaders"),
        topics=target("topics"),
        disk=target("disk"),
        network_in=target("networkIn"),
        network_out=target("networkOut"),
        at=written.places(),
    )


def _moves(written: _Written) -> MovePolicy:
    entries, usual = written.entries, MovePolicy()
    timeout = written.parsed("timeout", parse_seconds)
    return MovePolicy(
        throttle_bytes_per_second=written.parsed("throttle", parse_rate),
        per_broker=entries.get("perBroker", usual.per_broker),
        per_partition=entries.get("perPartition", usual.per_partition),
        per_stage=entries.get("perStage", usual.per_stage),
        election_batch=entries.get("electionBatch", usual.election_batch),
        timeout_seconds=usual.timeout_seconds if timeout is None else timeout,
        is_draining_cordoned=entries.get("cordon", "draining") == "draining",
        at=written.places(),
    )


def _limits(written: _Written) -> Limits:
    changed = written.entries.get("changedPartitions")
    return Limits(
        changed_partitions=written.parsed("changedPartitions", parse_percent) if isinstance(changed, str) else changed,
        moved_bytes=written.parsed("movedBytes", parse_bytes),
        disk_use=written.parsed("diskUse", parse_percent),
        deleted_topics=written.entries.get("deletedTopics", Limits().deleted_topics),
        deleted_bytes=written.parsed("deletedBytes", parse_bytes),
        at=written.places(),
    )


def _windows(spec: YamlMap, name: str) -> tuple[Window, ...]:
    return tuple(
        Window(
            days=tuple(entry["days"]),
            start=entry["from"],
            end=entry["to"],
            timezone=entry.get("timezone", "UTC"),
            at=Location(name, *entry.at),
        )
        for entry in spec.get("windows", [])
    )
