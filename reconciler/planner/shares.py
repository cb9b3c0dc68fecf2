"""Computes what each broker holds, now and once partitions have moved: replicas, preferred leaders, bytes, rates."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from reconciler.model.cluster import Cluster
from reconciler.model.columns import Ints, lists_of, sums
from reconciler.model.move_table import Moves
from reconciler.model.plan import BrokerShare
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition, named

Shares = Mapping[int, BrokerShare]


@dataclass(frozen=True, eq=False)
class Target:
    """Partitions that do not stay as they are, a row each, and their whole ordered replicas."""

    topics: tuple[str, ...]
    topic: Ints  # [rows]: positions in `topics`
    number: Ints  # [rows]: the partition's number
    replicas: Ints  # [rows, most]: NONE behind the last

    @classmethod
    def of(cls, moves: Moves) -> "Target":
        """Return where these moves, one a partition, end."""
        return cls(moves.topics, moves.topic, moves.number, moves.after)

    @cached_property
    def lists(self) -> Mapping[TopicPartition, tuple[int, ...]]:
        """The same, by partition."""
        keys = named(self.topics, self.topic.tolist(), self.number.tolist())
        return dict(zip(keys, lists_of(self.replicas), strict=True))


def shares(observed: Cluster, target: Target, deleted: Collection[str] = ()) -> tuple[Shares, Shares]:
    """Return each registered broker's share now, and with the partitions in `target` there and those topics deleted.

    Bytes are None for all brokers as soon as one size is unknown.
    """
    table = table_of(observed)
    rows = table.rows_at(target.topics, target.topic, target.number)
    there, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
    is_deleted = np.array([name in deleted for name in table.topics], dtype=np.bool_)[table.topic]
    gone = np.concatenate([rows[there], np.flatnonzero(is_deleted)])
    reached, beside = target.replicas[there], target.replicas[new]
    before = _held(table.target, table.sizes_on(np.arange(len(table.number)), table.target))
    after = [*map(Counter, before)]
    for held, leaving in zip(after, _held(table.target[gone], table.sizes_on(gone, table.target[gone])), strict=True):
        held.subtract(leaving)
    for brokers, sizes in ((reached, table.sizes_on(rows[there], reached)), (beside, np.zeros_like(beside))):
        for held, coming in zip(after, _held(brokers, sizes), strict=True):
            held.update(coming)
    is_known = bool((table.bytes_to_copy >= 0).all())
    return _shares(observed, before, is_size_known=is_known), _shares(observed, after, is_size_known=is_known)


def _held(brokers: Ints, sizes: Ints) -> list[Counter[int]]:
    """Return by broker how many replicas [rows, some], of how many partitions the first, and how many bytes."""
    one, first = np.ones_like(brokers), brokers[:, :1]
    return [*map(Counter, (sums(brokers, one), sums(first, one[:, :1]), sums(brokers, sizes)))]


def _shares(observed: Cluster, held: Sequence[Counter[int]], *, is_size_known: bool) -> Shares:
    """Return the shares of all brokers that are registered or hold a replica."""
    replicas, leaders, sizes = held
    everyone = sorted({*observed.brokers, *(one for one, count in replicas.items() if count)})
    return {one: BrokerShare(replicas[one], leaders[one], sizes[one] if is_size_known else None) for one in everyone}


def with_rates(
    before: Shares,
    after: Shares,
    observed: Cluster,
    target: Target,
    load_of: Mapping[TopicPartition, tuple[int, int, int]],
    *,
    has_leader_in: bool,
) -> tuple[Shares, Shares]:
    """Return the shares with rates in bytes a second, those of the partitions in `target` where they will be.

    `load_of` has disk bytes, bytes in and bytes out a second. Topics that are deleted, of which nothing is carried, are
    left out of both. `has_leader_in`: what leaders take in is told too.
    """

    def added(to: Shares, lists: Iterable[tuple[TopicPartition, tuple[int, ...]]]) -> Shares:
        taken: Counter[int] = Counter()
        sent: Counter[int] = Counter()
        led: Counter[int] = Counter()
        for key, replicas in lists:
            _, bytes_in, bytes_out = load_of[key]
            taken.update(dict.fromkeys(replicas, bytes_in))
            # The leader sends to its consumers, and all that it takes in to each of the others.
            sent.update(dict.fromkeys(replicas[:1], bytes_out + (len(replicas) - 1) * bytes_in))
            led.update(dict.fromkeys(replicas[:1], bytes_in))
        return {
            broker_id: replace(
                share,
                bytes_in_per_second=taken[broker_id],
                bytes_out_per_second=sent[broker_id],
                leader_bytes_in_per_second=led[broker_id] if has_leader_in else None,
            )
            for broker_id, share in to.items()
        }

    present = {key: partition.target_replicas for key, partition in observed.partitions() if key in load_of}
    return added(before, present.items()), added(after, {**present, **target.lists}.items())
