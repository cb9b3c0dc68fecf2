"""What the tests of pages share: one browser a module."""

from collections.abc import Iterator

import pytest
from render.chromium import BrowserMissingError, Chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    try:
        opened = Chromium()
    except BrowserMissingError as error:
        pytest.skip(str(error))
    with opened:
        yield opened
