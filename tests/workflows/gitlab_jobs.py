"""GitLab's pipelines run on this machine as its runner would run them: includes, inputs, child pipelines, artifacts.

    gitlab = Pipelines(workspace, folder, variables)
    gitlab.run(jobs_of(text, workspace))
    gitlab.ended["plan prod-eu"].result

Understood is what our pipelines use, and nothing else: another key of a job is a failure.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from helpers.program.call import Captured, captured

INPUT = re.compile(r"\$\[\[ inputs\.([\w-]+) \]\]")
UNDERSTOOD = frozenset(
    [
        "stage",
        "extends",
        "image",
        "script",
        "after_script",
        "variables",
        "needs",
        "artifacts",
        "trigger",
        "when",
        "allow_failure",
        "environment",
        "rules",
        "resource_group",
        "timeout",
    ]
)
PASSED = frozenset({"success", "warning"})
Jobs = dict[str, dict[str, Any]]


def jobs_of(text: str, top: Path) -> Jobs:
    """Return the jobs of a pipeline's text, with those of the files that it includes."""
    document: dict[str, Any] = yaml.safe_load(text)
    found: Jobs = {}
    for each in document.pop("include", ()):
        assert set(each) <= {"local", "inputs"}
        found |= included((top / each["local"]).read_text(), each.get("inputs", {}), top)
    return found | document


def included(text: str, given: Mapping[str, str | list[str]], top: Path) -> Jobs:
    """Return the jobs of a file with these inputs."""
    head, _, body = text.rpartition("\n---\n")
    declared = yaml.safe_load(head)["spec"]["inputs"] if head else {}
    assert set(given) == set(declared), f"inputs {sorted(given)}, declared {sorted(declared)}"
    for name, one in declared.items():
        value = given[name]
        if one["type"] == "array":
            assert isinstance(value, list)
        else:
            assert isinstance(value, str)
            assert re.search(one.get("regex", ""), value)
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    return jobs_of(INPUT.sub(lambda found: texts[found[1]], body), top)


@dataclass(slots=True)
class Ended:
    """How a job ended: `success`, `failed`, `warning` if it may fail, `skipped`, or `manual` if no person starts it."""

    result: str
    log: str = ""
    environment: str = ""


@dataclass(slots=True)
class Pipelines:
    """The pipelines of one push. `is_started`: whether somebody starts what is manual; each job has its checkout."""

    workspace: Path
    folder: Path
    variables: Mapping[str, str]
    is_started: bool = True
    ended: dict[str, Ended] = field(default_factory=dict)
    artifacts: dict[str, Path] = field(default_factory=dict)
    count: int = 40
    kept: int = 0

    def run(self, jobs: Jobs) -> bool:
        """Run a pipeline, and the pipelines that it triggers; return whether it succeeded."""
        self.count += 1
        number = str(self.count)
        for name, job in jobs.items():
            if not name.startswith("."):
                assert set(job) <= UNDERSTOOD, name
                self.ended[name] = self._job(name, job, number)
        return all(self.ended[name].result in PASSED for name in jobs if not name.startswith("."))

    def _job(self, name: str, job: Mapping[str, Any], number: str) -> Ended:
        needs = [one if isinstance(one, str) else one["job"] for one in job.get("needs", ())]
        is_always = any(rule.get("when") == "always" for rule in job.get("rules", ()))
        if not is_always and any(self.ended[one].result not in PASSED for one in needs):
            return Ended("skipped")
        if "trigger" in job:
            (one,) = job["trigger"]["include"]
            text = (self.artifacts[one["job"]] / one["artifact"]).read_text()
            return Ended("success" if self.run(jobs_of(text, self.workspace)) else "failed")
        if job.get("when") == "manual" and not self.is_started:
            return Ended("manual")
        return self._ran(name, job, number, needs)

    def _ran(self, name: str, job: Mapping[str, Any], number: str, needs: list[str]) -> Ended:
        checkout = self.folder / "checkout"
        shutil.rmtree(checkout, ignore_errors=True)
        shutil.copytree(self.workspace, checkout)
        for one in needs:
            if one in self.artifacts:
                shutil.copytree(self.artifacts[one], checkout, dirs_exist_ok=True)
        environment = job.get("environment", {}).get("name", "")
        secret = {"KAFKA_PASSWORD": f"canary {environment}"} if environment else {}
        variables = {**self.variables, "CI_PIPELINE_ID": number, **secret, **job.get("variables", {})}
        done = bash(job["script"], checkout, variables)
        after = bash(job.get("after_script", []), checkout, variables)
        for state in checkout.glob("desired-state/*/snapshot.json"):  # a simulated cluster is a file, and no checkout's
            shutil.copy(state, self.workspace / state.relative_to(checkout))
        self._keep(name, job.get("artifacts", {}), checkout, is_well=not done.returncode)
        log = "".join(one.stdout + one.stderr for one in (done, after))
        failure = "warning" if job.get("allow_failure") else "failed"
        return Ended(failure if done.returncode else "success", log, environment)

    def _keep(self, name: str, artifacts: Mapping[str, Any], checkout: Path, *, is_well: bool) -> None:
        self.kept += 1
        kept = self.artifacts[name] = self.folder / "artifacts" / str(self.kept)
        kept.mkdir(parents=True)
        if is_well or artifacts.get("when") == "always":
            for path in artifacts.get("paths", ()):
                if (checkout / path).is_dir():
                    shutil.copytree(checkout / path, kept / path)
                elif (checkout / path).exists():
                    (kept / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(checkout / path, kept / path)


def bash(lines: list[str], folder: Path, variables: Mapping[str, str]) -> Captured:
    """Run lines of a job as GitLab's runner does."""
    base = {name: value for name, value in os.environ.items() if not name.startswith(("RECONCILER_", "CI_"))}
    environment = {**base, **{name: str(value) for name, value in variables.items()}}
    return captured(["bash", "-c", "\n".join(["set -eo pipefail", *lines])], folder, environment)
