"""The house rules, checked: format, lint, types, layers, and what no file of the repository may hold."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from helpers import ratchet

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DEMO_COMMAND = (
    "python3 -m venv .venv && .venv/bin/pip install -q . "
    "&& .venv/bin/reconciler plan --cluster demo --state desired-state/demo/snapshot.json"
)
TEST_COMMAND = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[all,test]' && .venv/bin/pytest"
# Pieces, so that this file does not hold what it looks for.
MACHINE_PATHS = re.compile(
    "|".join(["/" + "work/", "/" + "root/", "/" + "home/", "/" + r"Users/[a-z]", r"[A-Z]:\\" + "Users"])
)
REGISTRY_HOSTS = re.compile(
    "|".join(["pypi" + r"\.org", "pythonhosted" + r"\.org", "repo1?" + r"\.maven", "maven" + r"\.org"])
)


def _run(*command: str) -> None:
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{ended.stdout[-6000:]}\n{ended.stderr[-3000:]}"


def _tracked_texts() -> list[tuple[str, str]]:
    """Return every tracked text file; outside a checkout, every file that one would hold."""
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split("\0") if listed.returncode == 0 else []
    files = [ROOT / name for name in names if name] or [*ROOT.glob("reconciler/**/*"), *ROOT.glob("tests/**/*")]
    texts = []
    for file in files:
        if file.is_file():
            content = file.read_bytes()
            if b"\0" not in content[:8000]:
                texts.append((str(file.relative_to(ROOT)), content.decode("utf-8")))
    return texts


def test_code_is_formatted() -> None:
    _run(str(BIN / "ruff"), "format", "--check", ".")


def test_no_lint_rule_is_broken() -> None:
    _run(str(BIN / "ruff"), "check", ".")


@pytest.mark.long
def test_types_are_right() -> None:
    _run(str(BIN / "mypy"))


def test_layers_are_kept() -> None:
    _run(str(BIN / "lint-imports"), "--no-cache")


def test_every_package_and_module_says_why_it_exists() -> None:
    silent = [str(file.relative_to(ROOT)) for file in ROOT.glob("reconciler/**/*.py") if not _has_docstring(file)]
    assert silent == []


def _has_docstring(file: Path) -> bool:
    return file.read_text("utf-8").lstrip().startswith(('"""', 'r"""'))


@pytest.mark.parametrize(("what", "pattern"), [("a machine's path", MACHINE_PATHS), ("a registry", REGISTRY_HOSTS)])
def test_no_file_names_a_machine_or_a_registry(what: str, pattern: re.Pattern[str]) -> None:
    found = [(name, match[0]) for name, text in _tracked_texts() for match in pattern.finditer(text)]
    assert found == [], f"these files hold {what}"


def test_the_readme_holds_the_two_commands_one_line_each() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").split("\n")
    assert lines.count(DEMO_COMMAND) == 1
    assert lines.count(TEST_COMMAND) == 1


def test_ci_runs_the_readmes_second_command() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert f'\n{TEST_COMMAND} "$@"\n' in script
    assert "set -euo pipefail" in script
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_every_decision_says_context_choice_and_what_was_refused() -> None:
    folder = ROOT / ".github" / "decisions"
    index = (folder / "README.md").read_text("utf-8")
    files = sorted(folder.glob("0*.md"))
    assert files
    assert len(files) == index.count("](0")
    for file in files:
        text = file.read_text("utf-8")
        number = re.match(r"(\d{4})-[a-z0-9-]+\.md", file.name)
        assert number, file
        title = text.partition("\n")[0].removeprefix("# ")
        assert title.startswith(f"{int(number[1])}. "), file
        assert f"- [{title}]({file.name})" in index, file
        assert [part for part in ("**Context.**", "**Choice.**", "**Refused.**") if part not in text] == [], file


def test_a_code_means_one_thing() -> None:
    users: dict[str, set[str]] = {}
    for path in sorted((ROOT / "reconciler").rglob("*.py")):
        package, *inside = path.relative_to(ROOT / "reconciler").parts
        if inside[:1] == ["pipelines"]:  # programs of jobs: they read codes in a plan, and have none of their own
            continue
        for code in re.findall(r'"(KR[0-9]{3})"', path.read_text("utf-8")):
            users.setdefault(code, set()).add(package)
    del users["KR100"]  # the class of all input errors, and a file that is not there
    assert {code: packages for code, packages in users.items() if len(packages) > 1} == {}


def test_every_figure_of_the_ratchet_is_as_recorded(cases: Counter[str] | None) -> None:
    differences = ratchet.differences(ROOT, cases)
    advice = f"{ratchet.COMMAND} writes the figures; a commit that raises one says after `Worth:` what that is worth"
    assert differences == [], "\n".join([*map(str, differences), advice])


@pytest.fixture
def _history() -> None:
    if not ratchet.has_history(ROOT):
        pytest.skip("git has no history here: this is a shallow clone, or not a checkout")


@pytest.mark.usefixtures("_history")
def test_a_commit_that_raises_a_figure_says_what_that_is_worth() -> None:
    assert ratchet.unexplained_raises(ROOT) == []


@pytest.mark.usefixtures("_history")
def test_the_subject_of_a_commit_has_at_most_72_characters() -> None:
    assert ratchet.long_subjects(ROOT) == []
