"""Several clusters of one root are meant by names, or by labels."""

from pathlib import Path

import pytest
from helpers.program.documents import document

from reconciler.workflow.inputs import Inputs, NotNamed
from reconciler.workflow.several import clusters_named

STAGES = {"c1": "prod", "c2": "prod", "c3": "prod", "sick": "test"}


@pytest.fixture(autouse=True)
def _fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, stage in STAGES.items():
        folder = Path("desired-state") / name
        folder.mkdir(parents=True)
        text = document("Cluster", name, labels=f"{{stage: {stage}, at: {name}}}")
        (folder / "cluster.yaml").write_text(text)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("*", ("c1", "c2", "c3", "sick")),
        ("c2,c1,c2", ("c2", "c1")),
        ("stage=test", ("sick",)),
        ("stage == test", ("sick",)),
        ("stage=prod, at!=c1,at!=c3", ("c2",)),
        ("nobody!=has", ("c1", "c2", "c3", "sick")),
    ],
)
def test_clusters_are_chosen_by_name_or_label(asked: str, found: tuple[str, ...]) -> None:
    assert clusters_named(Inputs(cluster=asked)) == found


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("stage=no", r"no cluster of desired-state has the labels stage=no: .*it has c1 \(at=c1, stage=prod\), c2 "),
        ("stage=prod,c1", "no names beside them"),
        ("=prod", "write KEY=VALUE or KEY!=VALUE"),
        ("a=b=c", "write KEY=VALUE or KEY!=VALUE"),
        (",", "has no cluster ','; it has c1, c2"),
    ],
)
def test_what_chooses_no_cluster_says_what_there_is(asked: str, why: str) -> None:
    with pytest.raises(NotNamed, match=why):
        clusters_named(Inputs(cluster=asked))
