"""What most tests of runs begin with."""

import pytest
from helpers.plans.small_runs import cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.cluster import Cluster


@pytest.fixture
def before() -> Cluster:
    """Return the small cluster on which plans are run."""
    return cluster()


@pytest.fixture
def admin(before: Cluster) -> SimulatedAdmin:
    """Return the simulated cluster in that state."""
    return SimulatedAdmin(before)
