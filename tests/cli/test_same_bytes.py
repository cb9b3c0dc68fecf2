"""The same desired state and the same cluster give the same plan file, byte for byte."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.clusters.flat_clusters import CASE_C

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


def shuffled(value: Any, order: random.Random) -> Any:  # noqa: ANN401 - a JSON document
    """Return a snapshot with the lists of brokers, topics and partitions in another order, and the keys too."""
    if isinstance(value, dict):
        members = [(key, shuffled(member, order)) for key, member in value.items()]
        order.shuffle(members)
        found = dict(members)
        for key in ("brokers", "topics", "partitions"):
            if key in found:
                order.shuffle(found[key])
        return found
    return [shuffled(item, order) for item in value] if isinstance(value, list) else value


def plan_bytes(folder: Path, seed: int) -> bytes:
    """Return the plan file that a process of its own writes, after the input was laid out anew."""
    order = random.Random(seed)
    root, snapshot = CASE_C.write(folder)
    names = sorted(path.relative_to(root) for path in root.rglob("*.yaml"))
    order.shuffle(names)
    for name in names:  # made in another order, so that the folder lists them in another order
        content = (root / name).read_bytes()
        (root / name).unlink()
        (root / name).write_bytes(content)
    snapshot.write_text(json.dumps(shuffled(json.loads(snapshot.read_text()), order)))
    out = folder / "plan.json"
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "reconciler",
        "-C",
        root.name,
        "plan",
        "--state",
        snapshot,
        "--out",
        out,
    ]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return out.read_bytes()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (2, 3))])
def test_order_of_lists_and_files_hash_seed_and_place_do_not_show_in_a_plan(tmp_path: Path, seed: int) -> None:
    first, other = tmp_path / "here", tmp_path / "there" / "deeper"
    for folder in (first, other):
        folder.mkdir(parents=True)
    expected = plan_bytes(first, 0)
    assert len(expected) > 10_000
    assert plan_bytes(other, seed) == expected
    shutil.rmtree(other)
