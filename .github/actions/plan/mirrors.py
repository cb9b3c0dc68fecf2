#!/usr/bin/env python3
"""mirrors.py options ROOT CLUSTER DIR: prints options that name DIR/state-SOURCE/snapshot.json for each source.

It exits with 1 if one of them is not there.
mirrors.py fetch ROOT CLUSTER DIR: puts the newest snapshot of each source there; exits with 2 if a source is new.
mirrors.py applied ROOT PLAN RESULTS: exits with 3 if the plan grows a topic whose copies have to grow first, and a
cluster that has such a copy is not applied in this run; RESULTS holds what its jobs have left so far.

A mirror copies topics from a source, which is another cluster of ROOT. The plan of the mirror's cluster reads that
source, but the job that plans has no password of it: another job takes a snapshot. A simulated source needs none.

Python has no YAML reader of its own, so this reads lines. If it misses a mirror, such as `{kind: Mirror}` on one line,
the plan logs in to the source with the password of its own cluster. `fetch` needs what latest_artifact.py needs.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from latest_artifact import main as fetch_artifact
from summary import result

MIRROR = re.compile(r"""^kind:\s*["']?Mirror\b""", re.MULTILINE)
SOURCE = re.compile(r"""\bsource:\s*["']?([A-Za-z0-9._-]+)""")
SIMULATION = re.compile(r"^\s*simulation:", re.MULTILINE)
GROWS_AFTER_ITS_COPIES = "KR838"
"""The warning of a plan that grows a topic which other clusters copy."""
DIFFERS = 2
"""The exit code of a plan. With a message beside it no plan can mend what differs, so nothing is to be applied."""


def live_sources(root: Path, cluster: str) -> list[str]:
    """Return the other clusters that mirrors of this cluster copy from, simulated ones left out, sorted."""
    others = _sources(root, cluster).intersection(_folders(root)) - {cluster}
    return sorted(name for name in others if not any(map(SIMULATION.search, _documents(root / name))))


def all_live_sources(root: Path, clusters: list[str]) -> list[str]:
    """Return every cluster that a mirror of one of these copies from, sorted."""
    return sorted({name for cluster in clusters for name in live_sources(root, cluster)}.intersection(clusters))


def missing_copies(root: Path, plan: Path, results: Path) -> list[str]:
    """Return the clusters that are to be applied before this plan, and are not, sorted."""
    document = json.loads(plan.read_text("utf-8"))
    if all(one["code"] != GROWS_AFTER_ITS_COPIES for one in document["warnings"]):
        return []
    name = document["cluster"]["name"]
    copying = [one for one in _folders(root) if one != name and name in _sources(root, one)]
    return [one for one in copying if not _is_applied(results, one)]


def _is_applied(results: Path, cluster: str) -> bool:
    """Whether a cluster's plan was applied to its end, or had nothing to do."""
    applied, planned = (result(results / f"result-{verb}-{cluster}" / "result") for verb in ("apply", "plan"))
    code, message = applied or planned or (1, "")
    return code == 0 or (applied is None and code == DIFFERS and bool(message))


def _folders(root: Path) -> list[str]:
    return sorted(file.parent.name for file in root.glob("*/cluster.yaml"))


def _sources(root: Path, cluster: str) -> set[str]:
    documents = [text for text in _documents(root / cluster) if MIRROR.search(text)]
    return {match[1] for text in documents if (match := SOURCE.search(text))}


def _documents(folder: Path) -> Iterator[str]:
    """Yield the text of each YAML document, without its comment lines."""
    for file in sorted(path for path in folder.rglob("*") if path.suffix.lower() in {".yaml", ".yml"}):
        text = file.read_text("utf-8", "replace") if file.is_file() else ""
        yield from re.split(r"^---.*$", re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)


def main(verb: str, root: Path, arguments: list[str]) -> int:
    """Do what the verb says, and return the exit code."""
    if verb == "applied":
        missing = missing_copies(root, Path(arguments[0]), Path(arguments[1]))
        if missing:
            print(
                f"error: the plan grows topics that {', '.join(missing)} copies, and a copy has to grow first: "
                "apply that plan, then run this job again",
                file=sys.stderr,
            )
        return 3 if missing else 0
    cluster, folder = arguments
    files = {name: Path(folder, f"state-{name}", "snapshot.json") for name in live_sources(root, cluster)}
    if verb == "options":
        missing = [name for name, file in files.items() if not file.is_file()]
        # A plan would log in there instead, with the password of this cluster.
        for name in missing:
            print(f"error: mirrors copy from {name}, and there is no state of it: see its own job", file=sys.stderr)
        print("".join(f"--source-state\n{name}={file}\n" for name, file in files.items()), end="")
        return 1 if missing else 0
    for name, file in files.items():
        code = fetch_artifact(
            "snapshot.yml", f"snapshot-{name}", file.parent, os.environ, f"{root}/{name}/cluster.yaml"
        )
        if code:
            return code
    return 0 if all(file.is_file() for file in files.values()) else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
