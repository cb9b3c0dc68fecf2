"""What the journeys share: one installed wheel."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from journeys.installed import Installed


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> "Installed":
    """Return the program, installed from its wheel into a clean environment."""
    from journeys.installed import installed_in

    return installed_in(tmp_path_factory.mktemp("installed"))
