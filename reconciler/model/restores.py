"""Holds the partitions that a plan touches as they were: rows of the table of the observed ones."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reconciler.model.columns import Ints, lists_of
from reconciler.model.on_demand import SelfWritten
from reconciler.model.partition_table import PartitionTable
from reconciler.model.plan import Restore


@dataclass(frozen=True, eq=False, repr=False)
class Restores(SelfWritten[Restore]):
    """Some rows as a sequence, each made when one is asked for; equal to a tuple of the same."""

    table: PartitionTable
    rows: Ints

    def written(self) -> list[dict[str, Any]]:
        """Return each row as `to_json` writes the partition that it is."""
        names, table, rows = self.table.topics, self.table, self.rows
        columns = (table.topic[rows].tolist(), table.number[rows].tolist(), map(list, lists_of(table.target[rows])))
        return [
            {"topic": names[topic], "partition": number, "replicas": replicas, "leader": None if leader < 0 else leader}
            for topic, number, replicas, leader in zip(*columns, table.leaders(rows).tolist(), strict=True)
        ]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def values(self) -> tuple[Restore, ...]:
        """The partitions themselves."""
        leaders = self.table.leaders(self.rows).tolist()
        targets = zip(self.table.targets(self.rows), leaders, strict=True)
        return tuple([Restore(key, replicas, None if leader < 0 else leader) for (key, replicas), leader in targets])
