"""`reconciler collect` as it is called: what it says, how it ends, and that a signal loses nothing."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.program.call import ROOT, Program, modules_loaded_by
from helpers.waiting import HANG

from reconciler.workflow.demo import write_demo

pytestmark = pytest.mark.long


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_demo("desired-state")
    return tmp_path


def test_one_round_by_default_and_what_comes_next_is_told(reconciler: Program, demo: Path) -> None:
    from pyarrow import dataset

    done = reconciler("collect", "--cluster", "demo", "--out", "samples")
    assert (done.code, done.out) == (0, "")
    first, last = done.err.splitlines()
    assert first.endswith("  demo: 480 partitions, 1,428 replicas")
    assert last == "Wrote samples: 480 samples in 1 round. Loads of partitions:  reconciler loads --samples samples"
    assert dataset.dataset(demo / "samples", format="parquet").count_rows() == 480


def test_json_has_a_line_for_each_round(reconciler: Program, demo: Path) -> None:
    done = reconciler("collect", "--out", str(demo / "samples"), "--every", "10m", "--for", "20m", "-o", "json")
    told = [json.loads(line) for line in done.out.splitlines()]
    assert [set(each) for each in told] == [{"at", "cluster", "failed", "partitions", "replicas", "unknown"}] * 3
    assert {(each["cluster"], each["partitions"], each["failed"]) for each in told} == {("demo", 480, None)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing option '--out'"),
        (("--out", "s", "--once", "--for", "1h"), "--once is one round"),
        (("--out", "s", "--every", "0s"), "--every 0s would never end"),
        (("--out", "s", "--every", "60"), "is no length of time"),
        (("--out", "s", "--state", "x.json"), "collect works on a cluster"),
        (("--out", "s", "-o", "html"), "'html'"),
        (("--out", "s", "--prometheus-match", 'cluster="a"'), "--prometheus-match belongs to --prometheus"),
        (("--out", "s", "--metrics-client", "p"), "--metrics-client belongs to --prometheus"),
    ],
)
def test_wrong_usage_ends_with_64(reconciler: Program, arguments: tuple[str, ...], words: str) -> None:
    done = reconciler("collect", *arguments)
    assert done.code == 64
    assert words in done.err


@pytest.mark.usefixtures("demo")
def test_what_is_loaded_is_what_it_needs() -> None:
    loaded = modules_loaded_by("collect", "--cluster", "demo", "--out", "samples", cwd=Path.cwd())
    assert "pyarrow" in loaded
    assert not loaded & {"pyspark", "kafka", "ortools", "jinja2"}


# Loads what the program needs, and is then stopped in the pause after its first round, which lasts an hour.
_PAUSED = """
import sys, time
from reconciler.admin import simulated
simulated.SimulatedClock.sleep = lambda self, seconds: (print('paused', flush=True), time.sleep(seconds))
from reconciler.cli.main import run
sys.argv[0] = "reconciler"
run()
"""


@pytest.mark.usefixtures("demo")
def test_a_signal_ends_it_at_once_and_what_was_written_stays() -> None:
    from pyarrow import dataset

    arguments = ("collect", "--cluster", "demo", "--out", "samples", "--every", "1h")
    started = subprocess.Popen(
        [sys.executable, "-c", _PAUSED, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "paused\n"
    started.send_signal(signal.SIGTERM)
    told = started.communicate(timeout=HANG)[1]
    assert started.returncode == 143
    assert [line for line in told.splitlines() if line][-2:] == [
        "Wrote samples: 480 samples in 1 round. Loads of partitions:  reconciler loads --samples samples",
        "Terminated.",
    ]
    assert dataset.dataset("samples", format="parquet").count_rows() == 480
