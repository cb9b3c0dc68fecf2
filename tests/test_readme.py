"""The README's tour prints what the README says, and every other command of it runs, or is at least one there is."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.program.command_line import reconciler
from helpers.program.written_commands import commands_in, exit_code_of_reading
from helpers.waiting import HANG

README = Path(__file__).parent.parent / "README.md"
ANY = "..."


def steps() -> list[tuple[str, list[str]]]:
    """Return each command of the tour with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def matches(said: list[str], printed: str) -> bool:
    """Whether the output is as said; `...` stands for anything, whole lines too."""
    pattern = "\n".join(re.escape(line).replace(re.escape(ANY), ".*") for line in said)
    return re.fullmatch(pattern, printed.rstrip("\n"), flags=re.DOTALL) is not None


def test_the_tour_prints_what_the_readme_says(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert len(steps()) >= 5
    for command, said in steps():
        done = subprocess.run(
            command.split(),
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert matches(said, done.stdout), f"$ {command}\n{done.stdout}"


DEMO_VERBS = ("groups",)
ELSEWHERE = {
    ("snapshot", "--bootstrap-server"): "asks kafka-1; tests/journeys runs it on brokers",
    ("import",): "asks kafka-1, or reads another tool's files; tests/live/test_import.py, tests/cli/test_import.py",
    ("collect",): "takes a day; tests/cli/test_collect.py",
    ("loads",): "starts Spark; tests/cli/test_loads.py",
    ("plan", "--cluster", "prod-eu", "--loads"): "needs their result; tests/cli/test_plan_loads.py",
    ("groups", "reset-offsets"): "needs a group that nobody reads with; tests/cli/test_groups.py",
    ("balance",): "starts Spark; tests/cli/test_balance.py",
}
"""Commands which other tests run, by their first words."""


def written() -> list[tuple[str, ...]]:
    """Return the commands of the README's blocks that show no output, in their order."""
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [command for block in blocks for command in commands_in(block)]


def test_every_command_of_the_readme_is_one_that_the_program_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = README.read_text(encoding="utf-8")
    quoted = [command for code in re.findall(r"`(reconciler [^`]*)`", text) for command in commands_in(code)]
    assert len(written()) > 10
    assert len(quoted) > 3
    wrong = [command for command in [*written(), *quoted] if exit_code_of_reading(command, monkeypatch) != 0]
    assert wrong == []


@pytest.mark.long
def test_the_commands_for_a_cluster_of_ones_own_run_as_written(tmp_path: Path) -> None:
    theirs, demo = tmp_path / "theirs", tmp_path / "demo"
    for folder in (theirs, demo):
        folder.mkdir()
        reconciler("init", "--demo", cwd=folder)
    as_prod_eu(theirs / "desired-state")
    reconciler("plan", "--cluster", "prod-eu", "--out", "plan.json", cwd=theirs)
    commands = [command for command in written() if not any(command[: len(known)] == known for known in ELSEWHERE)]
    assert len(commands) >= 10
    for command in commands:
        if command == ("init",):
            reconciler(*command, cwd=tmp_path)  # in a folder of its own, as a second cluster would have to be named
        else:
            reconciler(*command, cwd=demo if command[0] in DEMO_VERBS else theirs)


def as_prod_eu(root: Path) -> None:
    """Give the simulated cluster of the demo another name."""
    shutil.move(root / "demo", root / "prod-eu")
    cluster = root / "prod-eu" / "cluster.yaml"
    text = cluster.read_text("utf-8")
    assert text.count("name: demo") == 1
    cluster.write_text(text.replace("name: demo", "name: prod-eu"), "utf-8")
