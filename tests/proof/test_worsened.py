"""No plan that was made worse is called proved, whatever its file claims beside values that are true."""

from collections import Counter
from random import Random

import pytest
from helpers.clusters.mixed_clusters import mixed_cluster
from helpers.figures import Tell
from proof.naive_states import complaints
from proof.test_states import other_orders
from proof.worsening import Worsener, claims

from reconciler.model.problem import ReconcilerError
from reconciler.proof.check import prove
from reconciler.render import as_proof
from reconciler.workflow.plan import plan_of


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(3000), marks=pytest.mark.deep)], ids=["part", "deep"])
def test_a_plan_made_worse_is_never_proved_whatever_it_claims(seeds: range, figures: Tell) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        desired, observed = mixed_cluster(seed)
        try:
            plan = plan_of(desired, observed)
        except ReconcilerError:
            continue
        verdict = prove(plan, desired, observed)
        assert verdict.wrong is None or verdict.is_limit_broken, (seed, verdict.wrong)
        counts["as made: " + as_proof.text(verdict).partition(":")[0]] += 1
        orders = other_orders(plan, seed)
        broken = [(name, other) for name, other in orders if [*complaints(other, desired, observed, Random(seed))]]
        for way, worse in [*Worsener(desired, observed, Random(seed)).worse(plan), *broken]:
            for claim, claiming in claims(worse, desired, observed):
                text = as_proof.text(prove(claiming, desired, observed))
                assert not text.startswith("Proved"), (seed, way, claim, text)
                counts[f"{way}: {text.partition(':')[0]}"] += 1
    figures("plans made worse", ", ".join(f"{what} {count}" for what, count in sorted(counts.items())))
    ways = {"heaped", "needless copy", "swapped destination", "worse leader order", "joined", "detoured"}
    assert {each.partition(":")[0] for each in counts} >= ways
