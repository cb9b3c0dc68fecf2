"""While a run waits it says for what: on real clusters alone, where time passes."""

import re
import threading
from collections.abc import Iterator

import pytest
from helpers.waiting import wait_for

from reconciler.admin.waits import WAITS, waiting_for
from reconciler.command import progress as module
from reconciler.command import terminal
from reconciler.command.progress import QUIET_SECONDS, heartbeat, running, waiting_line, working
from reconciler.command.terminal import tell
from reconciler.model.run import RunProgress


@pytest.fixture(autouse=True)
def real(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(WAITS, "is_real", True)
    monkeypatch.setattr(WAITS, "held_back", 0.0)
    with_none = WAITS.told()
    assert with_none == {}, "an earlier test left a wait behind"
    yield
    assert WAITS.told() == {}


class _Turns(threading.Event):
    """So many looks, at once."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.left = count

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        self.left -= 1
        return self.left < 0


def test_less_than_the_fifteen_seconds_that_are_promised() -> None:
    assert QUIET_SECONDS + module.LOOK_SECONDS < 15


def test_who_waits_says_for_what_the_longest_first_and_nobody_waits_twice_for_the_same() -> None:
    assert waiting_line() == ""
    with waiting_for("stage 1/2 of prod-eu"), waiting_for("the cluster\nto answer"), waiting_for("the cluster"):
        assert waiting_line() == "Waiting 0 s for stage 1/2 of prod-eu; 0 s for the cluster."
    with waiting_for() as wait:
        assert waiting_line() == ""
        wait.say("a broker")
        assert waiting_line() == "Waiting 0 s for a broker."


def test_quotas_are_counted_in_the_same_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WAITS, "held_back", 75.0)
    with waiting_for("an answer of broker 3"):
        line = waiting_line()
    assert line == "Waiting 0 s for an answer of broker 3 (quotas of the cluster made requests wait 75 s so far)."


def test_a_line_comes_only_after_a_silence_and_is_none_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silence = iter([0.0, QUIET_SECONDS, 0.0, QUIET_SECONDS])
    monkeypatch.setattr(module, "silent_seconds", lambda: next(silence))
    with waiting_for("a broker"):
        module._beat(_Turns(3))
    assert capsys.readouterr().err == "Waiting 0 s for a broker.\n"
    with working():
        module._beat(_Turns(1))
    assert capsys.readouterr().err == "Working.\n"
    with working(), waiting_for("a broker"):
        assert waiting_line() == "Waiting 0 s for a broker."
    monkeypatch.setattr(terminal._LAST, "at", 0.0)
    tell("something")
    assert terminal._LAST.at > 0


def test_no_line_is_written_into_a_question_that_waits_for_its_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answered(_question: str, **_options: object) -> bool:
        monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
        module._beat(_Turns(3))
        return True

    monkeypatch.setattr("click.confirm", answered)
    with working(), waiting_for("a broker"):
        assert terminal.is_confirmed("Run it?")
        assert capsys.readouterr().err == ""
        module._beat(_Turns(1))
    assert capsys.readouterr().err == "Waiting 0 s for a broker.\n"


def test_a_simulated_cluster_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(WAITS, "is_real", False)
    monkeypatch.setattr(module, "silent_seconds", lambda: 1e9)
    with waiting_for("a broker"):
        module._beat(_Turns(3))
    assert capsys.readouterr().err == ""


def test_the_thread_tells_while_the_block_lasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.001)
    shown: list[str] = []

    def told() -> str:
        shown.append(capsys.readouterr().err)
        return "".join(shown)

    with heartbeat(), waiting_for("a broker"):
        # The first beat may come before anything is waited for.
        wait_for(lambda: bool(re.search(r"^Waiting \d+ s for a broker\.$", told(), re.MULTILINE)), "a line")
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]


def test_progress_is_what_a_stage_waits_for() -> None:
    with running("demo") as hook:
        assert waiting_line() == ""
        hook(RunProgress(1, 2, 1, 3, 0, 0))
        assert waiting_line() == "Waiting 0 s for stage 1/2 of demo: 1/3."
        since = WAITS._now[0].since
        hook(RunProgress(1, 2, 2, 3, 0, 0))
        assert WAITS._now[0].since == since
        hook(RunProgress(2, 2, 0, 3, 0, 0))
        assert WAITS._now[0].since != since
        hook(RunProgress(2, 2, 3, 3, 0, 0))
        assert waiting_line() == ""
    assert waiting_line() == ""
