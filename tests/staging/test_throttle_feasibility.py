"""A throttle that what producers write would use up is refused where rates are known, and told where not."""

from staging.cases import cluster, key, move

from reconciler.model.desired import MovePolicy
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.move import Reason
from reconciler.model.problem import Location, Severity
from reconciler.model.stage import ReassignStage
from reconciler.staging.problems import throttle_violations, throttle_warnings

OBSERVED = cluster("1a 2b 3c 4a", "t-0: 1,2 size 50", "t-1: 2,1 size 50", "t-2: 3,2 size 50")
MOVES = (
    move("t-0: 1,2 -> 1,4", Reason.BALANCE, size=50),
    move("t-1: 2,1 -> 2,4", Reason.BALANCE, size=50),
    move("t-2: 3,2 -> 2,3", Reason.LEADERS),
)
LINE = Location("cluster.yaml", 5)
POLICY = MovePolicy(throttle_bytes_per_second=100, at={"throttle": LINE})


def stage(throttle: int | None = 100) -> ReassignStage:
    return ReassignStage(1, MOVES, throttle)


def loads(*bytes_in: int | None) -> Loads:
    return Loads({key(f"t-{number}"): PartitionLoad(rate) for number, rate in enumerate(bytes_in)})


def test_a_broker_that_must_take_in_as_much_as_the_throttle_allows_is_a_violation() -> None:
    (found,) = throttle_violations([stage()], OBSERVED, POLICY, loads(60, 40, 0))
    assert (found.code, found.at) == ("KR414", LINE)
    assert "stage 1 would never end" in found.message
    assert "broker 4 has to take in" in found.message
    assert "(100 bytes a second)" in found.message


def test_a_little_less_is_none_and_a_partition_that_copies_nothing_does_not_count() -> None:
    assert throttle_violations([stage()], OBSERVED, POLICY, loads(60, 39, 10**9)) == ()
    assert throttle_violations([stage(None)], OBSERVED, POLICY, loads(600, 400, 0)) == ()


def test_a_source_that_must_send_to_several_new_replicas_counts_each() -> None:
    twice = ReassignStage(1, (move("t-0: 1,2 -> 1,3,4", Reason.REPLICATION_FACTOR, size=50),), 100)
    (found,) = throttle_violations([twice], OBSERVED, POLICY, loads(50))
    assert "broker 1 has to send" in found.message


def test_rates_that_are_not_measured_are_told() -> None:
    (found,) = throttle_warnings([stage()], POLICY, loads(60))
    assert (found.code, "1 of 2 partitions to copy is not measured (t-1)" in found.message) == ("KR828", True)
    assert (found.at, found.severity) == (LINE, Severity.WARNING)
    assert throttle_warnings([stage()], POLICY, loads(60, 1)) == ()
    assert throttle_warnings([stage(None)], POLICY, loads()) == ()
