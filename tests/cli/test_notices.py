"""`diff --notify` and `--metrics`: drift is told to a real receiver within one run, and its URL is never shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli.mirrored import ROOT, topic, write
from helpers.program.call import Program
from helpers.program.documents import document
from helpers.program.receiver import SECRET, Receiver
from jsonschema import Draft7Validator
from prometheus_client.parser import text_string_to_metric_families

from reconciler.files import webhook
from reconciler.files.schema_check import schema_folder

pytestmark = pytest.mark.long

WISHED = document("Topic", "orders", '{replicationFactor: 2, config: {retention.ms: "8000"}}').replace(
    "name: orders", "name: orders, labels: {owner: team-orders}"
)
AS_WISHED, DRIFTED = ({"retention.ms": one} for one in ("8000", "1000"))


@pytest.fixture(autouse=True)
def _fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webhook, "PAUSES", (0.0, 0.0))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "RECONCILER_DIFF_NOTIFY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("calm", "drifted"):
        write(name, [topic("orders", 3, AS_WISHED)], WISHED)


def change(cluster: str, *topics: dict[str, Any]) -> None:
    """Have somebody change the cluster by hand: these are its topics now."""
    file = ROOT / cluster / "state.json"
    state = json.loads(file.read_text())
    file.write_text(json.dumps(state | {"topics": topics}))


def test_a_topic_made_by_hand_is_told_by_the_next_run_in_one_message_for_all_clusters(
    reconciler: Program, receiver: Receiver
) -> None:
    asked = ("diff", "--cluster", "*", "--notify", receiver.url)
    assert (reconciler(*asked).code, receiver.got) == (0, [])
    change("drifted", topic("orders", 3, AS_WISHED), topic("orders.tmp", 2))
    ended = reconciler(*asked)
    assert ended.code == 0, ended
    ((path, told),) = receiver.got
    assert path == f"/services/{SECRET}"
    Draft7Validator(json.loads((schema_folder() / "notice.json").read_text())).validate(told)
    calm, drifted = told["clusters"]
    assert (calm["cluster"], calm["differences"], calm["undeclaredTopics"], calm["told"]) == ("calm", 0, 0, [])
    assert (drifted["differences"], drifted["undeclaredTopics"]) == (0, 1)
    assert [(one["subject"], one["what"]) for one in drifted["told"]] == [
        ("orders.tmp", "no file declares it, and it stays; 2 partitions")
    ]
    assert "1 of 2 clusters is not as the files say" in told["text"]
    assert "orders.tmp: no file declares it" in told["text"]
    assert "Kafka does not record who" in told["text"]


def test_a_difference_has_its_place_and_owner_and_an_undeclared_topic_whom_to_ask(
    reconciler: Program, receiver: Receiver
) -> None:
    owner = "apiVersion: reconciler/v1\nkind: Owner\nmetadata: {name: team-a}\nspec: {topics: [tmp.*], contact: '#a'}\n"
    (ROOT / "drifted" / "owners.yaml").write_text(owner)
    change("drifted", topic("orders", 3, DRIFTED), topic("tmp.x", 1), topic("other", 1))
    assert reconciler("diff", "--cluster", "drifted", "--notify", receiver.url, "--detailed-exitcode").code == 2
    ((_, told),) = receiver.got
    (cluster,) = told["clusters"]
    assert (cluster["exitCode"], cluster["differences"], told["drift"]) == (2, 1, True)
    difference, *others = cluster["told"]
    assert (difference["what"], difference["owner"]) == ("config.retention.ms 1000 -> 8000", "team-orders")
    assert difference["at"].startswith("drifted/")
    assert [(one["subject"], one["owner"], one["contact"]) for one in others] == [
        ("other", None, None),
        ("tmp.x", "team-a", "#a"),
    ]
    assert "1 partition (owner team-a (#a))" in told["text"]


@pytest.mark.parametrize(
    ("when", "state", "is_told"),
    [
        ("drift", "as wished", False),
        ("always", "as wished", True),
        ("drift", "undeclared", True),
        ("differences", "undeclared", False),
        ("differences", "drifted", True),
        ("differences", "unreadable", True),
    ],
)
def test_it_is_told_only_when_there_is_something_to_tell(
    when: str, state: str, *, is_told: bool, reconciler: Program, receiver: Receiver
) -> None:
    orders = topic("orders", 3, DRIFTED if state == "drifted" else AS_WISHED)
    change("drifted", orders, *([topic("tmp", 1)] if state == "undeclared" else []))
    if state == "unreadable":
        (ROOT / "drifted" / "state.json").write_text("[")
    for clusters in ("*", "drifted"):
        receiver.got.clear()
        ended = reconciler("diff", "--cluster", clusters, "--notify", receiver.url, "--notify-on", when)
        assert (len(receiver.got), ended.code) == (int(is_told), int(state == "unreadable")), ended
    if state == "unreadable":
        ((_, told),) = receiver.got
        assert told["clusters"][0]["result"].startswith("failed (KR")
        assert "state.json" in told["clusters"][0]["reason"]


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_message_that_nobody_takes_ends_with_1_and_leaves_what_was_found(
    output: str, reconciler: Program, receiver: Receiver
) -> None:
    change("drifted", topic("orders", 3, DRIFTED))
    asked = ("diff", "--cluster", "*", "--detailed-exitcode", "-o", output)
    alone = reconciler(*asked)
    receiver.answers = [(503, {}), (500, {}), (429, {"Retry-After": "0"})]
    ended = reconciler(*asked, "--notify", receiver.url)
    assert (alone.code, ended.code, ended.out) == (2, 1, alone.out)
    assert len(receiver.got) == 3
    assert "KR025" in ended.err
    assert "answers 429" in ended.err
    assert all(part not in ended.err for part in SECRET.split("/")), ended
    if output == "json":
        assert json.loads(ended.err)["error"]["code"] == "KR025"


def test_the_url_comes_from_the_environment_or_a_file(
    reconciler: Program, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = ("diff", "--cluster", "calm", "--notify-on", "always")
    secret = tmp_path / "url"
    secret.write_text(receiver.url + "\n")
    monkeypatch.setenv("HOOK", receiver.url)
    assert reconciler(*asked, "--notify", "${env:HOOK}").code == 0
    assert reconciler(*asked, "--notify", f"${{file:{secret}}}").code == 0
    monkeypatch.setenv("RECONCILER_DIFF_NOTIFY", receiver.url)
    assert reconciler(*asked).code == 0
    assert [path for path, _ in receiver.got] == [f"/services/{SECRET}"] * 3
    monkeypatch.setenv("RECONCILER_DIFF_NOTIFY", "")
    ended = reconciler(*asked)
    assert (ended.code, "RECONCILER_DIFF_NOTIFY is set and empty" in ended.err) == (0, True)


def test_a_url_that_cannot_be_used_is_refused_and_not_shown(reconciler: Program) -> None:
    ended = reconciler("diff", "--cluster", "calm", "-v", "--notify", "https://me:SECRET@host/x")
    assert (ended.code, ended.out, "KR026" in ended.err, "SECRET" in ended.err) == (1, "", True, False), ended


@pytest.mark.parametrize(
    "arguments", [("--notify-as", "slack"), ("--notify-on", "always"), ("--against", "calm", "--notify", "http://h/x")]
)
def test_options_that_mean_nothing_together_are_wrong_usage(arguments: tuple[str, ...], reconciler: Program) -> None:
    assert reconciler("diff", "--cluster", "drifted", *arguments).code == 64


def test_slack_gets_text_alone_in_which_nothing_links_or_mentions(reconciler: Program, receiver: Receiver) -> None:
    file = next(one for one in (ROOT / "drifted").glob("*.yaml") if "owner: team-orders" in one.read_text())
    file.write_text(file.read_text().replace("team-orders", '"<!channel> ``` & co"'))
    change("drifted", topic("orders", 3, DRIFTED))
    assert reconciler("diff", "--cluster", "*", "--notify", receiver.url, "--notify-as", "slack").code == 0
    ((_, told),) = receiver.got
    assert list(told) == ["text"]
    assert "orders: config.retention.ms 1000 -&gt; 8000 (owner &lt;!channel&gt; ''' &amp; co" in told["text"]
    assert told["text"].count("```") == 2


# Figures for Prometheus.


def figures(path: Path) -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(path.read_text("utf-8"))
    return {(each.name, each.labels["cluster"]): each.value for one in families for each in one.samples}


def test_figures_have_one_series_a_cluster_and_the_last_success_outlives_a_failure(reconciler: Program) -> None:
    change("drifted", topic("orders", 3, DRIFTED), topic("tmp", 1), topic("tmp2", 1))
    file = Path("drift.prom")
    assert reconciler("diff", "--cluster", "*", "--metrics", str(file)).code == 0
    seen = figures(file)
    names = {name.removeprefix("reconciler_") for name, _ in seen}
    assert names == {
        "diff_failed", "diff_differences", "diff_undeclared_topics", "diff_last_success_timestamp_seconds",
        "doctor_errors", "doctor_warnings", "doctor_notes",
    }  # fmt: skip
    assert len(seen) == 2 * len(names)
    told = {one: seen["reconciler_diff_" + one, "drifted"] for one in ("failed", "differences", "undeclared_topics")}
    assert told == {"failed": 0, "differences": 1, "undeclared_topics": 2}
    assert seen["reconciler_diff_differences", "calm"] == 0
    doctor = json.loads(reconciler("doctor", "--cluster", "drifted", "-o", "json").out)["summary"]
    assert {one: seen[f"reconciler_doctor_{one}", "drifted"] for one in ("errors", "warnings", "notes")} == doctor

    (ROOT / "drifted" / "state.json").write_text("[")
    assert reconciler("diff", "--cluster", "drifted,calm", "--metrics", str(file)).code == 1
    later = figures(file)
    last = ("reconciler_diff_last_success_timestamp_seconds", "drifted")
    assert later[last] == seen[last]
    assert {name for name, cluster in later if cluster == "drifted"} == {last[0], "reconciler_diff_failed"}
    assert (later["reconciler_diff_failed", "drifted"], later["reconciler_diff_failed", "calm"]) == (1, 0)


def test_figures_that_cannot_be_written_end_with_1_and_the_message_is_sent_all_the_same(
    reconciler: Program, receiver: Receiver
) -> None:
    Path("file").write_text("")
    change("drifted", topic("orders", 3, DRIFTED))
    asked = ("diff", "--cluster", "drifted", "--detailed-exitcode")
    ended = reconciler(*asked, "--metrics", "file/d.prom", "--notify", receiver.url)
    assert (ended.code, "KR019" in ended.err, len(receiver.got)) == (1, True, 1), ended
