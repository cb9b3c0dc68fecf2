"""Kafka's own assignors are the oracle: the program that asks them is checked first, then ours against them."""

import json
from pathlib import Path

import pytest
from helpers.java_assignors import ask, why_not

pytestmark = pytest.mark.java


@pytest.fixture(scope="session", autouse=True)
def _kafka_classes() -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


def test_the_java_program_gives_what_the_visible_cases_expect() -> None:
    cases = json.loads((Path(__file__).parent / "assignors.json").read_text())["scenarios"]
    answers = ask(cases)
    for case, answer in zip(cases, answers, strict=True):
        assert answer["expected"] == case["expected"], case["id"]
        assert answer["insertion_order_sensitive_from_step"] == case["insertion_order_sensitive_from_step"]
