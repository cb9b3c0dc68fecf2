import os
import signal

import pytest

from reconciler.cli.exits import Exit
from reconciler.cli.stopping import stopping


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)])
def test_the_first_signal_asks_and_the_second_ends_the_waiting(number: signal.Signals, code: Exit) -> None:
    before = signal.getsignal(number)
    with stopping() as stop:
        assert (stop.reason(), stop.exit) == (None, None)
        os.kill(os.getpid(), number)
        assert (stop.reason(), stop.exit) == (f"{number.name} came", code)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
