"""Reads that lag behind writes change how long a run takes, never where it ends."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

import pytest
from apply.lagging_admin import LaggingAdmin
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.deaths import killed, passing
from helpers.plans.end_state import shortcomings, throttles
from helpers.plans.small_runs import RATE, cluster, move, plan_of, whole_plan

from reconciler.admin.port import Answer
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.admin.simulated_locks import MemoryLocks
from reconciler.apply.cancel import cancel_run
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.run import run_plan
from reconciler.model.cluster import (
    FOLLOWER_THROTTLED_REPLICAS,
    LEADER_THROTTLED_RATE,
    LEADER_THROTTLED_REPLICAS,
    Cluster,
)
from reconciler.model.plan import Plan
from reconciler.model.run import StoppedEarly
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition


@pytest.mark.long
@pytest.mark.parametrize("seed", range(16))
def test_a_run_ends_the_same_whatever_moment_its_reads_are_from(before: Cluster, seed: int) -> None:
    admin = LaggingAdmin(before, seed, timedelta(seconds=(1, 5, 20, 60)[seed % 4]))
    run_plan(whole_plan(before), admin, MemoryJournal())
    assert shortcomings(whole_plan(before), before, admin.cluster) == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(0, 20, 2))
def test_a_stopped_run_goes_on_whatever_moment_its_reads_are_from(before: Cluster, seed: int) -> None:
    admin = LaggingAdmin(before, seed, timedelta(seconds=(1, 5, 20, 60)[seed % 4]))
    turns = iter(range(1000))
    with pytest.raises(StoppedEarly):
        run_plan(
            whole_plan(before), admin, MemoryJournal(), should_stop=lambda: "SIGINT" if next(turns) > 8 + seed else None
        )
    admin.clock.sleep(60)
    run_plan(whole_plan(before), admin, MemoryJournal())
    assert shortcomings(whole_plan(before), before, admin.cluster) == []


class OneBehind(SimulatedAdmin):
    """Shows the topics' configs of a `past` moment, but for the first read of a run: brokers are asked in turn.

    `bare`: the moves that were submitted while the topic's lists lacked their replicas.
    """

    def __init__(self, cluster: Cluster, plan: Plan) -> None:
        super().__init__(cluster)
        self.past: Cluster | None = None
        self.reads = 0
        self.bare: list[str] = []
        stages = [
            stage for stage in plan.stages if isinstance(stage, ReassignStage) and stage.throttle_bytes_per_second
        ]
        self.moves = [move for stage in stages for move in stage.moves if move.added]

    def topic_configs(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the configs of now once, and of the past from then on."""
        self.reads += 1
        if self.past is None or self.reads == 1:
            return super().topic_configs(names)
        return {name: self.past.topics[name].configs for name in names if name in self.past.topics}

    def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        is_replication_factor_change_allowed: bool = True,
    ) -> Mapping[TopicPartition, Answer]:
        """Look at the lists as they are now, and reassign."""
        submitted = [one for one in self.moves if targets.get(one.topic_partition) == one.to_replicas]
        for one in submitted:
            for key, brokers in (
                (LEADER_THROTTLED_REPLICAS, one.from_replicas),
                (FOLLOWER_THROTTLED_REPLICAS, one.added),
            ):
                items = self.cluster.topics[one.topic_partition.topic].configs.get(key, "").split(",")
                wanted = {f"{one.topic_partition.partition}:{broker}" for broker in brokers}
                self.bare += [] if "*" in items or wanted <= set(items) else [f"{one.topic_partition} {key}"]
        return super().reassign(targets, is_replication_factor_change_allowed=is_replication_factor_change_allowed)


@pytest.mark.parametrize("turn", [11, 29])
def test_lists_of_a_stopped_run_that_a_broker_still_shows_are_not_taken_for_somebody_elses(turn: int) -> None:
    before = cluster()
    plan = whole_plan(before)
    admin = OneBehind(before, plan)
    turns = iter(range(turn))
    moments: list[Cluster] = []

    def should_stop() -> str | None:
        moments.append(admin.cluster)
        return None if next(turns, None) is not None else "SIGTERM"

    journal = MemoryJournal()
    with pytest.raises(StoppedEarly):
        run_plan(plan, admin, journal, should_stop=should_stop)
    admin.past, admin.reads = moments[-1], 0
    run_plan(plan, admin, MemoryJournal(journal.appended))
    assert shortcomings(plan, before, admin.cluster) == []
    assert admin.bare == []


class HiddenRates(SimulatedAdmin):
    """Hides what one broker has set from the first reads of its configs: it lags, or `is_silent` and is left out."""

    broker, reads, is_silent = 0, 0, False

    def broker_configs(self, broker_ids: Collection[int]) -> Mapping[int, Mapping[str, str]]:
        """Return the configs of now, without that broker's while it hides."""
        found = dict(super().broker_configs(broker_ids))
        if self.broker in found and self.reads > 0:
            self.reads -= 1
            found[self.broker] = {}
            if self.is_silent:
                del found[self.broker]
        return found


@pytest.mark.parametrize("end", [restore_throttles, cancel_run, run_plan])
@pytest.mark.parametrize("is_silent", [True, False])
def test_a_rate_that_its_broker_hides_at_first_comes_off_with_the_entries_that_name_the_broker(
    end: Callable[[Plan, SimulatedAdmin, MemoryJournal], object], *, is_silent: bool
) -> None:
    before = small_cluster(
        "orders-0: 1,2,3 size 100", "orders-1: 2,3,4 size 100", rates={1: {LEADER_THROTTLED_RATE: "7"}}
    )
    plan = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,5"),), RATE)], before)
    for broker in (2, 3, 5):
        locks = MemoryLocks()
        admin = HiddenRates(before, locks=locks)
        killed(admin, plan, passing("reassign.before"))
        locks.keep("")
        admin.broker, admin.reads, admin.is_silent = broker, 2, is_silent
        end(plan, admin, MemoryJournal())
        assert admin.reads == 0
        assert throttles(admin.cluster) == throttles(before), broker
