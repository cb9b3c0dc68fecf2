"""An apply beside what is declared: windows hold, however the cluster is reached."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.plans.small_runs import admin_of, cluster, whole_plan
from helpers.program.documents import document

from reconciler.admin.port import Admin
from reconciler.model.desired import Desired, DesiredCluster
from reconciler.model.problem import Refused
from reconciler.workflow import apply as verb
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import simulated


@pytest.mark.long
@pytest.mark.parametrize("inputs", [Inputs(), Inputs(bootstrap_server="k:9092"), Inputs(client="own.properties")])
def test_the_windows_that_are_declared_hold_with_a_client_of_ones_own_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: Inputs
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = whole_plan(cluster())
    file = Path(inputs.root, plan.cluster_name, "cluster.yaml")
    file.parent.mkdir(parents=True)
    spec = "{client: {bootstrap.servers: 'k:9092'}, windows: [{days: [sun], from: '03:00', to: '03:01'}]}"
    file.write_text(document("Cluster", plan.cluster_name, spec), "utf-8")
    admin = admin_of(cluster())

    @contextmanager
    def opened(*_: object) -> Iterator[Admin]:
        yield admin

    monkeypatch.setattr(verb, "cluster_admin", opened)
    with pytest.raises(Refused, match="outside the windows"):
        verb.apply_plan(inputs, plan, is_asked_again=True)
    assert admin.writes == 0
    file.unlink()
    file.parent.rmdir()
    assert verb.apply_plan(inputs, plan, is_asked_again=True).result.state == "done"


def test_a_client_of_ones_own_comes_before_the_file_of_a_simulated_cluster() -> None:
    declared = Desired(DesiredCluster("small", simulation="snapshot.json"))
    assert simulated(Inputs(), declared) == declared.cluster
    for inputs in (Inputs(bootstrap_server="k:9092"), Inputs(client="own.properties")):
        assert simulated(inputs, declared) is None
    assert simulated(Inputs(), Desired(DesiredCluster("small"))) is simulated(Inputs(), None) is None
