"""A webhook: a real HTTP server that keeps what it is told."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from helpers.program.loopback import Answer, Request, serving

SECRET = "T0KEN/B0KEN/xSECRETx"  # noqa: S105 - of this test


@dataclass
class Receiver:
    """Takes messages, and answers as it is told; a proxy, too, for whoever takes it for one."""

    host: str = ""
    got: list[tuple[str, Any]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.host}/services/{SECRET}"

    def answer(self, request: Request) -> Answer:
        self.got.append((request.path, json.loads(request.body)))
        status, headers = self.answers.pop(0) if self.answers else (200, {})
        return Answer(status, headers=headers)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Yield one that takes messages until the end."""
    receiver = Receiver()
    with serving(receiver.answer) as receiver.host:
        yield receiver
