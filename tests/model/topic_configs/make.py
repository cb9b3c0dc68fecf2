"""Makes reconciler/model/topic_configs.py (what brokers know of topic configs, and effects.toml) and verdicts.jsonl.

    .venv/bin/python tests/model/topic_configs/make.py

writes them anew. It needs a JDK, and fetches Kafka's jars once. A new release is a line in RELEASED and in `RELEASES`
of reconciler/model/config_rule.py; then each new key needs its lines in effects.toml.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parents[1]))

from helpers.brokers.kafka_jars import jars, java  # noqa: E402  found once the path is set
from model.topic_configs.cases import VERDICTS, cases, written  # noqa: E402

PROGRAM = HERE / "TopicConfigs.java"
TABLE = ROOT / "reconciler" / "model" / "topic_configs.py"
RELEASED = {"3.9": "3.9.1", "4.1": "4.1.1", "4.3": "4.3.0"}
"""The version that is asked for each release."""
NUMBERS = {"INT", "LONG", "DOUBLE"}
MANY = 10
"""More words than these are one text that fills its lines: in a tuple each would have a line to itself."""
HEAD = '''"""Holds every topic config of Kafka 3.9, 4.1 and 4.3: what each release takes, and what a change does.

Made by tests/model/topic_configs/make.py from the brokers' own classes and effects.toml beside it: never edit it here.
"""

from collections.abc import Mapping

from reconciler.model.config_rule import RELEASES, Kind, Rule, TopicConfig, release_of
from reconciler.model.effect import EffectClass


def default_of(key: str, kafka_version: str | None) -> str | None:
    """Return Kafka's own default of a key, None where that version has no such key."""
    rule = rule_of(key, kafka_version)
    return None if rule is None else rule.default


def rule_of(key: str, kafka_version: str | None) -> Rule | None:
    """Return what a version takes as the value of a key, None where it has no such key."""
    config = TOPIC_CONFIGS.get(key)
    return None if config is None else config.rules.get(release_of(kafka_version))


'''


def asked(version: str, questions: Iterable[Mapping[str, Any]] = ()) -> tuple[list[dict[str, Any]], list[str | None]]:
    """Return what a version's classes know of each key, and what they answer to each question."""
    command = [java(), "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{jars(version)}/*", str(PROGRAM)]
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    known, _, answers = done.stdout.partition("\n\n")
    return [json.loads(line) for line in known.splitlines()], [json.loads(line) for line in answers.splitlines()]


def table() -> str:
    """Return the module's text."""
    known = {release: {told["key"]: told for told in asked(version)[0]} for release, version in RELEASED.items()}
    effects = tomllib.loads((HERE / "effects.toml").read_text())
    keys = sorted({key for told in known.values() for key in told})
    if keys != sorted(effects):
        raise SystemExit(f"effects.toml and Kafka differ in {', '.join(sorted({*keys} ^ {*effects}))}")
    rows = []
    for key in keys:
        told = {release: found[key] for release, found in known.items() if key in found}
        parts = [_rules(told), *_effects(key, [*told.values()][-1], effects[key])]
        rows.append(f'"{key}": TopicConfig({", ".join(parts)}),')
    return _formatted(f"{HEAD}TOPIC_CONFIGS: Mapping[str, TopicConfig] = {{{''.join(rows)}}}\n")


def verdicts() -> str:
    """Return the cases' file, with what each release says of them."""
    keys = sorted({told["key"] for version in RELEASED.values() for told in asked(version)[0]})
    made = list(cases(keys))
    questions = [{"configs": case.configs, "existing": case.before} for case in made]
    answers = [asked(version, questions)[1] for version in RELEASED.values()]
    rows = (
        case._replace(refusals=dict(zip(RELEASED, told, strict=True)))
        for case, *told in zip(made, *answers, strict=True)
    )
    return "".join(map(written, rows))


def _rules(told: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the rules by release, one written once where releases share it."""
    releases: dict[str, list[str]] = {}
    for release, each in told.items():
        releases.setdefault(_rule(each), []).append(release)
    if len(releases) == 1:
        return _in_releases(*next(iter(releases.items())))
    return f"{{{', '.join(f'**{_in_releases(rule, named)}' for rule, named in releases.items())}}}"


def _in_releases(rule: str, releases: list[str]) -> str:
    named = "RELEASES" if releases == [*RELEASED] else repr(tuple(releases))
    return f"dict.fromkeys({named}, {rule})"


def _rule(told: Mapping[str, Any]) -> str:
    validator = told["validator"] or ""
    given: dict[str, str | None] = {"low": None, "high": None, "beside": None}
    bounds = re.fullmatch(r"\[(-?\d+),\.\.\.,?(-?\d+)?\](?: or (-?\d+))?", validator)
    choices: list[str] = []
    if bounds:
        given = dict(zip(given, bounds.groups(), strict=True))
    elif validator.startswith("[") and not validator.startswith("[partitionId]"):
        choices = validator.strip("[]").split(", ")
    elif validator and not validator.startswith("[partitionId]"):
        raise SystemExit(f"{told['key']} has a validator of a new form: {validator}")
    parts = [f"Kind.{told['type']}", repr(told["default"] or "")]
    parts += [f"{name}={value}" for name, value in given.items() if value is not None]
    if len(choices) > MANY:
        lines = "\n".join(wrap(" ".join(choices), 118, initial_indent=" " * 4, subsequent_indent=" " * 4))
        parts.append(
            f'choices=tuple(\n"""\n{lines}\n""".split()  # noqa: SIM905 - a line for each would fill a page\n)'
        )
    elif choices:
        parts.append(f"choices={tuple(choices)!r}")
    return f"Rule({', '.join(parts)})"


def _effects(key: str, told: Mapping[str, Any], effects: Mapping[str, Any]) -> list[str]:
    fields = {"smaller", "larger"} if told["type"] in NUMBERS else {"becomes", "otherwise"}
    if {*effects} - {"only-where", "unlimited-below-zero"} != fields:
        raise SystemExit(f"effects.toml must give {' and '.join(sorted(fields))} of {key}")
    parts = [f'broker_key="{told["brokerKey"]}"'] if told["brokerKey"] else []
    told_of = {name: effects[name] for name in ("smaller", "larger", "otherwise") if name in effects}
    parts += [f"{name}={_class(word)}" for name, word in told_of.items() if word != "harmless"]
    if effects.get("becomes"):
        becomes = (f'"{value}": {_class(word)}' for value, word in sorted(effects["becomes"].items()))
        parts.append(f"becomes={{{', '.join(becomes)}}}")
    if "only-where" in effects:
        parts.append(f"only_where={tuple(effects['only-where'])!r}")
    if effects.get("unlimited-below-zero"):
        parts.append("is_unlimited_below_zero=True")
    return parts


def _class(word: str) -> str:
    return f"EffectClass.{word.upper()}"


def _formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--config", str(ROOT / "pyproject.toml"), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    TABLE.write_text(table())
    VERDICTS.write_text(verdicts())
