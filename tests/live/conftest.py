"""What the live tests share: one count over all of them."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from helpers.figures import Tell
    from helpers.live_faults import Tally


@pytest.fixture(scope="session")
def tally(figures: "Tell") -> "Tally":
    """Count scenarios and records, printed at the end of the run."""
    from helpers.live_faults import Tally

    return Tally(figures)
