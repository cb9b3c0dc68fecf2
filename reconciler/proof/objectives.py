"""Derives the objectives of a proof, in order, and what each may leave open. The plan has no say in it.

A balance that the files ask for comes first, then what is copied, then what decides between equals; leaders follow::

    racks spread                         if a limit keeps partitions from a spread that is preferred
    replicas balance, topics balance     if asked for
    bytes, replicas                      replicas first if a size is unknown: then bytes are no measure
    evenness                             between equals the better balance, unless the first objective is just that
    leaders balance, topic leaders balance, leaders changed

Three things let a plan stay behind, and each has to be asked for:

- A budget, which the plan's text prints, may forbid the copies that a balance takes.
- Disks (`limits.diskUse`, where sizes are known) may forbid a balance or a preferred spread, or ask for more copies
  than counts do.
- Racks that are to lead decide before evenness.

The verdict names the objectives that are not proved for one of these reasons.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.model.desired import Desired, Even, Off
from reconciler.model.plan import PriceLevel
from reconciler.proof.arithmetic import NotProved
from reconciler.proof.demands import Demands

REPLICAS_BALANCE, TOPICS_BALANCE, EVENNESS = "replicas balance", "topics balance", "evenness"
LEADERS_BALANCE, TOPIC_LEADERS_BALANCE = "leaders balance", "topic leaders balance"
BALANCES = (REPLICAS_BALANCE, TOPICS_BALANCE, LEADERS_BALANCE, TOPIC_LEADERS_BALANCE)
SPREAD = "racks spread"
BYTES, COPIES, LEADERS_CHANGED = "bytes", "replicas", "leaders changed"


@dataclass(frozen=True, slots=True)
class Objectives:
    """The objectives of replicas and of leaders, the most important first.

    `may_miss`: the plan may have no prices for these. `may_be_loose`: the value of these may be above the bound, if no
    level comes after them.
    """

    replicas: tuple[str, ...]
    leaders: tuple[str, ...]
    may_miss: frozenset[str] = frozenset()
    may_be_loose: frozenset[str] = frozenset()


def first_cost(demands: Demands) -> str:
    """Return what is to be copied least: bytes, unless a size is unknown."""
    return BYTES if demands.is_size_known else COPIES


def objectives_of(desired: Desired, demands: Demands, *, is_yielding: bool) -> Objectives:
    """Return the objectives of a plan for that desired state, where no budget binds it.

    `is_yielding`: the plan leaves partitions off a spread that is preferred.
    """
    balance, first = desired.cluster.balance, first_cost(demands)
    asked = _asked(balance.replicas, REPLICAS_BALANCE) + _asked(balance.topics, TOPICS_BALANCE)
    costs = (first, COPIES if first == BYTES else BYTES)
    evenness = () if isinstance(balance.replicas, Even) else (EVENNESS,)
    led = _asked(balance.leaders, LEADERS_BALANCE) + _asked(balance.topics, TOPIC_LEADERS_BALANCE)
    has_disks = any(room is not None for room in demands.brokers.capacity.room)
    is_led = any(kind.allowed.leaders != kind.allowed.stand_ins for kind in demands.kinds)
    may_miss = {SPREAD, *asked, costs[1], *evenness} if has_disks else {*evenness} if is_led else {}
    may_be_loose = {first, *evenness} if has_disks else may_miss
    spread = (SPREAD,) if is_yielding else ()
    return Objectives(
        (*spread, *asked, *costs, *evenness), (*led, LEADERS_CHANGED), frozenset(may_miss), frozenset(may_be_loose)
    )


def _asked(target: object, name: str) -> tuple[str, ...]:
    return () if isinstance(target, Off) else (name,)


def refuse_other_levels(levels: Sequence[PriceLevel], order: Sequence[str], objectives: Objectives) -> None:
    """Raise NotProved unless the levels are over these objectives in this order, with none missing that must not be."""
    names = [level.objective for level in levels]
    missing = [name for name in order if name not in names and name not in objectives.may_miss]
    if missing:
        raise NotProved(f"the proof has no prices for {missing[0]}, which the desired state asks for")
    fitting = [name for name in order if name in names]
    if names != fitting:
        raise NotProved(f"the proof is over {', '.join(names)}; in order it must be {', '.join(fitting or order)}")


def refuse_unasked(levels: Sequence[PriceLevel], *, has_budget: bool, has_loads: bool) -> None:
    """Raise NotProved for a level with weights that no budget asks for, or prices of loads that nothing balances."""
    for level in levels:
        is_weighed = level.weight or level.byte_weight
        if is_weighed and not (has_budget and level.objective in {REPLICAS_BALANCE, TOPICS_BALANCE}):
            raise NotProved(f"{level.objective} is weighed against bytes, and no budget asks for that")
        if (level.load_prices or level.shift) and not has_loads:
            raise NotProved(f"{level.objective} has prices of loads, and no load is to be balanced")
