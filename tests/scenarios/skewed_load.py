"""A producer that writes to each partition at a rate of its own, for as long as a test looks."""

import os
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import Message, Producer
from helpers.waiting import HANG

RECORD_BYTES = 2_000
TURN_SECONDS = 0.1


class SkewedLoad:
    """Writes `bytes_per_second[partition]` to each partition of a topic, from `with` on until its end.

    It keeps to the clock: a turn that came late writes what was missed. `acked` are the bytes acknowledged, by
    partition.
    """

    def __init__(self, bootstrap: str, topic: str, bytes_per_second: Mapping[int, int]) -> None:
        self.acked = dict.fromkeys(bytes_per_second, 0)
        self.failed: list[str] = []
        self._topic, self._rates = topic, dict(bytes_per_second)
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20, "log_level": 0})
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._produce)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join(HANG)

    def _produce(self) -> None:
        start = time.monotonic()
        written = dict.fromkeys(self._rates, 0)
        while not self._is_over.wait(TURN_SECONDS):
            passed = time.monotonic() - start
            for partition, rate in self._rates.items():
                while written[partition] + RECORD_BYTES <= rate * passed:
                    value = os.urandom(RECORD_BYTES)
                    self._producer.produce(self._topic, value, partition=partition, on_delivery=self._delivered)
                    written[partition] += RECORD_BYTES
            self._producer.poll(0)
        self._producer.flush(HANG)

    def _delivered(self, error: object, message: Message) -> None:
        if error is None:
            self.acked[message.partition()] += len(message.value())
        else:
            self.failed.append(str(error))
