"""Computes how many partitions a topic needs: what each side of it asks for, against what exists."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from reconciler.groups.model.advice import Advice, Existing, Need
from reconciler.groups.partition_costs import BATCH_BYTES, SEGMENT_BYTES, Deployment, costs

DEFAULT_REPLICATION_FACTOR = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """What a topic's partitions have been measured to carry, in bytes per second.

    `target` is its rate as a whole in the cluster's busiest time; `producer` and `consumer` are the highest rates that
    one partition has shown, the second for one group: lower bounds of what a partition bears. `unknown` partitions of
    the topic have no measured rate.
    """

    target: int | None = None
    producer: int | None = None
    consumer: int | None = None
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: rates in bytes per second, `producer` and `consumer` being those of ONE partition.

    `headroom` is a share on top of the target; `consumers` is how many members of one group shall read at once.
    """

    target: int | None = None
    producer: int | None = None
    consumer: int | None = None
    headroom: Fraction = Fraction(0)
    consumers: int | None = None
    brokers: int | None = None
    replication_factor: int | None = None
    batch_bytes: int | None = None
    segment_bytes: int | None = None


def partitions_for(target: int, producer: int | None, consumer: int | None, headroom: Fraction = Fraction(0)) -> int:
    """Return the least partitions for a target rate: ceil(max(target / producer, target / consumer)), at least 1.

    The slower side is the bottleneck; a side that is None does not bind.
    """
    return max([1, *(_ceil(target * (1 + headroom) / rate) for rate in (producer, consumer) if rate)])


def advise(wanted: Wanted, existing: Existing | None = None, measured: Measured | None = None) -> Advice:
    """Return the advice; what is not asked for is taken from what was measured and from what exists."""
    known = measured or Measured()
    target = wanted.target or known.target
    needs = tuple(_needs(wanted, target, existing, known))
    partitions = max([1, *(need.partitions for need in needs)])
    # Partitions that exist stay, needed or not.
    deployment = _deployment(wanted, existing, max(partitions, existing.partitions if existing else 0))
    brokers = deployment.brokers
    return Advice(
        partitions,
        needs,
        target,
        float(wanted.headroom * 100),
        deployment.replication_factor,
        costs(deployment, existing),
        (*_measure_notes(needs, known), *_notes(existing, partitions, has_brokers=brokers is not None)),
        brokers,
        -(-partitions // brokers) * brokers if brokers else None,
        existing,
    )


def _needs(wanted: Wanted, target: int | None, existing: Existing | None, measured: Measured) -> Iterator[Need]:
    for what, asked, seen in (
        ("producers", wanted.producer, measured.producer),
        ("consumers", wanted.consumer, measured.consumer),
    ):
        rate = asked or seen
        if target and rate:
            yield Need(what, partitions_for(target, rate, None, wanted.headroom), rate, is_measured=not asked)
    if wanted.consumers:
        yield Need("wanted consumers", wanted.consumers)
    for group, members in sorted(existing.groups.items() if existing is not None else ()):
        if members:
            yield Need(f"members of group {group}", members)


def _deployment(wanted: Wanted, existing: Existing | None, partitions: int) -> Deployment:
    """Return where the partitions would live: what is asked for, else what exists, else Kafka's defaults."""
    members = max([wanted.consumers or 0, *(existing.groups.values() if existing is not None else ())])
    return Deployment(
        partitions,
        wanted.replication_factor or (existing.replication_factor if existing else DEFAULT_REPLICATION_FACTOR),
        wanted.brokers or (existing.brokers if existing else None),
        min(members, partitions) or None,
        wanted.batch_bytes or BATCH_BYTES,
        wanted.segment_bytes or (existing.segment_bytes if existing else None) or SEGMENT_BYTES,
    )


def _measure_notes(needs: Sequence[Need], measured: Measured) -> Iterator[str]:
    if measured.unknown:
        yield f"partitions of the topic without a measured rate: {measured.unknown}; it may carry more"
    if any(need.is_measured for need in needs):
        yield (
            "a measured rate is what one partition has carried, not what it can: load a topic of one partition to find "
            "the limit, and fewer partitions may do"
        )


def _notes(existing: Existing | None, partitions: int, *, has_brokers: bool) -> Iterator[str]:
    if not has_brokers:
        yield "give --brokers for what each broker bears"
    if existing is None:
        yield (
            "partitions can only be added, and adding them sends the keys of keyed records to other partitions: for a "
            "keyed topic choose the number for the years ahead now"
        )
        return
    if partitions > existing.partitions:
        yield from _growth_notes(existing)
    elif partitions < existing.partitions:
        yield f"Kafka cannot take partitions away: the {existing.partitions} stay"
    for group, members in sorted(existing.groups.items()):
        idle = members - max(existing.partitions, partitions)
        if idle > 0:
            yield f"group {group}: {idle} of its {members} members read nothing of this topic"


def _growth_notes(existing: Existing) -> Iterator[str]:
    if existing.is_compacted:
        yield (
            "the topic is compacted, so its records have keys: after growing, a key's new records land in another "
            "partition, and the old one keeps its last value for ever; copy it into a new topic instead"
        )
    else:
        yield (
            "if its records have keys, growing sends a key's new records to another partition, out of order with the "
            "old ones; for keyed data take more than you need now, so that this is the last time"
        )
    yield (
        "consumers with auto.offset.reset=latest skip what producers write to the new partitions before they see them "
        "(KAFKA-20030): set earliest before growing"
    )


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
