"""`show --explain`: one partition's reasons, from the plan's file alone."""

import json
import shutil
from contextlib import chdir
from pathlib import Path

import pytest
from helpers.program.call import Program

from reconciler.cli.main import main
from reconciler.files.plan_file import write_plan
from reconciler.model.plan import Plan, Source

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a plan of the demo."""
    folder = tmp_path_factory.mktemp("demo")
    with chdir(folder):
        assert main(["init", "--demo"]) == 0
        assert main(["plan", "--out", "plan.json"]) == 0
    return folder / "plan.json"


@pytest.fixture
def saved(plan: Path, reconciler: Program) -> Program:
    """Return the program, in a folder with a plan of the demo and nothing else."""
    shutil.copy(plan, "plan.json")
    return reconciler


def test_a_move_is_explained_from_the_plans_file_alone(saved: Program) -> None:
    ended = saved("show", "plan.json", "--explain", "clicks-3")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "clicks-3   [4, 2] -> [4, 2, 6]   2.0 GiB\n"
        "  stage 3             copied from leader 4 to broker 6\n"
        "  why                 replicationFactor 2 -> 3 (desired-state/demo/web.yaml:8)\n"
        "  why broker 6        racks a (broker 4) and b (broker 2) hold all they may; "
        "in rack c it holds 238 now, 246 after, its share being 246\n"
        "                      broker 3 would do as well, trading places with another partition "
        "(holds 237 now, 246 after): a fixed order decides\n"
        "  why not less        no plan that keeps the rules and the balance copies less in all; "
        "show --prove checks it\n"
    )


def test_a_partition_that_stays_is_not_touched(saved: Program) -> None:
    assert saved("show", "plan.json", "--explain", "carts-0").out == "carts-0   not touched by this plan\n"
    assert json.loads(saved("show", "plan.json", "--explain", "carts-0", "-o", "json").out)["touched"] is False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("click-3", "topic click is not known to this plan: did you mean clicks?"),
        ("clicks-12", "clicks-12 is not known to this plan: clicks has partitions 0 to 11"),
        ("pageviews-18", "pageviews has partitions 0 to 17"),
    ],
)
def test_an_unknown_partition_is_an_error(saved: Program, text: str, words: str) -> None:
    ended = saved("show", "plan.json", "--explain", text)
    assert (ended.code, ended.out) == (1, "")
    assert words in ended.err


@pytest.mark.parametrize("text", ["clicks", "-3", "clicks-x", "clicks-٣"])
def test_what_is_no_partition_is_wrong_usage(saved: Program, text: str) -> None:
    ended = saved("show", "plan.json", "--explain", text)
    assert (ended.code, ended.out) == (64, "")


@pytest.mark.parametrize(
    "more", [("-o", "markdown"), ("--prove",), ("-o", "kafka-json", "--out", "x"), ("--log-dirs",)]
)
def test_it_answers_alone(saved: Program, more: tuple[str, ...]) -> None:
    assert saved("show", "plan.json", "--explain", "clicks-3", *more).code == 64


def test_json_says_the_same_with_units_in_its_keys(saved: Program) -> None:
    found = json.loads(saved("show", "plan.json", "--explain", "clicks-3", "-o", "json").out)
    assert (found["from"], found["to"], found["bytes"]) == ([4, 2], [4, 2, 6], 2 << 30)
    assert found["reason"] == "replicationFactor"
    (added,) = found["added"]
    (other,) = added["alternatives"]
    assert (other["broker"], other["verdict"], other["atLeastMoreBytes"]) == (3, "asGood", 0)
    assert other["replicas"] == {"before": 237, "after": 246, "share": 246.0}
    assert added["fullRacks"] == [{"rack": "a", "brokers": [4]}, {"rack": "b", "brokers": [2]}]
    assert found["steps"][0]["sourceBroker"] == 4


def test_an_empty_plan_explains_that_it_changes_nothing(reconciler: Program) -> None:
    write_plan(Plan("demo", "id", Source("sha256:0")), "plan.json")
    ended = reconciler("show", "plan.json", "--explain", "clicks-3")
    assert ended.code == 1
    assert "it changes nothing" in ended.err
