"""Rates from Prometheus in each round: of which broker, since when, split how; and when it does not answer."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.loopback import DRIPS, Answer, Request, dripping, serving
from pyarrow import parquet

from reconciler.admin.port import Admin
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.balance.files import exporters
from reconciler.balance.files.exporters import HttpClient, NotTold, checked_url, http_client, queried
from reconciler.balance.workflow import collect as verb
from reconciler.balance.workflow.collect import Collected, Schedule, collect
from reconciler.balance.workflow.exporters import exporters_named
from reconciler.model.problem import InvalidInput
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.inputs import Inputs

MINUTE = timedelta(minutes=1)
LINES = ("orders-0: 1,2 size 500", "orders-1: 1,2 size 700", "orders-2: 2,1 size 40")
ORDERS = [TopicPartition("orders", number) for number in range(3)]


@dataclass
class Served:
    """A server of text, which notes what it is asked."""

    url: str = ""
    texts: dict[str, Callable[[dict[str, list[str]]], tuple[int, str]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, list[str]], str | None]] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        self.asked.append((parts.path, query, request.headers.get("Authorization")))
        status, text = self.texts[parts.path](query)
        return Answer(status, text.encode())


@pytest.fixture
def served() -> Iterator[Served]:
    """Serve what a test puts into `texts`, by path."""
    found = Served()
    with serving(found.answer) as found.url:
        yield found


def reach(monkeypatch: pytest.MonkeyPatch, admin: Admin) -> Inputs:
    monkeypatch.setattr(verb, "cluster_admin", lambda *_: nullcontext(admin))
    return Inputs(bootstrap_server="k:9092", environ={"TOKEN": "s3cret"})


def with_hosts(admin: SimulatedAdmin) -> SimulatedAdmin:
    hosts = {id_: replace(one, host=f"kafka-{id_}.kafka.svc") for id_, one in admin.cluster.brokers.items()}
    admin.cluster = replace(admin.cluster, brokers=hosts)
    return admin


def rates(folder: Path) -> list[tuple[float | None, float | None, bool | None]]:
    """Return the bytes in and out of each partition round by round, and whether they are estimated."""
    files = folder.glob("cluster=*/date=*/*.parquet")
    rows = [row for file in files for row in parquet.read_table(file, partitioning=None).to_pylist()]
    rows.sort(key=lambda row: (row["ts"], row["topic"], row["partition"]))
    # Files of rounds without rates have one column less.
    return [(row["bytes_in"], row["bytes_out"], row.get("estimated")) for row in rows]


def growing(lines: Sequence[str]) -> SimulatedAdmin:
    """Return a cluster that has records in each partition of `orders`."""
    admin = SimulatedAdmin(small_cluster(*lines))
    for partition in ORDERS:
        admin.produce(partition, size=10, records=1)
    return admin


def grow(admin: SimulatedAdmin, told: list[Collected], each: Collected) -> None:
    """Take note of a round, and let producers write until the next one."""
    told.append(each)
    for partition, records in zip(ORDERS, (100, 300, 50), strict=True):
        admin.produce(partition, size=records * 10, records=records)


def vector(*found: tuple[str, dict[str, str], float]) -> tuple[int, str]:
    result = [{"metric": labels | {"__name__": name}, "value": [1, str(value)]} for name, labels, value in found]
    return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def carried_until(at: float) -> tuple[int, str]:
    """Return what a JMX exporter's own example rules, kafka-2_0_0.yml, make of two brokers at that time."""
    traffic = "kafka_server_brokertopicmetrics"
    found = []
    for broker in (1, 2):
        labels = {"broker": str(broker)}
        found += [
            (f"{traffic}_bytesin_total", labels, 1e9 * at),
            (f"{traffic}_bytesin_total", labels | {"topic": "orders"}, 100.0 * broker * at),
            (f"{traffic}_bytesout_total", labels | {"topic": "orders"}, 200.0 * broker * at),
            (f"{traffic}_replicationbytesin_total", labels, 10.0 * at),
            (f"{traffic}_messagesin_total", labels | {"topic": "orders"}, 7.0 * at),
        ]
    return vector(*found)


def test_partitions_get_their_shares_of_the_rates_that_prometheus_knows(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answered(query: dict[str, list[str]]) -> tuple[int, str]:
        return (503, "") if len(served.asked) == 3 else carried_until(float(query["time"][0]))

    served.texts["/api/v1/query"] = answered
    admin = growing(LINES)
    told: list[Collected] = []
    inputs = reach(monkeypatch, admin)
    exporters = exporters_named(inputs, served.url, None, None)
    collect(inputs, str(tmp_path), Schedule(MINUTE, 3 * MINUTE), lambda each: grow(admin, told, each), exporters)
    assert [each.untold for each in told] == [
        (),
        (),
        (f"Prometheus at {served.url} answers with HTTP status 503: what brokers carry is unknown",),
        (),
    ]
    shares = rates(tmp_path)
    # No round before the first one tells how offsets grew.
    assert [each[:2] for each in shares[:3]] == [(None, None)] * 3
    # Broker 1 leads two partitions, which took 100 and 300 records; broker 2 the third alone.
    assert shares[3:6] == [(25, 50, True), (75, 150, True), (200, 400, True)]
    assert [each[:2] for each in shares[6:9]] == [(None, None)] * 3
    assert shares[9:] == shares[3:6]


def test_prometheus_is_asked_for_one_cluster_and_brokers_are_known_by_their_ids_or_hosts(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client").write_text("bearer.token=${env:TOKEN}\n")
    name = "kafka_server_BrokerTopicMetrics_Count"

    def answered(query: dict[str, list[str]]) -> tuple[int, str]:
        at = float(query["time"][0])
        return vector(
            (name, {"name": "BytesInPerSec", "topic": "orders", "instance": "kafka-1.kafka.svc:7071"}, at * 5),
            (name, {"name": "BytesOutPerSec", "topic": "orders", "pod": "kafka-2"}, at * 7),
            (name, {"name": "BytesOutPerSec", "topic": "clicks", "broker_id": "3"}, at),
            # The other cluster has no topic of that name, but its broker 3 has a total of its own.
            (name, {"name": "BytesOutPerSec", "broker_id": "3"}, at),
            (name, {"name": "BytesOutPerSec", "broker_id": "3", "cluster": "other"}, at + 1),
            (name, {"name": "BytesOutPerSec", "instance": "elsewhere:7071"}, at),
        )

    served.texts["/prom/api/v1/query"] = answered
    admin = with_hosts(growing([*LINES, "clicks-0: 3,1 size 9"]))
    start = admin.clock.now().timestamp()
    inputs = reach(monkeypatch, admin)
    exporters = exporters_named(inputs, f"{served.url}/prom/", 'env="prod"', str(tmp_path / "client"))
    told: list[Collected] = []
    collect(inputs, str(tmp_path / "out"), Schedule(MINUTE, MINUTE), lambda each: grow(admin, told, each), exporters)
    clicks, *orders = rates(tmp_path / "out")[4:]
    assert clicks == (None, None, False)
    assert orders == [(1.25, None, True), (3.75, None, True), (None, pytest.approx(7), True)]
    assert told[1].untold == (
        "figures of elsewhere:7071 are of no broker that is known by its id or host: not used",
        "figures of broker 3 are told twice, as of two clusters: unknown; pick one by --prometheus-match",
    )
    assert [float(query["time"][0]) for _, query, _ in served.asked] == [start, start + 60]
    assert all(', env="prod"}' in query["query"][0] for _, query, _ in served.asked)
    assert {header for _, _, header in served.asked} == {"Bearer s3cret"}
    assert "s3cret" not in repr(exporters)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, "<html>"), "does not answer as a Prometheus does"),
        ((200, json.dumps({"status": "error", "error": "parse error"})), "answers with an error: parse error"),
        ((401, "secret page"), "answers with HTTP status 401"),
    ],
)
def test_a_prometheus_that_does_not_answer_costs_no_round(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str], words: str
) -> None:
    served.texts["/api/v1/query"] = lambda _: answer
    inputs = reach(monkeypatch, SimulatedAdmin(small_cluster(*LINES)))
    told: list[Collected] = []
    exporters = exporters_named(inputs, served.url, None, None)
    collect(inputs, str(tmp_path), verb.ONCE, told.append, exporters)
    (reason,) = told[0].untold
    assert words in reason
    assert told[0].partitions == 3


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host/", "is no URL of http:// or https:// with a host"),
        ("http://", "is no URL of http:// or https:// with a host"),
        ("http://host:port/", "is no URL of http:// or https:// with a host"),
        ("http://user:s3cret@host/", "a URL with a login in it would be shown"),
    ],
)
def test_a_url_that_cannot_be_asked_or_shown_is_refused(url: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        checked_url(url)
    assert "s3cret" not in str(refused.value)


def test_what_a_metrics_client_may_hold(tmp_path: Path) -> None:
    file = tmp_path / "client"
    file.write_text("username=u\npassword=${file:" + str(tmp_path / "word") + "}\nheader.X-Scope-OrgID=team\n")
    (tmp_path / "word").write_text("s3cret\n")
    client = http_client(str(file), {})
    assert client.headers == {"Authorization": "Basic dTpzM2NyZXQ=", "X-Scope-OrgID": "team"}
    assert "s3cret" not in repr(client)
    file.write_text("user=u\n")
    with pytest.raises(InvalidInput, match=r"user is unknown: there are username, password, bearer.token"):
        http_client(str(file), {})
    file.write_text("bearer.token=${env:NONE}\n")
    with pytest.raises(InvalidInput, match="wants the variable NONE"):
        http_client(str(file), {})
    file.write_text("ssl.ca.location=/none.pem\n")
    with pytest.raises(InvalidInput, match=r"ssl.ca.location names no file of certificates"):
        http_client(str(file), {})


def test_a_prometheus_that_is_not_there_costs_no_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = reach(monkeypatch, SimulatedAdmin(small_cluster(*LINES)))
    told: list[Collected] = []
    collect(inputs, str(tmp_path), verb.ONCE, told.append, exporters_named(inputs, "http://127.0.0.1:1", None, None))
    (reason,) = told[0].untold
    assert reason.startswith("Prometheus at http://127.0.0.1:1 does not answer: connection refused")
    assert told[0].partitions == 3


def test_a_prometheus_that_answers_late_is_asked_for_a_minute_ago_then(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answered(query: dict[str, list[str]]) -> tuple[int, str]:
        return carried_until(float(query["time"][0])) if len(served.asked) > 1 else (503, "")

    served.texts["/api/v1/query"] = answered
    admin = growing(LINES)
    start = admin.clock.now().timestamp()
    inputs = reach(monkeypatch, admin)
    exporters = exporters_named(inputs, served.url, None, None)
    collect(inputs, str(tmp_path), Schedule(MINUTE, MINUTE), lambda each: grow(admin, [], each), exporters)
    assert [float(query["time"][0]) for _, query, _ in served.asked] == [start, start, start + 60]
    assert rates(tmp_path)[3:] == [(25, 50, True), (75, 150, True), (200, 400, True)]


@pytest.mark.parametrize("drip", DRIPS)
def test_a_prometheus_that_drips_is_given_up_at_the_deadline(drip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters, "SECONDS", 0.3)
    with dripping(*DRIPS[drip]) as address, pytest.raises(NotTold, match="does not answer within 0 s"):
        list(queried(HttpClient(), address, "", 0.0))
