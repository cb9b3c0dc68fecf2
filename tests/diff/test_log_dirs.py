"""What lies in log dirs against what is wished of them."""

from fractions import Fraction

import pytest

from reconciler.diff.log_dirs import bands, dirs_of_brokers, log_dir_differences
from reconciler.diff.rules import cordoned_brokers
from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import Balance, Desired, DesiredBroker, DesiredCluster, DesiredLogDir, LogDirState, Within
from reconciler.model.problem import Location, PlacementInfeasible

AT = Location("c/cluster.yaml", 5)
OPEN, SHUT, GOING = LogDirState.ACTIVE, LogDirState.CORDONED, LogDirState.DRAINING


def observed(*dirs: LogDir) -> Cluster:
    partition = Partition(0, 1, (1,), (1,), sizes=(30,), log_dirs=("/d1",))
    return Cluster("id", brokers={1: Broker(1, log_dirs=dirs)}, topics={"t": Topic("t", partitions=(partition,))})


def wished(*states: LogDirState, balance: Balance | None = None) -> Desired:
    dirs = tuple(DesiredLogDir(f"/d{number}", state) for number, state in enumerate(states, start=1))
    return Desired(DesiredCluster("c", brokers={1: DesiredBroker(1, log_dirs=dirs)}, balance=balance or Balance()))


def test_a_band_is_as_wide_as_its_part_of_what_would_be_fair() -> None:
    assert bands((100, 200), 90, Fraction(1, 10)) == ((27, 54), (33, 66))
    assert bands((100, 100), 15, Fraction(1, 10)) == ((7, 7), (8, 8))
    assert bands((100,), 50, Fraction(2)) == ((0,), (150,))


def test_a_draining_log_dir_that_holds_something_is_a_difference_and_an_empty_one_is_not() -> None:
    cluster = observed(LogDir("/d1", 100, 60), LogDir("/d2", 100, 100))
    assert [one.detail for one in log_dir_differences(wished(GOING), cluster)] == ["draining: it holds 1 replica, 30 B"]
    assert [*log_dir_differences(wished(OPEN, GOING), cluster)] == []


def test_a_log_dir_outside_of_its_band_is_a_difference() -> None:
    even = Balance(log_dirs=Within(Fraction(1, 10)), at={"logDirs": AT})
    found = [*log_dir_differences(wished(balance=even), observed(LogDir("/d1", 100, 60), LogDir("/d2", 100, 100)))]
    assert [(one.log_dir, one.detail, one.at) for one in found] == [
        ("/d1", "balance: 40% full, 18% to 22% wanted", AT),
        ("/d2", "balance: 0% full, 18% to 22% wanted", AT),
    ]
    alike = observed(LogDir("/d1", 100, 60), LogDir("/d2", 100, 60))
    assert [*log_dir_differences(wished(balance=even), alike)] == []


def test_nothing_is_told_where_nothing_is_asked() -> None:
    assert [*log_dir_differences(wished(), observed(LogDir("/d1", 100, 0), LogDir("/d2", 100, 100)))] == []


@pytest.mark.parametrize(
    ("states", "second", "expected"),
    [
        ((SHUT, GOING), LogDir("/d2", 100, 100), {1}),
        ((SHUT,), LogDir("/d2", 100, 100), set()),
        ((SHUT,), LogDir("/d2", 100, 100, is_cordoned=True), {1}),
        ((OPEN,), LogDir("/d2", 100, 100, is_cordoned=True), set()),
    ],
)
def test_a_broker_gets_nothing_once_none_of_its_log_dirs_is_open(
    states: tuple[LogDirState, ...], second: LogDir, expected: set[int]
) -> None:
    assert cordoned_brokers(wished(*states), observed(LogDir("/d1", 100, 60), second)) == expected


def test_a_log_dir_that_is_not_there_is_refused_and_what_lies_where_may_be_unknown() -> None:
    dirs = LogDir("/d1", 100, 60), LogDir("/d2", 100, 100)
    with pytest.raises(PlacementInfeasible) as refused:
        dirs_of_brokers(wished(OPEN, OPEN, GOING), observed(*dirs))
    assert [(one.code, one.message) for one in refused.value.problems] == [
        ("KR350", "broker 1 has no log dir /d3; did you mean /d2?")
    ]
    blind = Cluster(
        "id", brokers={1: Broker(1, log_dirs=dirs)}, topics={"t": Topic("t", (Partition(0, 1, (1,), (1,)),))}
    )
    _, (unknown,) = dirs_of_brokers(wished(balance=Balance(log_dirs=Within(Fraction(1)), at={"logDirs": AT})), blind)
    assert (unknown.code, unknown.at) == ("KR837", AT)
