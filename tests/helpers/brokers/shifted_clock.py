"""Clocks that are wrong: one process's time of day, whole seconds ahead or behind, and set at any moment.

    clock = ShiftedClock(tmp_path, seconds=420)      # seven minutes ahead
    KafkaCluster(environments={4: clock.environment})
    clock.set(-420)                                  # now it is behind: the process sees its clock jump

It takes a C compiler: `clock_gettime` itself is put before the machine's, so that Java and Python both see it.
"""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


def what_is_missing() -> str | None:
    """Return why no clock can be shifted here; None where it can."""
    return None if shutil.which("cc") else "a shifted clock takes a C compiler, cc"


class ShiftedClock:
    """One clock; see the module's docstring."""

    def __init__(self, folder: Path, *, seconds: int = 0) -> None:
        self._library, self._file = folder / "shifted_clock.so", folder / "shift"
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(self._library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        self.set(seconds)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs to see it."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_SHIFT": str(self._file)}

    @property
    def prefix(self) -> list[str]:
        """What a command begins with to see it."""
        return ["env", *(f"{name}={value}" for name, value in self.environment.items())]

    def set(self, seconds: int) -> None:
        """Step it: so far off it is from now on."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("d", seconds))
