"""`plan --what-if`: a plan to read, never to run."""

import json
from pathlib import Path

import pytest
from helpers.program.call import Program

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "lost_rack"


@pytest.fixture
def demo(reconciler: Program) -> Program:
    """Return the program, in a folder with the demo."""
    assert reconciler("init", "--demo").code == 0
    return reconciler


@pytest.fixture
def shop(reconciler: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return the program, in a folder with the nine partitions of the scenario `lost_rack`."""
    for name in ("snapshot.json", "desired-state/shop/cluster.yaml", "desired-state/shop/topics.yaml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes((SCENARIO / name).read_bytes())
    monkeypatch.setenv("RECONCILER_STATE", "snapshot.json")
    return reconciler


def test_a_drain_is_planned_as_if_it_were_declared(shop: Program) -> None:
    supposed = json.loads(shop("plan", "--what-if", "drain=5", "-o", "json").out)
    _edit("  balance:", "  brokers: [{id: 5, state: draining}]\n  balance:")
    declared = json.loads(shop("plan", "-o", "json").out)
    assert supposed["summary"] == declared["summary"]
    assert [move["to"] for stage in supposed["stages"] for move in stage.get("moves", ())] == [
        move["to"] for stage in declared["stages"] for move in stage.get("moves", ())
    ]


def test_text_begins_with_what_is_supposed_assumed_and_at_once_so(demo: Program) -> None:
    ended = demo("plan", "--what-if", "add=9@c")
    assert ended.code == 0
    assert ended.out.startswith(
        "What if: add=9@c\n"
        "  assumed   broker 9 joins in rack c, empty, with disks like those of broker 3\n"
        "  at once   nothing becomes under-replicated or unavailable\n"
        "  + wishlists "
    )
    assert "replicas per broker 0-239 -> 164-246" in ended.out


def test_markdown_has_a_marker_of_its_own(shop: Program) -> None:
    _edit("movedBytes: 30GiB", "movedBytes: 1GiB")
    ended = shop("plan", "--what-if", "drain=5", "-o", "markdown")
    assert ended.out.startswith("<!-- reconciler what-if shop -->\n")
    assert "**What if** `drain=5`? Never applied." in ended.out
    assert "so `apply` refuses it." in ended.out
    assert "It would fit if:\n- limits.movedBytes is 12GiB · " in ended.out


def test_it_is_saved_and_shown_but_never_applied(demo: Program) -> None:
    before = Path("desired-state/demo/snapshot.json").read_bytes()
    saved = demo("plan", "--what-if", "replicationFactor=clicks:2", "--out", "if.json")
    assert "apply refuses a supposed plan" in saved.err
    assert "What if: replicationFactor=clicks:2" in demo("show", "if.json").out
    for refused in (
        demo("apply", "if.json", "--yes"),
        demo("apply", "if.json", "--dry-run"),
        demo("show", "if.json", "-o", "kafka-json", "--out", "files"),
    ):
        assert refused.code == 3
        assert "this plan supposes replicationFactor=clicks:2" in refused.err
        assert "KR424" in refused.err
    assert not Path("files").exists()
    assert Path("desired-state/demo/snapshot.json").read_bytes() == before


def test_the_option_has_a_variable(shop: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_PLAN_WHAT_IF", "drain=5,drain=2")
    assert shop("plan").out.startswith("What if: drain=5, drain=2\n")


@pytest.mark.parametrize("text", ["drop=5", "drain", ""])
def test_nonsense_is_wrong_usage(demo: Program, text: str) -> None:
    ended = demo("plan", "--what-if", text)
    assert (ended.code, ended.out) == (64, "")
    assert "is not one of drain=ID, add=ID@RACK" in ended.err


def test_an_unknown_broker_is_an_error_that_names_those_there_are(demo: Program) -> None:
    ended = demo("plan", "--what-if", "drain=77")
    assert (ended.code, ended.out) == (1, "")
    assert "no broker 77 is registered; known are 1, 2, 3, 4, 5, 6 (KR307)" in ended.err


def test_a_plan_that_is_refused_says_what_would_make_it_fit(demo: Program) -> None:
    file = Path("desired-state/demo/cluster.yaml")
    file.write_text(file.read_text("utf-8").replace("movedBytes: 250GiB", "movedBytes: 20GiB"), "utf-8")
    ended = demo("plan", "--out", "plan.json")
    assert ended.code == 3
    assert ended.out.endswith(
        "It would fit if: limits.movedBytes is 27GiB (desired-state/demo/cluster.yaml:25)\n"
        "             or if: replicationFactor is 2, not 3, for clicks (desired-state/demo/web.yaml:8)\n"
    )
    assert "It would fit if: limits.movedBytes is 27GiB" in demo("show", "plan.json").out


def test_a_lost_rack_shows_what_stops_at_once_even_where_no_plan_can_mend_it(shop: Program) -> None:
    ended = shop("plan", "--what-if", "fail-rack=a")
    assert ended.code == 1
    assert ended.out == (
        "What if: fail-rack=a\n"
        "  assumed   rack a is down: brokers 1, 4\n"
        "  at once   7 partitions under-replicated; 1 partition offline (sessions-0)\n"
    )
    assert "orders-0 cannot be placed" in ended.err
    assert (
        "\nIt would fit if: racks.spread is prefer, not strict, for orders, payments "
        "(desired-state/shop/cluster.yaml:15)\n"
    ) in ended.err


def test_without_a_plan_json_still_tells_what_would_be(shop: Program) -> None:
    ended = shop("plan", "--what-if", "fail-rack=a", "-o", "json")
    supposed = json.loads(ended.out)["whatIf"]
    assert supposed["atOnce"]["underReplicated"]["count"] == 7
    assert supposed["before"]["underReplicated"]["count"] == 0
    assert "after" not in supposed
    error = json.loads(ended.err)["error"]
    assert error["exitCode"] == 1
    assert error["remedies"][2] == {
        "edits": [{"change": "one more broker joins in rack a"}],
        "planned": True,
    }


def test_a_lost_rack_that_can_be_mended_is_one_line_and_says_what_is_left(shop: Program) -> None:
    _edit("spread: strict", "spread: prefer")
    ended = shop("plan", "--what-if", "fail-rack=a")
    assert ended.code == 0
    assert "\n  then      1 partition under-replicated; 1 partition offline (sessions-0); " in ended.out
    assert "  ~ dead broker: 7 partitions leave brokers 1, 4  " in ended.out
    assert ended.out.count("dead broker") == 1


def test_a_limit_that_nothing_can_keep_says_so(shop: Program) -> None:
    _edit("spread: strict", "spread: prefer")
    snapshot = json.loads(Path("snapshot.json").read_text("utf-8"))
    for broker in snapshot["brokers"]:
        (log_dir,) = broker["logDirs"]
        log_dir["usableBytes"] -= 18 << 30
        log_dir["totalBytes"] -= 18 << 30
    Path("snapshot.json").write_text(json.dumps(snapshot), "utf-8")
    ended = shop("plan", "--what-if", "drain=1,drain=2,drain=3")
    assert ended.code == 3
    assert ended.out.endswith("No single change of the desired state, and no pair, was found that would make it fit.\n")


def test_a_broker_that_would_stay_empty_is_told(shop: Program) -> None:
    _edit("replicas: even", "replicas: off")
    assert "broker 7 joins and stays empty: balance.replicas is off" in shop("plan", "--what-if", "add=7@c").out


def test_what_files_could_not_say_is_refused_as_in_files(shop: Program) -> None:
    ended = shop("plan", "--what-if", "replicationFactor=orders:1")
    assert (ended.code, ended.out) == (1, "")
    assert "min.insync.replicas 2 is above replicationFactor 1 (--what-if:1)" in ended.err


def test_nothing_to_do_says_so_and_what_is_supposed(shop: Program) -> None:
    ended = shop("plan", "--what-if", "partitions=orders:4")
    assert ended.out.startswith("What if: partitions=orders:4\n")
    assert "No changes. 3 topics" in ended.out


def _edit(old: str, new: str) -> None:
    file = Path("desired-state/shop/cluster.yaml")
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")
