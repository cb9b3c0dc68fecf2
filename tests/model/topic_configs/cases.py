"""Cases of topic configs, and what Kafka's own classes said of each: wrong keys, wrong values, wrong pairs.

`verdicts.jsonl` beside this file holds one case a line: its kind, the overrides, those that the topic had before, and
the refusal (null: taken), by release where they differ. `make.py` makes it.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from reconciler.model.config_rule import RELEASES

VERDICTS = Path(__file__).parent / "verdicts.jsonl"
VALUES = (
    "", "x", "true", "yes", "0", "1", "-1", "-2", "-3", "5.0", "0.5", "1.5", "23", "100", "7days", "10%", "2147483648",
    "9223372036854775808", "*", "0-1", "compact", "Delete", "GZIP", "LogAppend",
)  # fmt: skip
MORE_VALUES = (
    " ", "True", "no", "on", "none", "+5", " 7 ", "007", "1e3", "17", "18", "1,000", "1_000", "0x10", "7 GB",
    "2147483647", "-2147483649", "9223372036854775807", "-9223372036854775809", "0:1", "0:1,2:3", "0:1, 2:3", "0:1,*",
    "delete", "compact,delete", "compact, delete", "delete;compact", "delete compact", "delete,", "remove", "gzip",
    " gzip", "gz", "zstd", "brotli", "CreateTime", "createtime", "3.0", "3.0-IV1", "2.8.1", "0.10", "9.9",
)  # fmt: skip
ONE_OF_EACH_RULE = (
    "cleanup.policy", "compression.gzip.level", "compression.type", "leader.replication.throttled.replicas",
    "message.format.version", "message.timestamp.type", "min.cleanable.dirty.ratio", "preallocate", "retention.bytes",
    "retention.ms", "segment.bytes",
)  # fmt: skip
TOGETHER = {
    "remote.storage.enable": ("true", "false"),
    "cleanup.policy": ("", "delete", "compact", "compact,delete"),
    "retention.ms": ("-1", "5"),
    "local.retention.ms": ("-2", "-1", "4", "5", "6"),
    "remote.log.copy.disable": ("true",),
    "remote.log.delete.on.disable": ("true", "false"),
    "min.compaction.lag.ms": ("0", "9"),
    "max.compaction.lag.ms": ("8", "9"),
}


class Case(NamedTuple):
    """`kind`: key, value or together. `refusals`: by release."""

    kind: str
    configs: Mapping[str, str]
    before: Mapping[str, str]
    refusals: Mapping[str, str | None]


def verdicts(*kinds: str) -> list[Case]:
    """Return the recorded cases of those kinds."""
    return [case for case in map(_read, VERDICTS.read_text("utf-8").splitlines()) if case.kind in kinds]


def written(case: Case) -> str:
    """Return the case's line."""
    told = {*case.refusals.values()}
    parts = [case.kind, case.configs, case.before, case.refusals if len(told) > 1 else told.pop()]
    return json.dumps(parts, separators=(",", ":")) + "\n"


def _read(line: str) -> Case:
    kind, configs, before, refusals = json.loads(line)
    return Case(kind, configs, before, refusals if isinstance(refusals, dict) else dict.fromkeys(RELEASES, refusals))


def cases(keys: Iterable[str]) -> Iterator[Case]:
    """Yield the cases, in order, without refusals; `keys`: those of all releases, sorted."""
    known = tuple(keys)
    for key in known:
        yield from (Case("key", {wrong: "1"}, {}, {}) for wrong in _mutated(key, known))
    for key in known:
        for value in (*VALUES, *(MORE_VALUES if key in ONE_OF_EACH_RULE else ())):
            yield Case("value", {key: value}, {}, {})
    for before in ({}, {"remote.storage.enable": "true"}):
        for pair in itertools.combinations(TOGETHER, 2):
            for values in itertools.product(*(TOGETHER[key] for key in pair)):
                configs = dict(zip(pair, values, strict=True))
                yield Case("together", configs if before else {"remote.storage.enable": "true", **configs}, before, {})
    copying = {"remote.storage.enable": "true", "remote.log.copy.disable": "true"}
    for unit, value, local in itertools.product(("ms", "bytes"), ("-1", "5"), ("-2", "-1", "4", "5", "6")):
        configs = {**copying, f"retention.{unit}": value, f"local.retention.{unit}": local}
        yield Case("together", configs, {}, {})


def _mutated(key: str, known: tuple[str, ...]) -> list[str]:
    """Return slips of the pen: letters changed over, dropped or doubled, other separators, other case."""
    found = [key.replace(".", other) for other in ("_", "-", " ", "", "..")] if "." in key else []
    found += [key.upper(), key.title(), f"{key}s", f"log.{key}", f" {key}", f"{key}."]
    places = range(1, len(key) - 1, max(1, len(key) // 2))
    found += [key[:at] + key[at + 1] + key[at] + key[at + 2 :] for at in places]
    found += [key[:at] + key[at + 1 :] for at in places]
    found += [key[: at + 1] + key[at:] for at in places]
    return [each for each in dict.fromkeys(found) if each not in known]
