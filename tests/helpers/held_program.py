"""Runs `reconciler` and stops at a crash point until it may go on, so that a test decides what happens meanwhile.

python held_program.py POINT FOLDER ARGUMENT...    # makes FOLDER/reached there, and goes on once FOLDER/go exists
"""

import sys
import time
from pathlib import Path

from reconciler.apply.crash import planted
from reconciler.cli.main import main

POLL_SECONDS, MOST_POLLS = 0.02, 6000


def hold(folder: Path) -> None:
    """Wait at the point for the word to go on."""
    (folder / "reached").touch()
    for _ in range(MOST_POLLS):
        if (folder / "go").exists():
            return
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    _, wanted, where, *arguments = sys.argv
    with planted(lambda name: hold(Path(where)) if name == wanted else None):
        sys.exit(main(arguments))
