"""The room that all tests of policies share, but those that end one: it takes seconds to open."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from balance.policies.watched_room import Watched, watched_room


@pytest.fixture(scope="session")
def one_room(
    tmp_path_factory: pytest.TempPathFactory, at_unit_end: Callable[[Callable[[], None]], None]
) -> Iterator[Watched]:
    """Return it; a test has to give it the tables that it asks."""
    with ExitStack() as opened:
        at_unit_end(opened.close)
        yield opened.enter_context(watched_room(tmp_path_factory.mktemp("canary") / "file"))
