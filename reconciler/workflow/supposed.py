"""A plan of a supposed state is for reading: whatever would act on it refuses it."""

from reconciler.model.plan import Plan
from reconciler.model.problem import Refused


def refuse_supposed(plan: Plan, what: str) -> None:
    """Raise Refused where the plan supposes something: nobody can run what is not so."""
    if plan.what_if is not None:
        supposed = ", ".join(plan.what_if.suppositions)
        message = (
            f"this plan supposes {supposed}: it shows what would be, and {what}. "
            "Make it so in the desired state or in the cluster, then plan again without --what-if"
        )
        raise Refused(message, code="KR424")
