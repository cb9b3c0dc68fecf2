"""The release and the nightly audit, as far as they can run here: all that comes before something is published."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from helpers.figures import Tell
from helpers.program.loopback import Answer, Request, serving
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from workflows.steps import Job, WorkflowSteps
from workflows.test_locks import ALL, MACHINES, PROJECT, pins

ROOT = Path(__file__).resolve().parents[2]
VERSION = PROJECT["project"]["version"]
WHEEL = f"kafka_reconciler-{VERSION}-py3-none-any.whl"
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "reconciler", "schemas", ".github")
JOBS = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]


def machine(folder: Path, names: tuple[str, ...] = NEEDED, **environment: str) -> WorkflowSteps:
    """Return a runner with a checkout of its own; its changelog tells of this version."""
    workspace = folder / "reconciler"
    workspace.mkdir(parents=True)
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, workspace / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, workspace / name)
    changes = workspace / ".github" / "CHANGELOG.md"
    changes.write_text(f"# Changes\n\n## {VERSION}\n\n- All of it.\n\n## 0.0.1\n\n- Nothing.\n")
    return WorkflowSteps(workspace, folder, {"github": {"ref_name": f"v{VERSION}"}}, environment=environment)


VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print("invalid" if JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read()) else "valid")
"""


# What nothing can get around.


def comes_after(job: str) -> set[str]:
    """Return the jobs that have succeeded before that one begins."""
    needs = JOBS[job].get("needs", [])
    direct = {needs} if isinstance(needs, str) else set(needs)
    return direct.union(*(comes_after(one) for one in direct))


def test_nothing_is_published_before_two_builds_were_compared() -> None:
    assert JOBS["build"]["strategy"]["matrix"] == {"runner": ["first", "second"]}
    publish = {name for name, job in JOBS.items() if "write" in job["permissions"].values()}
    assert publish == {"attest", "image", "pypi", "github"}
    assert JOBS["approve"]["environment"] == "release"
    for job in publish:
        assert {"merged", "build", "check", "approve"} <= comes_after(job)
        assert "if" not in JOBS[job]
    assert {"attest", "image"} <= comes_after("pypi")  # a version of PyPI is used once
    assert "pypi" in comes_after("github")


def test_a_release_needs_no_secret_and_builds_nothing_where_it_may_publish() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    assert "secrets." not in text
    assert "password:" not in text
    assert JOBS["pypi"]["environment"] == "release"
    for job in ("attest", "image", "pypi", "github"):
        assert not [step for step in JOBS[job]["steps"] if "checkout@" in step.get("uses", "")]
        assert "pip" not in " ".join(step.get("run", "") for step in JOBS[job]["steps"]).split()


def test_every_image_that_builds_the_image_is_given_by_its_digest() -> None:
    (step,) = [step for step in JOBS["image"]["steps"] if step.get("id") == "image"]
    images = [value for name, value in step["env"].items() if name not in {"GITHUB_TOKEN", "TAG"}]
    assert len(images) == 3
    for image in images:
        _, _, digest = image.partition("@sha256:")
        assert len(digest) == 64


# What is tagged.


@pytest.mark.parametrize(("base", "result"), [("a" * 40, "success"), ("b" * 40, "failure"), ("", "failure")])
def test_a_tag_whose_commit_nobody_has_merged_is_not_released(tmp_path: Path, base: str, result: str) -> None:
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    # `gh api PATH --jq PICK`: the head of main, and where both have branched off.
    program.write_text(
        "#!/bin/sh\ncase $2 in\n"
        f"repos/acme/kafka/git/ref/heads/main) echo {'c' * 40} ;;\n"
        f"repos/acme/kafka/compare/{'a' * 40}...{'c' * 40}) echo {base} ;;\n"
        "*) exit 1 ;;\nesac\n"
    )
    program.chmod(0o755)
    variables = {"GITHUB_REPOSITORY": "acme/kafka", "GITHUB_SHA": "a" * 40}
    steps = machine(tmp_path, ("pyproject.toml", ".github"), **variables)
    steps.programs = (str(program.parent),)
    event = {"repository": {"default_branch": "main"}}
    steps.event = {"github": {"ref_name": f"v{VERSION}", "event": event}}
    job = steps.run("release.yml", "merged", {})
    assert job.result == result, job.log
    assert ("::error::The commit of" in job.log) is (result == "failure")


# The check.


@pytest.fixture
def checking(tmp_path: Path) -> WorkflowSteps:
    """Return a runner on which two builds have arrived."""
    steps = machine(tmp_path, ("pyproject.toml", ".github"))
    for runner in ("first", "second"):
        folder = steps.artifacts / f"built-{runner}"
        folder.mkdir(parents=True)
        for name in (WHEEL, f"kafka_reconciler-{VERSION}.tar.gz", "image-context.tar", "sbom.cdx.json"):
            (folder / name).write_text(name)
    return steps


def test_builds_that_are_the_same_are_released_with_locks_and_checksums(checking: WorkflowSteps) -> None:
    job = checking.run("release.yml", "check", {}, {"build": Job()})
    assert job.result == "success", job.log
    release = checking.artifacts / "release"
    assert (release / "notes.md").read_text() == "\n- All of it.\n\n"
    sums = dict(line.split()[::-1] for line in (release / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {path.name for path in release.iterdir()} - {"SHA256SUMS", "notes.md"}
    assert {f"requirements-{lock}.txt" for lock in ("base", "loads", "spark")} < set(sums)
    for name, digest in sums.items():
        assert hashlib.sha256((release / name).read_bytes()).hexdigest() == digest


def test_builds_that_differ_are_not_released(checking: WorkflowSteps) -> None:
    (checking.artifacts / "built-second" / WHEEL).write_text("one byte more")
    job = checking.run("release.yml", "check", {}, {"build": Job()})
    assert job.result == "failure"
    assert "::error::Two builds of one commit differ, so nothing is released." in job.log
    assert not (checking.artifacts / "release").exists()


@pytest.mark.parametrize(
    ("tag", "told"),
    [
        (f"v{VERSION}.post1", "is not the version in pyproject.toml"),
        ("v0.0.1", "is not the version in pyproject.toml"),
        (f"v{VERSION}", f'has no heading "## {VERSION}"'),
    ],
)
def test_a_tag_that_is_not_the_version_or_has_no_notes_is_not_released(
    checking: WorkflowSteps, tag: str, told: str
) -> None:
    if tag == f"v{VERSION}":
        (checking.workspace / ".github" / "CHANGELOG.md").write_text(f"## {VERSION}, not yet released\n\n- All.\n")
    checking.event = {"github": {"ref_name": tag}}
    job = checking.run("release.yml", "check", {}, {"build": Job()})
    assert job.result == "failure"
    assert told in job.log
    assert not (checking.artifacts / "release").exists()


# The build, really.


@pytest.mark.deep
def test_two_runners_build_the_same_and_the_sbom_lists_what_is_locked(tmp_path: Path, figures: Tell) -> None:
    built = tmp_path / "artifacts"
    elsewhere = {"LC_ALL": "C", "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    for runner, environment in (("first", {}), ("second", elsewhere)):
        steps = machine(tmp_path / runner, NEEDED, **environment)
        job = steps.run("release.yml", "build", {"runner": runner})
        assert job.result == "success", job.log
        shutil.copytree(steps.artifacts, built, dirs_exist_ok=True)
    last = machine(tmp_path / "last")
    shutil.copytree(built, last.artifacts)
    job = last.run("release.yml", "check", {}, {"build": Job()})
    assert job.result == "success", job.log
    sums = (last.artifacts / "release" / "SHA256SUMS").read_text()
    figures("release", "\n" + sums)
    text = (last.artifacts / "release" / "sbom.cdx.json").read_text("utf-8")
    assert str(tmp_path) not in text
    sbom = json.loads(text)
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    listed = {(canonicalize_name(one["name"]), one["version"]): one for one in sbom["components"]}
    locked = {(pin.name, pin.version) for pin in pins("base") if pin.holds_on(MACHINES[0])}
    assert set(listed) == locked
    for (name, version), component in listed.items():
        assert component["purl"] == f"pkg:pypi/{name}@{version}"
    assert sbom["metadata"]["component"]["version"] == VERSION
    graph = {one["ref"]: one.get("dependsOn", []) for one in sbom["dependencies"]}
    needed = {canonicalize_name(one.partition("==")[0]) for one in graph[sbom["metadata"]["component"]["bom-ref"]]}
    assert {canonicalize_name(Requirement(one).name) for one in PROJECT["project"]["dependencies"]} <= needed
    python = tmp_path / "first" / "temp" / "tools" / "bin" / "python"
    for checked, verdict in ((text, "valid"), (text.replace('"version"', '"versoin"', 1), "invalid")):
        told = subprocess.run([python, "-c", VALIDATE], input=checked, capture_output=True, text=True, check=True)
        assert told.stdout == f"{verdict}\n", told.stdout


# The audit, with a service of our own.


@dataclass
class Osv:
    """Answers as OSV does: nothing is known, but against what is in `known`."""

    known: Mapping[str, str] = field(default_factory=dict)
    asked: set[tuple[str, str]] = field(default_factory=set)

    def answer(self, request: Request) -> Answer:
        query = json.loads(request.body)
        name = query["package"]["name"]
        self.asked.add((name, query["version"]))
        found = [{"id": self.known[name], "summary": "It is planted.", "affected": []}] if name in self.known else []
        return Answer(200, json.dumps({"vulns": found} if found else {}).encode())


def audit(folder: Path, address: str) -> Job:
    """Return how the nightly audit ends that asks the service at that address."""
    service = {"PIP_AUDIT_VULNERABILITY_SERVICE": "osv", "PIP_AUDIT_OSV_URL": address, "NO_PROXY": "127.0.0.1"}
    return machine(folder, ("pyproject.toml", ".github"), **service).run("nightly.yml", "audit", {})


@pytest.mark.deep
def test_the_audit_asks_about_every_package_and_one_that_is_known_makes_the_night_red(tmp_path: Path) -> None:
    osv = Osv()
    with serving(osv.answer) as address:
        job = audit(tmp_path / "first", address)
        assert job.result == "success", job.log
        linux = {(pin.name, pin.version) for lock in ALL for pin in pins(lock) if pin.holds_on(MACHINES[0])}
        assert {(canonicalize_name(name), version) for name, version in osv.asked} == linux
        osv.known = {"ortools": "OSV-PLANTED-1"}
        job = audit(tmp_path / "second", address)
    assert job.result == "failure"
    assert "OSV-PLANTED-1" in job.log
    assert job.log.count(".github/locks/") == len(ALL)  # the first finding does not end it


@pytest.mark.deep
def test_an_audit_that_reaches_no_service_is_red(tmp_path: Path) -> None:
    with serving(Osv().answer) as nobody:
        pass
    assert audit(tmp_path, nobody).result == "failure"
