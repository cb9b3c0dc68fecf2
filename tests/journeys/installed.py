"""The program as its users install it: a wheel, in an environment with nothing else, far from this checkout.

What pipx does is this very thing: `pip install` of one package into an environment of its own, and its commands linked.
"""

import os
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.program.call import captured
from helpers.program.command_line import Outcome

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Installed:
    """A wheel, and the environment that it was installed into."""

    wheel: Path
    environment: Path

    def files(self) -> set[str]:
        """Return the names of all that the wheel holds."""
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())

    def variables(self) -> Mapping[str, str]:
        """Return a user's bare environment: the command is on the path, and nothing of this test run is seen."""
        path = f"{self.environment / 'bin'}{os.pathsep}{os.defpath}"
        return {"PATH": path, "HOME": str(self.environment), "LANG": "C.UTF-8"}

    def python(self, code: str) -> str:
        """Return what the environment's own interpreter prints for that code."""
        command = [str(self.environment / "bin" / "python"), "-c", code]
        return captured(command, self.environment, self.variables(), check=True).stdout.strip()

    def run(self, *arguments: str | Path, cwd: Path, expect: int = 0) -> Outcome:
        """Run the installed command in that folder; fail with all it printed where the exit code is another."""
        ended = self.try_(*arguments, cwd=cwd)
        assert ended.code == expect, f"{arguments} ended with {ended.code}\n{ended.out}\n{ended.err}"
        return ended

    def try_(self, *arguments: str | Path, cwd: Path) -> Outcome:
        """Run the installed command in that folder, however it ends."""
        done = captured([self.environment / "bin" / "reconciler", *arguments], cwd, self.variables())
        return Outcome(done.returncode, done.stdout, done.stderr)


def installed_in(folder: Path) -> Installed:
    """Build the wheel and install it, without any extra, into an environment of its own below that folder."""
    wheel = wheel_of(ROOT, folder)
    environment = folder / "environment"
    _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    # Not compiled: most of what the solver brings along is never imported.
    _pip("--python", str(environment / "bin" / "python"), "install", "--no-compile", str(wheel))
    return Installed(wheel, environment)


def wheel_of(source: Path, folder: Path) -> Path:
    """Build the wheel of the package in that source into a folder, and return it."""
    _pip("wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("*.whl")
    return wheel


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(*command: str) -> None:
    done = captured(command)
    assert done.returncode == 0, f"{command[1:]}\n{done.stdout}\n{done.stderr}"
