"""Runs the command line in a process of its own; reads what it cost and what the plan is worth."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import numpy as np
from helpers.clusters.flat_clusters import FlatCase
from helpers.plans.oracle import Problem, problem_of
from planner.closed_form import sizes_to_copy

ROOT = Path(__file__).parents[2]
REPORTER = """
import json, os, sys
nowhere = os.open(os.devnull, os.O_WRONLY)
actions = [(os.POSIX_SPAWN_DUP2, nowhere, 1)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
_, status, used = os.wait4(pid, 0)
figures = {"cpu": used.ru_utime + used.ru_stime, "kilobytes": used.ru_maxrss}
print(json.dumps({**figures, "exit": os.waitstatus_to_exitcode(status)}))
"""
"""A process as small as can be: a child's peak memory is never told as less than its parent's."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process used: CPU seconds of user and system together, and the peak of its memory."""

    cpu_seconds: float
    peak_megabytes: float
    exit_code: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What a plan is worth and costs, and its row of the table."""

    copies: int
    ratio: float
    stages: int
    over_bound: float
    cost: Cost
    cells: Sequence[object]

    HEADER: ClassVar[str] = (
        "| case | brokers | partitions | copies | TB | bytes / least | leaders changed | replicas/broker "
        "| leaders/broker | stages | est. h | / bound | CPU s | MB |\n" + "|---" * 14 + "|"
    )


def cost_of(arguments: Sequence[str], *, may_fail: bool = False, cwd: Path | None = None) -> Cost:
    """Run `reconciler` with these arguments; its output is thrown away, but for errors that were not foreseen."""
    done = subprocess.run(
        [sys.executable, "-ISc", REPORTER, sys.executable, "-m", "reconciler", *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    used = json.loads(done.stdout)
    if used["exit"] == 1 and not may_fail:
        raise AssertionError(done.stderr)
    return Cost(used["cpu"], used["kilobytes"] / 1024, used["exit"])


def start_cost(arguments: Sequence[str], times: int = 9) -> Cost:
    """Return the median of several runs of something that should cost next to nothing."""
    costs = [cost_of(arguments) for _ in range(times)]
    return Cost(
        median(cost.cpu_seconds for cost in costs), max(cost.peak_megabytes for cost in costs), costs[0].exit_code
    )


def figures_of(case: FlatCase, folder: Path) -> Figures:
    """Write the case's files, plan it through the command line, and read the plan."""
    root, snapshot = case.write(folder)
    out = folder / f"{case.name}.plan.json"
    cost = cost_of(["-C", str(root), "plan", "--cluster", case.name, "--state", str(snapshot), "--out", str(out)])
    plan = json.loads(out.read_text(encoding="utf-8"))
    problem = problem_of(*case.build())
    summary = plan["summary"]
    ratio = summary["bytes"] / least_bytes(problem, plan["proof"])
    over_bound = summary["estimatedSeconds"] / max(1, _least_seconds(plan, problem))
    cells = (
        case.name,
        len(problem.capacity),
        f"{len(problem.demands):,}",
        f"{summary['replicaMoves']:,}",
        f"{summary['bytes'] / 1e12:,.2f}",
        f"{ratio:.4f}",
        f"{summary['leaderChanges']:,}",
        _span(plan, problem, "replicas"),
        _span(plan, problem, "leaders"),
        summary["stages"],
        f"{summary['estimatedSeconds'] / 3600:.1f}",
        f"{over_bound:.2f}",
        f"{cost.cpu_seconds:.2f}",
        f"{cost.peak_megabytes:.0f}",
    )
    return Figures(summary["replicaMoves"], ratio, summary["stages"], over_bound, cost, cells)


def _span(plan: Mapping[str, Any], problem: Problem, measure: str) -> str:
    held = [plan["balance"]["after"][str(broker_id)][measure] for broker_id in problem.brokers]
    return f"{min(held)}-{max(held)}"


def least_bytes(problem: Problem, proof: Mapping[str, Any]) -> int:
    """Return a lower bound on the bytes of any plan: exact where each rack holds one replica, else from the prices."""
    if all(set(demand.bounds.values()) == {(1, 1)} for demand in problem.demands):
        return sum(sizes_to_copy(problem))
    return price_bound(problem, {int(broker_id): price for broker_id, price in proof["prices"].items()})


def price_bound(problem: Problem, prices: Mapping[int, int]) -> int:
    """Return what any prices prove for balance `even` where a rack may hold one replica of a partition or none.

    Each partition takes its cheapest brokers, one a rack; floor and ceiling of the mean are the most to be paid back.
    """
    price = np.array([prices.get(broker_id, 0) for broker_id in problem.brokers], dtype=np.int64)
    column = {broker_id: number for number, broker_id in enumerate(problem.brokers)}
    racks = sorted({problem.rack_of[broker_id] for broker_id in problem.brokers})
    size = np.array([demand.size or 0 for demand in problem.demands], dtype=np.int64)
    cheapest = np.empty((len(racks), len(size)), dtype=np.int64)
    for number, rack in enumerate(racks):
        members = [column[broker_id] for broker_id in problem.brokers if problem.rack_of[broker_id] == rack]
        cheapest[number] = size + price[members].min()
    for row, demand in enumerate(problem.demands):
        for broker_id in demand.current:
            rack_number = racks.index(problem.rack_of[broker_id])
            if broker_id in column:
                cheapest[rack_number, row] = min(cheapest[rack_number, row], price[column[broker_id]])
    need = {demand.need for demand in problem.demands}
    assert len(need) == 1
    copies = int(np.sort(cheapest, axis=0)[: need.pop()].sum())
    floor, extra = divmod(sum(demand.need for demand in problem.demands), len(price))
    return copies - floor * int(price.sum()) - int(np.sort(price)[::-1][:extra].sum())


def _least_seconds(plan: Mapping[str, Any], problem: Problem) -> float:
    """Return the busiest broker's bytes, in or out of the leaders that serve them, over the throttle."""
    leader: dict[tuple[str, int], int] = {demand.topic_partition: demand.current[0] for demand in problem.demands}
    arriving: Counter[int] = Counter()
    serving: Counter[int] = Counter()
    throttle = 1
    for stage in plan["stages"]:
        throttle = stage.get("throttleBytesPerSecond") or throttle
        for move in stage.get("moves", ()):
            key = (move["topic"], move["partition"])
            added = [broker_id for broker_id in move["to"] if broker_id not in move["from"]]
            for broker_id in added:
                arriving[broker_id] += move["bytes"] // len(added)
            serving[leader[key]] += move["bytes"]
            if leader[key] not in move["to"]:
                leader[key] = move["to"][0]
        for election in stage.get("elections", ()):
            leader[election["topic"], election["partition"]] = election["leader"]
    return max([*arriving.values(), *serving.values(), 0]) / throttle
