"""Plans of any size, drawn with a seed, for those who show them."""

from random import Random

from reconciler.model.grounds import BrokerGround, Grounds
from reconciler.model.move import Election, Move, Reason
from reconciler.model.plan import BrokerShare, LogDirUse, Plan, PriceLevel, Proof, Source
from reconciler.model.problem import Location, Problem, Severity
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition

MIB, GIB, TIB = 1024**2, 1024**3, 1024**4
_REASONS = (Reason.RACKS, Reason.DRAINING, Reason.REPLICATION_FACTOR, Reason.BALANCE)


def drawn_plan(brokers: int, stages: int, moves: int, *, seed: int = 1, has_rates: bool = True) -> Plan:
    """Return a plan on that many brokers, with so many stages of so many moves each, and an election after every 5th.

    Sizes and shares fit nothing but each other's order of magnitude: it is for showing, not for running.
    """
    random = Random(seed)
    staged: list[Stage] = []
    for number in range(1, stages + 1):
        if number % 5 == 0:
            keys = [TopicPartition(f"topic-{random.randrange(40)}", each) for each in range(moves)]
            staged.append(ElectStage(number, tuple(Election(key, 1 + key.partition % brokers) for key in keys)))
        else:
            drawn = tuple(_move(random, brokers, number, each) for each in range(moves))
            staged.append(ReassignStage(number, drawn, 50 * MIB, random.randrange(5, 400)))
    before = {id_: _share(random, has_rates=has_rates) for id_ in range(1, brokers + 1)}
    after = {id_: _share(random, has_rates=has_rates) for id_ in range(1, brokers + 1)}
    copied = sum(stage.bytes for stage in staged if isinstance(stage, ReassignStage))
    peaks = {id_: random.randrange(TIB, 2 * TIB) for id_ in before}
    return Plan(
        cluster_name="drawn",
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        source=Source("sha256:00", "2026-11-21T14:02:11Z"),
        id="0f0f0f0f",
        stages=tuple(staged),
        proof=Proof(
            "bytes",
            copied,
            copied - copied // 50,
            {},
            (
                PriceLevel("bytes", copied, copied - copied // 50),
                PriceLevel("replicas", stages * moves, stages * moves),
            ),
        ),
        balance_before=before,
        balance_after=after,
        warnings=(Problem("KR811", "moves.throttle is not set", None, Severity.WARNING),),
        least_seconds=100,
        disk_peak=peaks,
        disk_capacity=dict.fromkeys(before, 2 * TIB),
        log_dirs={1: (LogDirUse("/d1", TIB // 2, TIB), LogDirUse("/d2", TIB // 3, TIB))},
        grounds=Grounds(brokers={id_: BrokerGround(f"rack-{id_ % 3}") for id_ in before}),
    )


def _move(random: Random, brokers: int, stage: int, number: int) -> Move:
    key = TopicPartition(f"topic-{random.randrange(40)}", 1000 * stage + number)
    ids = random.sample(range(1, brokers + 1), 4)
    at = Location("drawn/topics.yaml", random.randrange(1, 500))
    return Move(key, tuple(ids[:3]), (*ids[:2], ids[3]), random.randrange(MIB, 8 * GIB), _REASONS[stage % 4], at)


def _share(random: Random, *, has_rates: bool) -> BrokerShare:
    rates = [random.randrange(MIB, 90 * MIB) if has_rates else None for _ in range(2)]
    return BrokerShare(
        random.randrange(500, 700), random.randrange(150, 250), random.randrange(TIB, 2 * TIB), rates[0], rates[1]
    )
