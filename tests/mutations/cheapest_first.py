"""A pytest plugin for runs on a mutant: cheap tests first, no shrinking of examples, and an end to endless lists."""

import resource

import pytest
from hypothesis import Phase, settings

MEMORY = 8 * 2**30
"""Bytes of address space: a mutant that adds to a list forever fails, and the machine goes on."""


def pytest_sessionstart() -> None:
    """Stop at the first example that fails; limit memory."""
    settings.register_profile("mutants", settings.default, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Put the tests in the order of what they took without a fault."""
    from mutmut.state import state

    took = state().duration_by_test
    session.items.sort(key=lambda item: took.get(item.nodeid, 0))
