"""Ends what a test started, however the test process ends: a process of its own, at the other end of a pipe."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from helpers.waiting import HANG

# Reads "+pid" and "-pid" lines; when the pipe closes, kills what is left and removes the data.
PROGRAM = """
import os, shutil, signal, subprocess, sys
pids = set()
for line in sys.stdin:
    (pids.add if line[0] == "+" else pids.discard)(int(line[1:]))
for pid in pids:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
mounts = [line.split()[1] for line in open("/proc/mounts")] if os.path.exists("/proc/mounts") else []
for mount in mounts:
    if mount.startswith(sys.argv[1] + "/"):
        subprocess.run(["umount", "-l", mount])
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


class Supervisor:
    """Knows the processes that are to end and the folder that is to go; a session of its own keeps Ctrl-C away."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-S", "-c", PROGRAM, str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def watch(self, pid: int) -> None:
        """See to the end of that process."""
        self._tell(f"+{pid}")

    def end(self, process: subprocess.Popen[bytes], with_signal: signal.Signals) -> None:
        """End a watched process by that signal; kill it if it does not end."""
        process.send_signal(with_signal)
        try:
            process.wait(HANG)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(HANG)
            self._tell(f"-{process.pid}")

    def close(self) -> None:
        """Kill what is left and remove the folder."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(HANG)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
