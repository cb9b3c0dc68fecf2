"""`show`: a saved plan, read back and checked against its id."""

from pathlib import Path

from reconciler.files.plan_file import NO_SEAL, Seal, plan_text
from reconciler.files.raw import write_atomically
from reconciler.model.explanation import Explanation
from reconciler.model.plan import Plan
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import as_kafka_json
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.runs import plan_named
from reconciler.workflow.supposed import refuse_supposed

NOT_WRITTEN = "KR216"


def saved_plan(inputs: Inputs, path: str, seal: Seal = NO_SEAL) -> Plan:
    """Return the plan in that file.

    Raises InvalidInput where it was changed or cut short, NotNamed where another cluster is named, Refused as `seal`
    says.
    """
    return plan_named(inputs, path, seal)


def plan_json(plan: Plan) -> str:
    """Return the plan's file as text."""
    return plan_text(plan)


def topic_partition(text: str) -> TopicPartition | None:
    """Return the partition that a text such as `orders-3` names, None for any other text."""
    topic, _, number = text.rpartition("-")
    is_number = number.isascii() and number.isdigit() and len(number) <= len(str(2**31))
    return TopicPartition(topic, int(number)) if topic and is_number else None


def explanation_of(plan: Plan, key: TopicPartition) -> Explanation:
    """Return why the plan does what it does to that partition; raises InvalidInput for one that it does not know."""
    from reconciler.planner.explain import explain

    return explain(plan, key)


def write_kafka_files(plan: Plan, folder: str, *, has_log_dirs: bool = False) -> tuple[str, ...]:
    """Write the files for Kafka's own tools, one set a stage, and return their names in the order of use.

    With `has_log_dirs`, they name the log dir predicted for each new replica. Raises Refused where the plan is of a
    supposed state.
    """
    refuse_supposed(plan, "has no files for Kafka's tools")
    files = as_kafka_json.plan_files(plan, has_log_dirs=has_log_dirs)
    for name, text in files.items():
        write_atomically(Path(folder) / name, text.encode(), "file for Kafka's tools", NOT_WRITTEN)
    return tuple(files)
