import os
import signal
import subprocess
import sys

import pytest
from helpers.waiting import HANG

from reconciler.cli.exits import Exit
from reconciler.cli.stopping import LAST_SECONDS, stopping
from reconciler.cli.terminal import Teller


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)])
def test_the_first_signal_asks_and_the_second_ends_the_waiting(
    number: signal.Signals, code: Exit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.cli.stopping._end_soon", lambda _code: None)
    before = signal.getsignal(number)
    with stopping() as stop:
        assert (stop.reason(), stop.exit) == (None, None)
        os.kill(os.getpid(), number)
        assert (stop.reason(), stop.exit) == (f"{number.name} came", code)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_the_second_signal_leaves_less_than_the_ten_seconds_that_are_promised() -> None:
    assert 0 < LAST_SECONDS < 10


SCRIPT = """
import os, signal, time
from reconciler.cli import stopping as module
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
