"""Topics with a config that their Kafka release has removed: named before the first change, never blamed falsely."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from apply.small_world import At
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import RATE, move, plan_of

from reconciler.admin.port import Answer
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import paths_of
from reconciler.apply.run import run_plan
from reconciler.apply.topic_changes import ChangeState, standing
from reconciler.model.change import AlterConfigs, ConfigChange, ConfigOperation
from reconciler.model.cluster import LEADER_THROTTLED_REPLICAS, Cluster
from reconciler.model.config_value import UNREADABLE
from reconciler.model.problem import WouldBeRefused
from reconciler.model.run import RunFailed, RunState
from reconciler.model.stage import ReassignStage, TopicsStage

KEY = "message.format.version"
LINES = ("clean-0: 1,2 size 1000", "dirty-0: 1,2 size 1000")
CLEAN = small_cluster(*LINES, kafka_version="4.1")
DIRTY = small_cluster(*LINES, kafka_version="4.1", configs={"dirty": {KEY: UNREADABLE}})
MOVES = ReassignStage(1, (move("clean-0", "1,2", "3,2"), move("dirty-0", "1,2", "3,2")), RATE)
NULL = AlterConfigs("dirty", {}, (KEY,), {KEY: UNREADABLE})
REFUSED = f"INVALID_CONFIG (Unknown topic config name: {KEY})"


def throttles(cluster: Cluster) -> dict[str, Mapping[str, str]]:
    """Return every throttle that is set, by its owner."""
    owners = {**{str(id_): one.configs for id_, one in cluster.brokers.items()}}
    owners |= {name: topic.configs for name, topic in cluster.topics.items()}
    found = {owner: {key: text for key, text in one.items() if "throttled" in key} for owner, one in owners.items()}
    return {owner: one for owner, one in found.items() if one}


@pytest.mark.parametrize("is_dry_run", [True, False])
def test_a_plan_that_would_throttle_such_a_topic_is_refused_before_its_first_change(*, is_dry_run: bool) -> None:
    admin = SimulatedAdmin(DIRTY)
    with pytest.raises(WouldBeRefused) as refused:
        run_plan(plan_of([MOVES], DIRTY), admin, MemoryJournal(), is_dry_run=is_dry_run)
    text = str(refused.value)
    assert f"topic dirty: Kafka would refuse its throttle lists: {REFUSED}; this release has removed the key" in text
    assert "clean" not in text
    assert admin.cluster == DIRTY


def test_moves_without_a_throttle_need_no_list() -> None:
    plan = plan_of([replace(MOVES, throttle_bytes_per_second=None)], DIRTY)
    assert run_plan(plan, SimulatedAdmin(DIRTY), MemoryJournal()).state is RunState.DONE


def test_null_deletes_the_key_before_the_moves() -> None:
    admin = SimulatedAdmin(DIRTY)
    plan = plan_of([TopicsStage(1, (0,)), replace(MOVES, number=2)], DIRTY, topic_changes=(NULL,))
    assert run_plan(plan, admin, MemoryJournal(), is_dry_run=True).state is RunState.CHECKED
    result = run_plan(plan, admin, MemoryJournal())
    assert (result.state, result.leftover_throttles) == (RunState.DONE, ())
    assert admin.cluster.topics["dirty"].configs == {}
    assert run_plan(plan, admin, MemoryJournal()).writes == 0


@pytest.mark.parametrize(
    ("before", "now", "state"),
    [
        (UNREADABLE, UNREADABLE, ChangeState.TO_DO),
        ("3.0", UNREADABLE, ChangeState.TO_DO),  # planned on a broker of 3.9 that has been upgraded since
        (UNREADABLE, "3.0", ChangeState.TO_DO),
        (UNREADABLE, None, ChangeState.DONE),
        ("3.0", "2.8", ChangeState.STALE),
    ],
)
def test_the_key_is_to_be_deleted_while_any_broker_shows_it(before: str, now: str | None, state: ChangeState) -> None:
    observed = Observed(topics=DIRTY.topics, configs={"dirty": {KEY: now} if now is not None else {}})
    change = replace(NULL, before={KEY: before})
    assert standing(change, observed, paths_of(plan_of([], DIRTY))).state is state


class RefusingLater(SimulatedAdmin):
    """The topic is upgraded once a run has asked about it: Kafka then refuses each change of its configs."""

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        """Return the answers, as each topic by itself gets one."""
        refused = {} if is_validated_only else {"dirty": Answer("INVALID_CONFIG", f"Unknown topic config name: {KEY}")}
        taken = {name: asked for name, asked in changes.items() if name not in refused}
        answers = super().alter_topic_configs(taken, is_validated_only=is_validated_only)
        return {**answers, **{name: answer for name, answer in refused.items() if name in changes}}


def test_a_refusal_names_that_topic_alone_and_lists_that_never_went_on_are_no_debt() -> None:
    admin = RefusingLater(CLEAN)
    with pytest.raises(RunFailed) as failed:
        run_plan(plan_of([MOVES], CLEAN), admin, MemoryJournal())
    assert failed.value.code == "KR704"
    text = str(failed.value)
    assert (f"dirty: {REFUSED}" in text, "clean" in text.partition("stages done")[0], "KR720" in text) == (
        True,
        False,
        False,
    )
    assert failed.value.result is not None
    assert failed.value.result.leftover_throttles == ()
    assert (throttles(admin.cluster), admin.kept()) == ({}, "")


def test_a_list_that_is_there_and_cannot_be_taken_off_is_a_debt() -> None:
    admin = SimulatedAdmin(CLEAN)

    def upgrade() -> None:
        topic = admin.cluster.topics["dirty"]
        assert LEADER_THROTTLED_REPLICAS in topic.configs
        dirty = replace(topic, configs={**topic.configs, KEY: UNREADABLE})
        admin.cluster = replace(admin.cluster, topics={**admin.cluster.topics, "dirty": dirty})

    admin.fault = At("reassign", 1, upgrade)
    result = run_plan(plan_of([MOVES], CLEAN), admin, MemoryJournal())
    (debt,) = result.leftover_throttles
    assert (debt.code, debt.message.startswith("topic dirty keeps what this run set: ")) == ("KR720", True)
    assert {*throttles(admin.cluster)} == {"dirty"}
    admin.fault = None
    admin.alter_topic_configs({"dirty": [ConfigChange(KEY, ConfigOperation.DELETE)]})
    assert run_plan(plan_of([MOVES], CLEAN), admin, MemoryJournal()).leftover_throttles == ()
    assert throttles(admin.cluster) == {}
