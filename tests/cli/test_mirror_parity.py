"""Pairs of clusters drawn at random: one plan reaches parity, the second is empty, and nothing is deleted or shrunk.

What parity is, is said here anew, by plain loops over the JSON of both clusters.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from cli.mirrored import document, state, topic, write
from helpers.depth import parts
from helpers.program.call import Program

FOLLOWING = ("cleanup.policy", "retention.ms", "max.message.bytes")
VALUES: Mapping[str, tuple[str, ...]] = {
    "cleanup.policy": ("compact", "delete"),
    "retention.ms": ("600000", "86400000", "-1"),
    "max.message.bytes": ("1048588", "2097152"),
    "min.insync.replicas": ("1", "2"),
    "segment.bytes": ("104857600",),
}
PATTERNS: Mapping[str, Callable[[str], bool]] = {
    "*": lambda _: True,
    "orders*": lambda name: name.startswith("orders"),
    "*.?": lambda name: len(name) > 1 and name[-2] == ".",
    "pay[a-m]*": lambda name: name[:3] == "pay" and "a" <= name[3:4] <= "m",
}
NAMES = ("orders", "orders.a", "orders.b", "payments", "payroll", "clicks.1", "eu.orders", "asia.eu.orders", "asia.x")
OTHERS = ("heartbeats", "asia.heartbeats", "mm2-offset-syncs.eu.internal", "eu.checkpoints.internal", "__mine")
RENAMES: Mapping[str, tuple[str, str]] = {
    "{source}.{topic}": ("us.", ""),
    "{topic}": ("", ""),
    "{topic}-of-{source}": ("", "-of-us"),
    "mirror.{topic}": ("mirror.", ""),
}


@dataclass
class Pair:
    """What the mirror says, and what both clusters have: topic to partitions and configs."""

    rename: str
    patterns: list[str]
    config: list[str]
    source: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    grown: dict[str, int] = field(default_factory=dict)
    target: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)


def configs(random: Random) -> dict[str, str]:
    return {key: random.choice(values) for key, values in VALUES.items() if random.random() < 0.4}


def drawn(seed: int) -> Pair:
    random = Random(seed)
    patterns = ["*"] if random.random() < 0.4 else random.sample(sorted(PATTERNS), random.randint(1, 2))
    rename = random.choice([*RENAMES, "{source}.{topic}", "{source}.{topic}"])
    pair = Pair(rename, patterns, random.sample(FOLLOWING, random.randint(0, 3)))
    before, behind = RENAMES[rename]
    for name in (*NAMES, *OTHERS):
        if random.random() < 0.6:
            pair.source[name] = random.randint(1, 5), configs(random)
            if name in NAMES and random.random() < 0.3:
                pair.grown[name] = pair.source[name][0] + random.randint(0, 3)
        if random.random() < 0.4 and name in NAMES:
            pair.target[before + name + behind] = random.randint(1, 7), configs(random)
    pair.target["own"] = 2, configs(random)
    return pair


def is_copied(pair: Pair, name: str) -> bool:
    """Whether that topic of the source is to have a copy."""
    if name in OTHERS or not any(PATTERNS[pattern](name) for pattern in pair.patterns):
        return False
    if pair.rename == "{source}.{topic}":
        # These names tell that the topic came from the target, at once or by way of asia.
        return not name.startswith(("eu.", "asia.eu."))
    return True


def written(pair: Pair, seed: int) -> None:
    random = Random(-seed)
    grown = [document("Topic", name, f"{{partitions: {count}}}") for name, count in pair.grown.items()]
    write("us", [topic(name, count, held) for name, (count, held) in pair.source.items()], *grown)
    write("asia", [topic("x", 1)])
    policy = random.choice(
        ["", "topics: {managed: all}", "topics: {managed: all, delete: allow}, limits: {deletedTopics: 0}"]
    )
    spec = json.dumps({"source": "us", "topics": pair.patterns, "rename": pair.rename, "config": pair.config})
    documents = [document("TopicClass", "standard", "{replicationFactor: 2}"), document("Mirror", "from-us", spec)]
    documents += [document("Topic", "own", "{}")]
    kept = [name for name in pair.target if not names_a_copy(pair, name)]
    documents += [document("Topic", name, "{}") for name in kept if name != "own"]
    write(
        "eu",
        [topic(name, count, held, 4) for name, (count, held) in pair.target.items()],
        *documents,
        spec=policy,
        brokers=4,
    )


def names_a_copy(pair: Pair, name: str) -> bool:
    """Whether the mirror would give that name to a topic, were it at the source."""
    before, behind = RENAMES[pair.rename]
    original = name[len(before) : len(name) - len(behind)]
    is_one = name.startswith(before) and name.endswith(behind) and original
    return bool(is_one) and any(PATTERNS[pattern](original) for pattern in pair.patterns)


def shortcomings(pair: Pair, after: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return what is not as the mirror wants it, or was taken away."""
    before, behind = RENAMES[pair.rename]
    wanted = {before + name + behind: name for name in pair.source if is_copied(pair, name)}
    told = [f"{name} is there" for name in after if name not in {*wanted, *pair.target}]
    for name, (count, held) in pair.target.items():
        there = after.get(name, {"partitions": [], "configs": {}})
        told += [f"{name} lost partitions"] if len(there["partitions"]) < count else []
        own = {key: value for key, value in held.items() if name not in wanted or key not in pair.config}
        told += [f"{name} lost {key}" for key, value in own.items() if there["configs"].get(key) != value]
    for copy, name in wanted.items():
        there = after.get(copy, {"partitions": [], "configs": {}})
        count = max(pair.source[name][0], pair.grown.get(name, 0), pair.target.get(copy, (0, {}))[0])
        told += [f"{copy} has not {count} partitions"] if len(there["partitions"]) != count else []
        held = pair.source[name][1]
        told += [
            f"{key} of {copy} does not follow" for key in pair.config if there["configs"].get(key) != held.get(key)
        ]
        if copy not in pair.target:
            extra = there["configs"].keys() - {key for key in pair.config if key in held}
            told += [f"{copy} has {key}" for key in extra]
    return told


@parts("seeds", range(8), deep=range(200))
def test_one_plan_reaches_parity_the_next_is_empty_and_nothing_goes(
    seeds: range, reconciler: Program, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    told, made = [], 0
    for seed in seeds:
        monkeypatch.chdir(tmp_path_factory.mktemp("pair"))
        pair = drawn(seed)
        written(pair, seed)
        source = state("us")
        planned = reconciler("plan", "--cluster", "eu", "--out", "plan.json")
        assert planned.code == 0, (seed, planned)
        assert reconciler("apply", "plan.json", "--yes").code == 0, seed
        after = {name: one for name, one in state("eu").items() if name != "__consumer_offsets"}
        told += [f"{seed}: {each}" for each in shortcomings(pair, after)]
        again = reconciler("plan", "--cluster", "eu", "--detailed-exitcode")
        told += [] if again.code == 0 else [f"{seed}: the second plan is not empty: {again.out}"]
        told += [] if state("us") == source else [f"{seed}: the source was changed"]
        made += len(after) > len(pair.target)
    assert told == []
    assert made > len(seeds) // 4


def test_the_oracle_finds_what_is_amiss() -> None:
    pair = Pair(
        "{topic}",
        ["*"],
        ["retention.ms"],
        {"orders": (3, {"retention.ms": "1"})},
        {},
        {"own": (2, {"segment.bytes": "9"})},
    )
    right = {"orders": topic("orders", 3, {"retention.ms": "1"}), "own": topic("own", 2, {"segment.bytes": "9"})}
    assert shortcomings(pair, right) == []
    for wrong in (
        {"own": right["own"]},
        {**right, "orders": topic("orders", 2, {"retention.ms": "1"})},
        {**right, "orders": topic("orders", 3, {"retention.ms": "2"})},
        {**right, "own": topic("own", 1, {"segment.bytes": "9"})},
        {**right, "own": topic("own", 2)},
        {**right, "strange": topic("strange", 1)},
    ):
        assert shortcomings(pair, wrong), wrong
