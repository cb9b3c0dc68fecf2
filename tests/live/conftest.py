"""What the live tests share: one count over all of them, and brokers on which a throttle holds from the start."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from helpers.brokers.cluster import KafkaCluster
    from helpers.figures import Tell
    from live.faults import Tally


@pytest.fixture(scope="session")
def tally(figures: "Tell") -> "Tally":
    """Count scenarios and records, printed at the end of the run."""
    from live.faults import Tally

    return Tally(figures)


@pytest.fixture(scope="session")
def steady(kafka_version: str) -> Iterator["KafkaCluster"]:
    """Six brokers in three racks, shared: leave them alive, and remove your topics."""
    from helpers.brokers.cluster import KafkaCluster
    from helpers.brokers.run import SMOOTH

    with KafkaCluster(version=kafka_version, settings=SMOOTH) as cluster:
        yield cluster
