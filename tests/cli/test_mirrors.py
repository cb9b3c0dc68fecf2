"""Topics that another cluster has are made, grown and set here; which plan goes first; what cannot be meant."""

import json
import re
import socket
from pathlib import Path

import pytest
from cli.mirrored import ROOT, STANDARD, counts, snapshot, state, topic, write
from helpers.program.call import Program
from helpers.program.documents import document

pytestmark = pytest.mark.long

FROM_US = document("Mirror", "from-us", '{source: us, topics: ["orders*"], config: [retention.ms]}')
EIGHT = {"retention.ms": "8000"}


def us(orders: int = 3, *documents: str) -> None:
    write("us", [topic("orders", orders, EIGHT | {"min.insync.replicas": "2"}), topic("clicks", 2)], *documents)


def eu(*documents: str, spec: str = "") -> None:
    write("eu", [topic("own", 1)], STANDARD, *documents, spec=spec)


def test_what_the_source_has_is_made_with_what_follows_and_the_second_plan_is_empty(reconciler: Program) -> None:
    us()
    eu(FROM_US)
    planned = reconciler("plan", "--cluster", "eu", "--out", "plan.json")
    assert planned.code == 0, planned
    line = (
        "+ us.orders  create with 3 partitions, replicationFactor 2; retention.ms 8000  desired-state/eu/topics.yaml:9"
    )
    assert line in planned.out, planned
    applied = reconciler("apply", "plan.json", "--yes")
    assert (applied.code, "Planning again: no changes." in applied.err) == (0, True), applied
    assert counts("eu") == {"own": 1, "us.orders": 3}
    made = state("eu")["us.orders"]
    assert (made["configs"], {len(one["replicas"]) for one in made["partitions"]}) == (EIGHT, {2})
    again = reconciler("plan", "--cluster", "eu", "--detailed-exitcode")
    assert (again.code, again.out.startswith("No changes.")) == (0, True), again
    assert reconciler("diff", "--cluster", "eu", "--detailed-exitcode").code == 0
    assert counts("us") == {"clicks": 2, "orders": 3}


def test_the_plan_tells_which_source_it_stands_on_and_is_proved_by_that_alone(reconciler: Program) -> None:
    us()
    eu(FROM_US)
    reconciler("plan", "--cluster", "eu", "--out", "plan.json")
    (source,) = json.loads(Path("plan.json").read_text("utf-8"))["source"]["mirrors"]
    assert (source["cluster"], source["clusterId"]) == ("us", "id-of-us")
    assert "mirroring `us` as observed 2026-01-01" in reconciler("show", "plan.json", "-o", "markdown").out
    assert "mirroring us as observed 2026-01-01" in reconciler("show", "plan.json", "-o", "html").out
    assert reconciler("show", "plan.json", "--prove").code == 0
    us(4)
    moved_on = reconciler("show", "plan.json", "--prove")
    assert (moved_on.code, "us, which mirrors copy from, is not what" in moved_on.err) == (4, True), moved_on
    Path("us.json").write_text(json.dumps(snapshot("us", [topic("orders", 3, EIGHT)])), "utf-8")
    assert reconciler("show", "plan.json", "--prove", "--source-state", "us.json").code == 0


MIRROR_MAKERS = ("mm2-offset-syncs.eu.internal", "us.checkpoints.internal", "mm2-status.us.internal", "heartbeats")


def test_where_undeclared_topics_are_deleted_copies_and_what_mirror_maker_keeps_for_itself_stay(
    reconciler: Program,
) -> None:
    own = [topic(name, 1) for name in MIRROR_MAKERS]
    everything = "topics: {managed: all, delete: allow}"
    write("us", [topic("orders", 3), topic("my-heartbeats", 1), *own], spec=everything)
    copies = [topic("us.orders", 3, EIGHT), topic("us.orders.gone", 2), topic("us.heartbeats", 1)]
    write("eu", [*copies, topic("us.clicks", 1), *own], STANDARD, FROM_US, spec=everything)
    for cluster, unwanted in (("us", {"orders", "my-heartbeats"}), ("eu", {"us.clicks"})):
        planned = reconciler("plan", "--cluster", cluster, "--out", "plan.json", "-o", "json")
        changes = {(one["kind"], one["topic"]) for one in json.loads(planned.out)["topicChanges"]}
        assert {("deleteTopic", name) for name in unwanted} == {each for each in changes if "delete" in each[0]}, (
            planned
        )
        assert reconciler("show", "plan.json", "--prove").code == 0


def test_a_rollback_knows_the_rules_of_copies_without_the_source(reconciler: Program) -> None:
    us()
    spread = document("TopicClass", "standard", "{replicationFactor: 2, placement: {racks: {spread: strict}}}")
    folder = write("eu", [topic("us.orders", 3, EIGHT)], spread, FROM_US)
    observed = snapshot("eu", [topic("us.orders", 3, EIGHT)])
    observed["brokers"] = [{"id": number, "rack": "b" if number == 3 else "a"} for number in (1, 2, 3)]
    (folder / "state.json").write_text(json.dumps(observed), "utf-8")
    assert reconciler("plan", "--cluster", "eu", "--out", "plan.json").code == 0
    assert reconciler("apply", "plan.json", "--yes").code == 0
    (ROOT / "us" / "state.json").unlink()
    back = reconciler("cancel", "plan.json", "--rollback", "--yes")
    assert back.code == 0, back
    assert "1 partitions go back to where they break racks.spread strict (us.orders-0)" in back.out
    assert state("eu")["us.orders"]["partitions"][0]["replicas"] == [1, 2]


GROWS = document("Topic", "orders", "{partitions: 6}")
WHY = "so that records keep their partition in both"


def test_where_a_topic_is_to_grow_both_plans_say_that_the_copy_goes_first(reconciler: Program) -> None:
    us(3, GROWS)
    write("eu", [topic("us.orders", 3, EIGHT)], STANDARD, FROM_US)
    target = reconciler("plan", "--cluster", "eu", "--out", "eu.json")
    told = "topic us.orders grows as orders of us is to (us/topics.yaml:4): apply this plan before that of us"
    assert f"{told}, {WHY} (KR839, desired-state/eu/topics.yaml:9)" in target.out, target
    source = reconciler("plan", "--cluster", "us", "--out", "us.json")
    told = "topic orders grows, and is copied as us.orders of eu (eu/topics.yaml:6): apply the plan of eu first"
    assert f"{told}, {WHY} (KR838, desired-state/us/topics.yaml:4)" in source.out, source
    for plan in ("eu.json", "us.json"):
        assert reconciler("apply", plan, "--yes").code == 0
    assert (counts("eu"), counts("us")) == ({"us.orders": 6}, {"clicks": 2, "orders": 6})
    for cluster in ("eu", "us"):
        again = reconciler("plan", "--cluster", cluster, "--detailed-exitcode")
        assert (again.code, "KR83" in again.out) == (0, False), again


def test_plans_of_several_clusters_come_in_the_order_in_which_they_are_safe(reconciler: Program) -> None:
    us(3, GROWS)
    write("eu", [topic("us.orders", 3, EIGHT)], STANDARD, FROM_US)
    planned = reconciler("plan", "--cluster", "us,eu", "--out", "plans")
    assert planned.out.index("eu\n") < planned.out.index("\nus\n")
    assert f"Apply in this order: eu, us.\n\nus.orders of eu grows before orders of us, {WHY}.\n" in planned.out
    assert "Saved to plans/eu.json, plans/us.json. Nothing has been changed." in planned.err
    assert json.loads(Path("plans/eu.json").read_text("utf-8"))["cluster"]["name"] == "eu"
    report = json.loads(reconciler("plan", "--cluster", "us,eu", "-o", "json").out)
    assert (report["order"], [plan["cluster"]["name"] for plan in report["plans"]]) == (["eu", "us"],) * 2
    assert report["reasons"] == [f"us.orders of eu grows before orders of us, {WHY}"]
    markdown = reconciler("plan", "--cluster", "*", "-o", "markdown").out
    assert markdown.index("`eu`") < markdown.index("`us`") < markdown.index("Apply in this order: eu, us.")
    assert reconciler("plan", "--cluster", "us,eu", "--detailed-exitcode").code == 2


def test_where_both_copy_from_each_other_and_grow_no_order_is_safe(reconciler: Program) -> None:
    for here, there in (("us", "eu"), ("eu", "us")):
        topics = [topic("orders", 1), topic(f"{there}.orders", 1)]
        mirror = document("Mirror", f"from-{there}", f'{{source: {there}, topics: ["orders*"]}}')
        write(here, topics, STANDARD, document("Topic", "orders", "{partitions: 2}"), mirror)
    planned = reconciler("plan", "--cluster", "us,eu")
    assert (planned.code, "(KR840)" in planned.err) == (0, True), planned


@pytest.mark.parametrize("option", [("--what-if", "drain=1"), ("--state", "x"), ("--curve",), ("-o", "html")])
def test_several_clusters_take_no_option_that_is_of_one(option: tuple[str, ...], reconciler: Program) -> None:
    us()
    eu(FROM_US)
    assert reconciler("plan", "--cluster", "us,eu", *option).code == 64


def test_a_snapshot_stands_in_for_a_source_that_cannot_be_reached(reconciler: Program) -> None:
    us()
    eu(FROM_US)
    (ROOT / "us" / "state.json").rename("us.json")
    refused = reconciler("plan", "--cluster", "eu")
    told = "error: desired-state/eu/topics.yaml:9:8: mirror from-us copies from us, which cannot be read: "
    assert (refused.code, refused.err.startswith(told)) == (1, True), refused
    assert "or name a snapshot of us with --source-state FILE (KR232)" in refused.err
    for more in (("us.json",), ("us=us.json",), ("us.json", "--state", str(ROOT / "eu" / "state.json"))):
        planned = reconciler("plan", "--cluster", "eu", "--source-state", *more)
        assert (planned.code, "us.orders" in planned.out) == (0, True), planned
    assert "us.orders" in reconciler("diff", "--cluster", "eu", "--source-state", "us.json").out


def test_an_apply_asks_nothing_of_a_source_whose_password_it_may_not_have(reconciler: Program) -> None:
    us()
    eu(FROM_US)
    (ROOT / "us" / "state.json").rename("us.json")
    with socket.create_server(("127.0.0.1", 0)) as source:
        client = f"{{client: {{bootstrap.servers: '127.0.0.1:{source.getsockname()[1]}'}}}}"
        (ROOT / "us" / "cluster.yaml").write_text(document("Cluster", "us", client), "utf-8")
        assert reconciler("plan", "--cluster", "eu", "--source-state", "us.json", "--out", "plan.json").code == 0
        applied = reconciler("apply", "plan.json", "--yes")
        source.settimeout(0)
        with pytest.raises(BlockingIOError):
            source.accept()
    assert (applied.code, "Planning again" in applied.err) == (0, False), applied
    assert counts("eu") == {"own": 1, "us.orders": 3}


def test_of_two_sources_a_snapshot_names_its_own_and_one_of_another_cluster_is_refused(reconciler: Program) -> None:
    us()
    write("asia", [topic("orders", 2)])
    eu(FROM_US, document("Mirror", "from-asia", '{source: asia, topics: ["orders"]}'))
    Path("us.json").write_text(json.dumps(snapshot("us", [topic("orders", 5)])), "utf-8")
    assert reconciler("plan", "--cluster", "eu", "--source-state", "us.json").code == 64
    planned = reconciler("plan", "--cluster", "eu", "--source-state", "us=us.json", "-o", "json")
    changes = {one["topic"]: one["partitions"] for one in json.loads(planned.out)["topicChanges"]}
    assert changes == {"asia.orders": 2, "us.orders": 5}
    cluster = ROOT / "us" / "cluster.yaml"
    cluster.write_text(cluster.read_text("utf-8").replace("{simulation", "{clusterId: id-of-us, simulation"), "utf-8")
    refused = reconciler("plan", "--cluster", "eu", "--source-state", f"us={ROOT / 'eu' / 'state.json'}")
    assert (refused.code, "(KR233)" in refused.err) == (1, True), refused


ERRORS = {
    "KR114": document("Mirror", "from-eu", '{source: eu, topics: ["*"]}'),
    "KR115": FROM_US + "---\n" + document("Topic", "us.orders", "{partitions: 2}"),
    "KR117": FROM_US.replace("source: us", "source: su"),
}


@pytest.mark.parametrize("code", ERRORS)
def test_what_clusters_cannot_mean_together_is_told_with_its_place_by_plan_and_validate(
    code: str, reconciler: Program
) -> None:
    us(3, document("Topic", "orders", "{partitions: 3}"))
    eu(ERRORS[code])
    planned, validated = reconciler("plan", "--cluster", "eu"), reconciler("validate", "--cluster", "eu")
    assert (planned.code, f"({code})" in planned.err, validated.code) == (1, True, 1), planned
    assert re.match(rf"desired-state/eu/topics.yaml:\d+:\d+: .*\({code}\)\n", validated.out), validated


def test_what_only_the_observed_source_shows_to_contradict_is_told_by_plan(reconciler: Program) -> None:
    us()
    eu(FROM_US, document("Topic", "us.orders", "{partitions: 3, config: {retention.ms: 9000}}"))
    assert reconciler("validate").code == 0
    planned = reconciler("plan", "--cluster", "eu")
    told = "topic us.orders: retention.ms is 9000, and follows orders of us (is 8000) by mirror from-us"
    assert (planned.code, planned.err.startswith(f"error: desired-state/eu/topics.yaml:14:32: {told} (")) == (
        1,
        True,
    ), planned


def test_a_loop_over_three_clusters_is_told_in_each_of_them(reconciler: Program) -> None:
    for target, source in (("a", "c"), ("b", "a"), ("c", "b")):
        same = document("Mirror", "m", f'{{source: {source}, topics: ["*"], rename: "{{topic}}"}}')
        write(target, [topic("x", 1)], STANDARD, same)
    told = [line for line in reconciler("validate").out.splitlines() if "(KR114)" in line]
    assert [line.split("/")[1] for line in told] == ["a", "b", "c"], told
    assert "mirror m copies topics in a loop, c -> a -> b -> c, with m (desired-state/b/topics.yaml:6), m (" in told[0]


def test_a_topic_that_is_to_grow_at_the_first_of_a_chain_grows_at_its_end(reconciler: Program) -> None:
    write("a", [topic("x", 1)], document("Topic", "x", "{partitions: 4}"))
    write("b", [topic("a.x", 1)], STANDARD, document("Mirror", "m", '{source: a, topics: ["x"]}'))
    write("c", [topic("b.a.x", 1)], STANDARD, document("Mirror", "m", '{source: b, topics: ["*"]}'))
    report = json.loads(reconciler("plan", "--cluster", "a,b,c", "-o", "json").out)
    assert report["order"] == ["c", "b", "a"]


def test_a_copy_at_the_min_isr_that_somebody_set_on_it_is_reported(reconciler: Program) -> None:
    us(4)
    write("eu", [topic("us.orders", 3, {**EIGHT, "min.insync.replicas": "2"})], STANDARD, FROM_US)
    planned = reconciler("plan", "--cluster", "eu")
    what = "topic us.orders is to have partitions with 2 replicas, as many as min.insync.replicas 2 (set on the topic)"
    assert (planned.code, what in planned.out) == (0, True), planned
