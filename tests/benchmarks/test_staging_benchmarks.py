"""Prints how stages compare with their bounds: `pytest tests/benchmarks/test_staging_benchmarks.py -m benchmark -s`.

The variable BENCHMARK_CASES names others than `a,b,c,d,e`. Moves are planned first; only staging is measured, each time
in a process of its own.
"""

import gc
import json
import os
import tracemalloc
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from time import process_time

import pytest
from benchmarks.table import MACHINE, show
from helpers.clusters.flat_clusters import CASES, FlatCase
from helpers.plans.planning import planned
from staging.least_time import least_seconds

from reconciler.diff.compare import compare
from reconciler.diff.rules import TopicRules, topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, MovePolicy
from reconciler.model.move import Election
from reconciler.model.move_table import Moves
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.staging.estimate import busiest_broker_seconds, served_moves
from reconciler.staging.stages import stage_moves

RATE = 50 * 1024 * 1024
MOST_OVER_BOUND = 1.10
HEADER = (
    "| case | perBroker | copies | stages | elections among them | estimate h | / busiest broker | the limits force "
    "| CPU s | MB |\n" + "|---" * 10 + "|"
)

pytestmark = pytest.mark.benchmark


@dataclass(frozen=True, slots=True)
class Planned:
    """All that staging is given."""

    desired: Desired
    observed: Cluster
    rules: Mapping[str, TopicRules]
    elections: tuple[Election, ...]
    moves: Moves


@dataclass(frozen=True, slots=True)
class Row:
    """What one staging is worth and costs. `forced`: its bound, with what the limits on copies at once make of it."""

    stages: int
    elections: int
    seconds: int
    bound: int
    forced: int
    cpu: float
    megabytes: float

    @property
    def over_bound(self) -> float:
        return self.seconds / max(1, self.bound)

    def told(self, name: str, per_broker: int, copies: int) -> str:
        hours, over, forced = self.seconds / 3600, self.over_bound, self.forced / max(1, self.bound)
        times = f"{hours:.1f} | {over:.3f} | {forced:.3f}"
        cost = f"{self.cpu:.2f} | {self.megabytes:.1f}"
        return f"| {name} | {per_broker} | {copies:,} | {self.stages:,} | {self.elections:,} | {times} | {cost} |"


def _planned(case: FlatCase) -> Planned:
    desired, observed = case.build()
    rules = topic_rules(desired, observed)
    elections = compare(desired, observed, rules).elections
    return Planned(desired, observed, rules, elections, planned(desired, observed).moves)


def _measured(given: Planned, policy: MovePolicy) -> Row:
    desired = replace(given.desired, cluster=replace(given.desired.cluster, moves=policy))
    gc.collect()
    gc.freeze()
    start = process_time()
    staging = stage_moves(given.moves, (), given.elections, observed=given.observed, desired=desired, rules=given.rules)
    cpu = process_time() - start
    stages = staging.stages
    return Row(
        stages=len(stages),
        elections=sum(isinstance(stage, ElectStage) for stage in stages),
        seconds=sum(stage.estimated_seconds for stage in stages if isinstance(stage, ReassignStage)),
        bound=busiest_broker_seconds(served_moves(stages, given.observed), policy),
        forced=least_seconds(stages, given.observed, policy),
        cpu=cpu,
        megabytes=_peak_megabytes(given, desired),
    )


def _peak_megabytes(given: Planned, desired: Desired) -> float:
    """Return what staging allocates at its peak, its result included, in a second run: counting makes it slow."""
    tracemalloc.start()
    stage_moves(given.moves, (), given.elections, observed=given.observed, desired=desired, rules=given.rules)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def _in_a_process_of_its_own(given: Planned, policy: MovePolicy) -> Row:
    """Return the row that a forked child measures, so that no run finds what another left behind."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, json.dumps(asdict(_measured(given, policy))).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        row = Row(**json.loads(pipe.read()))
    os.waitpid(child, 0)
    return row


def test_stages_of_the_flat_clusters_come_close_to_their_bound() -> None:
    show(f"{MACHINE}{HEADER}")
    for name in os.environ.get("BENCHMARK_CASES", "a,b,c,d,e").split(","):
        given = _planned(CASES[name])
        copies = sum(len(move.added) for move in given.moves)
        for per_broker in (10, 100):
            row = _in_a_process_of_its_own(given, MovePolicy(throttle_bytes_per_second=RATE, per_broker=per_broker))
            show(row.told(name, per_broker, copies))
            assert per_broker < 100 or row.over_bound <= MOST_OVER_BOUND, name
