"""Journals of a plan's runs, as a forger commits them, or a broken disk leaves them."""

import json
import random
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from render.payloads import PAYLOADS

from reconciler.files.journal import event_text
from reconciler.files.json_text import canonical_json
from reconciler.model.run import Outcome, RunEvent

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
OTHER_KEYS = ("cordoned.log.dirs", "log.retention.ms", "replica.alter.log.dirs.io.max.bytes.per.second", "")
STEPS = (*("run", "cancel", "throttle", "unthrottle", "rate", "stage", "reassign"), *("withdraw", "outage", "progress"))
_START = datetime(2100, 11, 21, 10, tzinfo=UTC)


def forged_journal(chance: random.Random, plan_id: str, topics: Sequence[str]) -> bytes:
    """Return the bytes of a journal: three of four hold sound events with any values, the others anything."""
    is_sound = chance.random() < 0.75
    lines = [_line(chance, plan_id, topics, number, is_sound=is_sound) for number in range(chance.randint(1, 8))]
    whole = b"".join(lines)
    return whole if is_sound else _broken(chance, whole)


def _line(chance: random.Random, plan_id: str, topics: Sequence[str], number: int, *, is_sound: bool) -> bytes:
    moment = _START + timedelta(seconds=number)
    detail = _detail(chance, topics, is_sound=is_sound)
    plan = plan_id if chance.random() < 0.9 else "0000beef"
    event = RunEvent(
        moment, chance.choice([0, 1, 2, 99]), chance.choice(STEPS), chance.choice([*Outcome]), detail, plan
    )
    text = event_text(event)
    if not is_sound and chance.random() < 0.4:
        # A time may lack its zone.
        odd = {chance.choice(["stage", "step", "plan"]): _odd(chance)}
        text = _sealed(json.loads(text) | chance.choice([odd, {"time": "2100-11-21T10:00:00"}]))
    return text.encode(errors="backslashreplace") + b"\n"


def _sealed(fields: dict[str, Any]) -> str:
    """Return a line whose sum is right, whatever its fields are."""
    fields.pop("sum", None)
    text = canonical_json(fields)
    return canonical_json(fields | {"sum": f"{zlib.crc32(text.encode(errors='backslashreplace')):08x}"})


def _odd(chance: random.Random) -> object:
    others: list[object] = [
        *(
            None,
            True,
            -1,
            10**30,
            10**400,
            1e308,
            "x",
            "5",
            "",
            "\ud800",
            "x" * 5000,
            chance.choice([*PAYLOADS.values()]),
        ),
        *([], {}, [[]], [["x"]], [[1, 2, 3]], [[{}, [], None]]),
        *("2026-11-21T10:00:00", "2026-11-21", "0001-01-01T00:00:00+23:59"),
    ]
    return chance.choice(others)


def _detail(chance: random.Random, topics: Sequence[str], *, is_sound: bool) -> dict[str, object]:
    def some(*sound: object) -> object:
        return chance.choice(sound) if is_sound or chance.random() < 0.8 else _odd(chance)

    def rates() -> object:
        keys = (*RATES, *RATES, *OTHER_KEYS)
        return [
            [some(*range(1, 9)), some(*keys), some(None, "1", "7000000", "20000000", "-1", "x", "")]
            for _ in range(chance.randint(0, 4))
        ]

    def lists() -> object:
        values = (None, "", "*", "0:1", "0:1,1:5", "9:9", "x")
        return [
            [some(*topics, "nowhere"), some(*LISTS, *LISTS, "retention.ms"), some(*values), some("0:1,0:4", "", "*")]
            for _ in range(chance.randint(0, 4))
        ]

    def seen() -> object:
        places = [*range(1, 8), *topics]
        return [
            [some(*places), some(*RATES, *LISTS, *OTHER_KEYS), some(None, "", "*", "1", "7000000")]
            for _ in range(chance.randint(0, 4))
        ]

    detail = {
        "rates": some(rates()),
        "lists": some(lists()),
        "seen": some(seen()),
        "ours": some(["20000000", "7000000"], [], ["1"]),
        "rate": some(1, 20_000_000),
        "bytesPerSecond": some(20_000_000, None),
        "by": some(*PAYLOADS.values()),
        "leftoverThrottles": some([], [{"code": "KR703", "message": "x"}]),
        "why": some(*PAYLOADS.values()),
    }
    kept = chance.sample(sorted(detail), chance.randint(2, len(detail)))
    return {name: detail[name] for name in kept}


def _broken(chance: random.Random, whole: bytes) -> bytes:
    place = chance.randint(0, len(whole))
    flipped = bytes([whole[place - 1] ^ (1 << chance.randint(0, 7))])
    broken = [
        whole[:place],
        whole[: max(0, place - 1)] + flipped + whole[place:],
        whole + b"\0" * 512,
        b"\0" * 512,
        b"",
        chance.randbytes(300),
        b"[" * 100_000 + b"\n",
        b'{"detail":' * 20_000,
        b'{"sum": "00000000"}\n' + whole,
        b"1" * 5000 + b"\n",
        whole.replace(b"\n", b"\r\n"),
    ]
    return chance.choice(broken) if chance.random() < 0.4 else whole
