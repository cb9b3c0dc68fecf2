"""What a command costs with all that it starts: a Java machine that outlives its parent counts too."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The kernel hands what a dead process leaves to the nearest subreaper, whose own waiting adds up their CPU seconds.
_REPORTER = """
import ctypes, json, os, resource, subprocess, sys, time
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
page = os.sysconf("SC_PAGE_SIZE")

def resident():
    parents, held = {}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = open(f"/proc/{name}/stat").read().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(name)], held[int(name)] = int(fields[1]), int(fields[21]) * page
    ours = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(held[one] for one in ours - {os.getpid()})

began, peak, code = time.monotonic(), 0, None
first = subprocess.Popen(sys.argv[2:], stdout=open(sys.argv[1], "wb"))
while True:
    try:
        ended, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        break
    if ended == first.pid:
        code = os.waitstatus_to_exitcode(status)
    if ended == 0:
        peak = max(peak, resident())
        time.sleep(0.25)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, peak, time.monotonic() - began, code]))
"""


@dataclass(frozen=True, slots=True)
class TreeCost:
    """User and system seconds of all processes, the most memory that they held at once, and the time it took."""

    cpu_seconds: float
    peak_bytes: int
    seconds: float


def tree_cost(command: Sequence[str], out: Path, *, cwd: Path) -> TreeCost:
    """Run the command to its end with stdout in that file; fail, with what it said, where it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RECONCILER_")}
    done = subprocess.run(
        [sys.executable, "-c", _REPORTER, str(out), *command],
        env={**environment, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    cpu, peak, seconds, code = json.loads(done.stdout)
    assert code == 0, f"{command} ended with {code}\n{done.stderr[-4000:]}"
    return TreeCost(cpu, peak, seconds)
