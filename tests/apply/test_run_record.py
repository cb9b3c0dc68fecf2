"""A run's record as text: the same when it is read again, and nothing at all where it is another text."""

import json
import string
from dataclasses import replace

import pytest
from helpers.depth import drawn
from helpers.plans.deaths import killed, passing
from helpers.plans.end_state import throttles
from helpers.plans.small_runs import cluster, whole_plan
from hypothesis import strategies as st

from reconciler.admin.port import Answer
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.admin.simulated_locks import MemoryLocks
from reconciler.apply.cancel import cancel_run
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.run import run_plan
from reconciler.apply.run_record import RunRecord, read_record
from reconciler.apply.session import Belief
from reconciler.apply.throttles import Entry, ThrottleRecord, our_rates, wanted_lists
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import BROKER_LEASES, BROKER_THROTTLES, TOPIC_THROTTLES
from reconciler.model.lock import Holder
from reconciler.model.move import Move, Reason
from reconciler.model.run import RunState
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition

NAMES = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=9)
NUMBERS = st.integers(0, 999)
REPLICAS = st.lists(NUMBERS, min_size=1, max_size=4, unique=True).map(tuple)
RATES = st.integers(1, 10**12).map(str)
ITEMS = st.frozensets(st.builds(lambda number, broker: f"{number}:{broker}", NUMBERS, NUMBERS), max_size=4)
BEFORE = st.none() | st.just("") | st.just("*") | ITEMS.map(lambda items: ",".join(sorted(items)))
BY = Holder("apply of plan 0badcafe", "ann", "laptop", 17, "2026-11-20T10:00:00Z", "sha256:00")


@st.composite
def runs(draw: st.DrawFn) -> RunRecord:
    """Draw a run: moves, and the lists that these imply, or not quite."""
    keys = sorted(draw(st.sets(st.builds(TopicPartition, NAMES, NUMBERS), max_size=6)))
    ways = {key: draw(st.tuples(REPLICAS, REPLICAS).filter(lambda way: way[0] != way[1])) for key in keys}
    moves = tuple(Move(key, *ways[key], draw(NUMBERS), Reason.BALANCE) for key in keys)
    ours = draw(st.frozensets(RATES | st.just("*"), max_size=3))
    rate = draw(st.none() | st.integers(1, 10**9))
    implied = wanted_lists(ReassignStage(1, moves, rate or 1))
    lists = {key: Entry(draw(BEFORE), draw(st.just(items) | ITEMS)) for key, items in implied.items()}
    lists |= draw(st.dictionaries(st.tuples(NAMES, st.sampled_from(TOPIC_THROTTLES)), st.builds(Entry, BEFORE, ITEMS)))
    return RunRecord(
        plan_id=draw(NAMES),
        cluster_name=draw(NAMES),
        by=BY,
        stage=draw(NUMBERS),
        stages=draw(NUMBERS),
        is_over=draw(st.booleans()),
        rate=rate,
        ours=ours,
        throttles=ThrottleRecord(
            draw(st.dictionaries(st.tuples(NUMBERS, st.sampled_from(BROKER_LEASES)), st.none() | RATES)), lists
        ),
        moves=moves,
        leaders={key: draw(st.none() | NUMBERS) for key in keys if draw(st.booleans())},
        topic_ids={key.topic: f"id-{key.topic}" for key in keys if draw(st.booleans())},
    )


@pytest.mark.long
@drawn(runs(), part=60, deep=1500)
def test_a_record_that_is_written_is_read_as_it_was(run: RunRecord) -> None:
    assert RunRecord.read(run.written()) == run


@pytest.mark.long
@drawn(runs(), part=20, deep=300)
def test_one_that_did_not_fit_tells_all_but_moves_and_the_items_of_lists(run: RunRecord) -> None:
    read = RunRecord.read(replace(run, is_whole=False).written())
    assert read is not None
    lists = {key: Entry(entry.before) for key, entry in run.throttles.lists.items()}
    assert read == replace(
        run, is_whole=False, moves=(), leaders={}, topic_ids={}, throttles=ThrottleRecord(run.throttles.rates, lists)
    )
    assert len(replace(run, is_whole=False).written()) <= len(run.written()) + len("false")


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@pytest.mark.long
@drawn(runs(), st.data(), part=80, deep=3000)
def test_a_text_that_is_no_record_raises_nothing(run: RunRecord, data: st.DataObject) -> None:
    text = run.written()
    fields = json.loads(text)
    name = data.draw(st.sampled_from(sorted(fields)))
    fields[name] = data.draw(JUNK)
    RunRecord.read(json.dumps(fields))
    del fields[name]
    assert RunRecord.read(json.dumps(fields)) is None
    assert RunRecord.read(text[: data.draw(st.integers(0, len(text) - 1))]) is None
    assert RunRecord.read(data.draw(st.text())) is None
    assert RunRecord.read(json.dumps(data.draw(JUNK))) is None


def test_a_record_of_a_later_version_is_none() -> None:
    fields = json.loads(RunRecord("1", "live", BY).written())
    assert RunRecord.read(json.dumps(fields)) is not None
    assert RunRecord.read(json.dumps({**fields, "version": 2})) is None


def test_what_is_no_record_here_keeps_no_verb_from_its_work_and_stays() -> None:
    locks = MemoryLocks()
    locks.kept = json.dumps({"version": 2})
    admin = SimulatedAdmin(cluster(), locks=locks)
    ended = run_plan(whole_plan(cluster()), admin, MemoryJournal())
    assert ended.state is RunState.DONE
    assert [one for one in ended.messages if "none that can be read here" in one and "(KR460)" in one]
    assert cancel_run(whole_plan(cluster()), admin, MemoryJournal()).state is RunState.DONE
    assert locks.kept == '{"version": 2}'
    assert throttles(admin.cluster) == throttles(cluster())


class Narrow(SimulatedAdmin):
    """A cluster that keeps no text of moves."""

    def _keep(self, text: str) -> Answer:
        is_short = not text or not json.loads(text)["moves"]
        return super()._keep(text) if is_short else Answer("OFFSET_METADATA_TOO_LARGE")


@pytest.mark.parametrize("form", [SimulatedAdmin, Narrow])
def test_a_run_whose_moves_did_not_fit_goes_back_as_far_as_the_cluster_tells(form: type[SimulatedAdmin]) -> None:
    before, locks = cluster(), MemoryLocks()
    admin = form(before, locks=locks)
    killed(admin, whole_plan(before), passing("reassign.sent"))
    locks.expire()
    in_flight = set(admin.reassignments())
    assert in_flight
    record = read_record(admin)
    assert record is not None
    assert record.is_whole is (form is SimulatedAdmin)
    assert {move.topic_partition for move in record.moves} >= in_flight
    cancel_run(record.plan(before.cluster_id), admin, MemoryJournal(), belief=Belief.TO_TAKE_OFF)
    assert admin.reassignments() == {}
    assert {key: value for key, value in throttles(admin.cluster).items() if key not in throttles(before)} == {}
    restore_throttles(record.plan(before.cluster_id), admin, MemoryJournal(), belief=Belief.ALL)
    assert admin.kept() == ""
    for key in in_flight:
        was, now = before.partition(key), admin.cluster.partition(key)
        assert was is not None
        assert now is not None
        assert set(now.replicas) == set(was.replicas)
        assert now.replicas == was.replicas or form is Narrow
    assert throttles(admin.cluster) == throttles(before)


def test_a_rate_like_its_own_that_an_operator_set_after_the_plan_was_made_stays() -> None:
    before = cluster()
    plan = whole_plan(before)
    (rate, *_) = sorted(our_rates(plan))
    admin, journal = SimulatedAdmin(before), MemoryJournal()
    for key in BROKER_THROTTLES:
        admin.alter_broker_configs(2, [ConfigChange(key, ConfigOperation.SET, rate)])
    set_before = throttles(admin.cluster)
    run_plan(plan, admin, journal)
    assert {key: value for key, value in throttles(admin.cluster).items() if key.startswith("broker")} == {
        key: value for key, value in set_before.items() if key.startswith("broker")
    }
