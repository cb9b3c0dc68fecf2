import random
from collections.abc import Callable

import pytest
from helpers.staging_drawn import Case, make_case
from helpers.staging_laws import LAWS
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.cluster import Cluster

cases = st.integers(0, 10**9).map(make_case)
law = settings(derandomize=True, max_examples=120, deadline=None)


@pytest.mark.parametrize("kept", LAWS, ids=lambda kept: kept.__name__)
@law
@given(case=cases)
def test_every_staging_keeps_the_law(kept: Callable[[Case], None], case: Case) -> None:
    kept(case)


@law
@given(cases, st.integers(0, 10**6))
def test_the_order_of_the_input_does_not_show(case: Case, seed: int) -> None:
    draw = random.Random(seed)
    brokers = list(case.observed.brokers.items())
    moves, elections = list(case.moves), list(case.elections)
    for shuffled in (brokers, moves, elections):
        draw.shuffle(shuffled)
    observed = Cluster("c", brokers=dict(brokers), topics=case.observed.topics)
    other = Case(observed, case.wanted, case.rules, moves, elections)
    assert repr(other.staged()) == repr(case.staged())
