"""What both admins promise of the lock: one test class, run against real Kafka and against the simulated cluster.

A subclass gives a fixture `processes`: it makes admins of one cluster, each as another process would have it.
"""

import os
import random
import string
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from helpers.waiting import HANG, wait_for

from reconciler.admin.port import Admin, Lock
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.lock import LOCK_GROUP, Holder, LockHeld, LockLost, NotStopped

Processes = Callable[[], Admin]
DIGEST = f"sha256:0badcafe{56 * '0'}"
RATE = "follower.replication.throttled.rate"
LONG = "".join(random.Random(1).choices(string.ascii_letters, k=20_000))
"""A text that takes several pieces."""


def holder_that_refuses(admin: Admin) -> Holder:
    """Return whom a refusal names; fail where the lock is given."""
    with pytest.raises(LockHeld) as refused, admin.lock("second"):
        pass
    assert refused.value.holder is not None
    return refused.value.holder


def asker_of(lock: Lock) -> Holder:
    """Wait until somebody asks that holder to stop; return who does."""
    wait_for(lambda: lock.asked_by is not None, "somebody to ask it to stop")
    assert lock.asked_by is not None
    return lock.asked_by


class LockContract:
    """Subclass it with a fixture `processes`."""

    def test_the_second_is_refused_and_told_who_was_first(self, processes: Processes) -> None:
        first, second = processes(), processes()
        with first.lock("apply of plan 0badcafe", digest=DIGEST) as lock:
            found = holder_that_refuses(second)
            assert (found.purpose, found.pid, found.digest) == ("apply of plan 0badcafe", os.getpid(), DIGEST)
            assert found.since.endswith("Z")
            assert lock.is_held()
        with second.lock("cancel of plan 0badcafe"):
            assert holder_that_refuses(first).purpose == "cancel of plan 0badcafe"

    def test_the_refused_do_not_disturb_the_holder(self, processes: Processes) -> None:
        first, second = processes(), processes()
        with first.lock("first") as lock:
            for _ in range(3):
                holder_that_refuses(second)
                lock.check()
            first.alter_broker_configs(1, [ConfigChange(RATE, ConfigOperation.SET, "1000000")])
            first.alter_broker_configs(1, [ConfigChange(RATE, ConfigOperation.DELETE)])

    def test_it_is_free_after_an_error_and_may_be_given_back_twice(self, processes: Processes) -> None:
        first, second = processes(), processes()
        with pytest.raises(ZeroDivisionError), first.lock("first"):
            _ = 1 / 0
        lock = second.lock("second")
        lock.release()
        lock.release()
        assert not lock.is_held()
        first.lock("first again").release()

    def test_anybody_may_ask_who_holds_it(self, processes: Processes) -> None:
        first, second = processes(), processes()
        assert second.lock_holder() is None
        with first.lock("first"):
            found = second.lock_holder()
            assert found is not None
            assert (found.purpose, found.pid) == ("first", os.getpid())
        assert second.lock_holder() is None

    def test_it_is_none_of_the_groups(self, processes: Processes) -> None:
        first, second = processes(), processes()
        with first.lock("first"):
            assert LOCK_GROUP not in second.groups()
            assert second.groups([LOCK_GROUP]) == {}
            assert LOCK_GROUP not in [group.group_id for group in second.observe(has_groups=True).groups]

    def test_of_several_at_once_exactly_one_gets_it(
        self, processes: Processes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("reconciler.files.lock_file._READ_TRIES", 10_000)  # a holder may be slow to write its name
        admins = [processes() for _ in range(3)]
        together, all_ended = Barrier(len(admins)), Barrier(len(admins))

        def is_given(admin: Admin) -> bool:
            together.wait(HANG)
            try:
                lock = admin.lock("one of three")
            except LockHeld as error:
                all_ended.wait(HANG)
                return error.holder is None  # that it is not named counts as wrong
            all_ended.wait(HANG)
            lock.release()
            return True

        for _ in range(2):
            with ThreadPoolExecutor(len(admins)) as pool:
                assert sorted(pool.map(is_given, admins)) == [False, False, True]

    def test_a_holder_is_told_who_asks_it_to_stop_and_the_lock_passes_over(self, processes: Processes) -> None:
        first, second, third = processes(), processes(), processes()
        told: list[str] = []
        with ThreadPoolExecutor(1) as pool:
            with first.lock("apply of plan 1") as lock:
                asking = pool.submit(second.lock, "cancel of plan 1", waiting=told.append, stopping="apply of plan 1")
                by = asker_of(lock)
                assert (by.purpose, by.pid) == ("cancel of plan 1", os.getpid())
                lock.check()
                first.alter_broker_configs(1, [ConfigChange(RATE, ConfigOperation.SET, "1000000")])
                assert holder_that_refuses(third).purpose == "apply of plan 1"
                first.alter_broker_configs(1, [ConfigChange(RATE, ConfigOperation.DELETE)])
                assert not asking.done()
            with asking.result(HANG) as passed_over:
                passed_over.check()
                assert passed_over.asked_by is None
                assert holder_that_refuses(third).purpose == "cancel of plan 1"
        asked = [text for text in told if text.startswith("Asked apply of plan 1 (started by")]
        assert len(asked) == 1
        assert third.lock_holder() is None

    def test_the_second_of_two_that_want_the_same_waits_for_the_first(self, processes: Processes) -> None:
        """Both ask an apply to stop: one of them gets the lead, the other waits on, and is given it after that."""
        running, others = processes(), [processes(), processes()]
        told: list[str] = []

        def cancelled(admin: Admin) -> None:
            with admin.lock("cancel of plan 1", waiting=told.append, stopping="apply of plan 1") as lock:
                lock.check()
                assert lock.asked_by is None
                wait_for(lambda: len(told) >= 3 or is_last.is_set(), "the other one to wait for this one")
                is_last.set()

        is_last = Event()
        with ThreadPoolExecutor(2) as pool:
            with running.lock("apply of plan 1") as lock:
                both = [pool.submit(cancelled, admin) for admin in others]
                asker_of(lock)
                wait_for(lambda: len(told) >= 2, "both to ask")
            for one in both:
                one.result(HANG)
        assert sum(text.startswith("Asked apply of plan 1 (started by") for text in told) == 2
        assert sum(" is on already: waiting for its end" in text for text in told) == 1
        assert running.lock_holder() is None

    def test_who_is_not_meant_is_not_asked_to_stop(self, processes: Processes) -> None:
        first, second = processes(), processes()
        told: list[str] = []
        with first.lock("apply of plan 2") as lock:
            with pytest.raises(LockHeld, match="one run at a time") as refused:
                second.lock("cancel of plan 1", waiting=told.append, stopping="apply of plan 1")
            assert not isinstance(refused.value, NotStopped)
            lock.check()
            holder_that_refuses(second)
            lock.check()
            assert lock.asked_by is None
        assert told == []

    def test_a_holder_that_does_not_stop_keeps_the_lock_and_the_next_one_is_not_asked(
        self, processes: Processes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("admin.simulated_locks", "admin.client.lock"):
            monkeypatch.setattr(f"reconciler.{module}.STOP_SECONDS", 1)
        first, second = processes(), processes()
        with first.lock("apply of plan 1") as lock:
            with pytest.raises(NotStopped, match=r"^apply of plan 1 .*was asked to stop") as refused:
                second.lock("cancel of plan 1", stopping="apply of plan 1")
            assert refused.value.code == "KR453"
            assert asker_of(lock).purpose == "cancel of plan 1"
            lock.check()
        with second.lock("apply of plan 1") as lock:
            assert holder_that_refuses(first).purpose == "apply of plan 1"
            lock.check()
            assert lock.asked_by is None

    def test_what_a_holder_keeps_is_there_after_it_until_another_one_keeps_something_else(
        self, processes: Processes
    ) -> None:
        first, second = processes(), processes()
        assert first.kept() == ""
        with first.lock("apply of plan 1") as lock:
            assert lock.keep("short").is_ok
            assert second.kept() == "short"
            assert lock.keep(LONG).is_ok
            assert second.kept() == LONG
        assert second.kept() == LONG
        with second.lock("apply of plan 2") as lock:
            assert first.kept() == LONG
            assert lock.keep("short again").is_ok
            assert first.kept() == "short again"
            assert lock.keep("").is_ok
            assert first.kept() == ""
            assert lock.keep("").is_ok

    def test_who_does_not_hold_the_lock_keeps_nothing(self, processes: Processes) -> None:
        first, second = processes(), processes()
        with first.lock("first") as lock:
            assert lock.keep("of the first").is_ok
        with second.lock("second") as other:
            with pytest.raises(LockLost):
                lock.keep("of one that has gone")
            assert first.kept() == "of the first"
            assert other.keep("").is_ok

    def test_a_holder_is_told_which_rate_it_was_last_asked_for(self, processes: Processes) -> None:
        first, second = processes(), processes()
        assert second.ask_rate("apply of plan 1", 1_000_000) is None
        with first.lock("apply of plan 1") as lock:
            assert lock.rate_asked is None
            for rate in (2_000_000, 3_000_000):
                holder = second.ask_rate("apply of plan 1", rate)
                assert holder is not None
                assert holder.purpose == "apply of plan 1"
                wait_for(lambda r=rate: lock.rate_asked is not None and lock.rate_asked.rate == r, "the rate")  # type: ignore[misc]
            assert lock.rate_asked is not None
            assert (lock.rate_asked.of, lock.rate_asked.by.pid) == ("apply of plan 1", os.getpid())
            assert lock.asked_by is None
            lock.check()
            assert holder_that_refuses(second).purpose == "apply of plan 1"
        with second.lock("apply of plan 1") as lock:
            assert lock.rate_asked is None, "what was asked of one run is not asked of the next"

    def test_who_is_not_meant_is_not_asked_for_a_rate(self, processes: Processes) -> None:
        first, second = processes(), processes()
        with first.lock("apply of plan 2") as lock:
            holder = second.ask_rate("apply of plan 1", 1_000_000)
            assert holder is not None
            assert holder.purpose == "apply of plan 2"
            holder_that_refuses(second)
            assert lock.rate_asked is None
