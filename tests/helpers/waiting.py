"""Waits for a condition; the only place of the tests that bounds a wait.

    wait_for(lambda: path.exists(), "the file")          # returns as soon as it is so
    process.communicate(timeout=HANG)                    # whatever else waits has the same limit
    asked_again(lambda: admin.list_topics(timeout=ATTEMPT).topics, KafkaException)

No test fails because a machine is slow. So a limit here tells a hang and nothing else, and what matters is how long
something takes, `tests/benchmarks` prints. `tests/test_no_clock.py` holds the other tests to it.
"""

import math
import time
from collections.abc import Callable, Collection
from typing import TypeVar

Answer = TypeVar("Answer")
Item = TypeVar("Item")

HANG = 900
"""Seconds after which a wait is a hang. The longest honest ones take one to two minutes on idle cores: an install, a
Spark cluster of its own. Four busy loops beside them make four minutes of that."""
ATTEMPT = 10
"""Seconds that one try may take where another follows, as with a broker that is frozen. It decides nothing."""


def wait_for(
    is_so: Callable[[], bool],
    what: str,
    *,
    pause: float = 0.05,
    seen: Callable[[], object] = lambda: "no more to tell",
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """Return once it is so; after `HANG` fail with what is `seen`. `meanwhile` may fail sooner: nobody will come."""
    end = time.monotonic() + HANG
    while not is_so():
        meanwhile()
        assert time.monotonic() < end, f"waited {HANG} s for {what}: {seen()}"
        time.sleep(pause)


def what_stays(look: Callable[[], Collection[Item]], *, pause: float = 0.5) -> Collection[Item]:
    """Return what is still there of what should go: nothing, as soon as that is so, or what there is after `HANG`."""
    end = time.monotonic() + HANG
    while (left := look()) and time.monotonic() < end:
        time.sleep(pause)
    return left


def asked_again(
    ask: Callable[[], Answer], *errors: type[Exception], pause: float = 0.5, at_most: float = math.inf
) -> Answer:
    """Return what is answered, however often it takes one of these errors first; raise it after `HANG`.

    `at_most`: how often it is asked where another answer may never come.
    """
    end = time.monotonic() + HANG
    asked = 0
    while True:
        asked += 1
        try:
            return ask()
        except errors:
            if asked >= at_most or time.monotonic() > end:
                raise
        time.sleep(pause)
