"""Runs `collect`: samples a live cluster round by round, and keeps each round as soon as it is taken."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from reconciler.admin.port import Admin, Clock
from reconciler.balance.files.folders import refuse_uri
from reconciler.balance.files.sample_writer import Round, require_pyarrow, write_round
from reconciler.balance.model.exported import Carried
from reconciler.balance.workflow.exporters import Exporters
from reconciler.model.codec import HIDDEN, REQUIRED, Key
from reconciler.model.desired import Desired
from reconciler.model.problem import ClusterUnavailable, MissingRight, Refused
from reconciler.model.sample import ClusterSample
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import cluster_admin, cluster_meant, warn_of_run

ANOTHER_CLUSTER = "KR440"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A round every so often from the start on: the first at once, the last `length` after it, None for no end."""

    every: timedelta
    length: timedelta | None = None

    def rounds(self) -> int | None:
        """Return how many rounds there are at most, None for no end."""
        return None if self.length is None else self.length // self.every + 1


ONCE = Schedule(timedelta(seconds=1), timedelta())


@dataclass(frozen=True, slots=True)
class Collected:
    """A round of samples. Null is unknown."""

    cluster: Annotated[str, "The cluster."]
    number: Annotated[int, HIDDEN]
    at: Annotated[datetime, HIDDEN]
    written: Annotated[Round | None, HIDDEN] = None
    untold: Annotated[tuple[str, ...], Key("unknown"), REQUIRED, "What could not be seen, in words."] = ()
    failed: Annotated[str | None, REQUIRED, "Why nothing was sampled; null where something was."] = None

    @property
    def moment(self) -> Annotated[str, Key("at"), "When it was taken, ISO 8601 in UTC."]:
        """When it was taken."""
        return f"{self.at:%Y-%m-%dT%H:%M:%SZ}"

    @property
    def partitions(self) -> Annotated[int | None, "Partitions sampled; null where nothing was."]:
        """Partitions sampled."""
        return self.written.partitions if self.written else None

    @property
    def replicas(self) -> Annotated[int | None, "Replicas sampled; null where nothing was."]:
        """Replicas sampled."""
        return self.written.replicas if self.written else None


def collect(
    inputs: Inputs, out: str, schedule: Schedule, tell: Callable[[Collected], None], exporters: Exporters | None = None
) -> None:
    """Write a round of samples at each time of the schedule, and tell of it.

    `exporters`: the Prometheus that knows the rates of topics.

    A round in which the cluster does not answer is told and left out, except the first, which raises
    ClusterUnavailable. A round is never late for the one before: the times that one ran over are left out. A run that
    changes the cluster meanwhile is warned of.
    """
    refuse_uri(out)
    require_pyarrow()
    desired = cluster_meant(inputs)
    with cluster_admin(inputs, desired) as admin:
        warn_of_run(admin)
        start = admin.clock.now()
        number = 0
        while True:
            tell(_round(admin, desired, Path(out), number, exporters))
            number = _next_round(schedule, admin.clock.now() - start, number)
            limit = schedule.rounds()
            if limit is not None and number >= limit:
                return
            wait_until(admin.clock, start + number * schedule.every, at_most=schedule.every)


def wait_until(clock: Clock, moment: datetime, *, at_most: timedelta) -> None:
    """Let the time until that moment pass; a clock that was set back meanwhile costs one period, not more."""
    clock.sleep(max(timedelta(), min(moment - clock.now(), at_most)).total_seconds())


def _next_round(schedule: Schedule, passed: timedelta, number: int) -> int:
    """Return the number of the next round whose time has not gone by."""
    return max(number + 1, -(-passed // schedule.every))


def _round(admin: Admin, desired: Desired | None, out: Path, number: int, exporters: Exporters | None) -> Collected:
    at = admin.clock.time_of_day()
    try:
        sample = _sample(admin)
    except (ClusterUnavailable, MissingRight) as error:
        if number == 0:
            raise
        return Collected(desired.cluster.name if desired else "", number, at, failed=str(error))
    cluster = _named(desired, sample.cluster_id)
    told = Carried() if exporters is None else exporters.look(admin)
    rates = {} if exporters is None else exporters.shares(sample, told)
    written = write_round(out, cluster, at, sample, rates=rates)
    return Collected(cluster, number, at, written, (*sample.untold, *told.untold))


def _sample(admin: Admin) -> ClusterSample:
    """Return what the cluster tells; raises ClusterUnavailable where that is nothing, for reasons that it names."""
    sample = admin.sample()
    if sample.untold and not sample.partitions():
        raise ClusterUnavailable(f"nothing can be sampled: {'; '.join(sample.untold)}")
    return sample


def _named(desired: Desired | None, cluster_id: str) -> str:
    """Return what samples call the cluster: its declared name, else its id.

    Raises Refused where the cluster that answers is not the one declared: its samples would spoil the others.
    """
    if desired is None:
        return cluster_id
    wanted = desired.cluster.cluster_id
    if wanted is not None and wanted != cluster_id:
        raise Refused(
            f"{desired.cluster.name} declares clusterId {wanted}, but {cluster_id} answers: reach the right cluster, "
            "or correct clusterId; nothing was written of it",
            code=ANOTHER_CLUSTER,
        )
    return desired.cluster.name
