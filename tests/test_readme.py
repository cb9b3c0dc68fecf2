"""The README's tour prints what the README says."""

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
ANY = "..."


def steps() -> list[tuple[str, list[str]]]:
    """Return each command of the tour with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def matches(said: list[str], printed: str) -> bool:
    """Whether the output is as said; `...` stands for anything, whole lines too."""
    pattern = "\n".join(re.escape(line).replace(re.escape(ANY), ".*") for line in said)
    return re.fullmatch(pattern, printed.rstrip("\n"), flags=re.DOTALL) is not None


def test_the_tour_prints_what_the_readme_says(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert len(steps()) >= 5
    for command, said in steps():
        done = subprocess.run(
            command.split(),
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert matches(said, done.stdout), f"$ {command}\n{done.stdout}"
