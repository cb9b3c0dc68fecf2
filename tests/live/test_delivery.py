"""The judge of deliveries is judged: records lost, altered, twice, out of order, on made-up data."""

from collections.abc import Mapping

import pytest
from helpers.brokers.delivery import Ack, Sent, delivery_faults, duplicates, longest_pause

ACKS = tuple(Ack(number % 3, 10 + number // 3, b"value %d" % number, number / 10) for number in range(30))
READ = {(number % 3, 10 + number // 3): b"value %d" % number for number in range(30)} | {(0, 3): b"older"}
PLACE = (1, 14)


def without(place: tuple[int, int]) -> dict[tuple[int, int], bytes]:
    return {found: value for found, value in READ.items() if found != place}


def test_records_that_stand_where_they_were_acknowledged_are_well() -> None:
    assert delivery_faults(Sent(ACKS), READ, 3) == []


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (without(PLACE), "offset 14 holds None, acknowledged b'value 13'"),
        (READ | {PLACE: b"another"}, "offset 14 holds b'another'"),
        (READ | {PLACE: READ[1, 15], (1, 15): READ[PLACE]}, "holds records in another order"),
        (
            READ | {(1, 99): READ[PLACE]},
            "b'value 13' stands at [(1, 14), (1, 99)] in one epoch, and no delivery failed",
        ),
        ({}, "and 25 more"),
    ],
    ids=["lost", "altered", "exchanged", "twice", "all lost"],
)
def test_what_is_wrong_with_records_is_told(read: Mapping[tuple[int, int], bytes], told: str) -> None:
    assert told in "\n".join(delivery_faults(Sent(ACKS), read, 3))


def test_a_partition_without_an_acknowledgement_is_told() -> None:
    assert delivery_faults(Sent(ACKS), READ, 4) == ["partition 3 never acknowledged a record"]


def test_offsets_that_are_acknowledged_downwards_are_told() -> None:
    assert delivery_faults(Sent((ACKS[3], ACKS[0])), READ, 1)[0] == "partition 0 acknowledged 10 after 11"


def test_a_record_may_stand_twice_where_a_delivery_failed_or_the_producer_began_anew() -> None:
    read = READ | {(1, 99): READ[PLACE]}
    assert delivery_faults(Sent(ACKS, epochs=2), read, 3) == []
    assert delivery_faults(Sent(ACKS, ("timed out",)), read, 3) == []
    assert duplicates(ACKS, read) == 1


def test_the_longest_pause_is_the_widest_gap_between_acknowledgements() -> None:
    late = ACKS[-1]._replace(at=9.5)
    assert longest_pause((*ACKS[:-1], late)) == pytest.approx(9.5 - 2.8)
    assert longest_pause(ACKS[:1]) == 0.0


def test_a_record_acknowledged_without_an_offset_may_stand_anywhere_but_must_stand() -> None:
    acks = (*ACKS[:-1], ACKS[-1]._replace(offset=None))
    assert delivery_faults(Sent(acks), READ, 3) == []
    gone = {place: value for place, value in READ.items() if value != ACKS[-1].value}
    assert any("nothing holds it" in fault for fault in delivery_faults(Sent(acks), gone, 3))
