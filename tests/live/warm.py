"""The program as a process that begins at once: forked off one that has loaded it, and killed where a test says.

    with Warm() as warm:
        ended = warm.run("apply", "plan.json", "--yes", cwd=folder, kill=Kill(request=57, after=0.004))
        ended.is_killed, ended.code, ended.err

A process that dies so dies by a real kill -9, whole, as in `live.killing`; what is saved is to load it again, which is
most of what a short command costs. Nothing of this is in the product: `python -m live.warm` is where they come from.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from helpers.program.command_line import Outcome
from live.killing import die_at, environment

LOADED = ("apply", "cancel", "doctor", "plan")


@dataclass(frozen=True)
class Kill:
    """When a process dies: so many seconds after it has begun to send that request, or at a crash point."""

    request: int = 0
    after: float = 0.0
    point: str = ""

    @classmethod
    def drawn(cls, chance: random.Random, requests: int) -> "Kill":
        """Return a moment before that many requests, somewhere between one and the next."""
        return cls(request=chance.randint(1, requests), after=chance.choice((0.0, chance.uniform(0.0, 0.05))))


@dataclass(frozen=True)
class Ended(Outcome):
    """How one ended, and how many requests it had sent."""

    requests: int = 0

    @property
    def is_killed(self) -> bool:
        """Whether it died by SIGKILL."""
        return self.code == -signal.SIGKILL


class Warm:
    """Starts processes, one at a time; see the module's docstring."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "live.warm"]
        self._source = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._source.stdin is not None
        self._source.stdin.close()
        self._source.wait()

    def run(self, *arguments: str | Path, cwd: Path, kill: Kill | None = None) -> Ended:
        """Run one command to its end, whatever that is."""
        asked = {"arguments": [*map(str, arguments)], "cwd": str(cwd), "kill": asdict(kill) if kill else None}
        assert self._source.stdin is not None
        assert self._source.stdout is not None
        self._source.stdin.write(f"{json.dumps(asked)}\n")
        self._source.stdin.flush()
        told = json.loads(self._source.stdout.readline())
        paths = {name: Path(told[name]) for name in ("out", "err", "requests")}
        texts = {name: path.read_text() for name, path in paths.items()}
        for path in paths.values():
            path.unlink()
        return Ended(told["code"], texts["out"], texts["err"], int(texts["requests"] or 0))


def main() -> None:
    """Fork the program for each line that is read, and answer with how it ended."""
    from importlib import import_module

    for verb in LOADED:
        import_module(f"reconciler.cli.{verb}")
        import_module(f"reconciler.workflow.{verb}")
    import_module("reconciler.admin.client")
    import_module("reconciler.render")
    folder = Path(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108 - the files are gone when they have been read
    for number, line in enumerate(sys.stdin):
        paths = {name: str(folder / f"warm-{os.getpid()}-{number}.{name}") for name in ("out", "err", "requests")}
        child = os.fork()
        if not child:
            _be(json.loads(line), paths)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{json.dumps({'code': os.waitstatus_to_exitcode(status), **paths})}\n")
        sys.stdout.flush()


def _be(asked: dict[str, object], paths: dict[str, str]) -> None:
    """Be the program, mortally."""
    from reconciler.admin.client.wire import Wire
    from reconciler.apply.crash import planted
    from reconciler.cli.main import run

    null = os.open(os.devnull, os.O_RDONLY)
    files = [os.open(paths[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("out", "err", "requests")]
    for number, file in enumerate((null, *files[:2])):
        os.dup2(file, number)
    kill = Kill(**asked["kill"]) if asked["kill"] else Kill()  # type: ignore[arg-type]
    exchange, turn, sent = Wire.ask, threading.Lock(), [0]

    def counted(*arguments: object) -> object:
        with turn:
            sent[0] += 1
            os.pwrite(files[2], str(sent[0]).encode(), 0)
            if sent[0] == kill.request:
                if not kill.after:
                    _die()
                threading.Timer(kill.after, _die).start()
        return exchange(*arguments)  # type: ignore[arg-type]

    Wire.ask = counted  # type: ignore[method-assign, assignment]
    os.chdir(str(asked["cwd"]))
    sys.argv = ["reconciler", *map(str, asked["arguments"])]  # type: ignore[call-overload]
    code = 1
    try:
        with planted(die_at(kill.point)):
            run()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
