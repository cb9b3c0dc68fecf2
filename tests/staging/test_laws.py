import random
from collections.abc import Callable, Sequence

import pytest
from helpers.depth import parts
from staging.drawn import PART, WHOLE, Case, known_case
from staging.laws import LAWS

from reconciler.model.cluster import Cluster

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kept", LAWS, ids=lambda kept: kept.__name__)
@parts("seeds", PART, deep=WHOLE)
def test_every_staging_keeps_the_law(kept: Callable[[Case], None], seeds: Sequence[int]) -> None:
    for seed in seeds:
        try:
            kept(known_case(seed))
        except AssertionError as error:
            error.add_note(f"make_case({seed})")
            raise


@parts("seeds", PART[::3], deep=WHOLE[::5])
def test_the_order_of_the_input_does_not_show(seeds: Sequence[int]) -> None:
    for seed in seeds:
        case, draw = known_case(seed), random.Random(seed)
        brokers = list(case.observed.brokers.items())
        moves, elections = list(case.moves), list(case.elections)
        for shuffled in (brokers, moves, elections):
            draw.shuffle(shuffled)
        observed = Cluster("c", brokers=dict(brokers), topics=case.observed.topics)
        other = Case(observed, case.wanted, case.rules, moves, elections)
        assert repr(other.staged()) == repr(case.staged()), seed
