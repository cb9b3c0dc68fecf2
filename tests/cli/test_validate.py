"""`validate` where other programs read it: code scanning, annotations, and a hook before each commit."""

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.program.call import ROOT, Captured, Program, captured, modules_loaded_by
from helpers.program.documents import document

pytestmark = pytest.mark.long

BROKEN = document("Topic", "orders", "{partition: 6}")
CLUSTER = document("Cluster", "prod", "{client: {bootstrap.servers: 'b:9092'}}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a cluster's folder in a repository, with one topic in order and one that is not."""
    (tmp_path / ".git").mkdir()
    prod = tmp_path / "kafka" / "desired-state" / "prod"
    prod.mkdir(parents=True)
    (prod / "cluster.yaml").write_text(CLUSTER, "utf-8")
    (prod / "team a.yaml").write_text(BROKEN, "utf-8")
    return prod


def results(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["runs"][0]["results"]
    return found


def test_sarif_names_files_from_the_repositorys_root(
    reconciler: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parents[1])
    ended = reconciler("validate", "-o", "sarif")
    assert (ended.code, ended.err) == (1, "1 cluster, 1 topic: 1 problem.\n")
    (result,) = results(ended.out)
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kafka/desired-state/prod/team%20a.yaml"
    assert place["region"] == {"startLine": 4, "startColumn": 8, "endLine": 4, "endColumn": 21}
    assert json.loads(reconciler("validate", "-o", "json").out)["problems"][0]["code"] == result["ruleId"] == "KR103"


def test_a_link_is_named_by_what_it_leads_to_unless_that_is_elsewhere(
    reconciler: Program, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (folder / "team a.yaml").rename(folder.parent / "shared.yaml")
    (folder / "inside.yaml").symlink_to(folder.parent / "shared.yaml")
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "other.yaml"
    elsewhere.write_text(BROKEN.replace("orders", "clicks"), "utf-8")
    (folder / "outside.yaml").symlink_to(elsewhere)
    found = results(reconciler("-C", str(folder.parent), "validate", "-o", "sarif").out)
    told = {
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: (
            each["ruleId"],
            each["locations"][0]["physicalLocation"]["region"]["endColumn"],
        )
        for each in found
    }
    # Of a file elsewhere not even the length of a line is told.
    assert told == {
        "kafka/desired-state/shared.yaml": ("KR103", 21),
        "kafka/desired-state/prod/outside.yaml": ("KR132", 2),
    }


def test_what_is_wrong_with_a_whole_folder_has_a_place_too(reconciler: Program, folder: Path) -> None:
    (folder / "team a.yaml").unlink()
    (folder / "cluster.yaml").write_text("# nothing yet\n", "utf-8")
    ended = reconciler("-C", str(folder.parent), "validate", "-o", "sarif")
    (result,) = results(ended.out)
    assert result["ruleId"] == "KR111"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("prod/cluster.yaml")
    assert result["partialFingerprints"]["primaryLocationLineHash"].count(":") == 1


def test_files_in_order_are_a_run_without_results(reconciler: Program, folder: Path) -> None:
    (folder / "team a.yaml").unlink()
    ended = reconciler("-C", str(folder.parent), "validate", "-o", "sarif")
    assert (ended.code, results(ended.out)) == (0, [])


@pytest.mark.parametrize("output", ["text", "json", "sarif"])
def test_on_github_stderr_annotates_and_stdout_is_what_was_asked_for(
    output: str, reconciler: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("-C", str(folder.parent), "validate", "-o", output)
    before = reconciler(*arguments)
    assert "::" not in before.err
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder.parents[2]))
    ended = reconciler(*arguments)
    assert (ended.code, ended.out) == (before.code, before.out)
    command, told = ended.err.splitlines()
    assert command.startswith("::error file=kafka/desired-state/prod/team a.yaml,line=4,col=8,title=KR103 ")
    assert told == "1 cluster, 1 topic: 1 problem."


def test_other_verbs_have_no_sarif(reconciler: Program) -> None:
    ended = reconciler("diff", "-o", "sarif")
    assert ended.code == 64
    assert "sarif" in ended.err


def test_sarif_loads_no_solver_no_numpy_no_spark_no_client(folder: Path) -> None:
    loaded = modules_loaded_by("-C", str(folder.parent), "validate", "-o", "sarif")
    assert "yaml" in loaded
    assert loaded & {"numpy", "ortools", "pyspark", "kafka", "rich"} == set()


HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
NO_NETWORK = """
import socket, sys
def refused(*_arguments, **_options):
    raise AssertionError("the hook went to the network")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refused
sys.modules["pyspark"] = None
"""


def test_the_hooks_run_one_command_for_whole_clusters() -> None:
    assert {hook["entry"] for hook in HOOKS.values()} == {"reconciler validate"}
    for hook in HOOKS.values():
        assert hook["pass_filenames"] is False, "a file means nothing without the others of its cluster"
        assert set(hook) == {"id", "name", "description", "entry", "language", "files", "pass_filenames"}


def test_the_hook_runs_as_it_is_written_without_network_or_spark(folder: Path, tmp_path: Path) -> None:
    hook = HOOKS["reconciler-validate"]
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(NO_NETWORK, "utf-8")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("RECONCILER_", "GITHUB_"))},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(ROOT)]),
    }

    def commit() -> Captured:
        return captured(shlex.split(hook["entry"]), folder.parents[1], environment)

    refused = commit()
    assert refused.returncode == 1, refused.stderr
    assert refused.stdout.startswith("desired-state/prod/team a.yaml:4:8: unknown key")
    (folder / "team a.yaml").write_text(BROKEN.replace("partition:", "partitions:"), "utf-8")
    assert commit().returncode == 0


@pytest.mark.parametrize("name", HOOKS)
def test_the_hook_runs_for_the_files_that_it_reads_and_no_others(name: str) -> None:
    wanted = re.compile(HOOKS[name]["files"])
    for path in ("desired-state/prod/cluster.yaml", "desired-state/prod/a/b.yml", "desired-state/policies/x.sql"):
        assert wanted.search(path), path
    for path in ("README.md", "charts/values.yaml", "desired-state/demo/snapshot.json", "old-desired-state/x.yaml"):
        assert not wanted.search(path), path


def with_id(root: Path, name: str, cluster_id: str = "MkU3OEVBNTcwNTJENDM2Qk", more: str = "") -> None:
    (root / name).mkdir(parents=True)
    text = CLUSTER.replace("prod", name).replace("spec: {", f"spec:\n  {{clusterId: {cluster_id}, {more}")
    (root / name / "cluster.yaml").write_text(text, "utf-8")


SHARED = "desired-state/{}/cluster.yaml:5:15: desired-state/{}/cluster.yaml:5 has this clusterId too: a cluster is declared in one folder, keep one of the two (KR134)"  # noqa: E501


@pytest.mark.parametrize("options", [(), ("--cluster", "*")])
def test_one_cluster_in_two_folders_is_an_error_that_names_both(
    reconciler: Program, tmp_path: Path, options: tuple[str, ...]
) -> None:
    root = tmp_path / "desired-state"
    for name, cluster_id in (("a", "one"), ("b", "two"), ("c", "two"), ("d", "two")):
        with_id(root, name, cluster_id)
    ended = reconciler("validate", *options)
    assert (ended.code, ended.err) == (1, "4 clusters, 0 topics: 2 problems.\n")
    problems, _, table = ended.out.partition("\n\n")
    assert problems.splitlines() == [SHARED.format("c", "b"), SHARED.format("d", "b")]
    assert table.startswith("4 clusters:\n") == bool(options)
    (result, *_) = results(reconciler("validate", *options, "-o", "sarif").out)
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]["startLine"]) == ("KR134", 5)


@pytest.mark.parametrize(("name", "other"), [("a", "b"), ("b", "a")])
def test_a_cluster_that_is_validated_alone_is_compared_with_its_neighbours(
    reconciler: Program, tmp_path: Path, name: str, other: str
) -> None:
    root = tmp_path / "desired-state"
    for each in ("a", "b"):
        with_id(root, each)
    (root / other / "topics.yaml").write_text("kind: Topik\n", "utf-8")
    assert reconciler("validate", "--cluster", name).out.splitlines() == [SHARED.format(name, other)]
    (root / other / "cluster.yaml").write_text("kind: [", "utf-8")
    assert reconciler("validate", "--cluster", name).code == 0


def test_a_link_to_a_folder_is_no_second_cluster_of_its_id(reconciler: Program, tmp_path: Path) -> None:
    with_id(tmp_path / "desired-state", "a")
    (tmp_path / "desired-state" / "b").symlink_to("a")
    ended = reconciler("validate")
    assert (ended.code, "KR111" in ended.out, "KR134" in ended.out) == (1, True, False)
    assert reconciler("validate", "--cluster", "a").code == 0


def test_all_clusters_of_a_root_without_any_is_wrong_usage(reconciler: Program) -> None:
    ended = reconciler("validate", "--cluster", "*")
    assert (ended.code, "(KR004)" in ended.err) == (64, True)
