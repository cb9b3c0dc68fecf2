"""The pipeline that `init --ci jenkins` writes, run by Groovy with steps that do as Jenkins' own."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.brokers.kafka_jars import cache_folder, fetch_all, java
from helpers.program.call import Program
from helpers.waiting import HANG
from workflows.test_clusters import add_cluster, edit, nobody

ROOT = Path(__file__).resolve().parents[2]
GROOVY = "4.0.33"
JENKINSFILE = (
    "def reconciler\nnode { checkout scm; reconciler = load 'jenkins/reconciler.groovy' }\nreconciler.clusters()\n"
)


def groovy_jars(workspace: Path) -> Path:
    """Return the folder of Groovy's jars, fetching them first."""
    target = cache_folder() / f"groovy-{GROOVY}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        fetched = workspace / "libs"
        for name in ("groovy", "groovy-json"):
            fetch_all(("org.apache.groovy", name, GROOVY), fetched, workspace)
        shutil.copytree(fetched, target)
    return target


@dataclass(slots=True)
class Jenkins:
    """A repository, and the builds of its Jenkinsfile."""

    top: Path
    folder: Path
    count: int = 0

    def build(self, *approvers: str, **variables: str) -> Any:  # noqa: ANN401 - JSON
        """Return how a build ended in which these users answer."""
        self.count += 1
        build = self.folder / f"build-{self.count}"
        build.mkdir(parents=True)
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        base = {name: value for name, value in os.environ.items() if not name.startswith("RECONCILER_")}
        classes = f"{groovy_jars(self.folder)}/*"
        script = ROOT / "tests" / "workflows" / "jenkins.groovy"
        subprocess.run(
            [java(), "-cp", classes, "groovy.ui.GroovyMain", script, self.top, build, *approvers],
            env={**base, "PATH": path, **variables},
            timeout=HANG,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return json.loads((build / "build.json").read_text())


@pytest.fixture
def jenkins(reconciler: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jenkins:
    """Return a repository of four clusters."""
    top = tmp_path / "top"
    for name in ("prod-eu", "prod-us", "refused", "down"):
        add_cluster(top / "desired-state", name)
    edit(top / "desired-state" / "refused" / "cluster.yaml", "movedBytes: 250GiB", "movedBytes: 1GiB")
    nobody(top / "desired-state" / "down" / "cluster.yaml")
    (top / "Jenkinsfile").write_text(JENKINSFILE)
    monkeypatch.chdir(top)
    assert reconciler("init", "--ci", "jenkins").code == 0
    program = tmp_path / "agent" / "bin" / "reconciler"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m reconciler "$@"\n')
    program.chmod(0o755)
    return Jenkins(top, tmp_path / "agent")


def test_no_file_names_a_cluster_and_the_page_says_the_jenkinsfile(jenkins: Jenkins) -> None:
    texts = {file.name: file.read_text() for file in (jenkins.top / "jenkins").iterdir()}
    assert not any("prod-eu" in text for text in texts.values())
    head = texts["reconciler.groovy"].split("def clusters()")[0]
    assert all(f"//   {line}\n" in head for line in JENKINSFILE.splitlines())


def table(build: Any) -> dict[str, list[str]]:  # noqa: ANN401 - JSON
    """Return the rows of the summary."""
    lines = build["log"].partition("[stage summary]")[2].splitlines()
    return {name: rest for line in lines if line.startswith("  ") for name, *rest in [line.split(maxsplit=2)]}


@pytest.mark.deep
def test_each_cluster_is_planned_approved_and_applied_by_itself(jenkins: Jenkins) -> None:
    build = jenkins.build("kafka-prod-eu")
    rows = table(build)
    assert rows["prod-eu"] == ["0", "applied"], build["log"]
    assert rows["prod-us"] == ["1", "planned, not applied: it was not approved, or its job was stopped"]
    assert (rows["refused"][0], "movedBytes" in rows["refused"][1]) == ("3", True)
    assert (rows["down"][0], "(KR" in rows["down"][1]) == ("1", True)
    assert build["result"] == "FAILURE"
    assert [(one["submitter"], one["isOnNode"]) for one in build["asked"]] == [
        ("kafka-prod-eu", False),
        ("kafka-prod-us", False),
    ]
    assert build["given"] == ["kafka-down", "kafka-prod-eu", "kafka-prod-eu", "kafka-prod-us", "kafka-refused"]
    assert "canary-73" not in build["log"]

    root = jenkins.top / "desired-state"
    shutil.rmtree(root / "refused")
    shutil.rmtree(root / "down")
    add_cluster(root, "ninth")
    build = jenkins.build("kafka-prod-us", "kafka-ninth")
    assert build["result"] == "SUCCESS", build["log"]
    assert table(build) == {
        "ninth": ["0", "applied"],
        "prod-eu": ["0", "nothing to do"],
        "prod-us": ["0", "applied"],
    }


@pytest.mark.deep
def test_a_pull_request_is_validated_and_given_nothing(jenkins: Jenkins) -> None:
    build = jenkins.build(CHANGE_ID="7")
    assert (build["result"], build["given"], build["asked"]) == ("SUCCESS", [], []), build["log"]
    (jenkins.top / "desired-state" / "prod-eu" / "wrong.yaml").write_text("kind: Topik\n")
    build = jenkins.build(CHANGE_ID="7")
    assert (build["result"], "wrong.yaml:1" in build["log"]) == ("FAILURE", True)
