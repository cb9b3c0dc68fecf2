"""The program as a user calls it: in this process for speed, in its own where start-up or signals matter."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from helpers.waiting import HANG

from reconciler.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
Captured = subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended."""

    code: int
    out: str
    err: str


class Program:
    """Calls the program and catches its streams; stdin is never a terminal."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured

    def __call__(self, *arguments: str) -> Ended:
        self._captured.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = self._captured.readouterr()
        return Ended(code, click.unstyle(out), click.unstyle(err))


def captured(
    command: Sequence[str | Path],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    *,
    check: bool = False,
) -> Captured:
    """Run a command with its streams caught, however it ends; with `check` it must end with 0. One that hangs fails."""
    return subprocess.run(
        command, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=HANG, check=check
    )


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, *, answer: bool) -> list[str]:
    """Have the program find itself on a terminal, and whoever it asks answer so; return what it has asked."""
    asked: list[str] = []

    def confirm(text: str, **_: object) -> bool:
        asked.append(text)
        return answer

    monkeypatch.setattr("reconciler.command.terminal.is_interactive", lambda: True)
    monkeypatch.setattr(click, "confirm", confirm)
    return asked


def run_program(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None, stdin: str = "") -> Ended:
    """Run the program in its own process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    ended = captured([sys.executable, "-m", "reconciler", *arguments], cwd, environment, stdin)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def modules_loaded_by(*arguments: str, cwd: Path = ROOT) -> frozenset[str]:
    """Return the top-level names of all modules that a run of the program imports."""
    command = [sys.executable, "-X", "importtime", "-m", "reconciler", *arguments]
    ended = captured(command, cwd, {**os.environ, "PYTHONPATH": str(ROOT)})
    lines = (line for line in ended.stderr.splitlines() if line.startswith("import time:"))
    return frozenset(line.rpartition("|")[2].strip().partition(".")[0] for line in lines)


def all_of(text: str, parts: Sequence[str]) -> list[str]:
    """Return the parts that the text lacks."""
    return [part for part in parts if part not in text]
