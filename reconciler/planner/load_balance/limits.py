"""Tells the most that each broker may carry by `limits`, and what a plan leaves above that."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from reconciler.model.cluster import Cluster
from reconciler.model.desired import RATE_OF, DesiredBroker, DesiredCluster
from reconciler.model.disk_space import Space
from reconciler.model.plan import BrokerShare
from reconciler.model.problem import RATE, Problem, Severity, warning
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import MANY, named_some, percent, rate
from reconciler.planner.load_balance.bands import Caps
from reconciler.planner.load_balance.measured import Carried
from reconciler.planner.load_balance.task import LEADER_IN, MEASURES, NETWORK_IN, NETWORK_OUT
from reconciler.planner.placement_task import EligibleBrokers

_DOES = {"networkIn": "take in", "networkOut": "send", "leaderIn": "take in as leader"}


def caps_of(cluster: DesiredCluster, broker_ids: Sequence[int]) -> Caps:
    """Return the most bytes a second of each limited rate, by broker; none of one whose own rate is not written."""
    brokers = [cluster.broker(broker_id) for broker_id in broker_ids]
    return {
        MEASURES.index(word): {one.id: cap for one in brokers if (cap := _cap(one, word, most)) is not None}
        for word, most in cluster.limits.rates.items()
    }


def _cap(broker: DesiredBroker, word: str, most: int | Fraction) -> int | None:
    if not isinstance(most, Fraction):
        return most * broker.weight("network")
    whole = broker.rates.get(RATE_OF[word])
    return None if whole is None else int(whole * most)


def disk_caps(
    observed: Cluster, eligible: EligibleBrokers, space: Space, load_of: Mapping[TopicPartition, Carried]
) -> Mapping[int, int]:
    """Return the most bytes of each broker whose disks tell, as loads count them.

    Loads may tell other sizes than the snapshot: what a broker has room for comes on top of what it is said to carry.
    """
    carried = dict(zip(eligible.ids, eligible.foreign.tolist(), strict=True))
    for key, partition in observed.partitions():
        for replica in partition.replicas:
            if replica in carried and key in load_of:
                carried[replica] += load_of[key][0]
    brokers = [observed.brokers[broker_id] for broker_id in eligible.ids]
    return {
        one.id: max(0, carried[one.id] + int(one.total_bytes * space.share) - one.used_bytes)
        for one in brokers
        if one.used_bytes is not None and one.total_bytes is not None
    }


def unchecked(cluster: DesiredCluster, broker_ids: Sequence[int]) -> Iterator[Problem]:
    """Yield a warning for each limit in percent of a rate that some of these brokers do not have."""
    for word, most in cluster.limits.rates.items():
        of = RATE_OF[word]
        without = [str(one) for one in broker_ids if of not in cluster.broker(one).rates]
        if isinstance(most, Fraction) and without:
            message = (
                f"limits.{word} is {percent(most, digits=4)} of a broker's rates.{of}, and brokers "
                f"{named_some(without, MANY)} have none, so it is not checked there: write it under brokers"
            )
            yield warning("KR845", message, cluster.limits.at.get(word))


def above_limits(caps: Caps, after: Mapping[int, BrokerShare], cluster: DesiredCluster) -> Iterator[Problem]:
    """Yield the violation of each rate's limit that brokers are above in the end, the farthest told."""
    for measure, most in sorted(caps.items()):
        excess = {one: _carried(measure, after[one]) - cap for one, cap in most.items() if one in after}
        over = sorted((one for one in excess if excess[one] > 0), key=lambda one: (-excess[one], one))
        if not over or MEASURES[measure] not in RATE_OF:
            continue
        word, worst, others = MEASURES[measure], over[0], len(over) - 1
        more = f" ({others} more {'broker is' if others == 1 else 'brokers are'} above it too)" if others else ""
        message = (
            f"broker {worst} would {_DOES[word]} {rate(_carried(measure, after[worst]))}, {excess[worst]} bytes/s more "
            f"than the {rate(most[worst])} that limits.{word} allows{more}, and no placement that keeps it was found: "
            "raise it, add a broker, or give the topics that carry most more partitions"
        )
        yield Problem(RATE, message, cluster.limits.at.get(word), Severity.VIOLATION)


def _carried(measure: int, share: BrokerShare) -> int:
    carried = {
        NETWORK_IN: share.bytes_in_per_second,
        NETWORK_OUT: share.bytes_out_per_second,
        LEADER_IN: share.leader_bytes_in_per_second,
    }
    return carried.get(measure) or 0
