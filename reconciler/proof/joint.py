"""Makes the proof's one price a broker, which holds for balance and copies together, from those of two levels."""

from collections.abc import Mapping, Sequence

from reconciler.model.plan import PriceLevel, Proof
from reconciler.proof.demands import Demands
from reconciler.proof.wrong import Disproved


def refuse_other_joint_prices(
    proof: Proof, balance: PriceLevel | None, copies: PriceLevel, demands: Demands, largest: int
) -> None:
    """Raise Disproved unless the prices are weight x those of the balance + those of the copies, the least made 0.

    The weight must be more than one partition's copies, `largest` each at most, and their prices can differ by: then a
    set that is cheapest at the joint prices is cheapest at the balance's prices first.
    """
    ids = demands.brokers.ids
    if not ids:
        return
    even = [balance.prices.get(broker_id, 0) if balance is not None else 0 for broker_id in ids]
    least = [copies.prices.get(broker_id, 0) for broker_id in ids]
    joint = [proof.prices.get(broker_id, 0) for broker_id in ids]
    weight = _weight(even, least, joint)
    enough = max((kind.need for kind in demands.kinds), default=0) * (largest + max(least) - min(least))
    wanted = [price + weight * more for price, more in zip(least, even, strict=True)]
    wanted = [price - min(wanted) for price in wanted]
    if joint != wanted or weight <= enough or not proof.prices.keys() <= set(ids):
        raise Disproved("the proof's prices are not those of its levels together")


def _weight(even: Sequence[int], least: Sequence[int], joint: Sequence[int]) -> int:
    """Return the weight that the balance's prices have, from two brokers where they differ; huge where none do."""
    low, high = even.index(min(even)), even.index(max(even))
    if even[low] == even[high]:
        return 1 << 200
    return ((joint[high] - joint[low]) - (least[high] - least[low])) // (even[high] - even[low])


def level_of(levels: Sequence[PriceLevel], objective: str) -> PriceLevel | None:
    """Return the level of that objective, None where it is not there."""
    found: Mapping[str, PriceLevel] = {level.objective: level for level in levels}
    return found.get(objective)
