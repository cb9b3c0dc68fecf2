"""Prints the tables of benchmarks, each row as soon as it is measured."""

import os
import platform
import sys

MACHINE = f"\n{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n\n"


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show_row(*cells: object) -> None:
    """Print a row of a table."""
    show(f"| {' | '.join(map(str, cells))} |")
