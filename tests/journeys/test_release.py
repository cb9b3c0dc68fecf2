"""What is released: built twice, on machines as different as one machine can be, it is the same to the byte."""

import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.figures import Tell
from helpers.waiting import HANG
from journeys.installed import ROOT
from journeys.test_container import copied, instructions

pytestmark = pytest.mark.long
SOURCE = ("pyproject.toml", "README.md", "LICENSE", ".gitignore", "reconciler", "schemas", ".github")
ELSEWHERE = {"LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1", "USER": "eve"}


@dataclass(frozen=True)
class Builds:
    """Two builds of one source: of this checkout, and of a copy of it somewhere else."""

    here: Path
    there: Path

    def one(self, pattern: str) -> Path:
        """Return the only file of the first build with such a name."""
        (found,) = self.here.glob(pattern)
        return found


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """Build twice: with other folders, times, modes and variables, another umask, and litter beside the source."""
    folder = tmp_path_factory.mktemp("release")
    built(ROOT, folder / "here", {}, umask=0o022)
    copy = folder / "another place"
    for name in SOURCE:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"), copy_function=_with_other_mode
            )
        else:
            copy.mkdir(exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    for litter in ("runs/demo.jsonl", "plan.json", "tests/notes.txt", "reconciler/__pycache__/old.cpython-39.pyc"):
        (copy / litter).parent.mkdir(parents=True, exist_ok=True)
        (copy / litter).write_text("left over")
    built(copy, folder / "there", {**ELSEWHERE, "HOME": str(folder)}, umask=0o077)
    return Builds(folder / "here", folder / "there")


def _with_other_mode(source: str, target: str) -> None:
    """Copy the file with another mode: all that git keeps of one is whether it is a program."""
    shutil.copyfile(source, target)
    Path(target).chmod(0o700 if os.access(source, os.X_OK) else 0o600)


def _unless_there(source: str, target: str) -> None:
    if not Path(target).exists():
        shutil.copy2(source, target)


def built(source: Path, out: Path, variables: dict[str, str], umask: int) -> None:
    done = subprocess.run(
        [sys.executable, source / ".github" / "release" / "build.py", out],
        env={**os.environ, **variables},
        umask=umask,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_two_builds_are_the_same_to_the_byte(builds: Builds, figures: Tell) -> None:
    first, second = (
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
        for folder in (builds.here, builds.there)
    )
    assert first == second
    assert [Path(name).suffix for name in first] == [".tar", ".whl", ".gz"]
    figures("two builds", f"{', '.join(first)}: each the same SHA-256 twice")


def test_the_sdist_holds_what_makes_the_wheel_and_makes_the_same_one(builds: Builds, tmp_path: Path) -> None:
    with tarfile.open(builds.one("*.tar.gz")) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert {path.name for path in source.iterdir()} == {*SOURCE, "PKG-INFO"}
    # What builds is no part of it; what `init --ci github` writes is, and is taken as it is there.
    shutil.copytree(ROOT / ".github", source / ".github", copy_function=_unless_there, dirs_exist_ok=True)
    built(source, tmp_path / "out", {}, umask=0o022)
    assert builds.one("*.whl").read_bytes() == next((tmp_path / "out").glob("*.whl")).read_bytes()


def test_nothing_released_tells_of_the_machine_that_built_it(builds: Builds) -> None:
    machine = [str(ROOT), str(builds.here.parent), str(Path.home()), os.uname().nodename]
    for name, content in released(builds):
        assert "__pycache__" not in name
        assert [one for one in machine if len(one) > 5 and one.encode() in content] == [], name


def released(builds: Builds) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(builds.one("*.whl")) as wheel:
        yield from ((name, wheel.read(name)) for name in wheel.namelist())
    with tarfile.open(builds.one("*.tar.gz")) as sdist:
        for entry in sdist:
            file = sdist.extractfile(entry)
            yield entry.name, file.read() if file else b""


def test_the_images_context_is_what_the_image_copies_and_nothing_else(builds: Builds) -> None:
    with tarfile.open(builds.one("*.tar")) as context:
        names = set(context.getnames()) - {"Containerfile"}
        assert {(entry.uid, entry.gid, entry.mode, entry.mtime) for entry in context} == {(0, 0, 0o644, 1580601600)}
        wheel = context.extractfile(builds.one("*.whl").name)
        assert wheel
        assert wheel.read() == builds.one("*.whl").read_bytes()
    assert {name for pattern in copied() for name in fnmatch.filter(names, pattern)} == names
    assert [pattern for pattern in copied() if not fnmatch.filter(names, pattern)] == []


@pytest.mark.deep
@pytest.mark.parametrize("extras", ["", "loads"])
def test_the_images_build_stage_gives_a_program_that_runs(builds: Builds, tmp_path: Path, extras: str) -> None:
    with tarfile.open(builds.one("*.tar")) as context:
        context.extractall(tmp_path, filter="data")
    (script, *_) = [arguments for name, arguments in instructions() if name == "RUN"]
    script = re.sub(r"\bpython -m", f"'{sys.executable}' -m", script).replace("/opt/reconciler", str(tmp_path / "opt"))
    subprocess.run(["sh", "-e", "-c", script], cwd=tmp_path, env={**os.environ, "EXTRAS": extras}, check=True)
    program = tmp_path / "opt" / "bin" / "reconciler"
    assert subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.startswith(
        "reconciler "
    )
