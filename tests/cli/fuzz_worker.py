"""Reads fuzzed files through the command line, one after the other, in a process that its limits would end.

    python -m cli.fuzz_worker FOLDER FIRST COUNT   # the seed before each, then what it came to, then a summary

FOLDER holds what `helpers.program.fuzz_folder` wrote. Each line on stdout is JSON.
"""

import contextlib
import io
import json
import random
import re
import resource
import signal
import sys
from collections import Counter
from pathlib import Path

from cli.fuzzed import fuzzed
from helpers.program.fuzz_folder import KINDS, resigned
from helpers.waiting import HANG

MEGABYTES = 256
ENDINGS = frozenset({0, 1, 3, 4, 64})
WRONG = re.compile(r"internal error|Traceback|MemoryError|RecursionError")
TOLD = re.compile(r"^error: .+ \(KR[0-9]{3}\)|\"code\": \"KR[0-9]{3}\"", re.MULTILINE)


def play(folder: Path, seed: int) -> tuple[str, int | None, str, bytes]:
    """Return the kind, how it ended, what was said, and the file."""
    chance = random.Random(seed)
    name = sorted(KINDS)[seed % len(KINDS)]
    kind = KINDS[name]
    content = fuzzed((folder / "good" / kind.file).read_bytes(), kind.form, chance)
    if name.startswith("plan") and chance.random() < 0.7:
        content = resigned(content)
    kind.place(folder).write_bytes(content)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = kind.call(folder)
    kind.place(folder).write_bytes((folder / "good" / kind.file).read_bytes())
    return name, code, err.getvalue() + out.getvalue() * (code == 1), content


def what_is_wrong(code: int | None, told: str) -> list[str]:
    """Return in what an ending is not what it must be."""
    checks = {
        f"exit code {code}": code in ENDINGS,
        "no sentence": code in {0, 3, 4} or TOLD.search(told) is not None,
        "a fault of ours": WRONG.search(told) is None,
        "a flood": len(told) < 200_000,
    }
    return [name for name, is_right in checks.items() if not is_right]


def _tell(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _address_space() -> int:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmSize"))


def main(folder: Path, first: int, count: int) -> None:
    """Play the seeds; the address space is bounded by what is there now and what one input may take."""
    ended: Counter[str] = Counter()
    for seed in range(first, first + count):
        if seed == first + len(KINDS):  # every verb has loaded what it loads
            most = _address_space() + (4 * MEGABYTES << 20)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        _tell({"seed": seed})
        signal.alarm(HANG)
        name, code, told, content = play(folder, seed)
        found = what_is_wrong(code, told)
        if found:
            _tell({"seed": seed, "wrong": found, "kind": name, "told": told[-2000:], "file": content.hex()})
        ended["read" if code in {0, 3, 4} else "placed" if re.search(r":\d+:\d+: ", told) else "refused"] += 1
    _tell({"ended": ended, "megabytes": _peak_megabytes()})


def _peak_megabytes() -> float:
    """Return the most that this program held; `ru_maxrss` also counts the process that started it."""
    status = Path("/proc/self/status").read_text("ascii")
    (kilobytes,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, flags=re.MULTILINE)
    return int(kilobytes) / 1024


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
