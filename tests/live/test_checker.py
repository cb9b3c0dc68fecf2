"""The checker is checked: each thing that a run may leave wrong, made up, is told; and what is right is not."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from helpers.brokers import checker
from helpers.brokers.checker import Seen, journal_faults, lists_wanted, state_faults
from helpers.brokers.controller import PartitionState
from helpers.brokers.counted_program import api_keys
from helpers.brokers.observer import Behind, agreed
from helpers.brokers.sent_requests import writes_in

RATE, LIST = "leader.replication.throttled.rate", "follower.replication.throttled.replicas"
WANTED = {"orders-0": (4, 2, 3), "orders-1": (2, 3, 1)}


def state(*replicas: int) -> PartitionState:
    return PartitionState(replicas, frozenset(replicas), replicas[0])


BEFORE = Seen(
    partitions={"orders-0": state(1, 2, 3), "orders-1": state(2, 3, 1)},
    stored={"orders-0": frozenset({1, 2, 3}), "orders-1": frozenset({1, 2, 3})},
    throttles={f"1:{RATE}": "5000", f"orders:{LIST}": "*"},
    groups={"billing": "Stable", "idle": "Empty"},
)
AFTER = replace(
    BEFORE,
    partitions={name: state(*replicas) for name, replicas in WANTED.items()},
    stored={name: frozenset(replicas) for name, replicas in WANTED.items()},
)


def with_state(name: str, found: PartitionState) -> Seen:
    return replace(AFTER, partitions={**AFTER.partitions, name: found})


def with_throttles(**changed: str) -> Seen:
    return replace(AFTER, throttles={**AFTER.throttles, **changed})


FAULTS: dict[str, tuple[Callable[[], Seen], str]] = {
    "wrong order": (
        lambda: with_state("orders-0", PartitionState((4, 3, 2), frozenset({2, 3, 4}), 4)),
        "orders-0 is on [4, 3, 2], wanted [4, 2, 3]",
    ),
    "not moved": (lambda: with_state("orders-0", state(1, 2, 3)), "orders-0 is on [1, 2, 3]"),
    "one more replica": (lambda: with_state("orders-0", state(4, 2, 3, 1)), "orders-0 is on [4, 2, 3, 1]"),
    "out of sync": (
        lambda: with_state("orders-0", PartitionState((4, 2, 3), frozenset({2, 3}), 2)),
        "orders-0 has [2, 3] in sync",
    ),
    "wrong leader": (
        lambda: with_state("orders-1", PartitionState((2, 3, 1), frozenset({1, 2, 3}), 3)),
        "orders-1 is led by 3, wanted 2",
    ),
    "untouched one changed": (lambda: with_state("orders-1", state(2, 3, 4)), "orders-1 is on [2, 3, 4]"),
    "stray replica": (
        lambda: replace(AFTER, stored={**AFTER.stored, "orders-0": frozenset({1, 2, 3, 4})}),
        "orders-0 is stored on [1, 2, 3, 4]",
    ),
    "replica without data": (
        lambda: replace(AFTER, stored={**AFTER.stored, "orders-0": frozenset({2, 3})}),
        "orders-0 is stored on [2, 3]",
    ),
    "in flight": (lambda: replace(AFTER, in_flight=("orders-0",)), "orders-0 is still being reassigned"),
    "one rate left": (lambda: with_throttles(**{f"4:{RATE}": "100"}), f"4:{RATE} is '100', it was None"),
    "one list left empty": (lambda: with_throttles(**{"orders:leader": ""}), "orders:leader is '', it was None"),
    "star back as a list": (lambda: with_throttles(**{f"orders:{LIST}": "0:4"}), "is '0:4', it was '*'"),
    "operator's rate gone": (
        lambda: replace(AFTER, throttles={f"orders:{LIST}": "*"}),
        f"1:{RATE} is None, it was '5000'",
    ),
    "lock left": (lambda: replace(AFTER, groups={**AFTER.groups, "lock": "Stable"}), "group lock is Stable"),
    "partition gone": (lambda: replace(AFTER, partitions={"orders-1": state(2, 3, 1)}), "orders-0 is gone"),
    "partition too many": (lambda: with_state("orders-2", state(1, 2, 3)), "orders-2 is not wanted"),
}


def test_what_is_as_planned_is_well() -> None:
    assert state_faults(BEFORE, AFTER, WANTED) == []


@pytest.mark.parametrize("name", FAULTS)
def test_what_a_run_left_wrong_is_told(name: str) -> None:
    after, told = FAULTS[name]
    found = state_faults(BEFORE, after(), WANTED)
    assert told in "\n".join(found)


@pytest.mark.parametrize("judge", ["_partition_faults", "_throttle_faults", "state_faults"])
def test_a_checker_that_says_yes_to_everything_is_noticed(judge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, judge, lambda *_: [])
    untold = [name for name, (after, told) in FAULTS.items() if told not in "\n".join(checked(after()))]
    assert untold


def checked(after: Seen) -> list[str]:
    return checker.state_faults(BEFORE, after, WANTED)


def test_a_debt_is_allowed_to_its_broker_alone() -> None:
    after = with_throttles(**{f"4:{RATE}": "100", f"3:{RATE}": "100"})
    assert state_faults(BEFORE, after, WANTED, leftover={4}) == [f"3:{RATE} is '100', it was None"]


def test_what_brokers_show_counts_once_all_show_the_same() -> None:
    assert agreed({1: {LIST: "0:4"}, 2: {LIST: "0:4"}}, "orders") == {LIST: "0:4"}
    assert agreed({1: {}, 2: {}}, "orders") == {}
    with pytest.raises(Behind, match=r"5: .*0:4"):
        agreed({1: {}, 5: {LIST: "0:4"}}, "orders")
    with pytest.raises(Behind):
        agreed({}, "orders")


RUN = '{"step": "run", "outcome": "started"}'
STAGE = '{"step": "stage", "outcome": "done"}'
END = '{"step": "run", "outcome": "failed"}'
PAID = '{"step": "unthrottle", "outcome": "done"}'


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([RUN, STAGE, END], ""),
        ([RUN, STAGE, END, PAID], ""),
        ([RUN, STAGE, PAID], "last event"),
        ([RUN, STAGE, RUN, STAGE, END], ""),
        ([RUN, STAGE], "last event"),
        ([RUN, STAGE, END, RUN], "last event"),
        ([RUN, END, STAGE], "last event"),
        ([RUN, STAGE[:20], END], "line 2"),
        ([RUN, "7", END], "line 2"),
        ([STAGE], "no run"),
        ([], "no run"),
    ],
)
def test_a_journal_must_tell_the_end_of_its_last_run(lines: list[str], told: str) -> None:
    found = "\n".join(journal_faults(lines))
    assert told in found
    assert bool(told) == bool(found)


def test_the_lists_wanted_are_the_last_of_each_partition_but_for_those_that_went_back() -> None:
    first = [{"topic": "a", "partition": 0, "to": [2, 3]}, {"topic": "a", "partition": 1, "to": [5]}]
    plan = {"stages": [{"moves": first}, {"elections": []}, {"moves": [{"topic": "a", "partition": 0, "to": [3, 4]}]}]}
    before = {"a-0": (1, 2), "a-1": (4,), "a-2": (9,)}
    assert lists_wanted(plan, before) == {"a-0": (3, 4), "a-1": (5,), "a-2": (9,)}
    assert lists_wanted(plan, before, back={"a-1"}) == {"a-0": (3, 4), "a-1": (4,), "a-2": (9,)}


def test_every_kind_of_request_that_is_not_known_to_read_is_a_write() -> None:
    assert writes_in([3, 18, 46, 11, 12, 13, 14, 10]) == {}
    assert writes_in([44, 3, 44, 45, 99]) == {
        "IncrementalAlterConfigs": 2,
        "AlterPartitionReassignments": 1,
        "API key 99": 1,
    }


def test_requests_are_counted_however_their_bytes_are_cut() -> None:
    frames = b"".join((len(body) + 2).to_bytes(4) + key.to_bytes(2) + body for key, body in ((3, b"x" * 9), (45, b"")))
    for width in range(1, len(frames) + 1):
        stream, found = bytearray(), []
        for start in range(0, len(frames), width):
            stream += frames[start : start + width]
            found += api_keys(stream)
        assert found == [3, 45]
        assert not stream
