"""Prints what `validate` costs: `python -m pytest tests/benchmarks/test_validate_benchmarks.py -m benchmark -s`.

No assertion is about time.
"""

from pathlib import Path

import pytest
from benchmarks.measure import cost_of
from benchmarks.table import show, show_row
from benchmarks.topic_files import write_topics

pytestmark = pytest.mark.benchmark
SIZES = (1_000, 5_000, 10_000)


def test_validating_many_topics(tmp_path: Path) -> None:
    show("\n| topics | files | output | CPU s | MB |\n|---|---|---|---|---|")
    for topics in SIZES:
        for is_wrong, output in ((False, "text"), (True, "text"), (True, "sarif")):
            root = tmp_path / f"{topics}-{is_wrong}"
            if not root.exists():
                write_topics(root, topics, is_wrong=is_wrong)
            cost = cost_of(["-C", str(root), "validate", "-o", output], may_fail=is_wrong)
            files = "each wrong" if is_wrong else "in order"
            row = (f"{topics:,}", files, output, f"{cost.cpu_seconds:.2f}", f"{cost.peak_megabytes:.0f}")
            show_row(*row)
            assert cost.exit_code == int(is_wrong)
