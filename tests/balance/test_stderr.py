import os
import subprocess

import pytest
from helpers.waiting import wait_for

from reconciler.balance.spark.java import without_the_expected_line

EXPECTED = "WARNING: Using incubator modules: jdk.incubator.vector"


def test_javas_expected_line_is_left_out_and_all_else_passes(capfd: pytest.CaptureFixture[str]) -> None:
    told = f"before\n{EXPECTED}\n{EXPECTED} and more\nError: it did not start\n[Stage 0:=>"
    with without_the_expected_line():
        subprocess.run(["sh", "-c", 'printf "%s" "$TOLD" >&2'], env={**os.environ, "TOLD": told}, check=True)
    os.write(2, b"\nafterwards\n")
    seen = ""

    def is_all_there() -> bool:
        nonlocal seen
        seen += capfd.readouterr().err
        return "[Stage" in seen and "afterwards" in seen

    wait_for(is_all_there, "both ends of what is told", seen=lambda: seen)
    assert EXPECTED not in seen.splitlines()
    for line in ("before", f"{EXPECTED} and more", "Error: it did not start", "[Stage 0:=>", "afterwards"):
        assert line in seen
