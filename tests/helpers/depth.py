"""How deep a test looks: a part in each run, the whole in `pytest -m deep`.

    @parts("seeds", range(150), deep=range(1000))
    def test_whatever_happens_a_run_ends_as_planned(seeds): ...

    @drawn(cases(), part=30, deep=120)
    def test_the_order_of_files_does_not_show(case): ...

Each runs twice: with the part each time, with the whole where `deep` is asked for.
"""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

Test = Callable[..., None]


def parts(name: str, part: object, *, deep: object) -> pytest.MarkDecorator:
    """Return the mark that gives a test's argument `name` the value `part`, and `deep` under the mark of that name."""
    return pytest.mark.parametrize(
        name, [pytest.param(part, id="part"), pytest.param(deep, id="deep", marks=pytest.mark.deep)]
    )


def drawn(*strategies: SearchStrategy[Any], part: int, deep: int) -> Callable[[Test], Test]:
    """Return what tries a property on `part` examples, as Hypothesis draws them, or on `deep`."""

    def decorated(test: Test) -> Test:
        tried = {count: settings(max_examples=count)(given(*strategies)(test)) for count in (part, deep)}

        def tried_on(examples: int, **fixtures: object) -> None:
            tried[examples](**fixtures)

        left = inspect.signature(tried[part])
        examples = inspect.Parameter("examples", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        tried_on.__signature__ = left.replace(parameters=[examples, *left.parameters.values()])  # type: ignore[attr-defined]
        tried_on.__name__, tried_on.__qualname__, tried_on.__module__ = (
            test.__name__, test.__qualname__, test.__module__
        )  # fmt: skip
        return parts("examples", part, deep=deep)(tried_on)

    return decorated
