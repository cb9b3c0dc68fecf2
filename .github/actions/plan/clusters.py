#!/usr/bin/env python3
"""clusters.py ROOT: tells a workflow which clusters there are, so that no workflow has a list to be kept up to date.

A cluster is a folder of the root that holds a cluster.yaml. Writes `names=[...]`, JSON for a matrix, to GITHUB_OUTPUT,
and `sources=[...]`, those that mirrors of the others copy from.
A folder whose name no cluster can have is left out, and told as an error; exit 0 all the same: the others go on.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from mirrors import all_live_sources

NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
MOST_LETTERS = 20
"""GitHub cuts the name of a job, which has the cluster's and a plan's digest, at 100 characters."""


def main(root: Path, variables: Mapping[str, str]) -> int:
    """Write the names, and return the exit code."""
    folders = sorted(file.parent.name for file in root.glob("*/cluster.yaml"))
    names = [name for name in folders if NAME.fullmatch(name)]
    for name in folders:
        if name not in names:
            print(f"::error::{name!a} is no cluster's name, so it is left out: rename the folder")
        elif len(name) > MOST_LETTERS:
            print(f"::warning::{name} has more than {MOST_LETTERS} letters: no night can go on with a plan of it")
    with Path(variables["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"names={json.dumps(names)}\nsources={json.dumps(all_live_sources(root, names))}\n")
    print(f"{root}: {', '.join(names) or 'no cluster'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), os.environ))
