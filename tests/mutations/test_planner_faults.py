"""Faults planted in the planner, one at a time: the checks that every plan must pass notice each of them.

The checks are the proof, enumeration, and the laws of order, determinism and rest; they are in `mutations.scrutiny`.
Each run looks at a part of its cases: every eighth, and those that show a fault.
Where a piece of source has moved on, its fault says that it is not found: write it anew for what stands there now.
"""

from collections.abc import Sequence

import pytest
from helpers.depth import parts
from mutations.faults import Fault, planted
from mutations.scrutiny import Case, cases, complaint, part

from reconciler.planner import goal, objectives, sparse_flow, start

pytestmark = pytest.mark.long
PLANNER = "reconciler.planner"


def take_every_path(patch: pytest.MonkeyPatch) -> None:
    """Make small clusters go the way of large ones: a few arcs at a time, and counts through a narrow window."""
    patch.setattr(sparse_flow, "FEW_ARCS", 0)
    patch.setattr(start, "SPARE_ROWS", 1)
    patch.setattr(goal, "CHUNK", 3)
    patch.setattr(objectives, "BROKER_WINDOW", 1)


@pytest.fixture(autouse=True)
def _every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    take_every_path(monkeypatch)


FAULTS = [
    # What is to be placed.
    Fault(
        "a rack's lower bound is lost",
        "placement_task._choice_of",
        "return allowed, low,",
        "return allowed, 0 * low,",
        "9 brokers, seed 302, topics",
    ),
    Fault(
        "a rack's upper bound is lost",
        "placement_task._choice_of",
        "return allowed, low, high",
        "return allowed, low, 0 * high + partition.need",
        "5 brokers, seed 17",
    ),
    Fault(
        "racks that are to lead get no replica",
        "replicas._in_leader_racks",
        "lacks = is_led & ~leads.any(axis=1)",
        "lacks = is_led & False",
        "a led topic",
    ),
    Fault(
        "a cordoned broker gets replicas",
        "placement_task._choice_of",
        "(rules.receivable | may_stay)",
        "rules.keepable",
        "5 brokers, seed 12",
    ),
    Fault(
        "a cordoned broker loses replicas",
        "placement_task._choice_of",
        "(rules.receivable | may_stay)",
        "rules.receivable",
        "5 brokers, seed 3",
    ),
    Fault(
        "a broker is dropped",
        "placement_task.eligible_brokers",
        "in sorted(observed.brokers)",
        "in sorted(observed.brokers)[1:]",
        "a new topic",
    ),
    Fault(
        "dead brokers take part",
        "placement_task.eligible_brokers",
        "observed.is_alive(broker_id)",
        "broker_id",
        "5 brokers, seed 1",
    ),
    Fault(
        "draining brokers take part",
        "placement_task.eligible_brokers",
        "not in LEAVING",
        "is not None",
        "5 brokers, seed 0",
    ),
    Fault(
        "capacities are forgotten",
        "placement_task.eligible_brokers",
        "weights[broker_id] for broker_id in ids",
        "weights[broker_id] ** 0 for broker_id in ids",
        "5 brokers, seed 4",
    ),
    Fault(
        "racks are mixed up",
        "placement_task.eligible_brokers",
        "racks.index(name) for name in names",
        "0 for name in names",
        "a new topic",
    ),
    Fault(
        "replicas that stay are not counted",
        "placement_task.placement_task",
        "base=_counts(staying,",
        "base=0 * _counts(staying,",
        "5 brokers, seed 46",
    ),
    Fault(
        "assigned replicas are not counted",
        "placement_task.placement_task",
        "+ _counts(fixed, shape[1:]),",
        ",",
        "beside assigned ones",
    ),
    Fault(
        "leaders that stay are not counted",
        "placement_task.placement_task",
        "led=_counts(",
        "led=0 * _counts(",
        "5 brokers, seed 14",
    ),
    Fault(
        "protected partitions move",
        "to_place.partitions_to_place",
        " and not rule.is_frozen",
        "",
        "5 brokers, seed 327, topics",
    ),
    Fault(
        "an assignment is ignored",
        "to_place.partitions_to_place",
        "if explicit is not None:",
        "if False:",
        "beside assigned ones",
    ),
    Fault(
        "the replication factor stays",
        "to_place.partitions_to_place",
        "np.where(factor > 0, factor, table.factor[rows])",
        "table.factor[rows]",
        "5 brokers, seed 4",
    ),
    Fault(
        "a drained broker keeps undeclared topics",
        "to_place.partitions_to_place",
        "state in LEAVING",
        "state is None",
        "9 brokers, seed 8",
    ),
    # Objectives and their order.
    Fault(
        "replicas come before bytes",
        "replicas.copied",
        "if task.is_size_known else",
        "if not task.is_size_known else",
        "beside assigned ones",
    ),
    Fault(
        "bytes are as many as replicas", "replicas.copied", "copies(task.size,", "copies(task.size**0,", "a new topic"
    ),
    Fault(
        "a present replica costs as much as a new one",
        "costs.copies",
        "np.zeros_like(named)",
        "np.broadcast_to(size[:, None], named.shape)",
        "beside assigned ones",
    ),
    Fault("copies do not matter", "replicas.copied", "(~task.is_new).astype(np.int64)", "0 * task.size", "a new topic"),
    Fault("leaders are not kept", "replicas._leaders_kept", "at[may_lead, 0] = -1", "pass", "5 brokers, seed 24"),
    Fault(
        "the better balance does not matter between equals",
        "replicas._tie_breaks",
        "if not isinstance(balance.replicas, Even):",
        "if False:",
        "5 brokers, seed 27",
    ),
    Fault("turns are not taken", "replicas._tie_breaks", "if task.is_new.any():", "if False:", "a new topic"),
    Fault(
        "balance is forgotten",
        "objectives.asked_of_replicas",
        "if not isinstance(balance.replicas, Off):",
        "if False:",
        "beside assigned ones",
    ),
    Fault(
        "topics are forgotten",
        "objectives.asked_of_replicas",
        "if not isinstance(balance.topics, Off):",
        "if False:",
        "beside assigned ones",
    ),
    Fault(
        "leaders are forgotten",
        "objectives.asked_of_leaders",
        "if not isinstance(balance.leaders, Off):",
        "if False:",
        "beside assigned ones",
    ),
    Fault("a band is too wide", "objectives.band", "max(most, -(-share // whole))", "most + 1", "5 brokers, seed 30"),
    Fault("a band is too narrow", "objectives.band", "min(least, share // whole)", "least", "5 brokers, seed 3"),
    Fault(
        "capacity weighs the wrong way",
        "objectives.weights",
        "common // (capacity.astype(object) if is_wide else capacity)",
        "capacity",
        "5 brokers, seed 4",
    ),
    Fault(
        "topics weigh replicas that are not theirs",
        "objectives.asked_of_replicas",
        "base = task.base_of_topic",
        "base = 0 * task.base_of_topic",
        "beside assigned ones",
    ),
    # Prices.
    Fault(
        "a price is wrong",
        "objectives.price_level",
        "broker_price = solved.broker_price.tolist()",
        "broker_price = (solved.broker_price + (solved.broker_price == solved.broker_price.max())).tolist()",
        "a new topic",
    ),
    Fault(
        "prices have the wrong sign",
        "objectives.price_level",
        "broker_price = solved.broker_price.tolist()",
        "broker_price = (-solved.broker_price).tolist()",
        "a new topic",
    ),
    Fault("prices of topics are lost", "objectives.price_level", "and ids:", "and not ids:", "beside assigned ones"),
    Fault(
        "joint prices weigh the balance too little",
        "replicas._joint_prices",
        "+ weight * first[",
        "+ first[",
        "5 brokers, seed 4",
    ),
    Fault(
        "assigned copies are not in the proof",
        "place._with_forced",
        '"bytes": copied',
        '"bytes": 0',
        "beside assigned ones",
    ),
    Fault(
        "prices are found from half the arcs",
        "flow._residual_layers",
        "[*reversed(back), *forth]",
        "forth",
        "a new topic",
    ),
    Fault(
        "the value leaves rows out",
        "face.solved",
        "goal.own(placed.row, placed.broker), placed.units",
        "goal.own(placed.row, placed.broker)[1:], placed.units[1:]",
        "a new topic",
    ),
    # The flow and its sifting.
    Fault(
        "counts are fixed too early",
        "pieces.Pieces.narrowed",
        "np.where(reduced < 0, self",
        "np.where(reduced <= 0, self",
        "a new topic",
    ),
    Fault("what is above a band costs nothing", "pieces.outside", "none + 1", "none", "5 brokers, seed 3"),
    Fault("what is below a band costs nothing", "pieces.outside", "none - 1", "none", "5 brokers, seed 12"),
    Fault(
        "a square is off by one",
        "pieces.rising",
        "(2 * (base[place] + units) - 1)",
        "(2 * (base[place] + units) + 1)",
        "beside assigned ones",
    ),
    Fault(
        "the window is where it began",
        "objectives._in_window",
        "if is_inside.all():",
        "if True:",
        "5 brokers, seed 323, topics",
    ),
    Fault(
        "decided choices are open again",
        "face._refined",
        "_fix_where_free(kinds,",
        "(lambda *_: None)(kinds,",
        "a new topic",
    ),
    Fault(
        "decided racks are open again",
        "face._left",
        "_fix_where_free(of_racks, some, np.sign(cheapest.price[:, None] - cheapest.rack_price))",
        "pass",
        "9 brokers, seed 138",
    ),
    Fault(
        "dearer brokers stay open where the cheapest are as good",
        "face._left",
        "_fix_where_free(named, even, np.sign(dearest[even][:, None] - weight))",
        "pass",
        "9 brokers, seed 302, topics",
    ),
    Fault(
        "the price check is too content",
        "sparse_flow._cheaper",
        "np.flatnonzero(gain > 0)",
        "np.flatnonzero(gain > 3)",
        "a new topic",
    ),
    Fault(
        "the price check does not look",
        "sparse_flow._cheaper",
        "np.flatnonzero(gain > 0)",
        "np.flatnonzero(gain < 0)",
        "a new topic",
    ),
    Fault(
        "a rack gives one too many",
        "cheapest_sets.bounds_of",
        "np.where(racks < 0, low, high)",
        "np.where(racks < 0, low, high + 1)",
        "5 brokers, seed 17",
    ),
    Fault(
        "the rack bounds of a flow are lost",
        "row_flow._racks",
        "count[row] * bounds.low[row, rack]",
        "0 * count[row]",
        "9 brokers, seed 302, topics",
    ),
    # Leaders and lists.
    Fault(
        "anybody leads",
        "leaders._candidates",
        "is_there & task.rule_classes.leadable[rule_class, held]",
        "is_there.copy()",
        "5 brokers, seed 17",
    ),
    Fault(
        "an assignment's leader is any",
        "leaders._candidates",
        "(held[explicit] == task.fixed[explicit, :1])",
        "True",
        "beside assigned ones",
    ),
    Fault(
        "leaders change freely",
        "leaders.place_leaders",
        "_unless(is_at(held, task.replicas[:, :1]), task)",
        "_unless(held == held, task)",
        "a new topic",
    ),
    Fault(
        "a leader without data is as good",
        "leaders._tie_breaks",
        'yield "", _unless(is_at(held, task.replicas), task)',
        "pass",
        "5 brokers, seed 4",
    ),
    Fault("a swapped tie-break", "place._ordered", "(holders, holders <", "(-holders, holders <", "a new topic"),
    Fault(
        "new replicas come first",
        "place._ordered",
        "np.full(holders.shape, present.shape[1])",
        "np.full(holders.shape, -1)",
        "5 brokers, seed 4",
    ),
    Fault(
        "kept replicas are turned round",
        "place._ordered",
        "[holders == column[:, None]] = seat",
        "[holders == column[:, None]] = present.shape[1] - 1 - seat",
        "beside assigned ones",
    ),
    Fault(
        "a change of leader alone is lost",
        "place._target",
        "(leader == task.replicas[:, 0]) &",
        "True &",
        "beside assigned ones",
    ),
    Fault(
        "a move's bytes are those of one copy",
        "place._moves",
        "exact_product(moves.copies, np.maximum(size, 0))",
        "np.maximum(size, 0)",
        "beside assigned ones",
    ),
    Fault(
        "every broker's turn is the same",
        "costs.Turns.away",
        "- number - (number",
        "- 0 * number - (number",
        "a new topic",
    ),
    Fault(
        "rounds do not shift",
        "costs.Turns.away",
        "(number // members) * self.shift[broker]",
        "0 * number",
        "a new topic",
    ),
    Fault(
        "turns begin at the last broker",
        "costs.seats",
        "(rack[:column] == own)",
        "(rack[column:] == own)",
        "a new topic",
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.what for fault in FAULTS])
def test_a_fault_is_noticed(fault: Fault) -> None:
    with planted(fault, PLANNER):
        assert complaint(of_each_run(), fault.shown_by) is not None


def of_each_run() -> Sequence[Case]:
    """Return the cases that each run looks at."""
    return part({fault.shown_by for fault in FAULTS})


@parts("is_whole", part=False, deep=True)
def test_without_a_fault_nothing_is_wrong(*, is_whole: bool) -> None:
    assert complaint(cases() if is_whole else of_each_run()) is None
