import errno
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.files.paths import expanded, files_below, is_file, is_folder, is_there

PACKAGE = Path(__file__).resolve().parents[2] / "reconciler"
QUESTION = re.compile(r"\.(exists|is_dir|is_file|glob|rglob|resolve|isdir|isfile)\(")
"""Questions that have no answer for an error of the file system, or another one on another Python."""
OURS = "a folder that is installed with the program"
ALLOWED = {
    "balance/policies/room.py glob": "a folder that this run has made",
    "balance/spark/uri_results.py exists": "Hadoop answers, not pathlib, and raises",
    "files/codes.py glob": OURS,
    "files/pipelines.py is_dir": OURS,
    "files/pipelines.py is_file": OURS,
    "files/pipelines.py rglob": OURS,
    "files/pipelines/gitlab/.gitlab/reconciler/clusters.py exists": "a program of its own, in a checkout",
    "files/pipelines/gitlab/.gitlab/reconciler/clusters.py glob": "the same",
    "files/pipelines/gitlab/.gitlab/reconciler/clusters.py is_file": "the same",
    "files/pipelines/gitlab/.gitlab/reconciler/clusters.py rglob": "the same",
    "files/pipelines/gitlab/.gitlab/reconciler/gitlab.py exists": "a folder that it has made",
    "files/schema_check.py is_dir": OURS,
    "workflow/schemas.py glob": OURS,
    "workflow/sources.py exists": "looks for .git: without an answer the plan has no commit",
    "workflow/validate.py exists": "looks for .git: without an answer paths are relative to the current folder",
    "workflow/validate.py resolve": "a folder that GitHub has made",
}
ASKED: dict[str, Callable[[Path], object]] = {
    "is_there": is_there,
    "is_folder": is_folder,
    "is_file": is_file,
    "files_below": files_below,
    "a name": lambda path: list(expanded(path, ["x"])),
    "a pattern": lambda path: list(expanded(path, ["*", "x"])),
    "all folders": lambda path: list(expanded(path, ["**", "x"])),
}


def test_no_other_file_of_the_package_asks_pathlib() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()} {name}"
        for path in PACKAGE.rglob("*.py")
        for name in QUESTION.findall(path.read_text("utf-8"))
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("error", [errno.ELOOP, errno.ENAMETOOLONG])
def test_an_error_is_not_taken_for_a_no(tmp_path: Path, asked: str, error: int) -> None:
    path = tmp_path / ("loop" if error == errno.ELOOP else "x" * 5000)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=r"\[Errno") as raised:
        ASKED[asked](path)
    assert raised.value.errno == error


@pytest.mark.parametrize("gone", ["gone", "file/below", "dangling", "nul\0"])
def test_where_nothing_is_the_answer_is_no(tmp_path: Path, gone: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to("nowhere")
    told = {name: question(tmp_path / gone) for name, question in ASKED.items() if name != "files_below"}
    assert not any(told.values())


@pytest.mark.parametrize(
    "pattern", ["a", "*", "*/b.csv", "**/*.csv", "a/**/b.csv", "[ab]/?.csv", "a/../a/b.csv", "*/.*"]
)
def test_patterns_are_those_of_pathlib(tmp_path: Path, pattern: str) -> None:
    for name in ("a/b.csv", "a/.hidden", "b/c.csv", "b/d/b.csv", "b/d/e/f.csv", "top.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "linked").symlink_to("b")
    expected = set(tmp_path.glob(pattern))
    assert expected
    assert set(expanded(tmp_path, Path(pattern).parts)) == expected
    assert files_below(tmp_path) == sorted(path for path in tmp_path.rglob("*") if path.is_file())
