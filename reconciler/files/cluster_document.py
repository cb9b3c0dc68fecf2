"""Reads the Cluster document, its form already checked, as a value."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeVar

from reconciler.files.properties import STRANGE, has_strange_reference
from reconciler.files.strict_yaml import YamlMap
from reconciler.files.units import parse_bytes, parse_percent, parse_rate, parse_seconds
from reconciler.model.client_properties import name_shown
from reconciler.model.desired import (
    RATE_OF,
    Balance,
    BalanceTarget,
    BrokerState,
    DesiredBroker,
    DesiredCluster,
    DesiredLogDir,
    Even,
    Limits,
    LogDirState,
    MovePolicy,
    Off,
    TopicPolicy,
    Window,
    Within,
)
from reconciler.model.problem import Problem

Value = TypeVar("Value")
_PROPERTY = re.compile("[A-Za-z0-9._-]+")


def cluster_from(document: YamlMap, problems: list[Problem]) -> DesiredCluster:
    """Return what the document declares; what cannot be meant is added to `problems`."""
    metadata, spec = document["metadata"], document["spec"]
    return DesiredCluster(
        name=metadata["name"],
        labels=dict(metadata.get("labels", {})),
        cluster_id=spec.get("clusterId"),
        client=_client(spec["client"], problems) if "client" in spec else None,
        simulation=spec.get("simulation"),
        brokers=_brokers(spec, problems),
        is_election_wanted=spec.get("elections", "preferred") == "preferred",
        topics=_topic_policy(spec.part("topics")),
        balance=_balance(spec.part("balance"), problems),
        moves=_moves(spec.part("moves"), problems),
        limits=_limits(spec.part("limits"), problems),
        windows=tuple(map(_window, spec.get("windows", []))),
        at=document.at,
        cluster_id_at=spec.value_at.get("clusterId"),
    )


def _parsed(written: YamlMap, key: str, parse: Callable[[str], Value], problems: list[Problem]) -> Value | None:
    """Return the value of that key with its unit, None where it is not written or cannot be meant."""
    if key not in written:
        return None
    try:
        return parse(written[key])
    except ValueError:
        message = f"{key} is {written[key][:40]!r}: write a number that fits 64 bits, with its unit"
        problems.append(Problem("KR104", message, written.value_at[key]))
        return None


def _client(client: YamlMap, problems: list[Problem]) -> Mapping[str, str]:
    for key, value in client.items():
        if not _PROPERTY.fullmatch(key):
            message = "this is no client property: write its name, a colon, a space and its value"
            problems.append(Problem("KR103", message, client.key_at[key]))
        if isinstance(value, str) and has_strange_reference(value):
            problems.append(Problem("KR130", f"{name_shown(key)} {STRANGE}", client.value_at[key]))
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in client.items()}


def _brokers(spec: YamlMap, problems: list[Problem]) -> Mapping[int, DesiredBroker]:
    brokers: dict[int, DesiredBroker] = {}
    for entry in spec.get("brokers", []):
        capacity = entry.get("capacity", 1)
        is_plain = isinstance(capacity, int)
        rates = entry.part("rates")
        broker = DesiredBroker(
            entry["id"],
            BrokerState(entry.get("state", "active")),
            capacity if is_plain else 1,
            entry.get("reason"),
            entry.at,
            has_state="state" in entry,
            log_dirs=tuple(
                DesiredLogDir(one["path"], LogDirState(one.get("state", "active")), one.at)
                for one in entry.get("logDirs", [])
            ),
            weights={} if is_plain else dict(capacity),
            rates={key: _parsed(rates, key, parse_rate, problems) or 0 for key in rates},
        )
        if broker.id in brokers:
            first = brokers[broker.id].at
            message = f"broker {broker.id} is declared twice, first at {first}"
            problems.append(Problem("KR110", message, broker.at, beside=(first,) if first else ()))
        brokers[broker.id] = broker
    return dict(sorted(brokers.items()))


def _topic_policy(written: YamlMap) -> TopicPolicy:
    return TopicPolicy(
        is_all_managed=written.get("managed") == "all",
        ignore=tuple(written.get("ignore", TopicPolicy().ignore)),
        is_delete_allowed=written.get("delete") == "allow",
        at=written.key_at,
    )


def _balance(written: YamlMap, problems: list[Problem]) -> Balance:
    def target(key: str) -> BalanceTarget:
        wish = written.get(key, "off")
        if isinstance(wish, str):
            return Even() if wish == "even" else Off()
        return Within(_parsed(wish, "within", parse_percent, problems) or Fraction(0))

    return Balance(
        replicas=target("replicas"),
        leaders=target("leaders"),
        topics=target("topics"),
        disk=target("disk"),
        network_in=target("networkIn"),
        network_out=target("networkOut"),
        log_dirs=target("logDirs"),
        leader_in=target("leaderIn"),
        at=written.key_at,
    )


def _moves(written: YamlMap, problems: list[Problem]) -> MovePolicy:
    usual = MovePolicy()
    timeout = _parsed(written, "timeout", parse_seconds, problems)
    return MovePolicy(
        throttle_bytes_per_second=_parsed(written, "throttle", parse_rate, problems),
        per_broker=written.get("perBroker", usual.per_broker),
        per_partition=written.get("perPartition", usual.per_partition),
        per_stage=written.get("perStage", usual.per_stage),
        election_batch=written.get("electionBatch", usual.election_batch),
        timeout_seconds=usual.timeout_seconds if timeout is None else timeout,
        is_draining_cordoned=written.get("cordon", "draining") == "draining",
        at=written.key_at,
    )


def _limits(written: YamlMap, problems: list[Problem]) -> Limits:
    changed = written.get("changedPartitions")
    rates = {key: _limited_rate(written, key, problems) for key in RATE_OF if key in written}
    is_share = isinstance(changed, str)
    return Limits(
        changed_partitions=_parsed(written, "changedPartitions", parse_percent, problems) if is_share else changed,
        moved_bytes=_parsed(written, "movedBytes", parse_bytes, problems),
        disk_use=_parsed(written, "diskUse", parse_percent, problems),
        deleted_topics=written.get("deletedTopics", Limits().deleted_topics),
        deleted_bytes=_parsed(written, "deletedBytes", parse_bytes, problems),
        rates=rates,
        replicas_per_broker=written.get("replicasPerBroker"),
        at=written.key_at,
    )


def _limited_rate(written: YamlMap, key: str, problems: list[Problem]) -> int | Fraction:
    """Return bytes a second, or a share of what a broker's own rate is."""
    if str(written[key]).endswith("%"):
        return _parsed(written, key, parse_percent, problems) or Fraction(0)
    return _parsed(written, key, parse_rate, problems) or 0


def _window(written: YamlMap) -> Window:
    timezone = written.get("timezone", "UTC")
    return Window(tuple(written["days"]), written["from"], written["to"], timezone, written.at)
