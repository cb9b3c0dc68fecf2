"""Finds partitions that no broker can copy from, which a plan leaves as they are.

Kafka elects an empty replica beside dead ones if `unclean.leader.election.enable` is on, and the records on the dead
brokers are lost once these come back. So a partition gets no new replica until it has a leader::

    orders-3 is on broker 3 alone, which is dead and declared draining
    a plan that moves it to broker 4:  4 is elected, and 3 truncates to what 4 has: nothing
    no plan:                           3 comes back, and leads with all its records
"""

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from reconciler.diff.rules import LEAVING, TopicRules
from reconciler.model.change import LeaderlessPartition
from reconciler.model.cluster import Cluster
from reconciler.model.columns import Bools
from reconciler.model.desired import Desired
from reconciler.model.starting import heirs
from reconciler.model.table_maker import table_of


def has_source(observed: Cluster) -> Bools:
    """Return [rows of its table] which partitions have a leader, and a living replica in sync: the leader is one."""
    table = table_of(observed)
    alive = [broker_id for broker_id in observed.brokers if observed.is_alive(broker_id)]
    is_copied: Bools = (table.leader >= 0) & (np.isin(table.leader, alive) | np.isin(table.isr, alive).any(axis=1))
    return is_copied


def leaderless_partitions(
    desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules], doomed: Collection[str]
) -> Iterator[LeaderlessPartition]:
    """Yield each partition without a source that the files place, or that is on a broker which is to be emptied."""
    table = table_of(observed)
    for key in map(table.key, np.flatnonzero(~has_source(observed)).tolist()):
        rule, partition = rules[key.topic], observed.topics[key.topic].partitions[key.partition]
        holders = [desired.cluster.broker(broker_id) for broker_id in partition.target_replicas]
        leaving = [broker for broker in holders if broker.state in LEAVING]
        if key.topic in doomed or not (rule.has_placement or leaving):
            continue
        complete = heirs(partition) or ()
        brokers = complete or partition.last_known_elr or partition.replicas
        line = rule.declared.where("") if rule.declared is not None else leaving[0].at
        yield LeaderlessPartition(key, tuple(sorted(brokers)), bool(complete), partition.bytes_on_brokers, line)
