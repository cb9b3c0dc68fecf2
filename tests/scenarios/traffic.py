"""A producer (acks=all, idempotent) and a consumer that run while a test moves their partitions."""

import threading

from confluent_kafka import Consumer, Message, Producer
from helpers.beside import Beside
from helpers.waiting import HANG


class Traffic(Beside):
    """Produces to every partition of a topic and consumes it, from `with` on until its end.

    `acked` holds each acknowledged record's value by (partition, offset), `failed` the errors of the others,
    `consumed` how many records the consumer saw.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, records_per_second: int = 500) -> None:
        self.acked: dict[tuple[int, int], bytes] = {}
        self.failed: list[str] = []
        self.consumed = 0
        self._topic, self._partitions = topic, partitions
        self._pause = 1 / records_per_second
        self._bootstrap = bootstrap
        super().__init__(threading.Thread(target=self._produce), threading.Thread(target=self._consume))

    def _produce(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5}
        )
        number = 0
        while not self._is_over.wait(self._pause):
            value = f"{self._topic} {number}".encode()
            producer.produce(self._topic, value, partition=number % self._partitions, on_delivery=self._delivered)
            producer.poll(0)
            number += 1
        producer.flush(HANG)

    def _delivered(self, error: object, message: Message) -> None:
        if error is None:
            self.acked[message.partition(), message.offset()] = message.value()
        else:
            self.failed.append(str(error))

    def _consume(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "traffic", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([self._topic])
        while not self._is_over.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.consumed += 1
        consumer.close()
