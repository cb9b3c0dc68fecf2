"""Finds transactions that hang: open at a partition, and known to no coordinator, so that nothing ever ends them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from reconciler.model.cluster import Broker
from reconciler.model.diagnosis import Finding
from reconciler.model.problem import Severity
from reconciler.model.vitals import OpenTransaction, Vitals
from reconciler.model.words import FEW, counted, few, named_some

MAX_TIMEOUT = "transaction.max.timeout.ms"
"""The longest time that a coordinator lets a transaction be open."""
DEFAULT_MAX_TIMEOUT_MS = 15 * 60 * 1000
SLACK_MS = 5 * 60 * 1000
"""How much later than that a coordinator may be: what kafka-transactions.sh find-hanging allows as well."""


def late_since(settings: Mapping[int, Mapping[str, str]], now: datetime) -> int:
    """Return the time, in ms, before which a transaction that is open now wrote its last record if it is late."""
    longest = max((int(one[MAX_TIMEOUT]) for one in settings.values() if MAX_TIMEOUT in one), default=None)
    allowed = DEFAULT_MAX_TIMEOUT_MS if longest is None else longest
    return int(now.timestamp() * 1000) - allowed - SLACK_MS


def findings(vitals: Vitals) -> Iterator[Finding]:
    """Yield the transactions that hang, and those that their coordinators do not end."""
    late = vitals.transactions.found
    hanging = [one for one in late if one.known is None]
    if hanging:
        what = (
            f"{counted(len(hanging), 'transaction')} hanging, known to no coordinator: {_named(hanging)}; "
            "consumers with read_committed and the log cleaner stop there, and nothing ends them"
        )
        yield _finding("KR664", Severity.ERROR, what, _abort(hanging, vitals.cluster.brokers), hanging)
    stuck = [one for one in late if one.known is not None and one.known.began_ms < vitals.transactions.before_ms]
    if stuck:
        states = ", ".join(sorted({f"{one.known.transactional_id} {one.known.state}" for one in stuck if one.known}))
        what = (
            f"{counted(len(stuck), 'transaction')} open for longer than {MAX_TIMEOUT}, and not ended by the "
            f"coordinator ({states}): {_named(stuck)}; consumers with read_committed stop there"
        )
        advice = "do not abort by hand; see whether the partitions of __transaction_state and these have a leader"
        yield _finding("KR665", Severity.WARNING, what, advice, stuck)


def _finding(code: str, severity: Severity, what: str, advice: str, found: Sequence[OpenTransaction]) -> Finding:
    partitions = tuple(sorted({one.topic_partition for one in found}))
    return Finding(code, severity, what, advice, partitions=partitions)


def _named(found: Sequence[OpenTransaction]) -> str:
    return few(
        f"{one.topic_partition} from offset {one.first_offset} on, of producer {one.producer_id}, "
        f"last written {_time(one.last_written_ms)}"
        for one in found
    )


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _abort(hanging: Sequence[OpenTransaction], brokers: Mapping[int, Broker]) -> str:
    """Return the commands of Kafka's tool that end them, where any broker's address will do."""
    alive = [one for _, one in sorted(brokers.items()) if not one.is_fenced and one.host]
    where = f"{alive[0].host}:{alive[0].port}" if alive else "HOST:PORT"
    commands = (
        f"kafka-transactions.sh --bootstrap-server {where} abort --topic {one.topic_partition.topic} "
        f"--partition {one.topic_partition.partition} --start-offset {one.first_offset}"
        for one in hanging
    )
    return f"abort, which hides its records from those consumers: {named_some(commands, FEW, '; ')}"
