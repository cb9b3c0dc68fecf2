"""How long help, and an error, take to start."""

import resource
import subprocess
import sys

import pytest
from helpers.program import ROOT

TIMES = 7

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "--help"), ("plan", "--nonsense"), ("nonsense",)])
def test_help_and_wrong_usage_start_in_a_quarter_of_a_cpu_second(arguments: tuple[str, ...]) -> None:
    spent = sorted(_cpu_seconds(arguments) for _ in range(TIMES))
    print(f"reconciler {' '.join(arguments)}: {spent[0]:.3f} CPU s at best, {spent[TIMES // 2]:.3f} median of {TIMES}")  # noqa: T201 - a benchmark prints
    assert spent[0] < 0.25


def _cpu_seconds(arguments: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "reconciler", *arguments]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
