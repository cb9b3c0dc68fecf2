"""`plan --what-if`: a plan to read, never to run."""

import json
from pathlib import Path

import pytest
from helpers.program.call import Program

pytestmark = pytest.mark.long

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "lost_rack"


@pytest.fixture
def shop(reconciler: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return the program, in a folder with the nine partitions of the scenario `lost_rack`."""
    for name in ("snapshot.json", "desired-state/shop/cluster.yaml", "desired-state/shop/topics.yaml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes((SCENARIO / name).read_bytes())
    monkeypatch.setenv("RECONCILER_STATE", "snapshot.json")
    return reconciler


def test_text_begins_with_what_is_supposed_assumed_and_at_once_so(shop: Program) -> None:
    _edit("replicas: even", "replicas: off")
    ended = shop("plan", "--what-if", "add=7@c")
    assert ended.code == 0
    assert ended.out.startswith(
        "What if: add=7@c\n"
        "  assumed   broker 7 joins in rack c, empty, with disks like those of broker 3\n"
        "  at once   nothing becomes under-replicated or unavailable\n"
    )
    assert "broker 7 joins and stays empty: balance.replicas is off" in ended.out


def test_markdown_has_a_marker_of_its_own(shop: Program) -> None:
    _edit("movedBytes: 30GiB", "movedBytes: 1GiB")
    ended = shop("plan", "--what-if", "drain=5", "-o", "markdown")
    assert ended.out.startswith("<!-- reconciler what-if shop -->\n")
    assert "**What if** `drain=5`? Never applied." in ended.out
    assert "so `apply` refuses it." in ended.out
    assert "It would fit if:\n- limits.movedBytes is 12GiB · " in ended.out


def test_it_is_saved_and_shown_but_never_applied(shop: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Path("snapshot.json").read_bytes()
    assert "apply refuses a supposed plan" in shop("plan", "--what-if", "drain=5", "--out", "if.json").err
    assert "What if: drain=5" in shop("show", "if.json").out
    monkeypatch.delenv("RECONCILER_STATE")
    for verb in (("apply", "--yes"), ("apply", "--dry-run"), ("show", "-o", "kafka-json", "--out", "files")):
        refused = shop(*verb, "if.json")
        told = ("this plan supposes drain=5" in refused.err, "KR424" in refused.err)
        assert (refused.code, told) == (3, (True, True)), refused
    assert not Path("files").exists()
    assert Path("snapshot.json").read_bytes() == before


def test_the_option_has_a_variable(shop: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_PLAN_WHAT_IF", "drain=5,drain=2")
    assert shop("plan").out.startswith("What if: drain=5, drain=2\n")


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("drop=5", 64, "is not one of drain=ID, add=ID@RACK"),
        ("", 64, "is not one of drain=ID, add=ID@RACK"),
        ("drain=77", 1, "no broker 77 is registered; known are 1, 2, 3, 4, 5, 6 (KR307)"),
        ("replicationFactor=orders:1", 1, "min.insync.replicas 2 is above replicationFactor 1 (--what-if:1)"),
    ],
)
def test_a_supposition_that_makes_no_sense_is_refused(shop: Program, text: str, code: int, told: str) -> None:
    ended = shop("plan", "--what-if", text)
    assert (ended.code, ended.out, told in ended.err) == (code, "", True), ended


def test_a_plan_that_is_refused_says_what_would_make_it_fit(shop: Program) -> None:
    _edit("movedBytes: 30GiB", "movedBytes: 1GiB")
    ended = shop("plan", "--what-if", "drain=5", "--out", "plan.json")
    assert (ended.code, "limits.movedBytes is 12GiB (desired-state/shop/cluster.yaml:" in ended.out) == (3, True), ended
    assert "It would fit if: limits.movedBytes is 12GiB" in shop("show", "plan.json").out


def test_a_lost_rack_shows_what_stops_at_once_even_where_no_plan_can_mend_it(shop: Program) -> None:
    ended = shop("plan", "--what-if", "fail-rack=a")
    assert ended.code == 1
    assert ended.out == (
        "What if: fail-rack=a\n"
        "  assumed   rack a is down: brokers 1, 4\n"
        "  at once   7 partitions under-replicated; 1 partition offline (sessions-0)\n"
    )
    assert "orders-0 cannot be placed" in ended.err
    assert "\nIt would fit if: racks.spread is prefer, not strict, for orders, payments (" in ended.err
    ended = shop("plan", "--what-if", "fail-rack=a", "-o", "json")
    supposed, error = json.loads(ended.out)["whatIf"], json.loads(ended.err)["error"]
    under = [supposed[when]["underReplicated"]["count"] for when in ("before", "atOnce")]
    assert (under, "after" in supposed, error["exitCode"]) == ([0, 7], False, 1)
    assert error["remedies"][2] == {"edits": [{"change": "one more broker joins in rack a"}], "planned": True}


def test_a_lost_rack_that_can_be_mended_is_one_line_and_says_what_is_left(shop: Program) -> None:
    _edit("spread: strict", "spread: prefer")
    ended = shop("plan", "--what-if", "fail-rack=a")
    assert ended.code == 0
    assert "\n  then      1 partition under-replicated; 1 partition offline (sessions-0); " in ended.out
    assert "  ~ dead broker: 6 partitions leave their brokers  " in ended.out
    assert ended.out.count("dead broker") == 1


def test_nothing_to_do_says_so_and_what_is_supposed(shop: Program) -> None:
    ended = shop("plan", "--what-if", "partitions=orders:4")
    assert ended.out.startswith("What if: partitions=orders:4\n")
    assert "No changes. 3 topics" in ended.out


def _edit(old: str, new: str) -> None:
    file = Path("desired-state/shop/cluster.yaml")
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
