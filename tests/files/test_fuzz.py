"""Whatever a file holds, reading it ends in a value or in InvalidInput; never in another exception."""

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import drawn, parts
from helpers.plans.resealed import resealed
from helpers.plans.sample_plan import sample_plan
from hypothesis import strategies as st

from reconciler.files.journal import RunJournal, read_journal
from reconciler.files.load import load_desired
from reconciler.files.plan_file import plan_text, read_plan
from reconciler.files.properties import read_properties
from reconciler.files.snapshot import read_snapshot, snapshot_text
from reconciler.model.problem import InvalidInput

pytestmark = pytest.mark.long

DEMO = Path(__file__).resolve().parents[2] / "desired-state" / "demo"
YAML_PIECES = re.split(
    r"\|",
    "apiVersion: reconciler/v1\n|kind: Topic\n|kind: Cluster\n|kind: TopicClass\n|metadata: |{name: a}|{names: [a*]}|"
    "\n|spec: |spec:\n|  |    |- |: |? |, |[|]|{|}|---\n|...\n|#|'|\"|||>|&a |*a|!t |<<|%|@|\t|\r\n|\0|\u202e|é|"
    "partitions|replicationFactor|placement|racks|brokers|only|config|class|balance|moves|throttle|limits|windows|days|protect|"
    "assignment|3|0|-1|1.5|1e5|.nan|99999999999999999999|true|null|~|50MiB/s|10%|7d|even|strict",
)
JSON_VALUES = ["0", "-1", "1.5", "null", "true", '""', '"x"', "[]", "{}", "[[]]", "9" * 30, '{"0":0}', "[1,1]"]
STRANGE_VALUES = ["NaN", "1e999", "9" * 5000, '"\\ud800"']


def survives(read: Callable[[], object]) -> None:
    refusals: list[InvalidInput] = []
    try:
        read()
    except InvalidInput as error:
        refusals.append(error)
    assert all(map(is_told_well, refusals))


def is_told_well(error: InvalidInput) -> bool:
    return bool(error.problems) and all(0 < len(problem.message) < 1000 for problem in error.problems)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return the content with a few bytes flipped, cut out, doubled or put in."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at, length = chance.randrange(len(changed) + 1), chance.choice([1, 1, 2, 5, 40])
        match chance.randrange(4):
            case 0:
                changed[at : at + length] = chance.randbytes(length)
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = changed[at : at + length] * chance.randint(1, 3)
            case _:
                changed[at:at] = chance.choice(YAML_PIECES).encode()
    return bytes(changed)


def with_another_value(content: str, chance: random.Random, values: Sequence[str]) -> bytes:
    """Return JSON with one value, anywhere, replaced by another."""
    marker = "\N{BLACK STAR}"
    document = json.loads(content)
    holder, key = document, None
    while isinstance(holder, dict | list) and holder:
        key = chance.choice(sorted(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
        if not isinstance(holder[key], dict | list) or not holder[key] or chance.random() < 0.2:
            break
        holder = holder[key]
    holder[key] = marker
    return json.dumps(document, ensure_ascii=False).replace(f'"{marker}"', chance.choice(values)).encode()


def folder_with(tmp_path: Path) -> Path:
    (tmp_path / "demo").mkdir(exist_ok=True)
    return tmp_path / "demo" / "x.yaml"


@parts("count", 90, deep=720)
def test_mutated_desired_state_is_read_or_refused(tmp_path: Path, count: int) -> None:
    files = sorted(DEMO.glob("*.yaml"))
    path = folder_with(tmp_path)
    for seed in range(count):
        chance = random.Random(seed)
        documents = chance.choice(files).read_bytes().split(b"---\n")
        path.write_bytes(mutated(b"---\n".join(chance.sample(documents, min(2, len(documents)))), chance))
        survives(lambda: load_desired(tmp_path, "demo"))


@drawn(st.lists(st.sampled_from(YAML_PIECES), max_size=40), part=150, deep=1200)
def test_any_mix_of_yaml_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    path = folder_with(tmp_path_factory.getbasetemp())
    path.write_bytes("".join(pieces).encode())
    survives(lambda: load_desired(path.parent.parent, "demo"))


@drawn(st.binary(max_size=200), part=50, deep=400)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = folder_with(tmp_path_factory.getbasetemp())
    path.write_bytes(content)
    survives(lambda: load_desired(path.parent.parent, "demo"))
    survives(lambda: read_snapshot(path))
    survives(lambda: read_plan(path))
    survives(lambda: read_properties(path, {}))
    survives(lambda: read_journal(path))
    survives(lambda: RunJournal(path, "9b21e07c"))


@parts("count", 90, deep=720)
def test_mutated_snapshots_and_plans_are_read_or_refused(tmp_path: Path, count: int) -> None:
    cluster = small_cluster("a-0: 1,2,3 size 5", "a-1: 2,3 isr 3", "b-0: 4", rates={1: {"x": "1"}})
    snapshot, plan = snapshot_text(cluster), plan_text(sample_plan())
    path = tmp_path / "x.json"
    for seed in range(count):
        chance = random.Random(seed)
        path.write_bytes(mutated(snapshot.encode(), chance))
        survives(lambda: read_snapshot(path))
        path.write_bytes(with_another_value(snapshot, chance, [*JSON_VALUES, *STRANGE_VALUES]))
        survives(lambda: read_snapshot(path))
        path.write_bytes(mutated(plan.encode(), chance))
        survives(lambda: read_plan(path))
        path.write_bytes(with_another_value(plan, chance, STRANGE_VALUES))
        survives(lambda: read_plan(path))
        changed = json.loads(with_another_value(plan, chance, JSON_VALUES))
        path.write_text(json.dumps(resealed(changed)))
        survives(lambda: read_plan(path))
