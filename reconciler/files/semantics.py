"""Finds what each document's form allows, but Kafka or the contract does not; across all documents of a cluster.

Configs are judged as far as files can tell: by what any known Kafka takes.
"""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES
from reconciler.model.config_rule import RELEASES
from reconciler.model.desired import (
    RATE_OF,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredLogDir,
    DesiredTopic,
    Protection,
)
from reconciler.model.problem import MIN_ISR_REFUSED, Problem
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.simulate.configs import value_problem

LONGEST_NAME = 249
MIN_ISR = "min.insync.replicas"
LONGEST_SHOWN = 40
_KEY = re.compile("[a-zA-Z0-9._-]+")
_WHOLE = re.compile("[1-9][0-9]{0,9}")


def semantic_problems(desired: Desired, nameless: Iterable[DesiredTopic] = ()) -> Iterator[Problem]:
    """Yield everything that cannot be meant; `nameless`: topics whose name is wrong already."""
    yield from cluster_problems(desired.cluster)
    yield from _colliding_names(desired)
    named = [*desired.topics.values(), *desired.patterns]
    for topic in named:
        if topic.name in {".", ".."} or len(topic.name) > LONGEST_NAME:
            name = repr(topic.name[:30])
            message = f"{name} cannot be a topic's name: Kafka wants 1 to {LONGEST_NAME} of a-z A-Z 0-9 . _ -"
            yield Problem("KR124", message, topic.where(""))
    for topic in [*named, *nameless]:
        yield from config_problems(topic)
        yield from _placement_problems(topic)
        yield from _assignment_problems(topic)
        if topic.is_absent and Protection.DELETE in topic.protect:
            yield Problem("KR120", f"{topic.name} is to be absent, but protect names delete", topic.where("state"))


def cluster_problems(cluster: DesiredCluster) -> Iterator[Problem]:
    """Yield what cannot be meant of a Cluster document."""
    if cluster.client is not None and cluster.simulation is not None:
        yield Problem("KR121", "client and simulation exclude each other: keep one", cluster.at)
    if cluster.moves.throttle_bytes_per_second == 0:
        yield Problem("KR129", "a throttle of 0 lets no replica ever arrive", cluster.moves.at["throttle"])
    if cluster.moves.timeout_seconds == 0:
        yield Problem("KR129", "a timeout of 0 stops every run at once", cluster.moves.at["timeout"])
    for broker in cluster.brokers.values():
        yield from _log_dir_problems(broker)
    yield from _limit_problems(cluster)
    for window in cluster.windows:
        if window.start == window.end:
            yield Problem("KR122", f"the window begins and ends at {window.start}: give it some time", window.at)
        try:
            ZoneInfo(window.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f"{window.timezone!r} is no time zone: write one such as Europe/Berlin"
            yield Problem("KR122", message, window.at)


def _log_dir_problems(broker: DesiredBroker) -> Iterator[Problem]:
    first: dict[str, DesiredLogDir] = {}
    for one in broker.log_dirs:
        other = first.setdefault(one.path, one)
        if other is not one:
            message = f"log dir {one.path} of broker {broker.id} is declared twice, first at {other.at}"
            yield Problem("KR110", message, one.at, beside=(other.at,) if other.at else ())


def _limit_problems(cluster: DesiredCluster) -> Iterator[Problem]:
    limits = cluster.limits
    shares = {"changedPartitions": limits.changed_partitions, "diskUse": limits.disk_use, **limits.rates}
    for key, share in shares.items():
        if isinstance(share, Fraction) and share > 1:
            yield Problem("KR129", f"{key} is a share of the whole: 100% at most", limits.at[key])
    for key, most in limits.rates.items():
        of = RATE_OF[key]
        if not most:
            yield Problem("KR129", f"a limit of 0 lets no broker carry anything: raise limits.{key}", limits.at[key])
        elif isinstance(most, Fraction) and not any(of in broker.rates for broker in cluster.brokers.values()):
            message = f"limits.{key} is a share of a broker's rates.{of}, which no broker has: write it under brokers"
            yield Problem("KR355", f"{message}, or limit {key} in bytes a second, 100MiB/s for example", limits.at[key])


def _colliding_names(desired: Desired) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, topic in desired.topics.items():
        other = first.setdefault(name.replace(".", "_"), name)
        if other != name:
            message = f"topic {name} collides with {other}: in metrics, Kafka takes . and _ for the same"
            yield Problem("KR123", message, topic.where(""))


def _placement_problems(topic: DesiredTopic) -> Iterator[Problem]:
    placement, factor = topic.placement, topic.replication_factor
    if placement.brokers_only is not None:
        left = placement.brokers_only - placement.brokers_except
        if len(left) < (factor or 1):
            message = f"brokers.only less brokers.except leaves {len(left)} brokers for {factor or 1} replicas"
            yield Problem("KR127", message, topic.where("placement.brokers.only"))
    if placement.racks_only is not None and placement.racks_leader is not None:
        outside = sorted(placement.racks_leader - placement.racks_only)
        if outside:
            message = f"racks.leader names {', '.join(outside)}, which racks.only leaves out"
            yield Problem("KR127", message, topic.where("placement.racks.leader"))
    yield from _by_rack_problems(topic)


def _by_rack_problems(topic: DesiredTopic) -> Iterator[Problem]:
    """Yield where replicas by rack do not add up, or name other racks than the rest of the placement."""
    placement, at = topic.placement, topic.where("placement.racks.replicas")
    if placement.racks_replicas is None:
        return
    named, total = {rack for rack, _ in placement.racks_replicas}, sum(count for _, count in placement.racks_replicas)
    if topic.replication_factor not in {None, total}:
        wanted = f"replicationFactor is {topic.replication_factor} ({topic.where('replicationFactor')})"
        yield Problem("KR127", f"racks.replicas adds up to {total}, but {wanted}", at)
    unequal = sorted((placement.racks_only or named) ^ named)
    if unequal:
        yield Problem("KR127", f"racks.replicas and racks.only do not name the same racks: {', '.join(unequal)}", at)
    outside = sorted((placement.racks_leader or named) - named)
    if outside:
        message = f"racks.leader names {', '.join(outside)}, where racks.replicas wants no replica"
        yield Problem("KR127", message, topic.where("placement.racks.leader"))


def _assignment_problems(topic: DesiredTopic) -> Iterator[Problem]:
    assignment, at = topic.placement.assignment, topic.where("placement.assignment")
    if assignment is None:
        return
    if topic.partitions is not None and topic.partitions != len(assignment):
        message = f"assignment lists {len(assignment)} partitions, but partitions is {topic.partitions}"
        yield Problem("KR128", message, at)
    factors = sorted({len(replicas) for replicas in assignment})
    if len(factors) > 1 or (topic.replication_factor is not None and factors != [topic.replication_factor]):
        wanted = topic.replication_factor or factors[0]
        message = f"assignment lists {', '.join(map(str, factors))} replicas a partition where {wanted} are wanted"
        yield Problem("KR128", message, at)
    placement = topic.placement
    used = {replica for replicas in assignment for replica in replicas}
    barred = used & placement.brokers_except
    barred |= used - (used if placement.brokers_only is None else placement.brokers_only)
    if barred:
        names = ", ".join(map(str, sorted(barred)))
        yield Problem("KR128", f"assignment names brokers that placement.brokers does not allow: {names}", at)


def config_problems(topic: DesiredTopic) -> Iterator[Problem]:
    """Yield the keys that no known Kafka has, and the values that none takes, but for what is in `customConfigs`."""
    for key, value in topic.config.items():
        at = topic.where(f"config.{key}")
        if key in (*BROKER_THROTTLES, *TOPIC_THROTTLES):
            message = f"{key} belongs to a running reassignment and is never declared: use moves.throttle"
            yield Problem("KR125", message, at)
        elif key in topic.custom_configs:
            continue
        elif not _KEY.fullmatch(key):
            message = f"{key[:LONGEST_SHOWN]!r} is no config of Kafka's: keys hold a-z A-Z 0-9 . _ -"
            yield Problem("KR103", f"{message}{_hint(key)}", at)
        elif key not in TOPIC_CONFIGS:
            message = f"{key[:LONGEST_SHOWN]!r} is no topic config of Kafka {RELEASES[0]} to {RELEASES[-1]}{_hint(key)}"
            way_out = "What only this cluster knows is listed under customConfigs"
            yield Problem("KR103", f"{message}{'' if message.endswith('?') else '.'} {way_out}", at)
        elif key != MIN_ISR and value is not None:
            reason = _refusal(key, value)
            yield from [] if reason is None else [Problem("KR104", f"Kafka refuses this: {reason}", at)]
    yield from _min_isr_problems(topic)


@lru_cache(maxsize=1 << 10)
def _hint(key: str) -> str:
    """Return the topic config that was meant: the one that has that setting of a broker as default, or looks alike."""
    of_broker = {config.broker_key: known for known, config in TOPIC_CONFIGS.items()}
    written = re.sub("[^a-z0-9]+", ".", key[: 2 * LONGEST_SHOWN].lower())
    close = [of_broker[written]] if written in of_broker else get_close_matches(written, TOPIC_CONFIGS, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


@lru_cache(maxsize=1 << 14)
def _refusal(key: str, value: str) -> str | None:
    """Return what the newest release that knows the key says of a value that no release takes, else None."""
    told = [value_problem(key, value, rule) for rule in TOPIC_CONFIGS[key].rules.values()]
    if told[-1] is None or not all(told):
        return None
    message = told[-1].message if len(value) <= LONGEST_SHOWN else f"the value of {key} is {value[:LONGEST_SHOWN]}…"
    return message.encode("ascii", "backslashreplace").decode()


def _min_isr_problems(topic: DesiredTopic) -> Iterator[Problem]:
    wanted = topic.config.get(MIN_ISR)
    at = topic.where(f"config.{MIN_ISR}")
    if wanted is None or MIN_ISR in topic.custom_configs:
        return
    if not _WHOLE.fullmatch(wanted) or _refusal(MIN_ISR, wanted):
        yield Problem(MIN_ISR_REFUSED, f"{MIN_ISR} must be a whole number of at least 1", at)
        return
    factor, path = topic.replication_factor, "replicationFactor"
    found = f"replicationFactor {factor}"
    if factor is None:
        factor, path = min(map(len, topic.placement.assignment or ()), default=None), "placement.assignment"
        found = f"the {factor} replicas of an assignment"
    if factor is not None and int(wanted) > factor:
        message = (
            f"{MIN_ISR} {wanted} is above {found} ({topic.where(path)}): "
            "Kafka then takes the smaller, so acks=all writes stop once any replica is missing"
        )
        yield Problem(MIN_ISR_REFUSED, message, at)
