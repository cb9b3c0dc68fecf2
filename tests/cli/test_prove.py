import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
from helpers.program.call import Ended, Program

from reconciler.files.plan_file import read_plan, write_plan
from reconciler.files.snapshot import read_snapshot, write_snapshot
from reconciler.model.cluster import Partition
from reconciler.model.plan import Plan

pytestmark = pytest.mark.long

SNAPSHOT = Path("desired-state/demo/snapshot.json")


@pytest.fixture
def planned(planned_demo: Path, reconciler: Program) -> Program:
    """Return the program in a folder with the demo and its plan, plan.json."""
    copytree(planned_demo, Path(), dirs_exist_ok=True)
    return reconciler


def _tampered(change: Callable[[Plan], Plan]) -> None:
    """Change the plan's file; its id is made to fit."""
    write_plan(change(read_plan("plan.json")), "plan.json")


def _observed_later(topic: str, change: Callable[[Partition], Partition]) -> None:
    observed = read_snapshot(SNAPSHOT)
    found = observed.topics[topic]
    first, *others = found.partitions
    topics = {**observed.topics, topic: replace(found, partitions=(change(first), *others))}
    write_snapshot(replace(observed, topics=topics, observed_at="2026-11-22T00:00:00Z"), "later.json")


def test_the_demos_plan_is_proved(planned: Program) -> None:
    ended = planned("show", "plan.json", "--prove")
    assert (ended.code, ended.err) == (0, "")
    first, *levels = ended.out.splitlines()
    assert first == (
        "Proved: no plan copies fewer than 27.0 MiB (of 14 partitions), by the plan's prices; "
        "counts are the tightest attainable."
    )
    assert [" ".join(line.split()[:2]) for line in levels] == [
        "replicas balance",
        "bytes 28,311,552,",
        "replicas 14,",
        "leaders balance",
        "leaders changed",
    ]


def test_the_verdict_is_json_too(planned: Program) -> None:
    found = json.loads(planned("show", "plan.json", "--prove", "-o", "json").out)
    assert (found["proved"], found["wrong"], found["value"], found["copiedPartitions"]) == (True, None, 28311552, 14)
    assert all(level["value"] == level["lowerBound"] for level in found["levels"])


def test_a_wrong_price_proves_nothing(planned: Program) -> None:
    def cheaper(plan: Plan) -> Plan:
        even, *others = plan.proof.levels
        level = replace(even, prices={**even.prices, 1: 0})
        return replace(plan, proof=replace(plan.proof, levels=(level, *others)))

    _tampered(cheaper)
    ended = planned("show", "plan.json", "--prove")
    assert ended.code == 1
    assert ended.out.startswith("Not proved: replicas balance: the prices prove only ")
    assert "but the plan reaches 363096." in ended.out
    assert json.loads(planned("show", "plan.json", "--prove", "-o", "json").out)["proved"] is False


def test_a_balance_that_disks_may_forbid_is_not_called_proved_without_its_prices(planned: Program) -> None:
    def without_balance(plan: Plan) -> Plan:
        _, least, *others = plan.proof.levels
        joint = {broker_id: price - min(least.prices.values()) for broker_id, price in least.prices.items()}
        free = replace(least, prices=dict.fromkeys(least.prices, 0), value=least.value, lower_bound=0)
        return replace(plan, proof=replace(plan.proof, levels=(free, *others[1:]), joint_prices=joint, lower_bound=0))

    _tampered(without_balance)
    ended = planned("show", "plan.json", "--prove")
    assert ended.code == 1
    assert ended.out.startswith("Bytes proved, balance not: no plan copies fewer than 27.0 MiB (of 14 partitions)")
    assert "It is not proved that no plan is better in: replicas balance, replicas.\n" in ended.out
    found = json.loads(planned("show", "plan.json", "--prove", "-o", "json").out)
    assert (found["proved"], found["wrong"], found["unproved"]) == (False, None, ["replicas balance", "replicas"])


def test_a_plan_of_a_supposed_state_is_proved_for_that(planned: Program) -> None:
    planned("plan", "--what-if", "add=9@c", "--out", "supposed.json")
    ended = planned("show", "supposed.json", "--prove")
    assert ended.code == 0, ended.out + ended.err
    assert ended.out.startswith("Proved: no plan copies fewer than ")


def test_loads_are_for_the_proof_alone(planned: Program) -> None:
    ended = planned("show", "plan.json", "--loads", "loads")
    assert ended.code == 64
    assert "--loads is for --prove" in ended.err


def test_other_files_make_the_plan_stale(planned: Program) -> None:
    with Path("desired-state/demo/web.yaml").open("a", encoding="utf-8") as file:
        file.write("# changed since\n")
    ended = planned("show", "plan.json", "--prove")
    assert (ended.code, ended.out) == (4, "")
    assert "desired-state/demo is not what the plan was made from" in ended.err
    assert "KR505" in ended.err


def test_a_partition_that_moved_on_makes_the_plan_stale(planned: Program) -> None:
    _observed_later("clicks", lambda partition: replace(partition, replicas=partition.replicas[::-1]))
    ended = planned("show", "plan.json", "--prove", "--state", "later.json")
    assert (ended.code, ended.out) == (4, "")
    assert "the cluster is no longer as the plan saw it: clicks-0 is on brokers" in ended.err
    assert "KR507" in ended.err


def test_a_later_snapshot_in_which_nothing_changed_proves_the_plan_and_says_that_it_is_later(planned: Program) -> None:
    _observed_later("clicks", lambda partition: partition)
    ended = planned("show", "plan.json", "--prove", "--state", "later.json")
    assert ended.code == 0
    assert ended.out.rstrip().endswith("this check is of 2026-11-22T00:00:00Z.")


def test_another_cluster_is_refused(planned: Program) -> None:
    write_snapshot(replace(read_snapshot(SNAPSHOT), cluster_id="another"), "another.json")
    ended = planned("show", "plan.json", "--prove", "--state", "another.json")
    assert ended.code in {1, 4}
    assert "another" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [("-o", "markdown"), ("-o", "kafka-json", "--out", "kafka"), ("--out", "kafka"), ("-o", "kafka-json")],
    ids=str,
)
def test_a_verdict_has_two_forms_only(planned: Program, arguments: tuple[str, ...]) -> None:
    ended: Ended = planned("show", "plan.json", "--prove", *arguments)
    assert ended.code == 64
    assert not Path("kafka").exists()


def test_stdin_is_read_once(planned: Program) -> None:
    assert planned("show", "-", "--prove", "--state", "-").code == 64
