"""The CronJobs that `init --ci kubernetes` writes: what they hold, and their scripts, run as a container runs them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.program.call import Program, captured
from helpers.program.documents import edit
from helpers.program.git import git
from workflows.planted import CANARY, plant

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = Path("kubernetes", "clusters")
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.5"
SCHEMAS = "kubernetes-validate==1.37.0"
NAMES = ("prod-eu", "prod-us")
IMAGE, GIT_IMAGE = f"registry.invalid/reconciler@sha256:{'a' * 64}", f"alpine/git@sha256:{'b' * 64}"


@pytest.fixture
def _written(reconciler: Program, tmp_path: Path) -> None:
    for name in NAMES:
        add_cluster(tmp_path, name)
    assert reconciler("init", "--ci", "kubernetes").code == 0


def add_cluster(top: Path, name: str) -> None:
    """Add a cluster like the demo."""
    folder = top / "desired-state" / name
    shutil.copytree(ROOT / "desired-state" / "demo", folder)
    text = (folder / "cluster.yaml").read_text()
    text = text.replace("name: demo", f"name: {name}").replace("  clusterId: ", "  # clusterId: ")
    (folder / "cluster.yaml").write_text(text)


def objects(name: str) -> dict[str, Any]:
    """Return the objects of a cluster, by kind."""
    return {one["kind"]: one for one in yaml.safe_load_all((CLUSTERS / f"{name}.yaml").read_text())}


def pod_of(made: Mapping[str, Any]) -> Any:  # noqa: ANN401 - YAML
    return made["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]


@pytest.mark.usefixtures("_written")
def test_a_cluster_has_objects_and_a_secret_of_its_own() -> None:
    for name in NAMES:
        made = objects(name)
        assert {one["metadata"]["name"].removesuffix(name) for one in made.values()} == {
            "reconciler-",
            "reconciler-approve-",
            "reconciler-approved-",
        }
        (container,) = pod_of(made)["containers"]
        assert container["envFrom"] == [{"secretRef": {"name": f"reconciler-{name}"}}]


@pytest.mark.usefixtures("_written")
def test_a_job_has_no_rights_and_writes_to_its_volumes_alone() -> None:
    made = objects("prod-eu")
    pod = pod_of(made)
    assert (pod["automountServiceAccountToken"], made["ServiceAccount"]["automountServiceAccountToken"]) == (
        False,
        False,
    )
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65532)
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}
    assert made["CronJob"]["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] > 50 * 60
    assert [one["emptyDir"] for one in pod["volumes"] if "emptyDir" in one] == [{"sizeLimit": "1Gi"}] * 2
    rights = {(*rule["resources"], *rule.get("resourceNames", ())): rule["verbs"] for rule in made["Role"]["rules"]}
    assert rights == {
        ("configmaps", "reconciler-approved-prod-eu"): ["get", "patch", "update"],
        ("pods", "pods/log"): ["get", "list"],
    }
    assert all(one["kind"] != "ServiceAccount" for one in made["RoleBinding"]["subjects"])


@pytest.mark.usefixtures("_written")
def test_a_new_folder_adds_a_file_and_a_line(reconciler: Program, tmp_path: Path) -> None:
    before = {file: file.read_text() for file in Path("kubernetes").rglob("*.yaml")}
    add_cluster(tmp_path, "ninth")
    told = json.loads(reconciler("init", "--ci", "kubernetes", "-o", "json").out)
    assert told["written"] == ["kubernetes/clusters/ninth.yaml", "kubernetes/kustomization.yaml"]
    changed = {file for file, text in before.items() if file.read_text() != text}
    assert changed == {Path("kubernetes/kustomization.yaml")}
    listed = yaml.safe_load(Path("kubernetes/kustomization.yaml").read_text())["resources"]
    assert listed == [f"clusters/{name}.yaml" for name in ("ninth", *NAMES)]
    shutil.rmtree(tmp_path / "desired-state" / "ninth")
    told = json.loads(reconciler("init", "--ci", "kubernetes", "-o", "json").out)
    assert told["removed"] == ["kubernetes/clusters/ninth.yaml"]
    assert {file: file.read_text() for file in Path("kubernetes").rglob("*.yaml")} == before


@pytest.mark.parametrize("name", ["Prod", "a_b", "x.y", "-a", "a" * 42])
def test_a_name_that_kubernetes_does_not_take_is_refused(reconciler: Program, tmp_path: Path, name: str) -> None:
    (tmp_path / "desired-state" / name).mkdir(parents=True)
    (tmp_path / "desired-state" / name / "cluster.yaml").touch()
    ended = reconciler("init", "--ci", "kubernetes")
    assert (ended.code, "(KR032)" in ended.err) == (1, True), ended
    assert not Path("kubernetes").exists()


# The tools of others.


@pytest.mark.deep
@pytest.mark.usefixtures("_written")
@pytest.mark.skipif(shutil.which("go") is None, reason="Helm is a Go program, and Go is not here")
def test_helm_makes_the_same_objects_and_kubernetes_knows_every_field(tmp_path: Path) -> None:
    helm = ["go", "run", HELM]
    given = [
        "--set",
        "repository=https://git.invalid/kafka.git",
        "--set",
        f"image={IMAGE}",
        "--set",
        f"gitImage={GIT_IMAGE}",
    ]
    subprocess.run([*helm, "lint", "--strict", "kubernetes", *given], check=True)
    command = [*helm, "template", "reconciler", "kubernetes", *given, "--set", "schedule=7 * * * *"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    plain = "---\n".join((CLUSTERS / f"{name}.yaml").read_text() for name in NAMES)
    replaced = plain.replace("image: reconciler\n", f"image: {IMAGE}\n").replace('"5 * *', '"7 * *')
    replaced = replaced.replace("image: reconciler-git\n", f"image: {GIT_IMAGE}\n")
    source, *made = by_name(rendered)
    assert source["data"] == {"REPOSITORY": "https://git.invalid/kafka.git", "BRANCH": "main"}
    assert made == by_name(replaced)
    for tagged in (f"image={IMAGE[:28]}:1", f"gitImage={GIT_IMAGE.partition('@')[0]}", "image="):
        refused = captured([*command, "--set", tagged])
        assert (refused.returncode != 0, "NAME@sha256:DIGEST" in refused.stderr) == (True, True), refused
    by_digest = given[2:]
    missing = subprocess.run([*helm, "template", "kubernetes", *by_digest], capture_output=True, text=True, check=False)
    assert (missing.returncode != 0, "repository: where the desired state is" in missing.stderr) == (True, True)

    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin" / "pip", "install", "-q", SCHEMAS], check=True)
    rendered_file = tmp_path / "rendered.yaml"
    rendered_file.write_text(rendered)
    validate: list[str | Path] = [venv / "bin" / "kubernetes-validate", "--strict", rendered_file]
    told = subprocess.run(validate, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    rendered_file.write_text(rendered.replace("backoffLimit:", "backOffLimit:", 1))
    assert subprocess.run(validate, capture_output=True, check=False).returncode != 0


def by_name(text: str) -> list[dict[str, Any]]:
    """Return the objects of a file, sorted by kind and name; what stands for all clusters first."""
    found = [one for one in yaml.safe_load_all(text) if one]
    return sorted(
        found, key=lambda one: (one["metadata"]["name"] != "reconciler-source", one["kind"], one["metadata"]["name"])
    )


@pytest.mark.deep
@pytest.mark.usefixtures("_written")
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kustomize is a part of kubectl, which is not here")
def test_kustomize_takes_the_folder() -> None:
    made = subprocess.run(["kubectl", "kustomize", "kubernetes"], capture_output=True, text=True, check=True).stdout
    plain = "---\n".join((CLUSTERS / f"{name}.yaml").read_text() for name in NAMES)
    assert by_name(made) == by_name(plain)


# The scripts, in a root that nobody can write to, without a home, as a user that nobody knows.

ROOM = r"""
set -eu
room=$1
mount -t tmpfs tmpfs "$room"
mkdir -m 1777 "$room/tmp"
mount -t tmpfs -o mode=1777 tmpfs "$room/tmp"
bound() {
    mkdir -p "$room$2"
    mount --rbind "$1" "$room$2"
    if [ "$3" = ro ]; then mount -o remount,bind,ro "$room$2"; fi
}
for each in /bin /lib /lib64 /usr /etc; do
    if [ -L "$each" ]; then
        ln -s "$(readlink "$each")" "$room$each"
    elif [ -e "$each" ]; then
        bound "$each" "$each" ro
    fi
done
bound /dev /dev rw
shift
while [ "$1" != -- ]; do
    bound "$1" "$2" "$3"
    shift 3
done
shift
mkdir "$room/proc"
mount -t proc proc "$room/proc"
mount -o remount,ro "$room"
exec chroot --userspec=65532:65532 --groups=65532 "$room" env -i PATH=/usr/local/bin:/usr/bin:/bin "$@"
"""
"""Mounts what a container sees, and becomes its user: FOLDER (SOURCE GOAL ro|rw)... -- VARIABLES COMMAND."""
USER = 65532


def can_make_rooms() -> bool:
    return (
        os.geteuid() == 0
        and subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False).returncode == 0
    )


@dataclass(slots=True)
class Pod:
    """The pod of one cluster: its volumes as folders of `folder`, its desired state in `repository`.

    A simulated cluster is a file of the desired state, which the scripts clone anew each time: `state` outlives them.
    """

    folder: Path
    repository: Path
    state: bytes
    name: str = "prod-eu"

    def __post_init__(self) -> None:
        for name in ("room", "source", "plans", "approved", "bin"):
            (self.folder / name).mkdir()
            os.chown(self.folder / name, USER, USER)
        program = self.folder / "bin" / "reconciler"
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m reconciler "$@"\n')
        program.chmod(0o755)

    @property
    def simulated(self) -> Path:
        return self.folder / "source" / "repository" / "desired-state" / self.name / "snapshot.json"

    def runs(self) -> "subprocess.CompletedProcess[str]":
        """Run both containers, one after the other, as the CronJob does."""
        pod = pod_of(objects(self.name))
        (source,), (container,) = pod["initContainers"], pod["containers"]
        shutil.rmtree(self.folder / "source", ignore_errors=True)
        (self.folder / "source").mkdir()
        os.chown(self.folder / "source", USER, USER)
        variables = [f"{one['name']}={one['value']}" for one in source["env"]]
        cloned = self.inside(*variables, "REPOSITORY=file:///repository", "BRANCH=main", *words_of(source))
        assert cloned.returncode == 0, cloned.stderr
        self.simulated.write_bytes(self.state)
        ended = self.inside("KAFKA_PASSWORD=canary", *words_of(container))
        self.state = self.simulated.read_bytes()
        return ended

    def inside(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as a container of the pod does."""
        mounts = [
            *((self.folder / name, f"/{name}", "rw") for name in ("source", "plans")),
            (self.folder / "approved", "/approved", "ro"),
            (self.repository / ".git", "/repository", "ro"),
            (self.folder / "bin", "/opt/reconciler/bin", "ro"),
            *((each, str(each), "ro") for each in READ),
        ]
        told = [str(word) for mount in mounts for word in mount]
        room = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", ROOM, "room", str(self.folder / "room")]
        return captured([*room, *told, "--", *words])

    @property
    def digest(self) -> str:
        """The digest of the plan that waits."""
        return str(json.loads((self.folder / "plans" / "plan.json").read_text())["digest"])

    def approve(self, digest: str) -> None:
        (self.folder / "approved" / "digest").write_text(digest)


READ = [each for each in sorted({ROOT, Path(sys.prefix), Path(sys.base_prefix)}) if not each.is_relative_to("/usr")]
"""Where the program and its Python are."""


def words_of(container: Mapping[str, Any]) -> list[str]:
    return [*container["command"], *container["args"]]


@pytest.fixture
def pod(tmp_path: Path, _written: None) -> Pod:
    """Return the pod of prod-eu, its desired state pushed to a repository."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    committed(tmp_path)
    folder = tmp_path / "pod"
    folder.mkdir()
    state = (tmp_path / "desired-state" / "prod-eu" / "snapshot.json").read_bytes()
    return Pod(folder, tmp_path, state)


def committed(top: Path) -> None:
    git(top, "add", "desired-state")
    git(top, "commit", "--quiet", "--message", "a change")
    subprocess.run(["chown", "-R", f"{USER}:{USER}", top / ".git"], check=True)


def commit_edit(top: Path, old: str, new: str) -> None:
    """Change the cluster's document, and commit it."""
    edit(top / "desired-state" / "prod-eu" / "cluster.yaml", old, new)
    committed(top)


@pytest.mark.deep
@pytest.mark.skipif(not can_make_rooms(), reason="only root may mount what a container sees")
def test_a_cron_job_plans_waits_for_its_approval_and_applies_that_plan(pod: Pod, tmp_path: Path) -> None:
    alone = pod.inside(
        "sh", "-c", "id -u; echo home=$HOME; touch /file /etc/file /approved/file; touch /plans/x && echo ok"
    )
    assert (alone.stdout.split(), alone.stderr.count("Read-only")) == (["65532", "home=", "ok"], 3), alone
    first = pod.runs()
    assert (first.returncode, "prod-eu waits for an approval: kubectl patch" in first.stdout) == (0, True), first
    assert (pod.digest in first.stdout, "clicks" in first.stdout) == (True, True)
    waits = pod.digest
    pod.approve(f"sha256:{'0' * 64}")
    again = pod.runs()
    assert (again.returncode, pod.digest, "waits for" in again.stdout) == (0, waits, True), again

    commit_edit(tmp_path, "throttle: 50MiB", "throttle: 60MiB")  # what was planned is no longer what is desired
    pod.approve(waits)
    newer = pod.runs()
    assert (newer.returncode, "waits for" in newer.stdout, pod.digest != waits) == (0, True, True), newer

    newest = pod.digest
    pod.approve(newest)
    applied = pod.runs()
    assert (applied.returncode, "all 14 moves done" in applied.stdout) == (0, True), applied
    assert not (pod.folder / "plans" / "plan.json").exists()
    assert list((pod.folder / "plans" / "runs").rglob("*.jsonl"))
    empty = pod.runs()
    assert (empty.returncode, empty.stdout.startswith("No changes.")) == (0, True), empty
    assert "canary" not in "".join(one.stdout + one.stderr for one in (first, again, newer, applied, empty))


@pytest.mark.deep
@pytest.mark.skipif(not can_make_rooms(), reason="only root may mount what a container sees")
def test_a_plan_that_is_refused_or_stale_is_not_applied(pod: Pod, tmp_path: Path) -> None:
    assert pod.runs().returncode == 0
    stale = pod.digest
    pod.approve(stale)
    cluster = json.loads(pod.state)
    for topic in cluster["topics"]:
        if topic["name"] == "clicks":
            topic["partitions"][0]["replicas"].reverse()
    pod.state = json.dumps(cluster).encode()
    ended = pod.runs()
    assert (ended.returncode, "waits for" in ended.stdout, pod.digest != stale) == (0, True, True), ended
    commit_edit(tmp_path, "movedBytes: 250GiB", "movedBytes: 1GiB")
    refused = pod.runs()
    assert (refused.returncode, (pod.folder / "plans" / "plan.json").exists()) == (3, False), refused


@pytest.mark.deep
@pytest.mark.skipif(not can_make_rooms(), reason="only root may mount what a container sees")
def test_a_job_runs_and_believes_nothing_that_is_planted(pod: Pod, tmp_path: Path) -> None:
    plant(tmp_path, "/plans/canary")
    git(tmp_path, "add", "--all", "--force", ":!pod")
    git(tmp_path, "commit", "--quiet", "--message", "planted")
    subprocess.run(["chown", "-R", f"{USER}:{USER}", tmp_path / ".git"], check=True)
    first = pod.runs()
    pod.approve(pod.digest)
    applied = pod.runs()
    assert (first.returncode, applied.returncode, "all 14 moves done" in applied.stdout) == (0, 0, True), applied
    assert not (pod.folder / "plans" / "canary").exists()
    assert CANARY not in first.stdout + first.stderr + applied.stdout + applied.stderr
