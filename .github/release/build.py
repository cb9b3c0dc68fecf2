#!/usr/bin/env python3
"""build.py DIR: builds into DIR what a release is made of: the wheel, the sdist, and image-context.tar.

The context is all that an image sees: the Containerfile, the wheel and two locks. The same source gives the same bytes,
wherever, whenever and by whomever it is built: the build backend is the one that the lock build.txt names, it is told
nothing of this machine, and time, owner and mode of a file are the same for all.
"""

import io
import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / ".github" / "locks"
IMAGE = (ROOT / ".github" / "Containerfile", LOCKS / "base.txt", LOCKS / "loads.txt")
WHEN = (
    1580601600  # what hatchling gives files without SOURCE_DATE_EPOCH: 2020-02-02, no older than a wheel's zip can tell
)


def main(folder: Path) -> None:
    """Build all three; what an earlier build left in the folder is an error."""
    folder.mkdir(parents=True)
    with TemporaryDirectory() as home:
        build(folder, Path(home))
    (wheel,) = folder.glob("*.whl")
    (folder / "image-context.tar").write_bytes(archive((*IMAGE, wheel)))


def build(folder: Path, home: Path) -> None:
    """Build wheel and sdist with the backend that is locked, in an environment that holds nothing else."""
    venv.create(home / "venv", with_pip=True)
    python = home / "venv" / "bin" / "python"
    locked = ("--require-hashes", "--only-binary", ":all:", "-r", LOCKS / "build.txt")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *locked)
    bare = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "SOURCE_DATE_EPOCH": str(WHEN)}
    run(python, "-m", "hatchling", "build", "-d", folder.resolve(), "-t", "sdist", "-t", "wheel", env=bare)


def run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command in the source's folder; end with its exit code where it fails."""
    done = subprocess.run(command, cwd=ROOT, env=env, check=False)  # noqa: S603 - our own commands
    if done.returncode:
        sys.exit(done.returncode)


def archive(files: tuple[Path, ...]) -> bytes:
    """Return a tar of the files by their names alone, sorted."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(files, key=lambda file: file.name):
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mtime, entry.mode = file.stat().st_size, WHEN, 0o644
            tar.addfile(entry, io.BytesIO(file.read_bytes()))
    return made.getvalue()


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and DIR
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
