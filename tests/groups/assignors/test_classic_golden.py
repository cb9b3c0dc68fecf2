"""Random groups under Kafka's own classes and under ours: partition for partition the same."""

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from groups.classic_groups import CLASSIC, rebalances
from groups.java_assignors import ALL_GROUPS, GROUPS, ask, random_groups, why_not
from helpers.depth import parts

from reconciler.groups.assignors.registry import assignor_named

pytestmark = pytest.mark.java


@pytest.fixture(scope="session", autouse=True)
def _kafka_classes() -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


@parts("count", GROUPS, deep=ALL_GROUPS)
def test_random_groups_get_what_kafkas_classes_give(count: int) -> None:
    """Left out is only what is no assignment: an exception, or partitions for members that do not subscribe to them.

    Both are known of the class behind `sticky` where members come with old claims, and where one subscribes to nothing.
    """
    compared: Counter[str] = Counter()
    illegal = 0
    for scenario, answer in random_groups(count):
        for assignor in CLASSIC:
            if assignor in answer.get("failed", {}):
                illegal += 1
                continue
            for rebalance in rebalances(scenario, assignor, answer["expected"][assignor]):
                if not rebalance.is_legal:
                    illegal += 1
                    break
                given = assignor_named(assignor).assign(rebalance.members, rebalance.topics)
                assert given == rebalance.expected, rebalance.where
                compared[assignor] += 1
    assert illegal <= math.ceil(count * len(CLASSIC) / 200)
    assert set(compared) == set(CLASSIC)
    assert min(compared.values()) > 2 * count


def test_the_groups_that_are_kept_as_a_file_are_answered_as_kept() -> None:
    kept = json.loads((Path(__file__).parents[1] / "classic_random.json").read_text("utf-8"))["scenarios"]
    for case, answer in zip(kept, ask(kept, {"assignors": list(CLASSIC), "orders": 1}), strict=True):
        answered = {assignor: answer["expected"][assignor] for assignor in case["expected"]}
        assert answered == case["expected"], case["id"]
