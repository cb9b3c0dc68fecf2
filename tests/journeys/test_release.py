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
from helpers.program.call import captured
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
    """Build from the checkout; then from the sdist, with other folders, times, modes and variables, and litter."""
    folder = tmp_path_factory.mktemp("release")
    built(ROOT, folder / "here", {}, umask=0o022)
    first = Builds(folder / "here", folder / "there")
    with tarfile.open(first.one("*.tar.gz")) as sdist:
        sdist.extractall(folder / "another place", filter="data")
    (source,) = (folder / "another place").iterdir()
    for file in filter(Path.is_file, source.rglob("*")):
        file.chmod(0o700 if file.stat().st_mode & 0o100 else 0o600)  # git keeps of a mode whether it is a program
    # What builds is no part of it; what `init --ci github` writes is, and is taken as it is there.
    shutil.copytree(ROOT / ".github", source / ".github", copy_function=_unless_there, dirs_exist_ok=True)
    for litter in ("runs/demo.jsonl", "plan.json", "tests/notes.txt", "reconciler/__pycache__/old.cpython-39.pyc"):
        (source / litter).parent.mkdir(parents=True, exist_ok=True)
        (source / litter).write_text("left over")
    built(source, first.there, {**ELSEWHERE, "HOME": str(folder)}, umask=0o077)
    return first


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


def test_the_sdist_holds_what_makes_the_wheel_and_nothing_else(builds: Builds) -> None:
    with tarfile.open(builds.one("*.tar.gz")) as sdist:
        assert {name.split("/")[1] for name in sdist.getnames()} == {*SOURCE, "PKG-INFO"}


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
    assert captured([program, "--version"], check=True).stdout.startswith("reconciler ")
