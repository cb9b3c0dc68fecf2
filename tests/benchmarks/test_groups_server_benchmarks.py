"""`server-uniform` beside Kafka's own class, on the same group, in one run: CPU seconds and their ratio."""

import base64
import random
import sys
import time
from collections.abc import Iterator

import pytest
from groups.java_assignors import ask, why_not
from groups.scenarios import MemberForm, ScenarioForm, TopicForm

from reconciler.groups.assignors.server_uniform import ServerUniformAssignor
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber

pytestmark = pytest.mark.benchmark

MEMBERS = 2_000
TOPICS = 200
PARTITIONS_EACH = 1_000
REPETITIONS = 7
# The product's own promise: at most ten times what the Java class takes.
RATIO = 10.0
STEPS = ("first assignment", "one member joins")


@pytest.mark.parametrize("kind", ["equal", "unequal"])
def test_a_group_of_2000_members_and_200000_partitions(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    scenario = _scenario(is_equal=kind == "equal")
    answer = ask([scenario], {"assignors": ["server-uniform"], "orders": 1, "timed": REPETITIONS})[0]
    expected = [result["assignment"] for result in answer["expected"]["server-uniform"]]
    java = [_median(each) for each in zip(*answer["cpuSeconds"]["server-uniform"], strict=True)]
    runs = [list(_timed(scenario)) for _ in range(REPETITIONS)]
    ours = [_median([run[step][0] for run in runs]) for step in range(len(STEPS))]
    with capsys.disabled():
        for step, own, its in zip(STEPS, ours, java, strict=True):
            told = f"{own:.3f} CPU s, Kafka's class {its:.3f}, ratio {own / its:.1f}"
            sys.stdout.write(f"\nserver-uniform, {kind}, {step}: {told}\n")
    for (_, given), wanted in zip(runs[0], expected, strict=True):
        assert {member: {name: list(own) for name, own in topics.items()} for member, topics in given.items()} == wanted
    if kind == "equal":
        assert all(own <= RATIO * its for own, its in zip(ours, java, strict=True))


def _timed(scenario: ScenarioForm) -> Iterator[tuple[float, Assignment]]:
    topics = {
        form["name"]: SubscribedTopic(form["name"], form["partitions"], form["id"]) for form in scenario["topics"]
    }
    before: Assignment = {}
    for step in scenario["steps"]:
        members = [
            Subscriber(form["id"], tuple(form["topics"]), owned=before.get(form["id"], {})) for form in step["members"]
        ]
        start = time.thread_time()
        before = ServerUniformAssignor().assign(members, topics)
        yield time.thread_time() - start, before


def _scenario(*, is_equal: bool) -> ScenarioForm:
    topics: list[TopicForm] = [
        {"name": f"topic-{number}", "id": _topic_id(number), "partitions": PARTITIONS_EACH} for number in range(TOPICS)
    ]
    names = [topic["name"] for topic in topics]
    members: list[MemberForm] = [
        {"id": f"consumer-group-{number}", "topics": names if is_equal or number % 3 else names[: TOPICS // 2]}
        for number in range(MEMBERS)
    ]
    joined: MemberForm = {"id": "consumer-group-new", "topics": names}
    return {
        "id": "large",
        "class": "large",
        "topics": topics,
        "steps": [{"members": members}, {"members": [*members, joined]}],
    }


def _topic_id(number: int) -> str:
    return base64.urlsafe_b64encode(random.Random(number).randbytes(16)).rstrip(b"=").decode()


def _median(values: list[float] | tuple[float, ...]) -> float:
    return sorted(values)[len(values) // 2]
