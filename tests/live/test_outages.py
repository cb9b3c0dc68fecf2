"""Every broker of a topic stops, with writes between: doctor says whom to start, and nothing is lost."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.depth import parts
from helpers.program.warm import reconciler

if TYPE_CHECKING:
    from helpers.brokers.cluster import KafkaCluster
    from helpers.brokers.controller import Eligible
    from helpers.figures import Tell

pytestmark = pytest.mark.brokers

HOLDERS = (4, 5, 6)
"""Brokers that are no controllers, so that the quorum stands while all of them are down."""
ORDERS = tuple(permutations(HOLDERS))
WRITTEN = 200
MIN_ISR = 2


@parts("outages", [("stop", ORDERS[3])], deep=[(how, order) for how in ("stop", "kill") for order in ORDERS])
def test_whom_doctor_says_to_start_is_the_elr_and_no_acknowledged_record_is_lost(
    tmp_path: Path, mended: "KafkaCluster", figures: "Tell", outages: Sequence[tuple[str, tuple[int, ...]]]
) -> None:
    if mended.version < "4.1":
        pytest.skip("brokers before 4.1 have no ELR")
    equal = lost = written = 0
    for number, (how, order) in enumerate(outages):
        outage = Outage(mended, f"outage-{number}", tmp_path)
        outage.stop(how, order)
        told = outage.eligible()
        assert told.elr == {*order[-MIN_ISR:]}, f"{how} {order}: {told}"
        said = outage.doctor()
        assert "; an unclean election would lose some" in said.next
        equal += {*said.brokers} == {*said.order} == told.elr
        outage.follow()
        lost += len(outage.acknowledged.items() - outage.records().items())
        written += len(outage.acknowledged)
    figures("outages", f"{equal} of {len(outages)} equal the ELR; {lost} of {written} acknowledged records lost")
    assert (equal, lost) == (len(outages), 0)


@dataclass(frozen=True)
class Told:
    """What doctor says of a partition without a leader: whom its finding names, and the order of their start."""

    brokers: Sequence[int]
    next: str
    order: Sequence[int]


class Outage:
    """One topic on brokers that all go down, and what was acknowledged before."""

    def __init__(self, kafka: "KafkaCluster", topic: str, folder: Path) -> None:
        from helpers.brokers.by_hand import create

        self.kafka, self.topic, self.folder = kafka, topic, folder
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        create(kafka, {topic: [HOLDERS]}, {"min.insync.replicas": str(MIN_ISR)})
        kafka.wait_for(lambda: self.eligible().isr == {*HOLDERS}, f"all of {topic} to be in sync")

    def stop(self, how: str, order: Sequence[int]) -> None:
        """Stop all its brokers in that order; what is written before each is acknowledged while two are in sync."""
        for broker in order:
            self.write(is_open=len(self.eligible().isr) >= MIN_ISR)
            {"stop": self.kafka.stop, "kill": self.kafka.kill}[how](broker)
            self.kafka.wait_for(lambda broker=broker: broker not in self.eligible().isr, f"{broker} to be missed")  # type: ignore[misc]

    def write(self, *, is_open: bool) -> None:
        """Write with acks=all and keep what is acknowledged."""
        from confluent_kafka import Producer

        said: list[object] = []

        def note(error: object, message: object) -> None:
            said.append(error)
            if error is None:
                self.acknowledged[message.partition(), message.offset()] = message.value()  # type: ignore[attr-defined]

        settings = {"bootstrap.servers": self.kafka.bootstrap, "acks": "all", "log_level": 0, "linger.ms": 5}
        producer = Producer(settings | ({} if is_open else {"message.timeout.ms": 1_000}))
        for number in range(WRITTEN if is_open else 1):
            producer.produce(
                self.topic, value=f"{len(self.acknowledged)}-{number}".encode(), partition=0, on_delivery=note
            )
        producer.flush()
        assert [error is None for error in said] == ([True] * WRITTEN if is_open else [False])

    def eligible(self) -> "Eligible":
        """Return who may lead, once all brokers that live show the same."""
        from helpers.brokers.controller import eligible_shown_by
        from helpers.brokers.observer import Behind, agreed
        from helpers.waiting import asked_again

        def shown() -> "Eligible":
            addresses = self.kafka.bootstrap.split(",")
            return agreed({address: eligible_shown_by(address, self.topic)[0] for address in addresses}, self.topic)

        return asked_again(shown, Behind, OSError, AssertionError, KeyError, pause=0.1)

    def follow(self) -> None:
        """Start whom doctor names first and ask it again, until enough are in sync; then start all.

        With fewer, a new leader's high watermark may stay behind: all records are there, not all of them can be read.
        """
        while len((now := self.eligible()).isr) < MIN_ISR:
            said = self.doctor()
            named = [broker for broker in (*said.order, *said.brokers) if broker not in self.kafka.alive]
            if not named:
                self.kafka.wait_for(lambda now=now: self.eligible() != now, f"another state than {now}")  # type: ignore[misc]
                continue
            self.kafka.start(named[0])
            self.kafka.wait_for(lambda broker=named[0]: self.is_noticed(broker), f"{named[0]} to be noticed")  # type: ignore[misc]
        assert self.acknowledged.items() <= self.records().items()
        self.kafka.start(*(broker for broker in HOLDERS if broker not in self.kafka.alive))
        self.kafka.wait_for(lambda: self.eligible().isr == {*HOLDERS}, "all to be in sync again")

    def is_noticed(self, broker: int) -> bool:
        """Whether it is in sync, or was taken off the ELR as one that crashed."""
        told = self.eligible()
        return broker in told.isr or (told.leader < 0 and broker not in told.elr)

    def doctor(self) -> Told:
        """Return what doctor says of the partition."""
        from helpers.brokers.declared import client_file

        asked = ("doctor", *client_file(self.folder, self.kafka), "-o", "json")
        found = json.loads(reconciler(*asked, cwd=self.folder, expect=1).out)
        key = {"topic": self.topic, "partition": 0}
        sick = [one for one in found["findings"] if one["code"] in {"KR640", "KR641"} and key in one["partitions"]]
        order = [one["broker"] for one in found["start"] if key in one["canLead"] or key in one["opens"]]
        return Told(sick[0]["brokers"], sick[0]["next"], order)

    def records(self) -> Mapping[tuple[int, int], bytes]:
        """Return what the topic holds, read by another client."""
        from helpers.brokers.observer import Observer

        return Observer(self.kafka.bootstrap).records(self.topic)
