"""What was placed with loads, in the words of the rest of the planner: sets, leaders, proof, warnings, broker loads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from reconciler.model.desired import Balance
from reconciler.model.plan import PriceLevel, Proof
from reconciler.model.problem import Problem, Severity
from reconciler.planner.demand import Demand, Still
from reconciler.planner.loaded.arrays import Bools, Ints
from reconciler.planner.loaded.measured import Measured
from reconciler.planner.loaded.place import OF_SETS, Loaded, place_loaded
from reconciler.planner.loaded.task import DISK, LEADERS, MEASURES, NETWORK_IN, NETWORK_OUT, REPLICAS

_RATES = (NETWORK_IN, NETWORK_OUT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where slots go: `held` [slots, brokers] beside what is fixed, `leader` [slots] as a column of the bench."""

    held: Bools
    leader: Ints
    proof: Proof
    warnings: tuple[Problem, ...]


def placed_with_loads(demand: Demand, still: Still, balance: Balance, carried: Measured) -> Outcome:
    """Return where every slot goes, with disks and network balanced too."""
    loaded = place_loaded(demand.slots, still, demand.bench, balance, carried.of)
    return outcome_of(loaded, demand, balance)


def outcome_of(loaded: Loaded, demand: Demand, balance: Balance) -> Outcome:
    """Return the outcome for all slots, those with nothing to choose included."""
    bench = demand.bench
    held = np.zeros((len(demand.slots), len(bench.ids)), dtype=np.bool_)
    leader = np.zeros(len(demand.slots), dtype=np.int64)
    free = [number for number, slot in enumerate(demand.slots) if slot.need > 0]
    held[free] = loaded.members & ~loaded.task.forced
    leader[free] = loaded.leader
    for number, slot in enumerate(demand.slots):
        if slot.need == 0 and slot.fixed:
            leader[number] = bench.column.get(slot.fixed[0], 0)
    return Outcome(held, leader, _proof(loaded, demand), tuple(_warnings(loaded, balance)))


def _proof(loaded: Loaded, demand: Demand) -> Proof:
    task = loaded.task
    copied = (loaded.members & ~task.held & ~task.is_new[:, None]).sum(axis=1)
    is_size_known = all(slot.size is not None for slot in demand.slots if not slot.is_new)
    objective = "bytes" if is_size_known else "replicas"
    value = sum((copied * task.size).tolist()) if is_size_known else int(copied.sum())
    ids = task.bench.ids
    of = {MEASURES[measure]: _by_broker(ids, loaded.prices[measure]) for measure in OF_SETS if measure != REPLICAS}
    level = PriceLevel(
        objective,
        value,
        min(value, loaded.bound),
        _by_broker(ids, loaded.prices[REPLICAS]),
        load_prices={word: prices for word, prices in of.items() if prices},
        shift=loaded.shift,
    )
    return Proof(objective, value, level.lower_bound, levels=(level,))


def _by_broker(ids: tuple[int, ...], prices: Ints) -> Mapping[int, int]:
    return {broker_id: price for broker_id, price in zip(ids, prices.tolist(), strict=True) if price}


def _warnings(loaded: Loaded, balance: Balance) -> Iterator[Problem]:
    """Yield a warning for each measure that stays outside its band somewhere: the broker farthest out, and why."""
    task, excess = loaded.task, loaded.excess
    for measure in np.flatnonzero(excess.any(axis=1)).tolist():
        is_above = bool((excess[measure] > 0).any())
        outside = excess[measure] if is_above else -excess[measure]
        column = int((outside / loaded.bands.share[measure]).argmax())
        limit = int((loaded.bands.high if is_above else loaded.bands.low)[measure, column])
        others = int((excess[measure] != 0).sum()) - 1
        more = f" ({others} more {'broker is' if others == 1 else 'brokers are'} outside as well)" if others else ""
        message = (
            f"balance.{MEASURES[measure]}: broker {task.bench.ids[column]} ends at "
            f"{_amount(measure, int(loaded.loads[measure, column]))}, {'above' if is_above else 'below'} its band's "
            f"{_amount(measure, limit)}{more}: {_forbidding(loaded, measure, column, is_above=is_above)}"
        )
        yield Problem("KR842", message, balance.at.get(MEASURES[measure]), Severity.WARNING)


def _forbidding(loaded: Loaded, measure: int, column: int, *, is_above: bool) -> str:
    """Return what forbids more, in words."""
    task = loaded.task
    mine = loaded.members[:, column]
    if is_above and int(task.base[measure, column]) > int(loaded.bands.high[measure, column]):
        return "what may not move there is more than that"
    if is_above:
        weights = (task.weights.replica + task.weights.leader)[mine, measure]
        if len(weights) and int(weights.max()) > int(loaded.bands.high[measure, column]):
            return "one partition alone is more than that"
    others = task.allowed[:, task.bench.rack == task.bench.rack[column]]
    if is_above and mine.any() and not (task.allowed[mine] & ~loaded.members[mine]).any():
        return "no other broker may hold its replicas"
    if not is_above and not (task.allowed[:, column] & ~mine).any():
        return "it may hold no other replica"
    if others.shape[1] < task.brokers and bool((task.low == task.high).all()):
        return "the rack rule, the sizes of single partitions and the other bands forbid more"
    return "the sizes of single partitions and the other bands forbid more"


def _amount(measure: int, amount: int) -> str:
    if measure in {REPLICAS, LEADERS}:
        return str(amount)
    return f"{amount} bytes{'/s' if measure in _RATES else ''}" if measure != DISK else f"{amount} bytes"
