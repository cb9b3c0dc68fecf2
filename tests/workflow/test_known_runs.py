"""Leftover throttles are taken off run by run, so that what was there before the first of them comes back."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.plans.small_runs import admin_of, cluster, move, plan_of

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import Killed, planted
from reconciler.apply.journal import Journal, MemoryJournal
from reconciler.apply.leftovers import known_run
from reconciler.apply.observed import Observed
from reconciler.apply.run import run_plan
from reconciler.files.journal import RunJournal
from reconciler.files.plan_file import with_id
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import FOLLOWER_THROTTLED_RATE, LEADER_THROTTLED_RATE, Cluster
from reconciler.model.plan import Plan
from reconciler.model.problem import Refused
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.runs import (
    RunTraces,
    keep_plan,
    known_here,
    latest_plan,
    restore_leftovers,
    run_journal,
    take_off,
)


def observed_of(found: Cluster) -> Observed:
    configs = {topic.name: topic.configs for topic in found.topics.values()}
    return Observed(topics=found.topics, brokers=found.brokers, configs=configs)


def throttles(found: Cluster) -> object:
    brokers = {one.id: dict(one.configs) for one in found.brokers.values() if one.configs}
    topics = {
        name: {k: v for k, v in topic.configs.items() if "throttled" in k} for name, topic in found.topics.items()
    }
    return brokers, topics


def die_when_recorded(point: str) -> None:
    if point == "reassign.recorded":
        raise Killed


def crashed(plan: Plan, admin: SimulatedAdmin, journal: Journal) -> RunTraces:
    """Let a run of that plan die while it copies, and its moves end after it."""

    with planted(die_when_recorded), pytest.raises(Killed):
        run_plan(plan, admin, journal)
    assert isinstance(journal, RunJournal)
    return RunTraces(plan, RunJournal(journal.path, plan.id))


def two_crashes(admin: SimulatedAdmin, folder: Path) -> Sequence[RunTraces]:
    """Return two crashed runs, the latest first, which throttle the same brokers by other rates."""
    before = admin.cluster
    first = plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), 10_000_000)], before, id="00000001")
    earlier = crashed(first, admin, RunJournal(folder / "1.jsonl", first.id))
    admin.clock.sleep(1000)
    second = plan_of(
        [ReassignStage(1, (move("orders-1", "2,3,1", "2,4,1"),), 30_000_000)], admin.cluster, id="00000002"
    )
    latest = crashed(second, admin, RunJournal(folder / "2.jsonl", second.id))
    return latest, earlier


def test_what_the_latest_run_found_may_be_an_earlier_ones(tmp_path: Path) -> None:
    admin = admin_of(cluster())
    before = throttles(admin.cluster)
    runs = two_crashes(admin, tmp_path)
    admin.clock.sleep(1000)
    assert throttles(admin.cluster) != before
    take_off(runs, admin)
    assert throttles(admin.cluster) == before


def test_nothing_is_taken_off_while_moves_of_one_of_them_are_in_flight(tmp_path: Path) -> None:
    admin = admin_of(cluster())
    runs = two_crashes(admin, tmp_path)
    on, writes = throttles(admin.cluster), admin.writes
    with pytest.raises(Refused, match="moves of plan 00000002 are in flight: orders-1;") as refused:
        take_off(runs, admin)
    assert (refused.value.code, throttles(admin.cluster), admin.writes) == ("KR455", on, writes)


def test_what_is_known_of_a_run_is_what_taking_it_off_changes(tmp_path: Path) -> None:
    admin = admin_of(cluster())
    runs = two_crashes(admin, tmp_path)
    admin.clock.sleep(1000)
    for one in runs:
        before = keys(admin.cluster)
        known = one.known(observed_of(admin.cluster))
        take_off([one], admin)
        after = keys(admin.cluster)
        assert known.is_open
        assert known.throttles == {key: after.get(key) for key in before if after.get(key) != before[key]}


def test_a_rate_that_somebody_has_set_since_is_not_known_as_the_runs(tmp_path: Path) -> None:
    admin = admin_of(cluster())
    run, _ = two_crashes(admin, tmp_path)
    admin.alter_broker_configs(4, [ConfigChange(LEADER_THROTTLED_RATE, ConfigOperation.SET, "7")])
    known = run.known(observed_of(admin.cluster))
    assert (4, LEADER_THROTTLED_RATE) not in known.throttles
    assert (4, FOLLOWER_THROTTLED_RATE) in known.throttles


def keys(found: Cluster) -> dict[tuple[int | str, str], str]:
    return {
        **{(broker.id, key): value for broker in found.brokers.values() for key, value in broker.configs.items()},
        **{(topic.name, key): value for topic in found.topics.values() for key, value in topic.configs.items()},
    }


def test_a_leftover_throttle_of_another_cluster_is_told_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    admin = admin_of(cluster())
    inputs = Inputs()
    plan = with_id(plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), 10_000_000)], admin.cluster))
    keep_plan(inputs, plan)
    journal = run_journal(inputs, plan)
    assert isinstance(journal, RunJournal)
    run = crashed(plan, admin, journal)
    admin.clock.sleep(1000)
    (read,) = known_here(inputs, "small")
    assert read.plan.stages == plan.stages
    text = journal.path.read_text("utf-8")
    stopped = next(event for event in run.journal.events if event.step == "run")
    RunJournal(journal.path, plan.id).append(replace(stopped, outcome=type(stopped.outcome)("failed")))
    elsewhere = SimulatedAdmin(replace(admin.cluster, cluster_id="another"))
    following = replace(plan, id="00000002")
    (told,) = [line for line in restore_leftovers(inputs, elsewhere, following) if "another" in line]
    assert "the plan is for cluster simulated, but another answers" in told
    assert elsewhere.writes == 0
    assert restore_leftovers(inputs, admin, read.plan) == ()
    assert len(restore_leftovers(inputs, admin, following)) > 0
    assert restore_leftovers(inputs, admin, following) == ()
    assert journal.path.read_text("utf-8").startswith(text)
    assert throttles(admin.cluster) == throttles(cluster())


ONE = (ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), 10_000_000),)
OTHER = (ReassignStage(1, (move("orders-1", "2,3,1", "2,4,1"),), 30_000_000),)


def test_the_next_apply_takes_off_what_a_crashed_run_of_another_plan_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    admin, inputs = admin_of(cluster()), Inputs()
    left, following = with_id(plan_of(ONE, admin.cluster)), with_id(plan_of(OTHER, admin.cluster))
    keep_plan(inputs, left)
    crashed(left, admin, run_journal(inputs, left))
    writes = admin.writes
    (told,) = restore_leftovers(inputs, admin, following)
    assert f"moves of plan {left.id} are in flight: orders-0" in told
    assert restore_leftovers(inputs, admin, left) == ()
    assert admin.writes == writes
    admin.clock.sleep(1000)
    assert len(restore_leftovers(inputs, admin, following)) > 0
    assert throttles(admin.cluster) == throttles(cluster())


def test_runs_of_two_clusters_in_one_journal_know_nothing_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inputs, here, there = Inputs(journal="all.jsonl"), admin_of(cluster()), admin_of(cluster())
    crashing = with_id(plan_of(ONE, here.cluster))
    following = with_id(replace(plan_of(OTHER, there.cluster), cluster_name="other"))
    for plan in (crashing, following):
        keep_plan(inputs, plan)
    crashed(crashing, here, run_journal(inputs, crashing))
    run_plan(following, there, run_journal(inputs, following))
    assert throttles(there.cluster) == throttles(cluster())
    assert (latest_plan(inputs, "small"), latest_plan(inputs, "other")) == (crashing, following)
    (known,) = known_here(inputs, "small")
    assert (known.plan, known.throttles.is_empty) == (crashing, False)


@pytest.mark.parametrize("is_whole", [False, True])
def test_what_a_run_elsewhere_left_goes_though_the_journal_here_ended_well(tmp_path: Path, *, is_whole: bool) -> None:
    admin = admin_of(cluster())
    plan, path = plan_of(ONE, admin.cluster, id="00000001"), tmp_path / "j.jsonl"
    if is_whole:
        run_plan(plan, admin, RunJournal(path, plan.id))
        admin.reassign({TopicPartition("orders", 0): (1, 2, 3)})
        admin.clock.sleep(1000)
    else:
        crashed(plan, admin, RunJournal(path, plan.id))
        cancel_run(plan, admin, RunJournal(path, plan.id))
    assert throttles(admin.cluster) == throttles(cluster())
    with planted(die_when_recorded), pytest.raises(Killed):
        run_plan(plan, admin, MemoryJournal())
    assert throttles(admin.cluster) != throttles(cluster())
    if not is_whole:
        assert known_run(plan, RunJournal(path, plan.id).events, observed_of(admin.cluster)).throttles
    run_plan(plan, admin, RunJournal(path, plan.id))
    assert throttles(admin.cluster) == throttles(cluster())
