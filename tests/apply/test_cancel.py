"""A cancel takes back what is in flight, in its own order, and nothing else."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.deaths import boundaries_of, dies, killed, nth, passing
from helpers.plans.end_state import assignments, in_flight, shortcomings, throttles
from helpers.plans.small_runs import RATE, SIZE, admin_of, cluster, election, move, plan_of

from reconciler.admin.port import Answer
from reconciler.admin.simulated import Moment, SimulatedAdmin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.crash import planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.partition_path import paths_of
from reconciler.apply.run import run_plan
from reconciler.apply.run_record import read_record
from reconciler.apply.session import TRIES, Belief, Session
from reconciler.apply.standings import moves_under_way
from reconciler.apply.withdraw import Withdrawal, told_left, withdraw
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, MissingRight, StalePlan
from reconciler.model.run import RunEvent, RunFailed, RunState, StoppedEarly
from reconciler.model.stage import ElectStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition


def plan_for(before: Cluster) -> Plan:
    """Return a plan whose first stage ends and whose third is stopped in flight."""
    return plan_of(
        [
            ReassignStage(1, (move("orders-1", "2,3,1", "3,2,1"),), RATE),
            ElectStage(2, (election("orders-1", 3),)),
            ReassignStage(3, (move("orders-0", "1,2,3", "4,5,1"), move("payments-0", "2,4", "2,4,6")), RATE),
        ],
        before,
    )


def killed_in_flight(before: Cluster, plan: Plan, stage_polls: int = 3) -> tuple[SimulatedAdmin, MemoryJournal]:
    """Return a cluster on which a run was killed while its last stage was being copied."""
    admin, is_due = admin_of(before), passing("poll", stage_polls)
    return admin, killed(admin, plan, lambda name: in_flight(admin.cluster) and is_due(name))


def test_what_is_in_flight_goes_back_in_order_and_what_has_ended_stays_until_the_run_goes_on(before: Cluster) -> None:
    plan = plan_for(before)
    admin, journal = killed_in_flight(before, plan)
    result = cancel_run(plan, admin, journal, should_stop=lambda: "SIGTERM came")  # which keeps nothing from going back
    assert (result.state, result.stages_done, result.messages) == (RunState.CANCELLED, 2, ())
    assert str(result.tally) == "3 moves: 1 done, 2 taken back (orders-0, payments-0)"
    assert in_flight(admin.cluster) == []
    assert assignments(admin.cluster) == {**assignments(before), "orders-1": (3, 2, 1)}
    assert throttles(admin.cluster) == throttles(before)
    again = cancel_run(plan, admin, MemoryJournal())
    told = (
        f"Nothing to cancel: nothing of plan {plan.id} is in flight; 3 moves: 1 done, 2 to do (orders-0, payments-0)."
    )
    assert (again.stages_done, again.messages, again.is_idle, again.writes) == (2, (told,), True, 0)
    run_plan(plan, admin, MemoryJournal())
    assert shortcomings(plan, before, admin.cluster) == []


def test_the_record_of_a_run_that_died_before_its_throttles_is_erased(admin: SimulatedAdmin) -> None:
    plan = plan_for(cluster())
    killed(admin, plan, lambda name: name == "intent.before")
    assert read_record(admin) is not None
    assert cancel_run(plan, admin, MemoryJournal()).is_idle
    assert read_record(admin) is None


def test_the_leader_that_was_leads_again() -> None:
    before = small_cluster(f"a-0: 3,1,2 size {SIZE}")
    plan = plan_of([ReassignStage(1, (move("a-0", "3,1,2", "1,4,5"),), RATE)], before)
    admin, journal = killed_in_flight(before, plan)
    admin.kill_broker(3)
    admin.return_broker(3)
    admin.clock.sleep(1)
    assert admin.cluster.topics["a"].partitions[0].leader != 3
    cancel_run(plan, admin, journal)
    assert admin.cluster.topics["a"].partitions[0].leader == 3
    assert assignments(admin.cluster) == assignments(before)


def test_a_partition_whose_originals_are_not_alive_is_left_and_named(before: Cluster) -> None:
    plan = plan_for(before)
    admin, journal = killed_in_flight(before, plan)
    admin.kill_broker(3)
    with pytest.raises(RunFailed) as error:
        cancel_run(plan, admin, journal)
    assert error.value.code == "KR714"
    assert "orders-0: it cannot go back to [1, 2, 3]: broker 3 is not alive" in str(error.value)
    assert in_flight(admin.cluster) == ["orders-0"]
    result = error.value.result
    assert result is not None
    assert result.left == (TopicPartition("orders", 0),)


def test_a_foreign_reassignment_is_left_alone_and_named(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = plan_for(before)
    admin.reassign({TopicPartition("orders", 0): (1, 2, 6)})
    result = cancel_run(plan, admin, MemoryJournal())
    assert "orders-0 is being reassigned to [1, 2, 6] by somebody else: left alone" in result.messages
    assert in_flight(admin.cluster) == ["orders-0"]


def test_a_cancel_on_another_cluster_is_refused(before: Cluster) -> None:
    plan = plan_of([], before, cluster_id="another")
    with pytest.raises(StalePlan):
        cancel_run(plan, admin_of(before), MemoryJournal())


def test_a_cancel_killed_at_each_boundary_is_finished_by_the_next(before: Cluster) -> None:
    plan = plan_for(before)
    passed = boundaries_of(partial(cancel_run, plan, *killed_in_flight(before, plan)))
    for at, name in enumerate(passed, start=1):
        admin, journal = killed_in_flight(before, plan)
        dies(partial(cancel_run, plan, admin, journal), nth(at))
        cancel_run(plan, admin, MemoryJournal())
        assert in_flight(admin.cluster) == []
        assert assignments(admin.cluster) == {**assignments(before), "orders-1": (3, 2, 1)}, name
        assert throttles(admin.cluster) == throttles(before), name


def test_a_leftover_throttle_is_taken_off_once_its_broker_is_back_and_nothing_is_in_flight(before: Cluster) -> None:
    plan = plan_for(before)
    admin, journal = killed_in_flight(before, plan)
    assert restore_throttles(plan, admin, journal).writes == 0
    cancelled = [TopicPartition("orders", 0), TopicPartition("payments", 0)]
    admin.reassign(dict.fromkeys(cancelled))
    admin.reassign({cancelled[0]: (1, 2, 3)})
    admin.kill_broker(5)
    first = restore_throttles(plan, admin, MemoryJournal())
    assert [one.code for one in first.leftover_throttles] == ["KR720"], (
        "the cluster's record knows of broker 5, no journal does"
    )
    admin.return_broker(5)
    restore_throttles(plan, admin, MemoryJournal(), belief=Belief.ALL)
    assert throttles(admin.cluster) == throttles(before)


def test_a_move_that_somebody_replaced_and_then_cancelled_goes_back_to_its_order_and_factor() -> None:
    before = small_cluster(f"a-0: 3,1,2 size {SIZE}", f"b-0: 1,2,3 size {SIZE}")
    plan = plan_of([ReassignStage(1, (move("a-0", "3,1,2", "1,4,5"), move("b-0", "1,2,3", "1,2,4")), RATE)], before)
    admin, journal = killed_in_flight(before, plan)
    key = TopicPartition("a", 0)
    admin.reassign({key: (1, 4, 6)})
    admin.reassign({key: None})
    assert admin.cluster.topics["a"].partitions[0].replicas == (1, 4, 2, 3, 5)
    result = cancel_run(plan, admin, journal)
    assert str(result.tally) == "2 moves: 2 taken back (a-0, b-0)"
    assert assignments(admin.cluster) == assignments(before)
    assert in_flight(admin.cluster) == []
    assert admin.cluster.topics["a"].partitions[0].leader == 3
    assert throttles(admin.cluster) == throttles(before)


def test_what_somebody_else_added_is_not_taken_for_ours() -> None:
    before = small_cluster(f"a-0: 3,1,2 size {SIZE}")
    plan = plan_of([ReassignStage(1, (move("a-0", "3,1,2", "1,4,5"),), RATE)], before)
    admin = admin_of(before)
    admin.reassign({TopicPartition("a", 0): (3, 1, 2, 6)})
    admin.clock.sleep(600)
    assert cancel_run(plan, admin, MemoryJournal()).writes == 0
    assert assignments(admin.cluster) == {"a-0": (3, 1, 2, 6)}


def test_a_cancel_takes_back_a_factor_up_and_one_down() -> None:
    before = small_cluster(f"a-0: 2,1 size {SIZE}", f"b-0: 3,2,1 size {SIZE}")
    stage = ReassignStage(1, (move("a-0", "2,1", "1,2,5"), move("b-0", "3,2,1", "4,1")), RATE)
    plan = plan_of([stage], before)
    admin, journal = killed_in_flight(before, plan)
    assert in_flight(admin.cluster) == ["a-0", "b-0"]
    cancel_run(plan, admin, journal)
    assert assignments(admin.cluster) == assignments(before)
    assert [topic.partitions[0].leader for topic in admin.cluster.topics.values()] == [2, 3]


@pytest.mark.parametrize("count", [1, 2])
def test_a_request_without_an_answer_is_looked_after_before_it_is_sent_again(
    before: Cluster, admin: SimulatedAdmin, count: int
) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-2", "3,1,2", "1,4,5"),))], before)
    admin.reassign({TopicPartition("orders", 2): (1, 4, 5)})
    admin.clock.sleep(0.1)
    asked: list[int] = []

    def lost(name: str, moment: Moment) -> Answer | None:
        if name == "reassign" and moment is Moment.AFTER:
            asked.append(1)
            if len(asked) == count:
                raise ClusterUnavailable("no answer")
        return None

    admin.fault = lost
    assert cancel_run(plan, admin, MemoryJournal()).state is RunState.CANCELLED
    assert len(asked) == 2, "one cancel and one list: neither is sent twice"
    assert assignments(admin.cluster)["orders-2"] == (3, 1, 2)


def test_what_somebody_begins_while_an_answer_is_lost_is_not_submitted_over(
    before: Cluster, admin: SimulatedAdmin
) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-2", "3,1,2", "1,4,5"),))], before)
    key = TopicPartition("orders", 2)
    admin.reassign({key: (1, 4, 5)})
    asked: list[int] = []

    def stolen(name: str, moment: Moment) -> Answer | None:
        if name == "reassign" and moment is Moment.BEFORE:
            asked.append(1)
            if len(asked) == 2:
                admin.fault = None
                admin.reassign({key: (1, 2, 6)})
                raise ClusterUnavailable("not sent")
        return None

    admin.fault = stolen
    with pytest.raises(RunFailed):
        cancel_run(plan, admin, MemoryJournal())
    assert set(assignments(admin.cluster)["orders-2"]) >= {1, 2, 6}


def test_a_move_that_ends_while_it_is_to_be_taken_back_stays(before: Cluster, admin: SimulatedAdmin) -> None:
    plan = plan_of([ReassignStage(1, (move("payments-0", "2,4", "2,4,6"),))], before)
    admin.reassign({TopicPartition("payments", 0): (2, 4, 6)})
    admin.clock.sleep(0.1)
    session = Session(admin, MemoryJournal(), paths_of(plan))
    under_way = moves_under_way(session.paths, session.look(["payments"]))
    admin.clock.sleep(1000)
    outcome = withdraw(session, under_way)
    assert (outcome.finished, outcome.back) == ([TopicPartition("payments", 0)], [])
    assert assignments(admin.cluster)["payments-0"] == (2, 4, 6)


class Hidden(SimulatedAdmin):
    """Lets nobody see `payments` once it was asked for so many reassignments."""

    after, asked = 99, 0

    def topics(self, names: Collection[str] | None) -> Mapping[str, Topic]:
        """Return the topics that may be seen."""
        if self.asked >= self.after and "payments" in (names or ()):
            raise MissingRight("Describe on payments is missing", names=["payments"])
        return super().topics(names)


def withdrawn(after: int, refusal: Exception | None = None) -> tuple[Hidden, MemoryJournal, Withdrawal]:
    """Return what a withdrawal of two moves to a dead broker leaves, where `payments` is hidden from a request on."""
    moves = [move("orders-0", "1,2,3", "3,2,6"), move("payments-0", "2,4", "4,6")]
    admin, journal = Hidden(cluster()), MemoryJournal()
    session = Session(admin, journal, paths_of(plan_of([ReassignStage(1, tuple(moves))], cluster())))
    admin.kill_broker(6)
    admin.reassign({one.topic_partition: one.to_replicas for one in moves})
    admin.clock.sleep(0.1)
    admin.after = after

    def asked(name: str, moment: Moment) -> Answer | None:
        if name == "reassign" and moment is Moment.BEFORE:
            admin.asked += 1
            if refusal is not None:
                raise refusal
        return None

    admin.fault = asked
    return admin, journal, withdraw(session, moves)


ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 0)


@pytest.mark.parametrize(
    ("after", "back", "left"),
    [
        pytest.param(0, [ORDERS], {PAYMENTS: "it cannot be looked at: Describe on payments is missing"}, id="at once"),
        # What has been cancelled is believed: the controller has said so.
        pytest.param(1, [ORDERS, PAYMENTS], {}, id="once it is cancelled"),
        pytest.param(2, [ORDERS, PAYMENTS], {}, id="once its order is submitted"),
    ],
)
def test_a_move_that_may_not_be_seen_goes_back_only_once_the_controller_took_it(
    after: int, back: Sequence[TopicPartition], left: Mapping[TopicPartition, str]
) -> None:
    admin, journal, outcome = withdrawn(after)
    assert (outcome.back, outcome.left) == (back, left)
    assert in_flight(admin.cluster) == [str(key) for key in left]
    assert [event.step for event in journal.appended] == ["withdraw", "withdraw"]


def test_moves_that_may_not_be_cancelled_are_left_with_the_reason() -> None:
    _, _, outcome = withdrawn(99, MissingRight("Alter on the cluster is missing"))
    assert outcome.left == dict.fromkeys([ORDERS, PAYMENTS], "it was not cancelled: Alter on the cluster is missing")
    assert outcome.unanswered == ""


def test_a_cluster_that_has_not_answered_often_enough_is_not_asked_for_the_next_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.apply.withdraw.PARTITIONS_A_REQUEST", 1)
    admin, _, outcome = withdrawn(99, ClusterUnavailable("nobody answers"))
    assert admin.asked == TRIES
    assert outcome.left == dict.fromkeys([ORDERS, PAYMENTS], "it was not cancelled: nobody answers")
    assert outcome.unanswered == "nobody answers"


def test_a_move_that_was_left_goes_on_unless_it_was_cancelled() -> None:
    assert told_left("it cannot be looked at") == "it goes on, and without a throttle: it cannot be looked at"
    assert told_left("it was cancelled, but its order was not restored: no").startswith("it was cancelled, but")


class OldTopics(SimulatedAdmin):
    """Shows topics as in `past`, until a time; `submitted` are the lists that were asked for."""

    def __init__(self, cluster: Cluster, past: Cluster) -> None:
        super().__init__(cluster)
        self.past, self.until = past, timedelta.max
        self.submitted: list[Sequence[int]] = []
        self.started_at = self.clock.now()

    def topics(self, names: Collection[str] | None) -> Mapping[str, Topic]:
        """Return the topics as they are shown."""
        is_past = self.clock.now() - self.started_at < self.until
        return {name: self.past.topics[name] for name in names or ()} if is_past else super().topics(names)

    def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        is_replication_factor_change_allowed: bool = True,
    ) -> Mapping[TopicPartition, Answer]:
        """Note what is asked for, and reassign."""
        self.submitted += [target for target in targets.values() if target is not None]
        return super().reassign(targets, is_replication_factor_change_allowed=is_replication_factor_change_allowed)


@pytest.mark.parametrize("shown", ["payments-0: 2,4", "payments-0: 4,6,2 isr 2,4 leader 2"], ids=["before", "union"])
@pytest.mark.parametrize("ends", ["between the looks", "before the cancel", "before the cancel that gets lost"])
def test_a_move_that_has_ended_stays_however_old_the_metadata_is(ends: str, shown: str) -> None:
    plan = plan_of([ReassignStage(1, (move("payments-0", "2,4", "4,6"),))], cluster())
    key = TopicPartition("payments", 0)
    admin = OldTopics(cluster(), small_cluster(shown, brokers=range(1, 7)))
    admin.reassign({key: (4, 6)})
    session = Session(admin, MemoryJournal(), paths_of(plan))
    under_way = moves_under_way(session.paths, session.look(["payments"]))

    def end(name: str, moment: Moment) -> Answer | None:
        if moment is Moment.BEFORE and name == ("reassignments" if ends == "between the looks" else "reassign"):
            admin.fault = None
            admin.clock.sleep(1000)
            admin.until = timedelta(seconds=1110)
            if ends == "before the cancel that gets lost":
                raise ClusterUnavailable("not sent")
        return None

    admin.fault = end
    outcome = withdraw(session, under_way)
    assert (outcome.finished, outcome.back, outcome.left) == ([key], [], {})
    assert admin.submitted == [(4, 6)], "nothing is copied back"
    assert assignments(admin.cluster)["payments-0"] == (4, 6)
    assert session.now() - admin.started_at < timedelta(seconds=1115), "it waits no longer than it must"


class NotWritable(MemoryJournal):
    """A journal on a disk that is full from its n-th event on."""

    def __init__(self, events: Sequence[RunEvent], room: int) -> None:
        super().__init__(events)
        self.room = room
        self.tries = 0

    def append(self, event: RunEvent, /) -> None:
        """Keep one more event while there is room."""
        self.tries += 1
        if len(self.appended) == self.room:
            raise RunFailed("j.jsonl: no space", code="KR721")
        super().append(event)


@pytest.mark.parametrize("room", [0, 1, 2, 3])
def test_a_journal_that_cannot_be_written_is_told_of_and_stops_no_cancel(before: Cluster, room: int) -> None:
    plan = plan_for(before)
    admin, journal = killed_in_flight(before, plan)
    full, told = NotWritable(journal.events, room), list[str]()
    result = cancel_run(plan, admin, full, notify=told.append)
    assert (result.state, full.tries) == (RunState.CANCELLED, room + 1)
    assert [one for one in told if "j.jsonl: no space" in one] == told
    assert len(told) == 1
    assert set(told) <= set(result.messages)
    assert in_flight(admin.cluster) == []
    assert assignments(admin.cluster) == {**assignments(before), "orders-1": (3, 2, 1)}
    assert throttles(admin.cluster) == throttles(before)


@pytest.mark.parametrize(
    ("point", "moves"),
    [("withdraw.before", True), ("withdraw.sent", True), ("unthrottle.topic", False), ("unthrottle.broker", False)],
)
def test_a_second_signal_ends_a_cancel_and_names_what_is_left(before: Cluster, point: str, *, moves: bool) -> None:
    plan = plan_for(before)
    admin, journal = killed_in_flight(before, plan)

    def second(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt

    told: list[str] = []
    with planted(second), pytest.raises(StoppedEarly) as error:
        cancel_run(plan, admin, journal, notify=told.append, should_stop=lambda: "SIGTERM came")
    assert (error.value.code, told) == ("KR715", [str(error.value)])
    result = error.value.result
    assert result is not None
    assert ("or out of their order: orders-0, payments-0; run cancel again" in str(error.value)) is moves
    assert result.left == ((TopicPartition("orders", 0), TopicPartition("payments", 0)) if moves else ())
    still_on = throttles(admin.cluster).items() - throttles(before).items()
    assert still_on or point == "unthrottle.topic"  # lists come off last
    for where, _ in still_on:
        kind, name, key = where.split(" ")
        assert any(f"{kind} {name} keeps" in str(one) and key in str(one) for one in result.leftover_throttles), where
    cancel_run(plan, admin, MemoryJournal())
    assert assignments(admin.cluster) == {**assignments(before), "orders-1": (3, 2, 1)}
    assert throttles(admin.cluster) == throttles(before)


def test_without_a_signal_before_it_an_interrupt_of_a_cancel_is_not_explained_away(before: Cluster) -> None:
    plan = plan_for(before)
    admin, journal = killed_in_flight(before, plan)

    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    with planted(interrupted), pytest.raises(KeyboardInterrupt):
        cancel_run(plan, admin, journal)


def test_the_record_of_a_cancel_that_died_keeps_the_order_from_an_apply_of_another_plan(before: Cluster) -> None:
    plan = plan_of([ReassignStage(1, (move("orders-1", "2,3,1", "1,4,2"),), RATE)], before, id="00000001")
    admin, _ = killed_in_flight(before, plan)
    dies(partial(cancel_run, plan, admin, MemoryJournal()), passing("withdraw.sent"))
    assert in_flight(admin.cluster) == []
    assert admin.cluster.topics["orders"].partitions[1].replicas == (1, 2, 3), "Kafka's own cancel loses the order"
    another = plan_of([ReassignStage(1, (move("orders-2", "3,1,2", "3,2,1"),), RATE)], admin.cluster, id="00000002")
    kept = admin.kept()
    left = throttles(admin.cluster)
    assert run_plan(another, admin, MemoryJournal()).state is RunState.DONE
    assert (admin.kept(), throttles(admin.cluster)) == (kept, left), "another plan's run touches nothing by a record"
    cancel_run(plan, admin, MemoryJournal())
    assert admin.cluster.topics["orders"].partitions[1].replicas == (2, 3, 1)
    assert throttles(admin.cluster) == throttles(before)
