"""clusters.py ROOT FILE: writes the pipeline of all clusters: each is a folder of the root that holds a cluster.yaml.

clusters.py --apply PLAN CLUSTER RUN FILE: writes the pipeline that applies that plan; where the plan has nothing to
apply, one that asks nobody. What is written names a file of this folder, a cluster, and no more; so no file of the
repository has a list of clusters. It reads CI_MERGE_REQUEST_IID, CI_PIPELINE_ID and, for a plan, RECONCILER_ROOT.

If a mirror in the folder `b` copies from `a`, the job `state a` takes a snapshot with the variables of `a`, and the job
`plan b` reads that file. So no job has the variables of two clusters.
"""

import json
import os
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
FOLDER = ".gitlab/reconciler"
NOTHING = '"nothing to do":\n  script: ["true"]\n  variables: {GIT_STRATEGY: none}\n'
COPY_FIRST = "KR838"
"""The warning of a plan whose topics must grow in their copies first."""
SUFFIXES = (".yaml", ".yml")
COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
SEPARATOR = re.compile(r"^---(?:[ \t\r].*)?$", re.MULTILINE)
MIRROR = re.compile(r"""^kind:[ \t]*["']?Mirror\b""", re.MULTILINE)
SOURCE = re.compile(r"""\bsource:[ \t]*["']?([A-Za-z0-9._-]+)""")
SIMULATION = re.compile(r"^ *simulation:", re.MULTILINE)


def of_all(root: Path, variables: Mapping[str, str]) -> str:
    """Return the pipeline of all clusters, its first line their names in JSON."""
    names = cluster_names(root)
    live = [name for name in names if not is_simulated(root, name)]
    sources = {name: sources_of(root, name, live) for name in names}
    request = variables.get("CI_MERGE_REQUEST_IID", "")
    inputs = {"run": variables["CI_PIPELINE_ID"], "merge-request": request}
    if request:
        parts = [included("review", {"cluster": name, **inputs, "sources": " ".join(sources[name])}) for name in names]
    else:
        parts = of_branch(sources, inputs)
    print(f"{root}: {', '.join(names) or 'no cluster'}")
    return f"# clusters {json.dumps(names)}\n" + ("include:\n" + "".join(parts) if parts else NOTHING)


def of_branch(sources: Mapping[str, Sequence[str]], inputs: Mapping[str, str]) -> list[str]:
    """Return the includes of the default branch: the states of the clusters that others copy from, and all plans."""
    # The folder's name is drawn here, after the commit. So a file that somebody has committed never passes for a state.
    folder = f"reconciler-state-{secrets.token_hex(8)}"
    files = {source: f"{folder}/{source}.json" for source in sorted(set().union(*sources.values()))}
    parts = [included("state", {"cluster": source, "file": file}) for source, file in files.items()]
    for name, row in sources.items():
        states = " ".join(f"{source}={files[source]}" for source in row)
        # `needs` lets a job wait for the states of its own sources alone, and gives it no other artifact.
        needs = [f"state {source}" for source in row]
        parts.append(included("cluster", {"cluster": name, **inputs, "sources": states, "needs": needs}))
    return parts


def of_plan(plan: Path, cluster: str, run: str, goal: Path, variables: Mapping[str, str]) -> str:
    """Return the pipeline that applies a plan; beside `goal` is the result of the job so far."""
    document = json.loads(plan.read_text("utf-8"))
    if not document["stages"] and not document["topicChanges"]:
        result = goal.with_name("result")
        if result.exists() and result.read_text("utf-8").startswith("2"):
            result.write_text("2\ndiffers, but no plan can mend it\n", "utf-8")
        return NOTHING
    targets = []
    if any(warning["code"] == COPY_FIRST for warning in document["warnings"]):
        root = Path(variables["RECONCILER_ROOT"])
        names = cluster_names(root)
        targets = [name for name in names if cluster in sources_of(root, name, names)]
    inputs = {"cluster": cluster, "run": run, "digest": document["digest"], "pipeline": variables["CI_PIPELINE_ID"]}
    return "include:\n" + included("apply", {**inputs, "targets": " ".join(targets)})


def cluster_names(root: Path) -> list[str]:
    """Return the clusters of the root; a folder whose name no pipeline can use is left out, with an error."""
    folders = sorted(file.parent.name for file in root.glob("*/cluster.yaml"))
    names = [name for name in folders if NAME.fullmatch(name)]
    for name in sorted(set(folders) - set(names)):
        print(f"error: {name!a} is no cluster's name, so it is left out: rename the folder")
    return names


def sources_of(root: Path, cluster: str, names: Sequence[str]) -> list[str]:
    """Return the named clusters that the mirrors of a cluster copy from; a cluster is no source of itself.

    Python has no YAML reader of its own, so this reads lines. If it misses a source, the plan ends with KR232.
    """
    documents = [part for text in texts_of(root, cluster) for part in SEPARATOR.split(COMMENT.sub("", text))]
    matches = (SOURCE.search(document) for document in documents if MIRROR.search(document))
    sources = {match[1] for match in matches if match}
    return [name for name in names if name in sources and name != cluster]


def is_simulated(root: Path, cluster: str) -> bool:
    """Return whether the cluster is a file of the repository, which every job can read."""
    return any(SIMULATION.search(text) for text in texts_of(root, cluster))


def texts_of(root: Path, cluster: str) -> list[str]:
    """Return the text of each YAML file of a cluster."""
    files = (file for file in sorted((root / cluster).rglob("*")) if file.suffix.lower() in SUFFIXES and file.is_file())
    return [file.read_text("utf-8", errors="replace") for file in files]


def included(name: str, inputs: Mapping[str, str | list[str]]) -> str:
    """Return an include of a file of this folder."""
    given = "".join(f"      {key}: {json.dumps(value)}\n" for key, value in inputs.items())
    return f"  - local: {FOLDER}/{name}.yml\n    inputs:\n{given}"


if __name__ == "__main__":
    *asked, goal = sys.argv[1:]
    if asked[0] == "--apply":
        Path(goal).write_text(of_plan(Path(asked[1]), asked[2], asked[3], Path(goal), os.environ), "utf-8")
    else:
        Path(goal).write_text(of_all(Path(asked[0]), os.environ), "utf-8")
