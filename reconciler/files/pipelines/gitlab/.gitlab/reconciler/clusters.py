"""clusters.py ROOT FILE: writes the pipeline of all clusters: each is a folder of the root that holds a cluster.yaml.

clusters.py --apply PLAN CLUSTER RUN FILE: writes the pipeline that applies that plan; where the plan has nothing to
apply, one that asks nobody. What is written names a file of this folder, a cluster, and no more; so no file of the
repository has a list of clusters. It reads CI_MERGE_REQUEST_IID and CI_PIPELINE_ID.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
FOLDER = ".gitlab/reconciler"
NOTHING = '"nothing to do":\n  script: ["true"]\n  variables: {GIT_STRATEGY: none}\n'


def of_all(root: Path, variables: Mapping[str, str]) -> str:
    """Return the pipeline of all clusters, its first line their names in JSON."""
    folders = sorted(file.parent.name for file in root.glob("*/cluster.yaml"))
    names = [name for name in folders if NAME.fullmatch(name)]
    for name in sorted(set(folders) - set(names)):
        print(f"error: {name!a} is no cluster's name, so it is left out: rename the folder")
    request = variables.get("CI_MERGE_REQUEST_IID", "")
    inputs = {"run": variables["CI_PIPELINE_ID"], "merge-request": request}
    parts = [included("review" if request else "cluster", {"cluster": name, **inputs}) for name in names]
    print(f"{root}: {', '.join(names) or 'no cluster'}")
    return f"# clusters {json.dumps(names)}\n" + ("include:\n" + "".join(parts) if parts else NOTHING)


def of_plan(plan: Path, cluster: str, run: str, goal: Path, variables: Mapping[str, str]) -> str:
    """Return the pipeline that applies a plan; beside `goal` is the result of the job so far."""
    document = json.loads(plan.read_text("utf-8"))
    if not document["stages"] and not document["topicChanges"]:
        result = goal.with_name("result")
        if result.exists() and result.read_text("utf-8").startswith("2"):
            result.write_text("2\ndiffers, but no plan can mend it\n", "utf-8")
        return NOTHING
    inputs = {"cluster": cluster, "run": run, "digest": document["digest"], "pipeline": variables["CI_PIPELINE_ID"]}
    return "include:\n" + included("apply", inputs)


def included(name: str, inputs: Mapping[str, str]) -> str:
    """Return an include of a file of this folder."""
    given = "".join(f"      {key}: {json.dumps(value)}\n" for key, value in inputs.items())
    return f"  - local: {FOLDER}/{name}.yml\n    inputs:\n{given}"


if __name__ == "__main__":
    *asked, goal = sys.argv[1:]
    if asked[0] == "--apply":
        Path(goal).write_text(of_plan(Path(asked[1]), asked[2], asked[3], Path(goal), os.environ), "utf-8")
    else:
        Path(goal).write_text(of_all(Path(asked[0]), os.environ), "utf-8")
