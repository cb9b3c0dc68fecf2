"""The CronJobs that `init --ci kubernetes` writes: what they hold, and their scripts, run as a container runs them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.mirrored import STANDARD, snapshot, topic, write
from helpers.program.call import Program, captured
from helpers.program.documents import document, edit
from helpers.program.git import git
from helpers.program.receiver import SECRET, Receiver
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
    assert made["ServiceAccount"]["imagePullSecrets"] == [{"name": "reconciler-registry"}]
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


# Mirrors: prod-eu copies from prod-us and prod-ap.

CLIENT = "{client: {bootstrap.servers: 'kafka.invalid:9093', security.protocol: SASL_SSL, sasl.mechanism: PLAIN, "
CLIENT += "sasl.username: it, sasl.password: '${env:KAFKA_PASSWORD}'}}"
ORDERS = document("Topic", "orders", "{partitions: 4, replicationFactor: 2}")
MIRRORS = [document("Mirror", name, f'{{source: prod-{name}, topics: ["orders*"]}}') for name in ("us", "ap")]


MIRRORED = ("prod-ap", "prod-eu", "prod-us")


def add_mirrored(*simulated: str) -> None:
    """Write three clusters; those that are not simulated have an address and a password."""
    write("prod-us", [topic("orders", 3)], ORDERS)
    write("prod-ap", [topic("orders", 3)])
    write("prod-eu", [topic("prod-us.orders", 3), topic("prod-ap.orders", 3)], STANDARD, *MIRRORS)
    for name in set(MIRRORED).difference(simulated):
        (Path("desired-state") / name / "cluster.yaml").write_text(document("Cluster", name, CLIENT))


def test_neighbours_of_mirrors_are_read_by_containers_of_their_own(reconciler: Program) -> None:
    add_mirrored()
    write("alone", [])
    Path("desired-state/prod-us/broken.yaml").write_text("kind: [")
    assert reconciler("init", "--ci", "kubernetes").code == 0
    neighbours = {"prod-us": ["prod-ap", "prod-eu"], "prod-ap": ["prod-eu", "prod-us"], "alone": []}
    for name, expected in {**neighbours, "prod-eu": ["prod-ap", "prod-us"]}.items():
        pod = pod_of(objects(name))
        source, *readers = pod["initContainers"]
        assert [one["envFrom"] for one in readers] == [
            [{"secretRef": {"name": f"reconciler-read-{each}", "optional": True}}] for each in expected
        ]
        (container,) = pod["containers"]
        for reader in readers:
            assert reader["image"] == container["image"] == "reconciler"
            assert reader["resources"] == container["resources"]
            assert reader["securityContext"] == container["securityContext"] == source["securityContext"]
            assert [(one["name"], one.get("readOnly", False)) for one in reader["volumeMounts"]] == [
                ("source", True),
                ("states", False),
                ("tmp", False),
            ]
        mounted = [one for one in container["volumeMounts"] if one["name"] == "states"]
        assert mounted == ([{"name": "states", "mountPath": "/states", "readOnly": True}] if expected else [])
        assert container["envFrom"] == [{"secretRef": {"name": f"reconciler-{name}"}}]
        states = "prod-ap=/states/prod-ap.json prod-us=/states/prod-us.json"
        variables = [{"name": "RECONCILER_PLAN_SOURCE_STATE", "value": states}]
        assert container.get("env") == (variables if name == "prod-eu" else None)
    assert "RECONCILER_PLAN_SOURCE_STATE='prod-ap=/states/prod-ap.json'" in (CLUSTERS / "prod-us.yaml").read_text()


def test_a_file_without_neighbours_is_the_same_with_mirrors_elsewhere(reconciler: Program) -> None:
    write("alone", [])
    assert reconciler("init", "--ci", "kubernetes").code == 0
    before = (CLUSTERS / "alone.yaml").read_bytes()
    add_mirrored("prod-us", "prod-ap", "prod-eu")  # nor does a simulated neighbour need a container
    assert reconciler("init", "--ci", "kubernetes").code == 0
    assert (CLUSTERS / "alone.yaml").read_bytes() == before
    for name in ("alone", "prod-us", "prod-eu"):
        assert len(pod_of(objects(name))["initContainers"]) == 1
        assert all(f"# {word}" not in (CLUSTERS / f"{name}.yaml").read_text() for word in ("each", "end"))


# The tools of others.


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("go") is None, reason="Helm is a Go program, and Go is not here")
def test_helm_makes_the_same_objects_and_kubernetes_knows_every_field(reconciler: Program, tmp_path: Path) -> None:
    add_mirrored()
    assert reconciler("init", "--ci", "kubernetes").code == 0
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
    plain = "---\n".join((CLUSTERS / f"{name}.yaml").read_text() for name in MIRRORED)
    replaced = plain.replace("image: reconciler\n", f"image: {IMAGE}\n").replace('"5 * *', '"7 * *')
    replaced = replaced.replace("image: reconciler-git\n", f"image: {GIT_IMAGE}\n")
    source, *made = by_name(rendered)
    assert source["data"] == {"REPOSITORY": "https://git.invalid/kafka.git", "BRANCH": "main"}
    assert made == by_name(replaced)
    assert rendered.count(f"image: {IMAGE}\n") == len(MIRRORED) * 3  # two neighbours each
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
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kustomize is a part of kubectl, which is not here")
def test_kustomize_takes_the_folder(reconciler: Program) -> None:
    add_mirrored()
    assert reconciler("init", "--ci", "kubernetes").code == 0
    made = subprocess.run(["kubectl", "kustomize", "kubernetes"], capture_output=True, text=True, check=True).stdout
    plain = "---\n".join((CLUSTERS / f"{name}.yaml").read_text() for name in MIRRORED)
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


SNAPSHOT = """\
if [ "$1" = snapshot ]; then
    if [ "$KAFKA_PASSWORD" = "describes-$3" ]; then exec cp "/opt/reconciler/bin/$3.json" "$5"; fi
    echo "$3 takes no such login" >&2
    exit 1
fi
"""
"""Stands for a real cluster, which shows its state to one password alone; every other verb is the program's own."""


@dataclass(slots=True)
class Pod:
    """The pod of one cluster: its volumes as folders of `folder`, its desired state in `repository`.

    A simulated cluster is a file of the desired state, which the scripts clone anew each time: `state` outlives them.
    """

    folder: Path
    repository: Path
    state: bytes
    name: str = "prod-eu"
    file: str = "snapshot.json"
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("room", "source", "states", "plans", "approved", "bin"):
            (self.folder / name).mkdir()
            os.chown(self.folder / name, USER, USER)
        program = self.folder / "bin" / "reconciler"
        program.write_text(f'#!/bin/sh\n{SNAPSHOT}PYTHONPATH="{ROOT}" exec "{sys.executable}" -m reconciler "$@"\n')
        program.chmod(0o755)
        python = self.folder / "bin" / "python3"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)

    @property
    def simulated(self) -> Path:
        return self.folder / "source" / "repository" / "desired-state" / self.name / self.file

    def runs(self) -> "subprocess.CompletedProcess[str]":
        """Run all containers, one after the other, as the CronJob does; return how the last one ended."""
        pod = pod_of(objects(self.name))
        (source, *readers), (container,) = pod["initContainers"], pod["containers"]
        for volume in ("source", "states"):
            shutil.rmtree(self.folder / volume, ignore_errors=True)
            (self.folder / volume).mkdir()
            os.chown(self.folder / volume, USER, USER)
        variables = [f"{one['name']}={one['value']}" for one in source["env"]]
        cloned = self.inside(*variables, "REPOSITORY=file:///repository", "BRANCH=main", *words_of(source))
        assert cloned.returncode == 0, cloned.stderr
        self.simulated.write_bytes(self.state)
        for reader in readers:
            read = self.inside(*self.variables(reader), *words_of(reader))
            assert read.returncode == 0, read
        ended = self.inside(*self.variables(container), *words_of(container))
        self.state = self.simulated.read_bytes()
        return ended

    def variables(self, container: Mapping[str, Any]) -> list[str]:
        """Return the variables of a container: those of its Secret, and over them its own."""
        (secret,) = [one["secretRef"]["name"] for one in container["envFrom"]]
        of_secret = self.secrets.get(secret, {"KAFKA_PASSWORD": "canary"})
        own = {one["name"]: one["value"] for one in container.get("env", ())}
        return [f"{name}={value}" for name, value in {**of_secret, **own}.items()]

    def inside(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as a container of the pod does."""
        mounts = [
            *((self.folder / name, f"/{name}", "rw") for name in ("source", "states", "plans")),
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
    for one in cluster["topics"]:
        if one["name"] == "clicks":
            one["partitions"][0]["replicas"].reverse()
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


def mirrored_pod(reconciler: Program, top: Path, name: str) -> Pod:
    """Return the pod of a simulated cluster among real ones; these show the same three partitions as their files."""
    add_mirrored(name)
    assert reconciler("init", "--ci", "kubernetes").code == 0
    git(top, "init", "--quiet", "--initial-branch=main")
    committed(top)
    folder = top / "pod"
    folder.mkdir()
    file = Path("desired-state", name, "state.json")
    secrets = {f"reconciler-read-prod-{one}": {"KAFKA_PASSWORD": f"describes-prod-{one}"} for one in ("us", "ap", "eu")}
    pod = Pod(folder, top, file.read_bytes(), name, "state.json", secrets)
    for source in ("prod-us", "prod-ap"):
        shows(pod, source, {"orders": 3})
    shows(pod, "prod-eu", {"prod-us.orders": 3, "prod-ap.orders": 3})
    return pod


def shows(pod: Pod, name: str, counts: Mapping[str, int]) -> None:
    """Let a real cluster have these topics, with so many partitions."""
    state = snapshot(name, [topic(each, count) for each, count in counts.items()])
    (pod.folder / "bin" / f"{name}.json").write_text(json.dumps(state))


@pytest.mark.deep
@pytest.mark.skipif(not can_make_rooms(), reason="only root may mount what a container sees")
def test_the_target_of_mirrors_plans_with_states_and_without_the_passwords_of_its_sources(
    reconciler: Program, tmp_path: Path
) -> None:
    pod = mirrored_pod(reconciler, tmp_path, "prod-eu")
    (container,) = pod_of(objects("prod-eu"))["containers"]
    assert "describes" not in "".join(pod.variables(container))
    planned = pod.runs()
    assert (planned.returncode, "prod-us.orders" in planned.stdout, "waits for" in planned.stdout) == (0, True, True), (
        planned
    )
    (pod.folder / "plans" / "plan.json").unlink()
    pod.secrets["reconciler-read-prod-us"] = {"KAFKA_PASSWORD": "canary"}
    down = pod.runs()
    assert (down.returncode, "/states/prod-us.json" in down.stderr) == (1, True), down


@pytest.mark.deep
@pytest.mark.skipif(not can_make_rooms(), reason="only root may mount what a container sees")
def test_a_source_that_grows_waits_until_its_copy_has_grown(reconciler: Program, tmp_path: Path) -> None:
    pod = mirrored_pod(reconciler, tmp_path, "prod-us")
    first = pod.runs()
    assert (first.returncode, "KR838" in (pod.folder / "plans" / "plan.json").read_text()) == (0, True), first
    pod.approve(pod.digest)
    waits = "prod-us waits: prod-eu copies from it, and is to grow first; approve and apply prod-eu's plan"
    small = pod.runs()
    assert (small.returncode, small.stdout.splitlines()[-1:]) == (0, [waits]), small
    shows(pod, "prod-eu", {"prod-us.orders": 4, "prod-ap.orders": 3})
    for missing in ("prod-eu", "prod-ap"):  # the copy's state; and that of the other source of its cluster
        secret = pod.secrets.pop(f"reconciler-read-{missing}")
        unknown = pod.runs()
        assert (unknown.returncode, unknown.stdout.splitlines()[-1:]) == (0, [waits]), unknown
        pod.secrets[f"reconciler-read-{missing}"] = secret
    grown = pod.runs()
    assert (grown.returncode, waits in grown.stdout) == (0, False), grown
    assert not (pod.folder / "plans" / "plan.json").exists()
    (state,) = json.loads(pod.state)["topics"]
    assert len(state["partitions"]) == 4


@pytest.mark.deep
@pytest.mark.skipif(not can_make_rooms(), reason="only root may mount what a container sees")
def test_a_plan_that_grows_no_copied_topic_waits_for_no_cluster(reconciler: Program, tmp_path: Path) -> None:
    pod = mirrored_pod(reconciler, tmp_path, "prod-us")
    edit(tmp_path / "desired-state/prod-us/topics.yaml", "partitions: 4", "partitions: 3, config: {retention.ms: 7000}")
    committed(tmp_path)
    del pod.secrets["reconciler-read-prod-eu"]
    assert pod.runs().returncode == 0
    pod.approve(pod.digest)
    applied = pod.runs()
    assert (applied.returncode, "waits" in applied.stdout) == (0, False), applied
    assert not (pod.folder / "plans" / "plan.json").exists()


@pytest.mark.deep
@pytest.mark.skipif(not can_make_rooms(), reason="only root may mount what a container sees")
def test_a_plan_that_waits_is_announced_once(pod: Pod, tmp_path: Path, receiver: Receiver) -> None:
    silent = pod.runs()
    assert (silent.returncode, "notice" in silent.stderr) == (0, False), silent
    pod.secrets["reconciler-prod-eu"] = {"RECONCILER_NOTICE_URL": f"http://127.0.0.1:9/services/{SECRET}"}
    dead = pod.runs()
    assert (dead.returncode, "was not sent" in dead.stderr, receiver.got) == (0, True, []), dead
    pod.secrets["reconciler-prod-eu"] = {"RECONCILER_NOTICE_URL": receiver.url}
    runs = [pod.runs(), pod.runs()]
    ((_, message),) = receiver.got
    assert (message["cluster"], message["digest"]) == ("prod-eu", pod.digest)
    assert f"prod-eu waits for an approval. Plan {pod.digest.removeprefix('sha256:')[:8]}: " in message["text"]
    patch = {"data": {"digest": pod.digest}}
    command = f"kubectl patch configmap reconciler-approved-prod-eu -p '{json.dumps(patch)}'"
    assert message["text"].endswith(f"\n{command}")
    commit_edit(tmp_path, "throttle: 50MiB", "throttle: 60MiB")
    runs.append(pod.runs())
    assert [one["digest"] for _, one in receiver.got] == [message["digest"], pod.digest]
    assert [one.returncode for one in runs] == [0, 0, 0]
    assert SECRET not in "".join(one.stdout + one.stderr for one in (silent, dead, *runs))
