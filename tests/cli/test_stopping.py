import os
import signal
import subprocess
import sys

import pytest
from helpers.waiting import HANG

from reconciler.command.exits import Exit
from reconciler.command.stopping import LAST_SECONDS, stopping
from reconciler.command.terminal import Teller

SIGNALS = [
    (signal.SIGINT, Exit.INTERRUPTED, signal.SIGINT),
    (signal.SIGTERM, Exit.TERMINATED, signal.SIGTERM),
    (signal.SIGHUP, Exit.TERMINATED, signal.SIGTERM),
]


@pytest.mark.parametrize(("number", "code", "second"), SIGNALS)
def test_the_first_signal_asks_and_the_second_ends_the_waiting(
    number: signal.Signals, code: Exit, second: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.command.stopping._end_soon", lambda _code: None)
    before = signal.getsignal(number)
    with stopping() as stop:
        assert (stop.reason(), stop.exit) == (None, None)
        os.kill(os.getpid(), number)
        assert (stop.reason(), stop.exit) == (f"{number.name} came", code)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), second)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGTERM])
def test_sighup_is_never_the_second_signal(first: signal.Signals) -> None:
    """A terminal that goes sends it more than once: by the kernel, and by the shell that ends with it."""
    with stopping() as stop:
        os.kill(os.getpid(), first)
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.reason() == f"{first.name} came"


def test_sighup_stays_ignored_where_nohup_asked_for_that() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert stop.exit is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_second_signal_leaves_less_than_the_ten_seconds_that_are_promised() -> None:
    assert 0 < LAST_SECONDS < 10


SCRIPT = """
import os, signal, time
from reconciler.command import stopping as module
module.LAST_SECONDS = 0.3
with module.stopping():
    os.kill(os.getpid(), signal.SIGTERM)
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        time.sleep(3600)
"""


def test_what_still_waits_after_the_second_signal_is_ended_with_the_code_of_the_first() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], timeout=HANG, check=False, capture_output=True)
    assert ended.returncode == Exit.TERMINATED


def test_what_a_run_leaves_is_told_at_once_and_not_again_as_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    told = Teller()
    told("moves may still be in flight")
    told.once("moves may still be in flight")
    told.once("another error")
    assert capsys.readouterr().err == "moves may still be in flight\nanother error\n"
