"""Records of runs as a neighbour writes them, who may read the lock's group."""

import json
import random
from collections.abc import Mapping, Sequence

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
CORDON = "cordoned.log.dirs"
INSIDE = "replica.alter.log.dirs.io.max.bytes.per.second"


def forged(chance: random.Random, plan_id: str, replicas: Mapping[str, tuple[int, ...]], of_plan: Sequence[str]) -> str:
    """Return a record as a forger writes it: three of four are sound, the others have something in them that is not.

    `replicas`: of each partition now; `of_plan`: the rates of a plan that the forger has seen.
    """
    is_sound = chance.random() < 0.75

    def some(sound: Sequence[object], *odd: object) -> object:
        return chance.choice(sound if is_sound or chance.random() < 0.9 else odd)

    rates = ["1", "7000000", *of_plan, "50000000", "0"]
    topics = sorted({name.rpartition("-")[0] for name in replicas} | {"nowhere"})
    names = chance.sample(topics, min(len(topics), chance.randint(0, 4)))

    def items() -> str:
        return ",".join(f"{chance.randint(0, 3)}:{chance.randint(1, 7)}" for _ in range(chance.randint(0, 4)))

    def rows(topic: str) -> list[list[object]]:
        found = []
        for name, replica_list in replicas.items():
            there = list(replica_list)
            starts = [there[:1], there[::-1], [*there, 7], [7], chance.sample(range(1, 7), 2), there[1:]]
            start, end = chance.choice(starts) or [8], there[: chance.randint(1, len(there))]
            ways = [start, end] if chance.random() < 0.7 else [end, start]
            if name.rpartition("-")[0] == topic and start != end:
                found.append([int(name.rpartition("-")[2]), *ways, some([0, 5, 10**9], -1, "x", 10**30)])
        return found

    fields: dict[str, object] = {
        "version": some([1], 2, "1", None),
        "plan": some([plan_id, plan_id, "0000beef"], "", 5, "x" * 300),
        "cluster": some(["small"], "../../etc", 5, "x" * 300),
        "by": some(["apply of plan 0badcafe\nalice\nbuild-7\n5\n2026-11-21T10:00:00Z"], "", "\n" * 9, 5),
        "stage": some([0, 2, 3, 99], -1, None),
        "stages": some([6, 1], 10**12, "6"),
        "over": some([True, False], None, 1),
        "rate": some([None, 1, *map(int, of_plan), 10**18], "1", -1),
        "ours": [some(rates, "*", "-1", "x", 5, str(10**30)) for _ in range(chance.randint(0, 5))],
        "rates": some([[]], None)
        if chance.random() < 0.1
        else [
            [broker, some([*RATES, INSIDE], CORDON, "log.retention.ms"), some([None, *rates], "x", 7, "-1")]
            for broker in chance.sample(range(1, 8), chance.randint(0, 7))
        ],
        "lists": [
            [name, key, some([None, "*", "", items()], "x", 5), *([items()] if chance.random() < 0.8 else [])]
            for name in names
            for key in LISTS
        ],
        "moves": [[name, some([None, f"id-of-{name}"], 5), rows(name)] for name in names],
        "whole": some([True, True, False], None),
    }
    if chance.random() < 0.1:
        fields |= {"dirs": [[chance.randint(1, 6), "/d1", "/d2", [["orders", None, [[0, 5]]]]]], "moves": []}
    if chance.random() < 0.1:
        fields["other"] = some(["x", json.dumps({"version": 2})], 5)
    if not is_sound and chance.random() < 0.4:
        fields[chance.choice(sorted(fields))] = chance.choice([None, 5, "x", [], {}, [[]], [[1, 2, 3]], True, 1e308])
    if not is_sound and chance.random() < 0.2:
        del fields[chance.choice(sorted(fields))]
    text = json.dumps(fields)
    return text[: chance.randint(0, len(text))] if not is_sound and chance.random() < 0.2 else text
