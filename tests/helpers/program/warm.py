"""The program as a process that begins at once: forked off one that has loaded it, and killed where a test says.

    ended = reconciler("plan", "--out", "plan.json", cwd=folder)      # as `helpers.program.command_line` has it
    ended = run("apply", "plan.json", "--yes", cwd=folder, kill=Kill(request=57, after=0.004))
    ended.is_killed, ended.code, ended.err

It is a process of its own in all but its start: to load the program is most of what a short command costs. A process
that dies so dies by a real kill -9, whole. Nothing of this is in the product: `python -m helpers.program.warm` is where
these processes come from.
"""

import atexit
import functools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from helpers.program.command_line import Outcome

TESTS = Path(__file__).resolve().parents[2]
LOADED = (
    *(f"reconciler.{part}.{verb}" for verb in ("apply", "cancel", "doctor", "plan") for part in ("cli", "workflow")),
    "reconciler.admin.client",
    "reconciler.cli.snapshot",
    "reconciler.groups.cli.groups",
    "reconciler.render",
)
DIED = "died at "
STDERR = 2


@dataclass(frozen=True)
class Kill:
    """When a process dies: so many seconds after it has begun to send that request, or at a crash point.

    `point` is a crash point's name, `name:hit` for its second or a later hit, or several of these with `|` between.
    """

    request: int = 0
    after: float = 0.0
    point: str = ""

    @classmethod
    def drawn(cls, chance: random.Random, requests: int) -> "Kill":
        """Return a moment before that many requests, somewhere between one and the next."""
        return cls(request=chance.randint(1, requests), after=chance.choice((0.0, chance.uniform(0.0, 0.05))))


@dataclass(frozen=True)
class Ended(Outcome):
    """How one ended, and how many requests it had sent, which is counted where it may be killed.

    `cpu_seconds` and `peak_bytes`: of its process alone, as the system counts them. It has loaded what its source has.
    """

    requests: int = 0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    @property
    def is_killed(self) -> bool:
        """Whether it died by SIGKILL."""
        return self.code == -signal.SIGKILL

    @property
    def died_at(self) -> str:
        """The crash point at which it died."""
        return self.err.rpartition(DIED)[2].strip()


def environment() -> dict[str, str]:
    """Return an environment in which the tests' helpers can be imported and no option is set."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RECONCILER_")}
    return kept | {"PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])}


def reconciler(*arguments: str | Path, cwd: Path, expect: int | None = 0) -> Ended:
    """Run `reconciler ARGUMENTS` in that folder; fail with all it printed where the exit code is another; None: any."""
    ended = run(*arguments, cwd=cwd)
    assert expect in {None, ended.code}, f"{arguments} ended with {ended.code}\n{ended.out}\n{ended.err}"
    return ended


def run(*arguments: str | Path, cwd: Path, kill: Kill | None = None) -> Ended:
    """Run one command to its end, whatever that is."""
    with _TURN:
        source = _source(Path("/proc/thread-self/ns/net").readlink())  # a test may be in a network of its own
        asked = {"arguments": [*map(str, arguments)], "cwd": str(cwd), "kill": asdict(kill) if kill else None}
        assert source.stdin is not None
        assert source.stdout is not None
        source.stdin.write(f"{json.dumps(asked | {'environment': environment()})}\n")
        source.stdin.flush()
        told = json.loads(source.stdout.readline())
    paths = {name: Path(told[name]) for name in ("out", "err", "requests")}
    texts = {name: path.read_text("utf-8") for name, path in paths.items()}
    for path in paths.values():
        path.unlink()
    return Ended(
        told["code"],
        texts["out"],
        texts["err"],
        requests=int(texts["requests"] or 0),
        cpu_seconds=told["cpu_seconds"],
        peak_bytes=told["peak_bytes"],
    )


_TURN = threading.Lock()


@functools.cache
def _source(_network: Path) -> "subprocess.Popen[str]":
    """Return the process that the others come from; it ends when this one has ended, however that is."""
    command = [sys.executable, "-m", "helpers.program.warm"]
    source = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True, start_new_session=True
    )
    atexit.register(source.communicate)
    return source


def die_at(points: str) -> Callable[[str], None]:
    """Return a hook for crash points that kills this process at the first of these: `name` or `name:hit`."""
    wanted = {name: int(hit or 1) for name, _, hit in (point.partition(":") for point in points.split("|"))}
    hits: Counter[str] = Counter()

    def hook(name: str) -> None:
        hits[name] += 1
        if hits[name] == wanted.get(name):
            os.write(STDERR, f"{DIED}{name}\n".encode())
            _die()

    return hook


def main() -> None:
    """Fork the program for each line that is read, and answer with how it ended."""
    from importlib import import_module

    for module in LOADED:
        import_module(module)
    folder = Path(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108 - the files are gone when they have been read
    for number, line in enumerate(sys.stdin):
        paths = {name: str(folder / f"warm-{os.getpid()}-{number}.{name}") for name in ("out", "err", "requests")}
        child = os.fork()
        if not child:
            _be(json.loads(line), paths)
        _, status, used = os.wait4(child, 0)
        ended = {
            "code": os.waitstatus_to_exitcode(status),
            "cpu_seconds": used.ru_utime + used.ru_stime,
            "peak_bytes": used.ru_maxrss * 1024,
        }
        sys.stdout.write(f"{json.dumps(ended | paths)}\n")
        sys.stdout.flush()


def _be(asked: dict[str, object], paths: dict[str, str]) -> None:
    """Be the program, mortally."""
    from reconciler.apply.crash import planted
    from reconciler.cli.main import run as program

    null = os.open(os.devnull, os.O_RDONLY)
    files = [os.open(paths[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("out", "err", "requests")]
    for number, file in enumerate((null, *files[:2])):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[call-overload]
    os.chdir(str(asked["cwd"]))
    sys.argv = ["reconciler", *map(str, asked["arguments"])]  # type: ignore[call-overload]
    code = 1
    try:
        if asked["kill"] is None:
            program()
        kill = Kill(**asked["kill"])  # type: ignore[arg-type]
        _count_requests(kill, files[2])
        with planted(die_at(kill.point)):
            program()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _count_requests(kill: Kill, file: int) -> None:
    """Count the requests that this process sends, and kill it at that one."""
    from reconciler.admin.client.wire import Wire

    exchange, turn, sent = Wire.ask, threading.Lock(), [0]

    def counted(*arguments: object) -> object:
        with turn:
            sent[0] += 1
            os.pwrite(file, str(sent[0]).encode(), 0)
            if sent[0] == kill.request:
                if not kill.after:
                    _die()
                threading.Timer(kill.after, _die).start()
        return exchange(*arguments)  # type: ignore[arg-type]

    Wire.ask = counted  # type: ignore[method-assign, assignment]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
