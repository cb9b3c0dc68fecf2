"""The ratchet names a planted line of each kind. It passes text that only looks like one."""

from pathlib import Path

import pytest
from helpers import ratchet
from helpers.program.git import git

SETTINGS = '[project]\nname = "small"\n\n[tool.ratchet]\nsince = "{}"\n\n[tool.ratchet.figures]\n\n[tool.other]\n'
FILES = {
    "reconciler/__init__.py": '"""Plans and applies."""\n',
    "reconciler/planner/costs.py": '"""Computes the cost of a move."""\n\n\nclass Cost:\n    """Bytes to copy."""\n',
    "reconciler/apply/run.py": '"""Runs a plan."""\n\n\nclass Run:\n    """One run."""\n',
    "tests/test_costs.py": "def test_a_reorder_costs_no_byte() -> None: ...\n",
}
CASES = {"tests/test_costs.py::test_a_reorder_costs_no_byte": 1}


def commit(root: Path, message: str) -> None:
    git(root, "add", ".")
    git(root, "commit", "-qm", message)


def record(root: Path, cases: ratchet.Cases = CASES) -> None:
    settings = root / ratchet.SETTINGS
    settings.write_text(ratchet.rewritten(settings.read_text(), ratchet.measured(ratchet.files_of(root), cases)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository of five files, whose second commit records their figures."""
    git(tmp_path, "init", "-q", "-b", "main")
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    commit(tmp_path, "A small package")
    first = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / ratchet.SETTINGS).write_text(SETTINGS.format(first))
    record(tmp_path)
    commit(tmp_path, "A ratchet\n\nWorth: a table, to its readers")
    assert ratchet.differences(tmp_path, CASES) == []
    return tmp_path


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize(
    ("path", "planted", "failure"),
    [
        ("planner/costs.py", "LIMIT = 2\n", "planner: lines 5 -> 6\n  reconciler/planner/costs.py:6: LIMIT = 2"),
        (
            "apply/run.py",
            "# An error ends the run. Where a broker is dead,\n# nothing is told.\n",
            "apply: marked 0 -> 1\n  reconciler/apply/run.py:6: Where a broker is dead, nothing is told.",
        ),
        (
            "apply/run.py",
            '\ndef runs() -> int:\n    """Return a number of runs.\n\n    Whoever asks gets the number.\n    """\n',
            "apply: marked 0 -> 1\n  reconciler/apply/run.py:10: Whoever asks gets the number.",
        ),
        ("__init__.py", "told: int = 1\n", "top: vague 0 -> 1\n  reconciler/__init__.py:2: told in: told: int = 1"),
        (
            "planner/costs.py",
            "def cost(most: int) -> int: ...\n",
            "planner: vague 0 -> 1\n  reconciler/planner/costs.py:6: most in: def cost(most: int) -> int: ...",
        ),
        (
            "apply/run.py",
            "def _start() -> None: ...\n_start()\n",
            "apply: once 0 -> 1\n  reconciler/apply/run.py:6: _start",
        ),
        (
            "apply/run.py",
            "class Cost: ...\n",
            "all: classes-twice 0 -> 1\n  reconciler/apply/run.py:6: Cost\n  reconciler/planner/costs.py:4: Cost",
        ),
        ("new/part.py", "LIMIT = 2\n", "new: lines 0 -> 1\n  reconciler/new/part.py:1: LIMIT = 2"),
        ("../tests/helper.py", "LIMIT = 2\n", "tests: lines 1 -> 2\n  tests/helper.py:1: LIMIT = 2"),
    ],
)
def test_a_planted_line_is_named(root: Path, path: str, planted: str, failure: str, *, is_committed: bool) -> None:
    file = root / "reconciler" / path
    file.parent.mkdir(exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + planted)
    if is_committed:
        commit(root, "Planted")
    assert failure in [str(difference) for difference in ratchet.differences(root, CASES)]


def test_a_planted_case_is_named(root: Path) -> None:
    file = root / "tests" / "test_costs.py"
    file.write_text('@pytest.mark.parametrize("size", [0, 1])\n' + file.read_text())
    differences = ratchet.differences(root, dict.fromkeys(CASES, 2))
    assert [(difference.figure, difference.recorded, difference.measured) for difference in differences] == [
        ("lines", 1, 2),
        ("cases", 1, 2),
    ]
    assert differences[1].additions == (
        "tests/test_costs.py:2: test_a_reorder_costs_no_byte pytest.mark.parametrize('size', [0, 1]) (2 cases)",
    )
    assert [difference.figure for difference in ratchet.differences(root, None)] == ["lines"]


@pytest.mark.parametrize(
    "innocent",
    [
        '"""Computes the cost of the next step."""\n# Told, found\n',
        "# Which broker does a replica move to?\n",
        'HINT = "# Where nothing is known, nothing is told."  # noqa: where nothing is told\n',
        "def _start() -> None: ...\n_start()\n_start()\n",
        "def __told__(outcome: int, leader: int) -> None: ...\n",
        "class Price: ...\nclass Price: ...\n",
        "value = told(found.left)\n",
    ],
)
def test_plain_text_and_names_have_no_mark(root: Path, innocent: str) -> None:
    (root / "reconciler" / "__init__.py").write_text(innocent)
    assert {difference.figure for difference in ratchet.differences(root, CASES)} <= {"lines"}


def test_a_line_that_moves_is_not_named(root: Path) -> None:
    file = root / "reconciler" / "planner" / "costs.py"
    file.rename(file.with_name("prices.py"))
    assert ratchet.differences(root, CASES) == []


def test_a_figure_that_falls_has_to_be_recorded(root: Path) -> None:
    (root / "reconciler" / "planner" / "costs.py").write_text('"""Computes the cost of a move."""\n')
    assert [str(difference) for difference in ratchet.differences(root, CASES)] == ["planner: lines 5 -> 1"]
    record(root)
    assert ratchet.differences(root, CASES) == []
    assert (root / ratchet.SETTINGS).read_text().endswith("\ntests = {lines = 1, cases = 1}\n\n[tool.other]\n")


@pytest.mark.parametrize(("message", "is_explained"), [("More", False), ("More\n\nWorth: a test, to its author", True)])
def test_a_commit_that_raises_a_figure_needs_a_reason(root: Path, message: str, *, is_explained: bool) -> None:
    (root / "reconciler" / "apply" / "run.py").write_text('"""Runs a plan."""\n')
    record(root)
    commit(root, "Less")
    (root / "reconciler" / "planner" / "costs.py").write_text("LIMIT = 1\n" * 9)
    record(root)
    commit(root, message)
    unexplained = ratchet.unexplained_raises(root)
    assert [line.partition(" ")[2] for line in unexplained] == ([] if is_explained else ["More: planner: lines 5 -> 9"])


def test_a_subject_of_73_characters_is_named(root: Path) -> None:
    for subject in ("s" * 72, "l" * 73, f"Merge {'a' * 40} into {'b' * 40}"):
        git(root, "commit", "-q", "--allow-empty", "-m", subject)
    assert [commit.partition(" ")[2] for commit in ratchet.long_subjects(root)] == ["l" * 73]


def test_a_shallow_clone_has_no_history(root: Path, tmp_path: Path) -> None:
    assert ratchet.has_history(root)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", "shallow")
    assert not ratchet.has_history(tmp_path / "shallow")
