"""The program under limits, as tests call it: exit code, streams and memory of each call."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Spent:
    """How a call ended, and what it took; `code` is None where it hung, negative where a signal ended it."""

    code: int | None
    out: str
    err: str
    megabytes: float


class Limited:
    """A server of `cli.limited_server`; it ends with the `with` block."""

    def __enter__(self) -> Self:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RECONCILER_")}
        self._server = subprocess.Popen(
            [sys.executable, "-m", "cli.limited_server"],
            cwd=ROOT,
            env={**environment, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}", "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.communicate()

    def __call__(self, *arguments: str, cwd: Path, stdin: Path | None = None) -> Spent:
        """Run `reconciler ARGUMENTS` in that folder, with stdin from that file."""
        asked = {"arguments": arguments, "cwd": str(cwd), "stdin": str(stdin) if stdin else None}
        sent, answers = self._server.stdin, self._server.stdout
        assert sent is not None
        assert answers is not None
        sent.write(json.dumps(asked) + "\n")
        sent.flush()
        return Spent(**json.loads(answers.readline()))
