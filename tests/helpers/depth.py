"""How deep a test looks: a part in each run, the whole in `pytest -m deep`.

    @parts("seeds", range(150), deep=range(1000))
    def test_whatever_happens_a_run_ends_as_planned(seeds): ...

runs twice: with the part each time, with the whole where `deep` is asked for.
"""

import pytest


def parts(name: str, part: object, *, deep: object) -> pytest.MarkDecorator:
    """Return the mark that gives a test's argument `name` the value `part`, and `deep` under the mark of that name."""
    return pytest.mark.parametrize(
        name, [pytest.param(part, id="part"), pytest.param(deep, id="deep", marks=pytest.mark.deep)]
    )
