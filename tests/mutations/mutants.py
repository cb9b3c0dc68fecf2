"""Draws mutants of the code that decides, and has mutmut run the tests of each: all of it in a copy of the checkout.

mutmut puts every mutant of a function beside it, finds which tests reach the function, and forks a process a mutant,
with all tests already loaded. It is made for whole projects; here it is told which files, which tests, and which names.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import takewhile, zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("reconciler", "tests", "schemas", "desired-state", "pyproject.toml", "README.md")


@dataclass(frozen=True, slots=True)
class Area:
    """Files of the package, and the tests that know them best."""

    files: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    """Tests among them that would take most of the time."""
    judged: int = 0
    """So many of its mutants, in the order drawn, are known to be killed or equal: what a run tries by default."""


AREAS = {
    "diff": Area(("diff/*.py",), ("diff",), judged=200),
    # From values to arrays and back; what is in between is shown optimal by the proof.
    "place": Area(
        ("planner/place.py",),
        ("planner",),
        without=("planner/test_determinism.py", "planner/load_balance/test_loads_clusters.py"),
        judged=463,
    ),
    "staging": Area(("staging/*.py",), ("staging",), without=("staging/test_mutants.py",), judged=300),
    # What decides from values alone. What sends requests is shown by runs that are killed, and by brokers.
    "apply": Area(
        (
            "apply/checks.py",  # what must hold before a run and before a stage
            "apply/decide.py",  # the next step, and what goes wrong under way
            "apply/evidence.py",  # what the cluster shows of a run
            "apply/journal.py",  # what is read back of earlier runs
            "apply/leftovers.py",  # which throttles are a run's own
            "apply/observed.py",  # what one turn sees
            "apply/partition_path.py",  # which lists a partition passes, and where it stands
            "apply/progress.py",  # how far, how fast, how long
            "apply/stage_memory.py",  # what is remembered between turns
            "apply/standings.py",  # what is left of each stage
            "apply/steps.py",  # how long to wait
            "apply/throttles.py",  # what is put on and what comes off
            "apply/topic_changes.py",  # where a topic change stands, and the next request
            "apply/withdraw.py",  # what goes back, and how
        ),
        ("apply", "workflow/test_known_runs.py"),
        without=("apply/test_lock.py", "apply/test_crash.py"),
        judged=200,
    ),
}
QUICK, ALL = "quick", "quick or long"
"""The marks of the tests that a mutant meets."""
_OPTIONS = ("-n", "0", "-p", "no:cacheprovider", "--timeout", "0", "-p", "mutations.cheapest_first")
_MAKE = """
from mutmut.__main__ import copy_also_copy_files, copy_src_dir, create_mutants, setup_source_paths
copy_src_dir()
copy_also_copy_files()
setup_source_paths()
create_mutants(1)
"""
"""What `mutmut run` begins with. It finds it done, so that what it makes can be drawn from before it runs."""
KILLED, SURVIVED, UNREACHED, TIMED_OUT = "killed", "survived", "reached by no test", "hung"
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
SEED = 13
_STATUS: dict[int | None, str] = {
    1: KILLED,
    3: KILLED,
    0: SURVIVED,
    5: UNREACHED,
    33: UNREACHED,
    36: TIMED_OUT,
    24: TIMED_OUT,
    -24: TIMED_OUT,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """In `function`, `right` became `wrong`; `name` is mutmut's, and counts on where the function changes."""

    name: str
    function: str
    right: str
    wrong: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others, and stays when another line of its function changes."""
        return self.function, self.right, self.wrong

    def __str__(self) -> str:
        """Return its entry in the list of equal mutants, all but the reason."""
        fields = {"function": self.function, "right": self.right, "wrong": self.wrong}
        return "\n".join(["[[equal]]", *(f"{field} = {json.dumps(text)}" for field, text in fields.items())])


def copied_checkout(folder: Path, area: Area, marks: str) -> Path:
    """Return a copy of what the tests need, with mutmut's settings in it: the tests of these marks run."""
    folder.mkdir()
    for name in NEEDED:
        there = ROOT / name
        if there.is_dir():
            shutil.copytree(there, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy(there, folder / name)
    settings = {
        "source_paths": ["reconciler"],
        "only_mutate": [f"reconciler/{name}" for name in area.files],
        "also_copy": ["schemas", "desired-state", "README.md"],
        "pytest_add_cli_args": ["-m", marks, *_OPTIONS, *(f"--ignore=tests/{name}" for name in area.without)],
        "pytest_add_cli_args_test_selection": [f"tests/{name}" for name in area.tests],
        "use_git_change_detection": False,
        "track_dependencies": False,
        # What takes a minute and five times as long as the tests took without a fault has hung.
        "timeout_constant": 12.0,
        "timeout_multiplier": 5.0,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n".join(["", "[tool.mutmut]", *lines, ""]))
    return folder


def mutants_of(folder: Path) -> dict[str, list[Mutant]]:
    """Have mutmut make the mutants of a copy; return each function's, but those of a sentence."""
    _called([sys.executable, "-c", _MAKE], folder)
    found: dict[str, list[Mutant]] = {}
    for name in sorted(_exit_codes(folder / "mutants")):
        module, _, mangled = name.rpartition(".")
        own = mangled.rpartition("__mutmut_")[0]
        function = _function(module, own)
        right, wrong = _difference(_source(folder, module, f"{own}__mutmut_orig"), _source(folder, module, mangled))
        if not _is_sentence(right, wrong):
            found.setdefault(function, []).append(Mutant(name, function, right, wrong))
    return found


def _source(folder: Path, module: str, mangled: str) -> list[str]:
    """Return the lines of a function's body and signature, without its name."""
    lines, spans = _mutated(folder / "mutants" / (module.replace(".", "/") + ".py"))
    start, end = spans[mangled]
    return [line.replace(mangled, "") for line in lines[start - 1 : end]]


@cache
def _mutated(path: Path) -> tuple[list[str], dict[str, tuple[int, int]]]:
    spans = json.loads(path.with_name(path.name + ".spans").read_text(encoding="utf-8"))["spans"]
    return path.read_text(encoding="utf-8").splitlines(), spans


def _function(module: str, mangled: str) -> str:
    """Return `planner.place._ordered` for `x__ordered`, `apply.journal.Recorded.began` for `xǁRecordedǁbegan`."""
    name = mangled[1:].removeprefix("_") if mangled.startswith("x_") else ".".join(mangled.split("ǁ")[1:])
    return f"{module.removeprefix('reconciler.')}.{name}"


def _difference(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    """Return the lines that differ: what both begin and end with is left out."""
    start = _same(before, after)
    end = _same(before[start:][::-1], after[start:][::-1])
    return _joined(before[start : len(before) - end]), _joined(after[start : len(after) - end])


def _same(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many lines are the same from the first on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines)


def _is_sentence(right: str, wrong: str) -> bool:
    """Whether only the words of a message differ: texts are compared whole where they are shown, not here."""
    changed = [pair for pair in zip_longest(_STRING.split(right), _STRING.split(wrong)) if pair[0] != pair[1]]
    return len(changed) == 1 and all(text and text.startswith('"') and " " in text for text in changed[0])


def drawn(mutants: Mapping[str, Sequence[Mutant]], size: int | None) -> list[Mutant]:
    """Return so many mutants, one of each function in turn; all without a size.

    The order hangs on each function and line alone: a change elsewhere draws no others.
    """
    piles = [sorted(mutants[function], key=_lot) for function in sorted(mutants, key=_lot)]
    turns = [mutant for turn in zip_longest(*piles) for mutant in turn if mutant is not None]
    return turns[:size]


def _lot(drawn_from: object) -> bytes:
    return sha256(f"{SEED} {drawn_from}".encode()).digest()


def run(folder: Path, mutants: Sequence[Mutant]) -> dict[Mutant, str]:
    """Return what became of each mutant."""
    program = Path(sys.executable).with_name("mutmut")
    _called([program, "run", "--max-children", "1", *(mutant.name for mutant in mutants)], folder)
    codes = _exit_codes(folder / "mutants")
    return {mutant: _STATUS.get(code := codes[mutant.name], f"ended with {code}") for mutant in mutants}


def _called(command: Sequence[str | Path], folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "MUTANT"))}
    environment |= {"PYTHONPATH": str(folder / "mutants" / "tests"), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout[-5000:]


def _exit_codes(folder: Path) -> dict[str, int | None]:
    codes: dict[str, int | None] = {}
    for path in folder.rglob("*.py.meta"):
        codes |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return codes
