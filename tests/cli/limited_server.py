"""Runs the program in forked children under limits, one a request: what it costs is that of this one input.

    python -m cli.limited_server   # a request a line on stdin, an answer a line on stdout, both JSON

Started apart from the tests, so that a child's memory is the program's and not pytest's. What a verb imports anyway
stands there before the fork, and counts.
"""

import json
import os
import resource
import signal
import sys
import tempfile
from importlib import import_module
from typing import Any

from helpers.waiting import HANG

MODULES = ("validate", "show", "diff", "snapshot", "status")
GROUPS = ("cli.groups", "cli.simulate", "cli.reset_offsets", "files.scenario", "files.offsets_csv")
LIBRARIES = ("deepdiff", "jsonschema", "reconciler.workflow.diff", "reconciler.render.as_text")
FILES = ("load", "snapshot", "plan_file", "properties", "journal")
ADDRESS_SPACE = 2 << 30
MOST_KEPT = 1 << 20


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Return exit code (None: it hung), both streams and the peak of memory in MB."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            _child(request, out.fileno(), err.fileno())
        used, code = _wait(pid)
        return {"code": code, "out": _content(out), "err": _content(err), "megabytes": used.ru_maxrss / 1024}


def _child(request: dict[str, Any], out: int, err: int) -> None:
    code = 99
    try:
        stdin = os.open(request["stdin"] or os.devnull, os.O_RDONLY)
        for source, target in ((stdin, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.chdir(request["cwd"])
        signal.alarm(HANG)
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        from reconciler.cli.main import main

        code = main(request["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _wait(pid: int) -> tuple[resource.struct_rusage, int | None]:
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return used, None if code == -signal.SIGALRM else code


def _content(file: Any) -> str:  # noqa: ANN401 - a temporary file has no public type
    file.seek(0)
    return str(file.read(MOST_KEPT).decode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    for name in (
        *(f"reconciler.cli.{each}" for each in MODULES),
        *(f"reconciler.files.{each}" for each in FILES),
        *(f"reconciler.groups.{each}" for each in GROUPS),
        *LIBRARIES,
    ):
        import_module(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()
