"""Prints what many clusters in one job cost: `pytest tests/benchmarks/test_fleet_benchmarks.py -m benchmark -s`.

There are 100 clusters of 20 brokers and 5,000 partitions, with ten samples of each; BENCHMARK_CLUSTERS names fewer. CPU
seconds and memory are those of Java and Python together; `driver MB` is the peak of the Python that drives Spark, which
reads the snapshots and writes the report.
"""

import json
import os
import sys
from pathlib import Path

import pytest
from benchmarks.sample_lake import write_lake
from benchmarks.table import show
from benchmarks.tree_cost import tree_cost

CLUSTERS, PARTITIONS, BROKERS, BUCKETS = int(os.environ.get("BENCHMARK_CLUSTERS", "100")), 5000, 20, 10
MOST_DRIVER_MEGABYTES = 500
RUN = """
import resource, sys
from pathlib import Path
from reconciler.cli.main import main
code = main(sys.argv[2:])
Path(sys.argv[1]).write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
sys.exit(code)
"""

pytestmark = pytest.mark.benchmark


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a folder with samples of all clusters, and a snapshot of each in `states`."""
    (tmp_path / "states").mkdir()
    for number in range(CLUSTERS):
        name = f"cluster-{number:03}"
        write_lake(tmp_path / name, BUCKETS, cluster=name, partitions=PARTITIONS, brokers=BROKERS)
        (tmp_path / name / "snapshot.json").rename(tmp_path / "states" / f"{name}.json")
    return tmp_path


def test_many_clusters_in_one_job(fleet: Path) -> None:
    samples = [word for number in range(CLUSTERS) for word in ("--samples", f"cluster-{number:03}/samples")]
    verbs = {
        "loads": ("loads", *samples, "--master", "local[2]", "--out", "loads"),
        "balance": ("balance", *samples, "--master", "local[2]", "--cluster", "*", "--state", "states", "-o", "json"),
    }
    show("\n| clusters | partitions | samples | job | CPU s | GiB | driver MB |\n" + "|---" * 7 + "|")
    peaks = {}
    for verb, arguments in verbs.items():
        peak = fleet / f"{verb}.peak"
        cost = tree_cost([sys.executable, "-c", RUN, str(peak), *arguments], fleet / f"{verb}.json", cwd=fleet)
        peaks[verb] = int(peak.read_text()) / 1024
        counts = f"{CLUSTERS} | {CLUSTERS * PARTITIONS:,} | {CLUSTERS * PARTITIONS * BUCKETS:,}"
        show(f"| {counts} | {verb} | {cost.cpu_seconds:.1f} | {cost.peak_bytes / 2**30:.1f} | {peaks[verb]:.0f} |")
    told = json.loads((fleet / "balance.json").read_text("utf-8"))["clusters"]
    assert len(told) == CLUSTERS
    assert all(one["total"]["before"]["replicas"] == 3 * PARTITIONS for one in told)
    assert max(peaks.values()) <= MOST_DRIVER_MEGABYTES, peaks
