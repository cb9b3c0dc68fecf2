"""`groups simulate`: the visible cases through the verb, groups of a snapshot, and what is refused."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers.program.call import Ended, Program
from helpers.samples.loads_folder import write_loads

CASES = json.loads((Path(__file__).parents[1] / "assignors.json").read_text("utf-8"))["scenarios"]
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "server-range", "server-uniform")


@dataclass(frozen=True)
class Simulate:
    """`groups simulate` on a snapshot."""

    program: Program
    state: Path

    def __call__(self, *arguments: str) -> Ended:
        return self.program("groups", "simulate", "--state", str(self.state), *arguments)

    def groups(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the groups of its output in JSON."""
        groups: list[dict[str, Any]] = json.loads(self(*arguments, "-o", "json").out)["groups"]
        return groups


@pytest.fixture
def simulate(reconciler: Program, tmp_path: Path) -> Simulate:
    """Return the verb on a cluster: orders with 12 partitions, and groups that read it in several ways."""

    def topic(name: str, partitions: int) -> dict[str, Any]:
        numbered = [
            {"partition": number, "leader": 1 + number % 3, "replicas": [1 + number % 3], "isr": [1 + number % 3]}
            for number in range(partitions)
        ]
        return {"name": name, "topicId": "0n70KM_9XMp3iLAIIrTESQ", "partitions": numbered}

    def member(name: str, owned: dict[str, list[int]], client: str = "app", **more: object) -> dict[str, Any]:
        subscription = sorted(owned)
        return {"memberId": name, "clientId": client, "subscription": subscription, "assignment": owned} | more

    billing = [member(f"app-{n}", {"orders": list(range(4 * n, 4 * n + 4))}) for n in range(3)]
    audit = [member(f"id-{n}", {"orders": list(range(6 * n, 6 * n + 6))}, client=f"audit-{n}") for n in range(2)]
    document = {
        "formatVersion": "1.0",
        "clusterId": "x",
        "brokers": [{"id": broker, "rack": "abc"[broker - 1]} for broker in (1, 2, 3)],
        "topics": [topic("orders", 12), topic("prices", 4)],
        "groups": [
            {"groupId": "billing", "state": "Stable", "protocol": "range", "members": billing},
            {"groupId": "audit", "type": "consumer", "state": "Stable", "protocol": "uniform", "members": audit},
            {"groupId": "old", "state": "Empty", "protocol": "", "offsets": {"orders": {"0": 4}}},
            {"groupId": "copy", "state": "Stable", "protocolType": "connect", "members": [member("w", {"orders": []})]},
            {
                "groupId": "mine",
                "state": "Stable",
                "protocol": "foo",
                "members": [member("x", {"prices": [0, 1, 2, 3]})],
            },
        ],
    }
    state = tmp_path / "s.json"
    state.write_text(json.dumps(document))
    return Simulate(reconciler, state)


def of_scenario(program: Program, document: object, *arguments: str) -> Ended:
    """Run the verb on a file of scenarios."""
    Path("case.json").write_text(json.dumps(document))
    return program("groups", "simulate", "--scenario", "case.json", *arguments)


def counts(sharing: dict[str, Any]) -> list[int]:
    return sorted(sharing["partitionsPerMember"].values(), reverse=True)


def test_all_visible_scenarios_come_out_as_kafkas_own_classes_have_them(reconciler: Program) -> None:
    told = json.loads(of_scenario(reconciler, CASES, "-o", "json").out)
    assert [each["id"] for each in told] == [case["id"] for case in CASES]
    for each, case in zip(told, CASES, strict=True):
        assert case["insertion_order_sensitive_from_step"] == {}
        assert each == {"id": case["id"]} | case["expected"]


@pytest.mark.parametrize("assignor", ASSIGNORS[::5])
def test_one_scenario_gives_one_object_in_the_form_of_expected(reconciler: Program, assignor: str) -> None:
    case = next(case for case in CASES if case["id"] == "g051")
    told = json.loads(of_scenario(reconciler, case, "--assignor", assignor, "-o", "json").out)
    assert told == {assignor: case["expected"][assignor]}


def test_scenarios_under_one_key_come_back_under_it(reconciler: Program) -> None:
    told = json.loads(of_scenario(reconciler, {"meta": {}, "scenarios": CASES[:2]}, "-o", "json").out)
    assert [each["id"] for each in told["scenarios"]] == [case["id"] for case in CASES[:2]]


def test_a_scenario_as_text_goes_step_by_step(reconciler: Program) -> None:
    told = of_scenario(reconciler, next(case for case in CASES if case["id"] == "g051"), "--assignor", "range").out
    assert told.startswith("scenario g051: 4 steps\nstep 1\n")
    assert "step 4: join m004\n" in told
    assert "  range                  2-2-2           0      3           1\n" in told
    assert "  m004    t0 0-1\n" in told


def test_where_the_order_of_members_decides_the_output_says_so(reconciler: Program) -> None:
    # Aa and BB have one hash, so that Kafka's hash map keeps them in the order in which they came.
    step: dict[str, Any] = {
        "members": [{"id": "Aa", "topics": ["t"]}, {"id": "BB", "topics": ["t"]}, {"id": "c", "topics": ["t"]}]
    }
    owned = {"owned": {"t": [0, 1, 2]}, "generation": 1}
    step["members"][0] |= owned
    step["members"][1] |= {"owned": {"t": [3, 4, 5]}, "generation": 1}
    scenario = {"topics": [{"name": "t", "partitions": 7}], "steps": [step]}
    as_json = of_scenario(reconciler, scenario, "--assignor", "sticky", "-o", "json")
    assert list(json.loads(as_json.out)) == ["sticky"]
    as_text = of_scenario(reconciler, scenario, "--assignor", "sticky")
    for told in (as_json.err, as_text.out):
        assert "sticky: from step 1 on, who gets what follows the order of the members" in told


def test_topics_without_ids_leave_server_uniform_in_doubt(reconciler: Program) -> None:
    members = [{"id": "a", "topics": ["t", "u"]}]
    topics = [{"name": "t", "partitions": 2}, {"name": "u", "partitions": 2}]
    told = of_scenario(reconciler, {"topics": topics, "steps": [{"members": members}]}).out
    assert told.count("note: ") == 1
    assert "note: server-uniform: topics go by the hash of their ids" in told


def test_a_group_is_shown_now_and_under_each_assignor(simulate: Simulate) -> None:
    outcome = simulate("--group", "billing", "--partitions", "orders=18")
    assert outcome.out.startswith("group billing: Stable, range, 3 members\n  orders 12 -> 18 partitions\n")
    assert "  range (the group's own)                  6-6-6       1.00     0      6           1\n" in outcome.out
    assert "  sticky                                   6-6-6       1.00     0      0           1\n" in outcome.out


def test_a_member_that_leaves_gives_its_partitions_to_the_others(simulate: Simulate) -> None:
    (told,) = simulate.groups("--group", "billing", "--remove-member", "app-0", "--assignor", "sticky")
    (after,) = told["after"]
    assert (told["changes"], told["assignor"], after["assignor"]) == (["app-0 leaves"], "range", "sticky")
    assert counts(told["now"]) == [4, 4, 4]
    assert counts(after) == [6, 6]
    assert after["moved"] == []
    assert set(range(4, 8)) <= set(after["assignment"]["app-1"]["orders"])


def test_members_that_join_are_one_more_and_may_idle(simulate: Simulate) -> None:
    joining = [word for number in range(10) for word in ("--add-member", f"new-{number:02}")]
    (told,) = simulate.groups("--group", "billing", *joining, "--assignor", "range")
    (after,) = told["after"]
    assert counts(after) == [1] * 12 + [0]
    assert after["idle"] == ["new-09"]
    assert any("ids of new members" in doubt for doubt in after["doubts"])


def test_a_group_without_members_can_get_some(simulate: Simulate) -> None:
    (told,) = simulate.groups("--group", "old", "--add-member", "a:orders,prices", "--assignor", "roundrobin")
    assert counts(told["after"][0]) == [16]


def test_subscribing_anew_takes_the_old_topic_away(simulate: Simulate) -> None:
    (told,) = simulate.groups("--group", "audit", "--subscribe", "audit-1=prices", "--assignor", "server-uniform")
    (after,) = told["after"]
    assert after["groupsOwn"]
    assert after["assignment"] == {"id-0": {"orders": list(range(12))}, "id-1": {"prices": [0, 1, 2, 3]}}


def test_without_a_group_all_that_are_concerned_are_shown(simulate: Simulate) -> None:
    everyone = simulate.groups()
    assert [each["groupId"] for each in everyone] == ["audit", "billing", "mine"]
    assert [[sharing["assignor"] for sharing in each["after"]] for each in everyone] == [list(ASSIGNORS)] * 3
    assert [each["groupId"] for each in simulate.groups("--partitions", "prices=8")] == ["mine"]


def test_an_assignor_that_is_not_known_is_named(simulate: Simulate) -> None:
    told = simulate("--group", "mine").out
    assert "note: its own assignor, foo, is not known here: name its class" in told


def test_measured_loads_show_what_each_member_reads(simulate: Simulate, tmp_path: Path) -> None:
    rates = {("orders", number): (1 << 20 if number else 7 << 20, 0) for number in range(11)}
    loads = write_loads(tmp_path / "loads", "prod", rates)
    given = ("--loads", loads, "--cluster", "prod", "--group", "billing", "--assignor", "range")
    (told,) = simulate.groups(*given)
    assert told["now"]["bytesPerSecondPerMember"] == {"app-0": 10 << 20, "app-1": 4 << 20, "app-2": 3 << 20}
    assert told["now"]["bytesMostOverMean"] == round(10 * 3 / 17, 4)
    assert told["notes"] == ["1 of 12 partitions have no measured load and count as 0"]
    text = simulate(*given, "--statistic", "average").out
    assert "1.5 MiB/s to 5 MiB/s" in text
    assert ["app-0", "4,", "5", "MiB/s", "4,", "5", "MiB/s"] in [line.split() for line in text.split("\n")]


def test_measured_loads_are_of_a_named_cluster(simulate: Simulate, tmp_path: Path) -> None:
    loads = write_loads(tmp_path / "loads", "prod", {("orders", 0): (1, 1)})
    nameless = simulate("--loads", loads)
    assert (nameless.code, "name this one with --cluster" in nameless.err) == (64, True)
    other = simulate("--loads", loads, "--cluster", "test")
    assert (other.code, "has no row of cluster test" in other.err) == (1, True)


OWN = """
class FirstTakesAll:
    name = "foo"

    def assign(self, members, topics):
        first = members[0]
        return {first.member_id: {name: range(topics[name].partitions) for name in first.subscription}}


class GivesTwice:
    name = "twice"

    def assign(self, members, topics):
        return {member.member_id: {name: [0] for name in member.subscription} for member in members}
"""


def test_a_class_of_ones_own_stands_beside_the_others(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "my_first_assignor.py").write_text(OWN)
    own = ("--assignor", "my_first_assignor:FirstTakesAll", "--assignor", "range")
    (told,) = simulate.groups(*own, "--add-member", "n", "--group", "mine")
    assert [(after["assignor"], after["groupsOwn"], counts(after)) for after in told["after"]] == [
        ("foo", True, [4, 0]),
        ("range", False, [2, 2]),
    ]
    assert any("order of a hash map" in doubt for doubt in told["after"][0]["doubts"])
    assert told["notes"] == []


def test_a_class_that_breaks_the_rules_is_told_so(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "my_second_assignor.py").write_text(OWN)
    ended = simulate("--assignor", "my_second_assignor:GivesTwice", "--group", "billing")
    assert (ended.code, ended.out) == (1, "")
    assert "assignor twice gives orders-0 to app-0 and to app-1" in ended.err


def test_markdown_holds_the_same_tables(simulate: Simulate) -> None:
    told = simulate("--group", "billing", "--assignor", "range", "--partitions", "orders=18", "-o", "markdown").out
    assert told.startswith("### reconciler groups simulate · `billing` · Stable, range, 3 members\n")
    assert "| range (the group's own) | 6-6-6 | 1.00 | 0 | 6 | 1 |\n" in told


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--group", "biling"), 1, "there is no group biling, or this user may not see it; did you mean billing?"),
        (("--group", "copy"), 1, "group copy is a connect"),
        (("--group", "billing", "--remove-member", "app"), 1, "3 members have that client id"),
        (("--group", "billing", "--remove-member", "zoe"), 1, "group billing has no such member; its members: app-0"),
        (("--group", "billing", "--add-member", "app-1"), 1, "the group has a member of that name already"),
        (("--group", "old", "--add-member", "a"), 1, "say what it subscribes to, a:TOPIC"),
        (("--add-member", "a"), 1, "of which of the 3 groups? Name one with --group"),
        (("--partitions", "orders=6"), 1, "Kafka can only add some, never go to 6"),
        (("--group", "billing", "--partitions", "order=60"), 1, "there is no topic order"),
        (("--partitions", "order=60"), 1, "there is no consumer group with members that reads order"),
        (("--assignor", "stiky"), 1, "there is no assignor stiky"),
        (("--partitions", "orders"), 64, "write it as TOPIC=N"),
        (("--partitions", "orders=9999999"), 64, "write it as TOPIC=N"),
        (("--subscribe", "app-1"), 64, "write it as MEMBER=TOPIC,TOPIC"),
        (("--add-member", ":orders"), 64, "write it as MEMBER:TOPIC,TOPIC"),
        (("--partitions", "orders=18", "--partitions", "orders=19"), 64, "--partitions: orders stands there twice"),
        (("--add-member", "n:orders", "--add-member", "n:prices"), 64, "--add-member: n stands there twice"),
        (("--subscribe", "m=orders", "--subscribe", "m=prices"), 64, "--subscribe: m stands there twice"),
        (("--remove-member", "m", "--remove-member", "m"), 64, "--remove-member: m stands there twice"),
        (
            ("--group", "audit", "--subscribe", "id-0=prices", "--remove-member", "audit-0"),
            1,
            "--subscribe id-0: it leaves, by --remove-member audit-0",
        ),
        (
            ("--group", "audit", "--subscribe", "id-0=prices", "--subscribe", "audit-0=orders"),
            1,
            "--subscribe id-0: --subscribe audit-0 is the same member",
        ),
        (("--scenario", "x.json"), 64, "--scenario holds its own members and topics"),
    ],
)
def test_what_cannot_be_is_refused(simulate: Simulate, arguments: tuple[str, ...], code: int, message: str) -> None:
    ended = simulate(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert message in ended.err


def test_only_the_command_line_names_a_class_to_run(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "evil_assignor.py").write_text("open('canary', 'w').close()\n")
    named = "evil_assignor:Evil"
    text = simulate.state.read_text("utf-8").replace('"foo"', f'"{named}"').replace('"range"', f'"{named}"')
    simulate.state.write_text(text, "utf-8")
    assert simulate().code == 0
    for key in ("assignor", "assignors", "protocol", "!!python/name"):
        of_scenario(simulate.program, CASES[0] | {key: named})
    assert not (tmp_path / "canary").exists()
    simulate("--assignor", named)
    assert (tmp_path / "canary").exists()


WEIGHER = """
class ByWeight:
    name = "by-weight"

    def __init__(self):
        self.told = []

    def assign(self, members, topics):
        heavy_first = sorted(members, key=lambda each: -int(each.user_data or b"1"))
        slots = [member.member_id for member in heavy_first for _ in range(int(member.user_data or b"1"))]
        given = {}
        for name, topic in topics.items():
            for partition in range(topic.partitions):
                given.setdefault(slots[partition % len(slots)], {}).setdefault(name, []).append(partition)
        return given, {member.member_id: (member.host + "!").encode() for member in members}

    def on_assignment(self, received):
        self.told.append(received.member_id)
        print("told", len(self.told), received.group_id, received.generation, received.member_id,
              dict(received.partitions), received.user_data)


class WrongData(ByWeight):
    name = "wrong-data"

    def assign(self, members, topics):
        return {}, {members[0].member_id: "text"}


class Greedy(ByWeight):
    name = "greedy"

    def on_assignment(self, assignment, metadata):
        pass
"""


def test_a_class_weighs_the_members_of_a_scenario_by_their_user_data_and_is_told_what_each_got(
    reconciler: Program, tmp_path: Path
) -> None:
    (tmp_path / "my_weights.py").write_text(WEIGHER)
    heavy = {"id": "a", "topics": ["t"], "userData": "Mw==", "clientId": "app", "host": "h1"}  # 3
    light = {"id": "b", "topics": ["t"], "instance": "i", "host": "h2"}
    scenario = {"id": "w", "topics": [{"name": "t", "partitions": 8}], "steps": [{"members": [heavy, light]}] * 2}
    (tmp_path / "w.json").write_text(json.dumps(scenario))
    arguments = ("groups", "simulate", "--scenario", "w.json", "-o", "json", "--assignor")
    ended = reconciler(*arguments, "my_weights:ByWeight")
    for step in json.loads(ended.out)["by-weight"]:
        assert step["assignment"] == {"a": {"t": [0, 1, 2, 4, 5, 6]}, "b": {"t": [3, 7]}}
    told = [line for line in ended.err.splitlines() if line.startswith("told")]
    assert told[:4] == [
        "told 1 w 1 a {'t': (0, 1, 2, 4, 5, 6)} b'h1!'",
        "told 2 w 1 b {'t': (3, 7)} b'h2!'",
        "told 3 w 2 a {'t': (0, 1, 2, 4, 5, 6)} b'h1!'",
        "told 4 w 2 b {'t': (3, 7)} b'h2!'",
    ]
    # Where members come in another order it is asked again, by a new object.
    assert told[4].startswith("told 1 w 1 b")
    wrong = reconciler(*arguments, "my_weights:WrongData")
    assert (wrong.code, "gives a user data of type str: it must be bytes" in wrong.err) == (1, True)
    greedy = reconciler(*arguments, "my_weights:Greedy")
    assert (greedy.code, "on_assignment must take what was received" in greedy.err) == (1, True)


def test_a_class_sees_what_the_members_of_a_snapshot_sent(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "my_other_weights.py").write_text(WEIGHER)
    document = json.loads(simulate.state.read_text())
    billing = next(group for group in document["groups"] if group["groupId"] == "billing")
    billing["members"][2] |= {"userData": "Mg==", "host": "h3"}  # 2
    simulate.state.write_text(json.dumps(document))
    named = ("--assignor", "my_other_weights:ByWeight", "--group", "billing", "-o", "json")
    ended = simulate(*named)
    ((after,),) = (group["after"] for group in json.loads(ended.out)["groups"])
    assert after["partitionsPerMember"] == {"app-0": 3, "app-1": 3, "app-2": 6}
    assert "told 3 billing 2 app-2 {'orders': (0, 1, 4, 5, 8, 9)} b'h3!'\n" in ended.err
