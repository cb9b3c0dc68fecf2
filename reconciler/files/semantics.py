"""Finds what each document's form allows, but Kafka or the contract does not; across all documents of a cluster."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from reconciler.files.config_check import config_problems
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Protection
from reconciler.model.problem import Problem

LONGEST_NAME = 249


def semantic_problems(desired: Desired, nameless: Iterable[DesiredTopic] = ()) -> Iterator[Problem]:
    """Yield everything that cannot be meant; `nameless`: topics whose name is wrong already."""
    yield from cluster_problems(desired.cluster)
    yield from _colliding_names(desired)
    named = [*desired.topics.values(), *desired.patterns]
    for topic in named:
        yield from _name_problems(topic)
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
    shares = {"changedPartitions": cluster.limits.changed_partitions, "diskUse": cluster.limits.disk_use}
    for key, share in shares.items():
        if isinstance(share, Fraction) and share > 1:
            yield Problem("KR129", f"{key} is a share of the whole: 100% at most", cluster.limits.at[key])
    for window in cluster.windows:
        if window.start == window.end:
            yield Problem("KR122", f"the window begins and ends at {window.start}: give it some time", window.at)
        try:
            ZoneInfo(window.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = f"{window.timezone!r} is no time zone: write one such as Europe/Berlin"
            yield Problem("KR122", message, window.at)


def _colliding_names(desired: Desired) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for name, topic in desired.topics.items():
        other = first.setdefault(name.replace(".", "_"), name)
        if other != name:
            message = f"topic {name} collides with {other}: in metrics, Kafka takes . and _ for the same"
            yield Problem("KR123", message, topic.where(""))


def _name_problems(topic: DesiredTopic) -> Iterator[Problem]:
    if topic.name in {".", ".."} or len(topic.name) > LONGEST_NAME:
        message = f"{topic.name[:30]!r} cannot be a topic's name: Kafka wants 1 to {LONGEST_NAME} of a-z A-Z 0-9 . _ -"
        yield Problem("KR124", message, topic.where(""))


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
    if placement.brokers_only is not None:
        barred |= used - placement.brokers_only
    if barred:
        names = ", ".join(map(str, sorted(barred)))
        yield Problem("KR128", f"assignment names brokers that placement.brokers does not allow: {names}", at)
