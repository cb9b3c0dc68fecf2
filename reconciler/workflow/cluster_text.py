"""Writes the Cluster document that an import begins with: how to reach the cluster, and the balance that it keeps."""

import os
from collections.abc import Mapping
from pathlib import Path

from reconciler.files.desired_writer import scalar
from reconciler.files.inside import inside
from reconciler.model.desired import Balance, BalanceTarget, Even, Within
from reconciler.model.words import percent
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import BOOTSTRAP

CLUSTER = """\
# Written by `reconciler import`: {said}
#   reconciler plan --cluster {name}
apiVersion: reconciler/v1
kind: Cluster
metadata: {{name: {quoted}}}
spec:
{cluster_id}{client}{elections}  topics:
    managed: listed                         # a topic that no file names is left alone
    delete: never
{balance}  moves:
    throttle: 50MiB/s                       # per broker and direction, whenever replicas move
"""
NO_CLIENT = """\
  # client:                                 # how to reach it: Kafka client properties, or {file: client.properties}
  #   bootstrap.servers: kafka-1:9092
"""
NO_BALANCE = """\
  # balance:                                # {why}
  #   replicas: even
  #   leaders: even
"""


def cluster_text(
    name: str,
    said: str,
    *,
    cluster_id: str | None = None,
    client: Mapping[str, str] | None = None,
    balance: Balance | None = None,
    spans: Mapping[str, str] | None = None,
    waiting: int = 0,
) -> str:
    """Return the Cluster document. `spans`: what is to be said of each measure of the balance, by its name.

    `waiting`: the partitions that a plan would elect the preferred leader of, were elections not off.
    """
    lines = [f"    {scalar(key)}: {scalar(value)}\n" for key, value in sorted((client or {}).items())]
    partitions = "1 partition is" if waiting == 1 else f"{waiting} partitions are"
    not_led = f"{partitions} not led by the preferred leader today; without this line a plan elects it"
    return CLUSTER.format(
        said=said,
        name=name,
        quoted=scalar(name),
        cluster_id=_line(f"  clusterId: {scalar(cluster_id)}", "any other cluster is refused") if cluster_id else "",
        client="".join(["  client:\n", *lines]) if lines else NO_CLIENT,
        elections=_line("  elections: off", not_led) if waiting else "",
        balance=_balance(balance or Balance(), spans or {}),
    )


def client_of(inputs: Inputs, folder: Path) -> Mapping[str, str]:
    """Return the client properties to write: a file by its name, so that no secret is copied.

    None are written where that file is outside the root: who plans gives it on the command line, too.
    """
    client = {}
    if inputs.client:
        if inside(folder.parent, Path(inputs.client)) is None:
            return {}
        client["file"] = os.path.relpath(inputs.client, folder)
    if inputs.bootstrap_server:
        client[BOOTSTRAP] = inputs.bootstrap_server
    return client


def target_text(target: BalanceTarget) -> str:
    """Return a target as the YAML has it."""
    match target:
        case Even():
            return "even"
        case Within(fraction):
            return f"{{within: {percent(fraction)}}}"
        case _:
            return "off"


def _balance(balance: Balance, spans: Mapping[str, str]) -> str:
    targets = {"replicas": balance.replicas, "leaders": balance.leaders, "topics": balance.topics}
    lines = [
        _line(f"    {measure}: {target_text(target)}", spans.get(measure, ""))
        for measure, target in targets.items()
        if target_text(target) != "off"
    ]
    if not lines:
        return NO_BALANCE.format(why=spans.get("none", "what to ask for once all is as it should be"))
    return _line("  balance:", "kept today, so that nothing moves for it") + "".join(lines)


def _line(text: str, comment: str) -> str:
    return f"{text:<43} # {comment}\n" if comment else f"{text}\n"
