"""Thousands of damaged files through the command line: each is read, or refused in a sentence, in little memory."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cli.fuzz_worker import MEGABYTES
from helpers.depth import parts
from helpers.figures import Tell
from helpers.program.fuzz_folder import KINDS, write_good

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
WHOLE, WORKERS = 5200, 2


@parts("shares", [range(20 * len(KINDS))], deep=[range(WHOLE)[: WHOLE // WORKERS], range(WHOLE)[WHOLE // WORKERS :]])
def test_damaged_files_are_read_or_refused(tmp_path: Path, figures: Tell, shares: Sequence[range]) -> None:
    """Each worker has a share of the seeds; the kinds of file take turns."""
    seeds = sum(map(len, shares))
    started = [_worker(tmp_path / str(number), share) for number, share in enumerate(shares)]
    answers = [_answers(worker) for worker in started]
    wrong = [each for told in answers for each in told if "wrong" in each]
    kept = tmp_path / "wrong.json"
    kept.write_text(json.dumps(wrong, indent=1), "utf-8")
    told = [f"seed {each['seed']} ({each['kind']}): {each['wrong']}: {each['told'][-300:]}" for each in wrong]
    assert told == [], f"the files are kept in {kept}"
    ends = [told[-1] for told in answers]
    assert all("ended" in end for end in ends), f"a worker was ended by its limits: {ends}"
    ended = sum((Counter(end["ended"]) for end in ends), Counter())
    assert ended.total() == seeds
    assert min(ended["read"], ended["placed"]) > seeds // 20
    megabytes = max(end["megabytes"] for end in ends)
    assert megabytes < MEGABYTES
    figures(
        "fuzzed inputs",
        f"{seeds:,} of {len(KINDS)} kinds: {ended['read']:,} read, {ended['placed']:,} refused with line and column, "
        f"{ended['refused']:,} otherwise; at most {megabytes:.0f} MB",
    )


def test_the_files_that_are_fuzzed_are_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_good(tmp_path)
    for name, kind in KINDS.items():
        kind.place(tmp_path).write_bytes((tmp_path / "good" / kind.file).read_bytes())
        assert kind.call(tmp_path) == 0, name


def _worker(folder: Path, seeds: range) -> "subprocess.Popen[str]":
    folder.mkdir()
    write_good(folder)
    return subprocess.Popen(
        [sys.executable, "-m", "cli.fuzz_worker", str(folder), str(seeds.start), str(len(seeds))],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )


def _answers(worker: "subprocess.Popen[str]") -> list[dict[str, Any]]:
    out, _ = worker.communicate()
    return [json.loads(line) for line in out.splitlines()]
