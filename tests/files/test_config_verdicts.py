"""Wrong topic configs are told when files are read: each that no release of Kafka takes, and none that one takes."""

import json
import re
from pathlib import Path

import pytest
from model.topic_configs.cases import Case, verdicts

from reconciler.files.load import read_declared
from reconciler.model.cluster import TOPIC_THROTTLES

CLUSTER = "{apiVersion: reconciler/v1, kind: Cluster, metadata: {name: c}, spec: {}}\n"
TOPIC = "{{apiVersion: reconciler/v1, kind: Topic, metadata: {{name: t{}}}, spec: {{{}}}}}\n"
DECLARED = [case for case in verdicts("key", "value") if not {*TOPIC_THROTTLES} & {*case.configs}]
CAUGHT_OF_100 = 98
STRICTER = {("retention.bytes", "+5"), ("retention.ms", "+5")}
"""What Kafka takes and files do not: times and sizes are plain numbers, or have a unit."""


def told(folder: Path, cases: list[Case], *, is_custom: bool = False) -> set[int]:
    """Return the numbers of the cases, each a topic on a line of its own, that have a problem at their key."""
    (folder / "c").mkdir()
    (folder / "c" / "cluster.yaml").write_text(CLUSTER, "utf-8")
    lines = "---\n".join(TOPIC.format(number, written(case, is_custom=is_custom)) for number, case in enumerate(cases))
    (folder / "c" / "topics.yaml").write_text(lines, "utf-8")
    places = [problem.at for problem in read_declared(folder, "c").problems]
    assert all(at is not None and at.column > len(TOPIC) - len("{}}}") for at in places)
    return {at.line // 2 for at in places if at is not None}


def written(case: Case, *, is_custom: bool) -> str:
    pairs = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in case.configs.items())
    return f"config: {{{pairs}}}" + (f", customConfigs: {[*case.configs]}" if is_custom else "")


def wrong(cases: list[Case]) -> set[int]:
    return {number for number, case in enumerate(cases) if all(case.refusals.values())}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["key", "value"])
def test_of_what_no_kafka_takes_98_of_100_are_told_at_their_place(tmp_path: Path, kind: str) -> None:
    cases = [case for case in DECLARED if case.kind == kind]
    found, refused = told(tmp_path, cases), wrong(cases)
    assert len(refused) >= 100
    missed = [dict(cases[number].configs) for number in sorted(refused - found)]
    assert 100 * (len(refused) - len(missed)) >= CAUGHT_OF_100 * len(refused), missed
    assert {dict(cases[number].configs).popitem() for number in found - refused} <= STRICTER


def test_what_is_listed_as_custom_is_not_judged(tmp_path: Path) -> None:
    cases = [case for case in verdicts("key") if re.fullmatch(r"[a-zA-Z0-9._-]+", next(iter(case.configs)))]
    assert len(cases) >= 100
    assert told(tmp_path, cases, is_custom=True) == set()
