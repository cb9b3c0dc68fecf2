"""Runs what README and guides say: the tour prints what stands there, and every other command is one that there is."""

import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from helpers.program.git import git
from helpers.program.written_commands import commands_in, exit_code_of_reading
from helpers.waiting import HANG

from reconciler.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
GUIDES = sorted((ROOT / ".github" / "guides").glob("*.md"))
PAGES = [README, *GUIDES]
ANY = "..."
ACTIVATE = "source .venv/bin/activate"
MARK = "= the next command ="

pytestmark = pytest.mark.usefixtures("_no_variables")


def blocks(page: Path, language: str) -> list[str]:
    """Return a page's blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def steps() -> list[tuple[str, list[str]]]:
    """Return each command of the tour with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(README, "console"):
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


# The tour.


def called(words: list[str]) -> tuple[int, str]:
    """Return the exit code and all that is printed, as a terminal shows both streams."""
    assert words[0] == "reconciler"
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = main(words[1:])
    return code, printed.getvalue()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout of what Git would commit now, with an environment as the README's first command makes it."""
    bin_folder = Path(sys.executable).parent
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", check=False)
    if not listed or not (bin_folder / "activate").exists():
        pytest.skip("these are no files of a checkout, or Python has no environment of its own")
    folder = tmp_path / "checkout"
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(bin_folder)
    return folder


@pytest.mark.long
def test_the_tour_line_by_line_in_a_checkout_prints_the_same_and_git_sees_no_change(checkout: Path) -> None:
    commands = [command for command, _ in steps()]
    assert commands[0] == ACTIVATE
    script = "\n".join(f"echo '{MARK}'\n{command}" for command in commands)
    done = subprocess.run(
        ["bash", "-e"],
        input=script,
        cwd=checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    printed = done.stdout.split(f"{MARK}\n")[1:]
    assert len(printed) == len(commands)
    for (command, said), text in zip(steps(), printed, strict=True):
        assert matches(said, text), f"$ {command}\n{text}"
    assert git(checkout, "status", "--porcelain") == ""


def test_what_the_first_screen_shows_is_of_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = [line for _, said in steps() for line in said]
    shown = [line for block in blocks(README, "text") for line in block.splitlines()]
    assert len(shown) >= 2
    assert [line for line in shown if line not in printed] == []
    monkeypatch.chdir(tmp_path)
    assert called(["reconciler", "init", "--demo"])[0] == 0
    declared = Path("desired-state", "demo", "web.yaml").read_text("utf-8")
    assert [block for block in blocks(README, "yaml") if block not in declared] == []


# Every other command, of the README and of the guides.

ELSEWHERE = {
    (
        "plan",
        "--what-if",
        "drain=5",
        "--cluster",
    ): "tries many plans; tests/scenarios/lost_rack, tests/cli/test_what_if.py",
    ("snapshot", "--bootstrap-server"): "asks kafka-1; tests/journeys runs it on brokers",
    ("doctor", "--bootstrap-server"): "asks kafka-1; tests/live runs it on brokers",
    ("cancel", "plan.json", "--client"): "asks a broker; tests/live/test_broken_files.py runs it",
    ("status", "--cluster", "prod-eu", "--bootstrap-server"): "asks kafka-1; tests/live/test_broken_files.py runs it",
    ("cancel", "--cluster", "prod-eu"): "needs a run that is on or has died; tests/live/test_empty_machine.py",
    ("throttle",): "needs a run that is on; tests/live/test_throttle.py",
    ("import",): "asks kafka-1, or reads another tool's files; tests/live/test_import.py, tests/cli/test_import.py",
    ("status", "--cluster", "prod-eu,prod-us"): "needs both clusters; tests/cli/test_many_clusters.py",
    ("plan", "--cluster", "prod-us,prod-eu"): "needs both clusters; tests/cli/test_mirrors.py",
    ("plan", "--cluster", "prod-eu", "--source-state"): "needs both clusters; tests/cli/test_mirrors.py",
    ("diff", "--cluster", "prod-eu", "--against"): "needs both clusters; tests/cli/test_against.py",
    ("diff", "--cluster", "*", "--notify"): "needs somebody to tell; tests/cli/test_notices.py",
    ("snapshot", "--cluster", "prod-us"): "needs both clusters; tests/cli/test_mirrors.py",
    ("collect",): "takes a day; tests/cli/test_collect.py",
    ("loads",): "starts Spark; tests/cli/test_loads.py",
    ("plan", "--cluster", "prod-eu", "--loads"): "needs their result; tests/cli/test_plan_loads.py",
    ("topics", "list", "--cluster", "demo", "--since"): "needs an earlier snapshot; tests/cli/test_topics.py",
    ("groups", "reset-offsets"): "needs a group that nobody reads with; tests/groups/cli/test_groups.py",
    ("balance",): "starts Spark; tests/cli/test_balance.py",
}
"""Commands which other tests run, by their first words."""


def written(page: Path) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the commands of a page's blocks that show no output, in their order, with their exit codes."""
    for block in blocks(page, "sh"):
        for line in block.splitlines():
            told = re.search(r"#.* exit (\d+)$", line)
            for command in commands_in(line):
                yield command, int(told[1]) if told else 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_is_one_that_the_program_takes(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf-8")
    quoted = [command for code in re.findall(r"`(reconciler [^`]*)`", text) for command in commands_in(code)]
    commands = [*(command for command, _ in written(page)), *quoted]
    assert commands
    assert [command for command in commands if exit_code_of_reading(command, monkeypatch) != 0] == []


def names_a_cluster_of_ones_own(page: Path) -> bool:
    """Whether a page is about a cluster `prod-eu`, and not about the demo."""
    return "--cluster demo" not in page.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "costs"], ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert called(["reconciler", "init", "--demo"])[0] == 0
    if names_a_cluster_of_ones_own(page):
        as_prod_eu(tmp_path / "desired-state")
    assert called(["reconciler", "plan", "--out", "plan.json"])[0] == 0
    for command, code in written(page):
        if any(command[: len(known)] == known for known in ELSEWHERE):
            continue
        ended, printed = called(["reconciler", *command])
        assert ended == code, f"{command}\n{printed}"


def as_prod_eu(root: Path) -> None:
    """Give the simulated cluster of the demo another name."""
    shutil.move(root / "demo", root / "prod-eu")
    cluster = root / "prod-eu" / "cluster.yaml"
    text = cluster.read_text("utf-8")
    assert text.count("name: demo") == 1
    cluster.write_text(text.replace("name: demo", "name: prod-eu"), "utf-8")


SPECS = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in GUIDES
    for number, block in enumerate(blocks(page, "yaml"))
]


@pytest.mark.parametrize("spec", SPECS)
def test_the_yaml_of_a_guide_is_part_of_a_cluster_document(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # A block is a document of its own, or what stands in that of the cluster.
    is_whole = spec.startswith("apiVersion:")
    for name in ("prod-eu", *re.findall(r"source: (\S+)", spec)):
        cluster = tmp_path / "desired-state" / name / "cluster.yaml"
        cluster.parent.mkdir(parents=True)
        text = f"apiVersion: reconciler/v1\nkind: Cluster\nmetadata: {{name: {name}}}\n"
        cluster.write_text(text + ("spec: {}\n" if is_whole or name != "prod-eu" else spec), "utf-8")
    if is_whole:
        (tmp_path / "desired-state" / "prod-eu" / "more.yaml").write_text(spec, "utf-8")
    assert called(["reconciler", "validate"])[0] == 0


# Where they lead.

LINKED = [
    ".github/CONTRIBUTING.md",
    ".github/CHANGELOG.md",
    ".github/decisions",
    ".github/RIGHTS.md",
    "reconciler/files/codes/README.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert [link for link in links(page) if "://" not in link and not (page.parent / link).exists()] == []


def test_the_readme_links_every_guide_and_what_else_there_is_to_read() -> None:
    guides = [str(page.relative_to(ROOT)) for page in GUIDES]
    assert len(guides) >= 5
    assert set(guides) | set(LINKED) <= set(links(README))


def links(page: Path) -> list[str]:
    """Return where a page's links lead."""
    return re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
