"""Asks the policies of a plan: what the verb `plan` hands to the house. Spark is loaded when it is called."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import Desired
from reconciler.model.plan import Plan
from reconciler.model.policy import Policy
from reconciler.model.problem import ReconcilerError
from reconciler.model.stage import TopicsStage
from reconciler.workflow.plan import Judge

if TYPE_CHECKING:
    from reconciler.model.topic_partition import TopicPartition

NO_SPARK = "KR013"


def open_judge(policies: Sequence[Policy]) -> Judge:
    """Return what asks these policies about a plan; it returns the plan with a violation for each row of an answer.

    Raises ReconcilerError where there is nothing to ask them with: none is ever left out.
    """
    _require_spark(policies)
    return partial(_judged, policies)


def _judged(policies: Sequence[Policy], plan: Plan, desired: Desired, observed: Cluster, loads: str | None) -> Plan:
    from reconciler.balance.policies.asking import policy_room
    from reconciler.balance.policies.plan_tables import plan_tables
    from reconciler.diff.managed import managed_topics
    from reconciler.files.loads import loads_table
    from reconciler.files.plan_file import with_id

    declared = managed_topics(desired, observed)
    tables = {
        **plan_tables(plan, desired, observed, state_after(plan, observed), declared),
        "loads": loads_table(loads, desired.cluster.name),
    }
    with policy_room(os.environ) as room:
        found = room.violations(policies, tables)
    return with_id(replace(plan, violations=(*plan.violations, *found))) if found else plan


def state_after(plan: Plan, observed: Cluster) -> Cluster:
    """Return the cluster as the plan leaves it: topics, configs, replicas, leaders; free bytes stay as they were."""
    from reconciler.simulate.reach import reach, reach_all
    from reconciler.simulate.storage import with_metadata

    cluster = observed
    touched: dict[TopicPartition, Partition] = {}
    for stage, step in zip(plan.stages, reach_all(observed, plan), strict=True):
        if isinstance(stage, TopicsStage):
            cluster = reach(with_metadata(cluster, touched), stage, plan.topic_changes)
            touched = {}
        else:
            touched.update({key: partition for key, partition in step.items() if partition is not None})
    return with_metadata(cluster, touched)


def _require_spark(policies: Sequence[Policy]) -> None:
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        more = f" (and {len(policies) - 1} more)" if len(policies) > 1 else ""
        message = f"the policy {policies[0].at.file}{more} is asked by Spark, which is not installed"
        raise ReconcilerError(f"{message}: pip install 'kafka-reconciler[spark]'", code=NO_SPARK)
    from reconciler.balance.spark.java import require_java

    require_java(os.environ)
