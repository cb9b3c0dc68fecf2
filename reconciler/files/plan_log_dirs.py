"""What a plan's file says of log dirs: how full each becomes, and where new replicas are predicted to go."""

from typing import Any

from reconciler.files.checked import Fields
from reconciler.model.plan import LogDirUse, Plan
from reconciler.model.topic_partition import TopicPartition


def log_dirs_to_json(plan: Plan) -> dict[str, Any]:
    """Return the members `logDirs` and `foretoldLogDirs`, each where there is something to say."""
    found: dict[str, Any] = {}
    if plan.log_dirs:
        found["logDirs"] = {str(broker): [_use(one) for one in dirs] for broker, dirs in plan.log_dirs.items()}
    if plan.predicted_log_dirs:
        found["foretoldLogDirs"] = [
            {"topic": key.topic, "partition": key.partition, "logDirs": {str(broker): to[broker] for broker in to}}
            for key, to in plan.predicted_log_dirs.items()
        ]
    return found


def log_dirs_of(fields: Fields) -> dict[int, tuple[LogDirUse, ...]]:
    """Return each broker's log dirs."""
    dirs = fields.member("logDirs")
    return {broker: dirs.each(key, _use_of) for broker, key in dirs.numbered()}


def predicted_log_dirs_of(fields: Fields) -> dict[TopicPartition, dict[int, str]]:
    """Return each copied replica's log dir, by partition and broker."""
    return dict(fields.each("foretoldLogDirs", _predicted))


def _use(one: LogDirUse) -> dict[str, Any]:
    return {"path": one.path, "peakBytes": one.peak_bytes, "totalBytes": one.total_bytes}


def _use_of(fields: Fields) -> LogDirUse:
    return LogDirUse(fields.text("path"), fields.integer("peakBytes"), fields.integer("totalBytes"))


def _predicted(fields: Fields) -> tuple[TopicPartition, dict[int, str]]:
    to = fields.member("logDirs")
    key = TopicPartition(fields.text("topic"), fields.integer("partition"))
    return key, {broker: to.text(name) for broker, name in to.numbered()}
