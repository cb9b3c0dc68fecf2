"""Metadata of members of the lock's group, as a client writes it that may read the group."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

from render.payloads import PAYLOADS

from reconciler.model.lock import Holder, RateRequest, StopRequest

HUGE = 1 << 20
_MOMENT = "2026-11-21T10:00:00Z"
_SUBSCRIPTION = bytes.fromhex("0003000000010006") + b"orders" + bytes.fromhex("ffffffff00000000ffffffffffff")
"""What a member of Kafka's own protocol subscribes to, as its client writes it."""


def forged_member(chance: random.Random, plan_ids: Sequence[str], rates: Sequence[int]) -> bytes:
    """Return metadata as a forger writes it: three of four are sound, the others are no text of this program.

    `plan_ids` and `rates`: of plans that the forger has seen.
    """
    if chance.random() < 0.75:
        return sound_member(chance, plan_ids, rates)
    return _broken(chance, sound_member(chance, plan_ids, rates))


def sound_member(chance: random.Random, plan_ids: Sequence[str], rates: Sequence[int]) -> bytes:
    """Return what a holder, or a request, with any fields writes."""
    holder, kind = _holder(chance, plan_ids), chance.random()
    of = _purpose(chance, plan_ids)
    if kind < 0.3:
        return holder.written().encode()
    if kind < 0.6:
        return StopRequest(of, holder).written().encode()
    rate = chance.choice([*rates, 0, 1, -1, 7, 10**6, 10**9, 2**63 - 1, 2**63, 10**30, chance.randint(1, 10**9)])
    return RateRequest(of, holder, rate).written().encode()


def forged_holder(chance: random.Random, plan_ids: Sequence[str]) -> bytes:
    """Return what a process writes that holds the lock, with any fields."""
    return _holder(chance, plan_ids).written().encode()


def _purpose(chance: random.Random, plan_ids: Sequence[str]) -> str:
    plan_id = chance.choice(plan_ids)
    others = [f"cancel of plan {plan_id}", f"restoring the throttles of plan {plan_id}", f"apply of  plan {plan_id}"]
    return f"apply of plan {plan_id}" if chance.random() < 0.6 else chance.choice([*others, _name(chance)])


def _name(chance: random.Random) -> str:
    return chance.choice([*PAYLOADS.values(), "alice", "", "5", "x" * 300, "é" * 300, "\x1b[2J" * 60])


def _holder(chance: random.Random, plan_ids: Sequence[str]) -> Holder:
    holder = Holder(
        _purpose(chance, plan_ids), "alice", "build-7", chance.randint(1, 2**22), _MOMENT, "sha256:0badcafe"
    )
    if chance.random() < 0.3:
        holder = replace(holder, digest="")
    for field in ("user", "host", "since", "digest"):
        if chance.random() < 0.4:
            holder = replace(holder, **{field: _name(chance)})  # type: ignore[arg-type]
    return replace(holder, pid=chance.choice([-1, 0, 10**30, 10**1500])) if chance.random() < 0.2 else holder


def _broken(chance: random.Random, sound: bytes) -> bytes:
    lines = sound.split(b"\n")
    broken = [
        b"",
        sound[: chance.randint(0, len(sound))],
        chance.randbytes(chance.randint(1, 400)),
        sound.replace(b"a", b"\xff\xfe"),
        sound + b"\n" * chance.randint(1, 9),
        b"\n".join(chance.sample(lines, len(lines))),
        sound.replace(b"\n", b"\r\n"),
        sound.replace(b"rate=", b"rate=+").replace(b"build", b"  build  "),
        # Digits that are no ASCII digits are numbers for Python.
        sound.replace(b"\n5\n", b"\n" + "\N{ARABIC-INDIC DIGIT FIVE}".encode() + b"\n"),
        b"\n".join(b" 00" + line + b" " if line.isdigit() else line for line in lines),
        sound + b"\x00" * chance.choice([1, HUGE]),
        chance.choice([b"a", b"\n", b"\x1b", b"\xf0"]) * HUGE,
        b"[" * chance.choice([5, 5000]),
        json.dumps({"purpose": "apply of plan 0badcafe", "pid": chance.choice([1, None, [[]]])}).encode(),
        _SUBSCRIPTION,
        _SUBSCRIPTION + sound,
    ]
    return chance.choice(broken)
