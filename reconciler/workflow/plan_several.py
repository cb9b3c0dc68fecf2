"""Tells in which order the plans of several clusters are safe to apply."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.diff.mirror_growth import GrowsFirst, grow_first, order
from reconciler.model.change import CreatePartitions, CreateTopic
from reconciler.model.plan import Plan, PlansReport
from reconciler.model.problem import Problem, ReconcilerError, ReportedProblem, warning
from reconciler.model.words import few
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.mirrors import mirrors_of
from reconciler.workflow.plan import Planned

_NO_ORDER = "KR840"


@dataclass(frozen=True, slots=True)
class Several:
    """The plans, in the order in which they are safe to apply; why; and the clusters that none could be made for."""

    planned: Mapping[str, Planned]
    reasons: tuple[GrowsFirst, ...]
    failed: Mapping[str, ReconcilerError]
    warnings: tuple[Problem, ...] = ()

    @property
    def report(self) -> PlansReport:
        """The same as `-o json` has it."""
        return PlansReport(
            order=tuple(self.planned),
            reasons=tuple(map(str, self.reasons)),
            plans=tuple(each.plan for each in self.planned.values()),
            failed={name: str(error) for name, error in self.failed.items()},
            warnings=tuple(map(ReportedProblem.of, self.warnings)),
        )


def in_order(inputs: Inputs, made: Mapping[str, Planned], failed: Mapping[str, ReconcilerError]) -> Several:
    """Return these plans, each made by itself, in an order in which they are safe to apply."""
    firsts = tuple(_firsts(inputs, {name: each.plan for name, each in made.items()}))
    ordered, broken = order(tuple(made), firsts)
    return Several({name: made[name] for name in ordered}, firsts, failed, tuple(_unkept(broken)))


def _firsts(inputs: Inputs, plans: Mapping[str, Plan]) -> Iterator[GrowsFirst]:
    """Yield each copy that one of the plans makes or grows, and whose topic another one grows."""
    mirrors = mirrors_of(inputs.root, tuple(plans))
    for name, plan in plans.items():
        growing = [change.topic for change in plan.topic_changes if isinstance(change, CreatePartitions)]
        for first, _ in grow_first(name, growing, mirrors):
            changes = plans[first.target].topic_changes
            if any(isinstance(each, CreatePartitions | CreateTopic) and each.topic == first.copy for each in changes):
                yield first


def _unkept(broken: Sequence[GrowsFirst]) -> Iterator[Problem]:
    if broken:
        way_out = f"plan {few(each.copy for each in broken)} alone with --only, and apply that plan before all others"
        yield warning(_NO_ORDER, f"no order of these plans lets every copy grow first: {few(broken)}; {way_out}")
