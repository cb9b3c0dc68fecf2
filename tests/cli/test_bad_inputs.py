"""Named bad inputs: the exit code, one sentence with its place, no traceback, and little memory."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.bad_inputs import bad_inputs
from cli.limited import ROOT, Limited, Spent
from helpers.figures import Tell

pytestmark = pytest.mark.long

MEGABYTES = 256
SENTENCE = re.compile(r"error: [^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]+ \(KR[0-9]{3}\)")


@pytest.fixture(scope="module")
def limited() -> Iterator[Limited]:
    with Limited() as program:
        yield program


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, limited: Limited) -> Path:
    """Return a folder with the demo and a plan of it."""
    folder = tmp_path_factory.mktemp("bad")
    shutil.copytree(ROOT / "desired-state", folder / "desired-state")
    made = limited("plan", "--cluster", "demo", "--out", "plan.json", cwd=folder)
    assert made.code == 0, made
    return folder


def what_is_wrong(spent: Spent, says: str, code: int) -> list[str]:
    """Return in what the ending is not what it must be."""
    lines = spent.err.splitlines()
    checks = {
        f"exit code {spent.code}": spent.code == code,
        "nothing on stdout": spent.out == "",
        f"not said: {says}": any(line.startswith(says) for line in lines),
        "no sentences": all(SENTENCE.fullmatch(line) for line in lines),
        "a flood": len(spent.err) < 100_000 and all(len(line) < 1000 for line in lines),
        f"{spent.megabytes:.0f} MB": spent.megabytes < MEGABYTES,
    }
    return [name for name, is_right in checks.items() if not is_right]


def test_every_bad_input_gives_its_sentence_with_its_place_in_little_memory(
    limited: Limited, place: Path, tmp_path: Path, figures: Tell
) -> None:
    wrong = {}
    most_memory = 0.0
    for number, bad in enumerate(bad_inputs()):
        folder = tmp_path / str(number)
        folder.mkdir()
        placed = bad.placed(place, folder)
        spent = limited(*placed.arguments, cwd=placed.cwd)
        found = what_is_wrong(spent, placed.says, bad.code)
        if found:
            wrong[bad.kind, bad.name] = (found, spent.err[:600])
        most_memory = max(most_memory, spent.megabytes)
    assert wrong == {}
    count = len(bad_inputs())
    assert count >= 60
    figures("bad inputs", f"{count} by name, each refused in its sentence with its place; at most {most_memory:.0f} MB")


def test_their_names_are_one_each() -> None:
    names = [(bad.kind, bad.name) for bad in bad_inputs()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "arguments",
    [
        ("-C", "{long}", "validate"),
        ("status", "--cluster", "demo", "--journal", "{long}"),
        ("status", "plan.json", "--journal", "{long}"),
        ("plan", "--cluster", "demo", "--loads", "{long}"),
        ("plan", "--cluster", "demo", "--out", "{long}"),
        ("show", "{long}"),
        ("init", "{long}"),
        ("doctor", "--cluster", "demo", "--journal", "{long}"),
        ("apply", "plan.json", "--yes", "--journal", "{long}"),
        ("snapshot", "--client", "{long}"),
    ],
)
def test_a_path_that_is_too_long_is_told(limited: Limited, place: Path, arguments: tuple[str, ...]) -> None:
    ended = limited(*(each.replace("{long}", "x" * 5000) for each in arguments), cwd=place)
    assert ended.code == 1
    assert "File name too long" in ended.err
    assert "internal error" not in ended.err
