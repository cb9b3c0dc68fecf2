from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.program.documents import document

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.model.desired import Desired, DesiredCluster
from reconciler.model.problem import InvalidInput
from reconciler.workflow.demo import demo_cluster
from reconciler.workflow.inputs import Inputs, NotNamed, cluster_name, cluster_names
from reconciler.workflow.sources import cluster_admin, cluster_meant, declared_cluster, observed_state


class Connected(Exception):
    """Carries the properties that a connection was asked for with."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__()
        self.properties = dict(properties)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(properties: Mapping[str, str]) -> None:
        raise Connected(properties)

    monkeypatch.setattr("reconciler.admin.client.connect", connect)


def _properties(inputs: Inputs, desired: Desired | None) -> Mapping[str, str]:
    with pytest.raises(Connected) as caught, cluster_admin(inputs, desired):
        pass
    return caught.value.properties


def _real(client: Mapping[str, str]) -> Desired:
    return Desired(DesiredCluster("prod", client=client))


def test_the_clusters_file_says_how_to_reach_it_and_secrets_are_read_then() -> None:
    desired = _real({"bootstrap.servers": "k:9092", "sasl.password": "${env:SECRET}"})
    inputs = Inputs(environ={"SECRET": "s3"})
    assert _properties(inputs, desired) == {"bootstrap.servers": "k:9092", "sasl.password": "s3"}


def test_what_the_caller_gives_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=mine:9092\nclient.id=me\n")
    desired = _real({"bootstrap.servers": "k:9092", "client.id": "file"})
    assert _properties(Inputs(client=str(file)), desired) == {"bootstrap.servers": "mine:9092", "client.id": "me"}
    both = Inputs(client=str(file), bootstrap_server="other:9092")
    assert _properties(both, desired) == {"bootstrap.servers": "other:9092", "client.id": "me"}
    over = _properties(Inputs(bootstrap_server="other:9092"), desired)
    assert over == {"bootstrap.servers": "other:9092", "client.id": "file"}


def test_a_bootstrap_server_alone_is_enough() -> None:
    assert _properties(Inputs(bootstrap_server="k:9092"), None) == {"bootstrap.servers": "k:9092"}


def test_a_simulated_cluster_is_kept_in_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    write_snapshot(demo_cluster(), folder / "snapshot.json")
    desired = Desired(DesiredCluster("demo", simulation="snapshot.json"))
    with cluster_admin(Inputs(root=str(tmp_path)), desired) as admin:
        assert isinstance(admin, SimulatedAdmin)
        admin.delete_topics(["clicks"])
    assert "clicks" not in read_snapshot(folder / "snapshot.json").topics


def test_a_snapshot_wins_over_every_cluster(tmp_path: Path) -> None:
    write_snapshot(demo_cluster(), tmp_path / "s.json")
    inputs = Inputs(state=str(tmp_path / "s.json"), bootstrap_server="k:9092")
    assert observed_state(inputs, None).cluster_id == demo_cluster().cluster_id


def test_without_anything_to_reach_it_says_what_to_name() -> None:
    with pytest.raises(NotNamed, match="--bootstrap-server"), cluster_admin(Inputs(), None):
        pass


def test_the_only_cluster_needs_no_name(tmp_path: Path) -> None:
    root = str(tmp_path)
    with pytest.raises(NotNamed, match="reconciler init"):
        cluster_name(Inputs(root=root))
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cluster.yaml").write_text("")
        assert cluster_name(Inputs(root=root, cluster="given")) == "given"
        if name == "b":
            assert cluster_name(Inputs(root=root)) == "b"
    assert cluster_names(root) == ("a", "b")
    with pytest.raises(NotNamed, match="a, b"):
        cluster_name(Inputs(root=root))


BROKEN = "apiVersion: reconciler/v1\nkind: Cluster\nmetadata: {name: prod}\nspec: {clint: {bootstrap.servers: 'k:1'}}\n"


@pytest.mark.parametrize(
    ("given", "reached"),
    [(Inputs(bootstrap_server="mine:9092"), "mine:9092"), (Inputs(client="c.properties"), "yours:9092")],
)
def test_with_a_client_given_a_broken_cluster_document_is_told_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, given: Inputs, reached: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("desired-state/prod").mkdir(parents=True)
    Path("desired-state/prod/cluster.yaml").write_text(BROKEN)
    Path("c.properties").write_text("bootstrap.servers=yours:9092\n")
    inputs = replace(given, cluster="prod")
    assert _properties(inputs, cluster_meant(inputs)) == {"bootstrap.servers": reached}
    (told,) = caplog.messages
    assert told.startswith(
        "nothing that is declared of the cluster is used: desired-state/prod/cluster.yaml:4:8: unknown key"
    )
    with pytest.raises(InvalidInput) as caught:
        declared_cluster(Inputs(), "prod")
    assert [problem.code for problem in caught.value.problems] == ["KR103", "KR133"]


def test_with_a_client_given_no_folder_is_needed(tmp_path: Path) -> None:
    inputs = Inputs(root=str(tmp_path), cluster="prod", bootstrap_server="mine:9092")
    assert _properties(inputs, cluster_meant(inputs)) == {"bootstrap.servers": "mine:9092"}
    missing = Inputs(root=str(tmp_path), cluster="prod")
    with pytest.raises(NotNamed, match=r"has no cluster 'prod'"), cluster_admin(missing, cluster_meant(missing)):
        pass


def test_a_cluster_document_that_does_not_say_how_to_reach_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "prod-eu" / "cluster.yaml"
    file.parent.mkdir()
    file.write_text(document("Cluster", "prod-eu"), "utf-8")
    inputs = Inputs(root=str(tmp_path), cluster="prod-eu")
    told = r"Cluster document of prod-eu \(prod-eu/cluster.yaml:\d+\) does not say how to reach it: write spec.client"
    with pytest.raises(NotNamed, match=told), cluster_admin(inputs, cluster_meant(inputs)):
        pass
