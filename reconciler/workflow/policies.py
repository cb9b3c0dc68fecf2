"""The policies of a plan: read before it is made, asked once it is; without any, Spark is never loaded."""

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.files.policies import read_policies
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import Desired
from reconciler.model.plan import Plan
from reconciler.model.policy import Policy
from reconciler.model.problem import ReconcilerError
from reconciler.model.stage import TopicsStage
from reconciler.workflow.inputs import Inputs, cluster_name

if TYPE_CHECKING:
    from reconciler.model.topic_partition import TopicPartition

NO_SPARK = "KR013"


def policies_of(inputs: Inputs) -> tuple[Policy, ...]:
    """Return the policies that hold for the cluster that is named.

    Raises InvalidInput for those that are no queries, ReconcilerError where there are some and nothing to ask them
    with: none is ever left out.
    """
    policies = read_policies(Path(inputs.root), cluster_name(inputs))
    if policies:
        _require_spark(policies)
    return policies


def with_policies(
    plan: Plan, policies: Sequence[Policy], desired: Desired, observed: Cluster, loads: str | None = None
) -> Plan:
    """Return the plan with a violation for each row that a policy returns; without policies, the plan itself."""
    if not policies:
        return plan
    from reconciler.balance.policies import policy_room
    from reconciler.diff.managed import managed_topics
    from reconciler.files.loads import loads_table
    from reconciler.files.plan_file import with_id
    from reconciler.files.plan_tables import plan_tables

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
    from reconciler.balance.java import require_java

    require_java(os.environ)
