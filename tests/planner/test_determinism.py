"""Same input, same moves: under other hash seeds, in other processes, with files read in another order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
from helpers.plans.planning import planned
from helpers.clusters.flat_clusters import CASE_C
from helpers.clusters.random_clusters import SMALL, random_cluster
from reconciler.model.problem import PlacementInfeasible

print(planned(*CASE_C.build()))
for seed in range(12):
    try:
        print(planned(*random_cluster(seed, SMALL)))
    except PlacementInfeasible as refusal:
        print(refusal)
"""


def _output(hash_seed: str) -> bytes:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    found = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, env=environment)
    return found.stdout


@pytest.mark.long
def test_two_hash_seeds_give_the_same_bytes() -> None:
    first = _output("0")
    assert first.count(b"\n") >= 13
    assert _output("1") == first
