"""Writes the outputs of the program into a folder, so that two commits can be compared byte for byte.

In a checkout of each commit, with the environment of either:

    PYTHONPATH=tests .venv/bin/python -m helpers.outputs.record FOLDER [SECTION ...]

Then `diff -r FOLDER OTHER`. The command lines are in `commands.txt`, by section. FOLDER/SECTION.txt has all that they
print, and FOLDER/SECTION has the text files that they write. The section `plans` has the plans of 250 random clusters
and of the flat clusters. Names replace the moments, the durations, the costs of Spark and the path of the folder.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from helpers.clusters.flat_clusters import CASES
from helpers.clusters.random_clusters import SMALL, TINY, random_cluster
from helpers.program.command_line import reconciler

from reconciler.files.plan_file import plan_text
from reconciler.files.snapshot import read_snapshot
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.plan import plan_of

COMMANDS = Path(__file__).with_name("commands.txt")
ROOT = Path(__file__).resolve().parents[3]
SEEDS = 250
PLANS = "plans"
PROCESSES = 2
BINARY = {".parquet", ".gz", ".crc"}
MOMENTS = range(1_774_742_400, 1_774_746_000, 60)
"""Of the samples, in seconds: an hour from 2026-03-29, 00:00 UTC."""


def sections() -> dict[str, list[str]]:
    """Return the lines of each section of commands.txt."""
    lines: dict[str, list[str]] = {}
    for line in COMMANDS.read_text("utf-8").splitlines():
        if line.startswith("= "):
            lines[line[2:]] = []
        elif line and not line.startswith("#"):
            lines[list(lines)[-1]].append(line)
    return lines


def run_section(folder: Path, lines: Sequence[str]) -> str:
    """Run these lines in a folder, and return what they print."""
    folder.mkdir(parents=True)
    return "\n".join(_run(folder, line) for line in lines)


def _run(folder: Path, line: str) -> str:
    verb, *words = shlex.split(line)
    match verb, [word.replace("\\n", "\n") for word in words]:
        case "copy", [source, target]:
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copyfile
            copy(ROOT / source, folder / target)
        case "write", [name, text]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, "utf-8")
        case "replace", [name, old, new]:
            text = (folder / name).read_text("utf-8")
            assert old in text, line
            (folder / name).write_text(text.replace(old, new), "utf-8")
        case "samples", [name]:
            (folder / name).write_text("".join(_samples(folder)), "utf-8")
        case _:
            done = reconciler(verb, *words, cwd=folder, expect=None)
            return f"$ reconciler {line}\n{done.out}--- stderr, exit code {done.code}\n{done.err}"
    return f"$ {line}\n"


def _samples(folder: Path) -> Iterator[str]:
    """Yield an hour of samples of each partition of the demo's first ten topics. Broker 1 has twice as much to do."""
    topics = read_snapshot(folder / "desired-state" / "demo" / "snapshot.json").topics
    keys = [(name, each.partition, each.leader) for name in sorted(topics)[:10] for each in topics[name].partitions]
    random = Random(46)
    yield "ts,cluster,topic,partition,bytes_in,bytes_out,messages_in,size_bytes,end_offset\n"
    for moment in MOMENTS:
        for topic, partition, leader in keys:
            rate = random.randrange(100_000, 900_000) * (2 if leader == 1 else 1)
            yield f"{moment},demo,{topic},{partition},{rate},{2 * rate},{rate // 500},{10**9 + rate},{moment}\n"


def write_plans(folder: Path) -> None:
    """Write the plan of each random cluster, or the reason why it has none, and the plan of each flat cluster."""
    for seed in range(SEEDS):
        (folder / f"seed-{seed:03}.json").write_text(_plan(*random_cluster(seed, (TINY, SMALL)[seed % 2])), "utf-8")
    for name, case in CASES.items():
        (folder / f"flat-{name}.json").write_text(_plan(*case.build()), "utf-8")


def _plan(desired: Desired, observed: Cluster) -> str:
    try:
        return plan_text(plan_of(desired, observed))
    except ReconcilerError as error:
        return f"{error}\n"


def record(to: Path, names: Sequence[str]) -> None:
    """Write the outputs of these sections into a folder that has none of them yet."""
    lines = sections()
    for name in names:
        (to / name).mkdir(parents=True)
    began = datetime.now(UTC)
    with TemporaryDirectory() as scratch, ThreadPoolExecutor(PROCESSES) as pool:
        folders = {name: Path(scratch) / name for name in names if name != PLANS}
        outputs = {name: pool.submit(run_section, folder, lines[name]) for name, folder in folders.items()}
        if PLANS in names:
            write_plans(to / PLANS)
        for name, output in outputs.items():
            folder, text = folders[name], output.result()
            days = {f"{moment:%Y-%m-%d}" for moment in (began, datetime.now(UTC))}
            (to / f"{name}.txt").write_text(_repeatable(text, folder, days), "utf-8")
            for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in BINARY):
                copy = to / name / file.relative_to(folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(_repeatable(file.read_text("utf-8"), folder, days), "utf-8")


def _repeatable(text: str, folder: Path, days: Collection[str]) -> str:
    """Return a text with names in the place of all that differs from run to run. `days`: those of the run, by date."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(rf"({'|'.join(sorted(days))})[T ]\d\d:\d\d(:\d\d(\.\d+)?)?", "NOW", text)
    text = re.sub(r"(?<=_timestamp_seconds).* [\d.]+", " NOW", text)
    text = re.sub(r"\bDone in (under )?\d+( s| min|h(\d+m)?)", "Done in TIME", text)
    return re.sub(r"^Spark: .*", "Spark: COSTS", text, flags=re.MULTILINE)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(ROOT)  # each call runs the program of this checkout, not the one that is installed
    record(Path(sys.argv[1]).absolute(), sys.argv[2:] or [*sections(), PLANS])
