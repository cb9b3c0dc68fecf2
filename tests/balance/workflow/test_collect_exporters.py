"""What Prometheus tells of brokers in each round: by whom, since when, split how; and what does not answer."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from helpers.clusters.small_cluster import small_cluster
from pyarrow import parquet

from reconciler.admin.port import Admin
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.balance.files.exporters import checked_url, http_client
from reconciler.balance.files.sample_files import BROKER_COLUMNS
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

    url: str
    texts: dict[str, Callable[[dict[str, list[str]]], tuple[int, str]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, list[str]], str | None]] = field(default_factory=list)


@pytest.fixture
def served() -> Iterator[Served]:
    """Serve what a test puts into `texts`, by path."""
    found = Served("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            found.asked.append((parts.path, query, self.headers.get("Authorization")))
            status, text = found.texts[parts.path](query)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def reach(monkeypatch: pytest.MonkeyPatch, admin: Admin) -> Inputs:
    @contextmanager
    def opened(_inputs: Inputs, _desired: object) -> Iterator[Admin]:
        yield admin

    monkeypatch.setattr(verb, "cluster_admin", opened)
    return Inputs(bootstrap_server="k:9092", environ={"TOKEN": "s3cret"})


def with_hosts(admin: SimulatedAdmin) -> SimulatedAdmin:
    hosts = {id_: replace(one, host=f"kafka-{id_}.kafka.svc") for id_, one in admin.cluster.brokers.items()}
    admin.cluster = replace(admin.cluster, brokers=hosts)
    return admin


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of each file with its own columns: those of rounds without rates have one column less."""
    files = sorted(folder.glob("cluster=*/date=*/*.parquet"))
    found = [row for file in files for row in parquet.read_table(file, partitioning=None).to_pylist()]
    return sorted(found, key=lambda row: (row["ts"], row.get("broker"), row.get("partition")))


def vector(*found: tuple[str, dict[str, str], float]) -> tuple[int, str]:
    result = [{"metric": labels | {"__name__": name}, "value": [1, str(value)]} for name, labels, value in found]
    return 200, json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def carried_until(at: float) -> tuple[int, str]:
    """Return what a JMX exporter's own example rules, kafka-2_0_0.yml, make of two brokers at that time."""
    traffic, requests = "kafka_server_brokertopicmetrics", "kafka_network_requestmetrics_totaltimems"
    found = []
    for broker in (1, 2):
        of = {"broker": str(broker)}
        found += [
            (f"{traffic}_bytesin_total", of, 100.0 * broker * at),
            (f"{traffic}_bytesin_total", of | {"topic": "orders"}, 100.0 * broker * at),
            (f"{traffic}_bytesout_total", of | {"topic": "orders"}, 200.0 * broker * at),
            (f"{traffic}_bytesout_total", of, 200.0 * broker * at),
            (f"{traffic}_replicationbytesin_total", of, 10.0 * at),
            (requests, of | {"request": "Produce", "quantile": "0.50"}, 1.0),
            (requests, of | {"request": "Produce", "quantile": "0.99"}, 5.5),
            (requests, of | {"request": "Produce", "quantile": "0.999"}, 7.5),
            (requests, of | {"request": "FetchConsumer", "quantile": "0.99"}, 500.25),
            (requests, of | {"request": "FetchFollower", "quantile": "0.999"}, float("nan")),
            ("kafka_network_requestmetrics_localtimems", of | {"request": "Produce", "quantile": "0.999"}, 3.0),
            ("kafka_log_logflushstats_logflushrateandtimems", of | {"quantile": "0.999"}, 11.0),
            ("java_lang_operatingsystem_processcpuload", of, 0.25),
        ]
    return vector(*found)


def test_prometheus_tells_what_brokers_carry_and_partitions_get_their_shares(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answered(query: dict[str, list[str]]) -> tuple[int, str]:
        # A minute before the first round, the first round, the second, and the third, which gets no answer.
        return (503, "") if len(served.asked) == 4 else carried_until(float(query["time"][0]))

    served.texts["/api/v1/query"] = answered
    admin = SimulatedAdmin(small_cluster(*LINES))
    told: list[Collected] = []

    def tell(each: Collected) -> None:
        told.append(each)
        for partition, records in zip(ORDERS, (100, 300, 50), strict=True):
            admin.produce(partition, size=records * 10, records=records)

    # Without the first look nobody knows how offsets grew.
    for partition in ORDERS:
        admin.produce(partition, size=10, records=1)
    inputs = reach(monkeypatch, admin)
    exporters = exporters_named(inputs, served.url, None, None)
    collect(inputs, str(tmp_path), Schedule(MINUTE, 3 * MINUTE), tell, exporters)
    brokers = rows(tmp_path / "_brokers")
    assert set(brokers[0]) == {*BROKER_COLUMNS}
    figures = [tuple(row[name] for name in list(BROKER_COLUMNS)[2:]) for row in brokers]
    gauges = (0.25, 7.5, 500.25, None, 11.0)
    round_ = [(1, 100.0, 200.0, 10.0, *gauges), (2, 200.0, 400.0, 10.0, *gauges)]
    assert figures == round_ * 3
    assert [each.brokers for each in told] == [2, 2, 0, 2]
    assert [each.untold for each in told][2] == (
        f"Prometheus at {served.url} answers with HTTP status 503: what brokers carry is unknown",
    )
    shares = {
        (row["ts"], row["partition"]): (row["bytes_in"], row["bytes_out"], row.get("estimated"))
        for row in rows(tmp_path)
    }
    moments = sorted({ts for ts, _ in shares})
    assert [shares[moments[0], number][:2] for number in range(3)] == [(None, None)] * 3
    # Broker 1 leads two partitions, which took 100 and 300 records; broker 2 the third alone.
    assert [shares[moments[1], number] for number in range(3)] == [(25, 50, True), (75, 150, True), (200, 400, True)]
    assert [shares[moments[2], number][:2] for number in range(3)] == [(None, None)] * 3
    assert shares[moments[3], 2] == (200, 400, True)


def test_prometheus_is_asked_for_one_cluster_and_a_first_round_has_rates(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client").write_text("bearer.token=${env:TOKEN}\n")
    name, latency = "kafka_server_BrokerTopicMetrics_Count", "kafka_network_RequestMetrics_99thPercentile"

    def answered(query: dict[str, list[str]]) -> tuple[int, str]:
        at = float(query["time"][0])
        return vector(
            (name, {"name": "BytesInPerSec", "instance": "kafka-1.kafka.svc:7071"}, at * 5),
            (name, {"name": "BytesOutPerSec", "pod": "kafka-2"}, at * 7),
            (name, {"name": "BytesOutPerSec", "broker_id": "3"}, at),
            (name, {"name": "BytesOutPerSec", "broker_id": "3", "cluster": "other"}, at + 1),
            (name, {"name": "BytesOutPerSec", "instance": "elsewhere:7071"}, at),
            (latency, {"name": "TotalTimeMs", "request": "Produce", "broker": "1"}, 4),
        )

    served.texts["/prom/api/v1/query"] = answered
    admin = with_hosts(SimulatedAdmin(small_cluster(*LINES)))
    inputs = reach(monkeypatch, admin)
    exporters = exporters_named(inputs, f"{served.url}/prom/", 'env="prod"', str(tmp_path / "client"))
    told: list[Collected] = []
    collect(inputs, str(tmp_path / "out"), verb.ONCE, told.append, exporters)
    found = rows(tmp_path / "out/_brokers")
    assert [(row["broker"], row["bytes_in"], row["bytes_out"], row["produce_ms"]) for row in found] == [
        (1, pytest.approx(5), None, 4),
        (2, None, pytest.approx(7), None),
    ]
    assert told[0].untold == (
        "figures of elsewhere:7071 are of no broker that is known by its id or host: not used",
        "figures of broker 3 are told twice, as of two clusters: unknown; pick one by --prometheus-match",
    )
    now = admin.clock.now().timestamp()
    assert [float(query["time"][0]) for _, query, _ in served.asked] == [now - 60, now]
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
    assert not (tmp_path / "_brokers").exists()


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
        total = float(query["time"][0]) * 5
        figure = ("kafka_server_BrokerTopicMetrics_Count", {"name": "BytesInPerSec", "broker": "1"}, total)
        return vector(figure) if len(served.asked) > 1 else (503, "")

    served.texts["/api/v1/query"] = answered
    inputs = reach(monkeypatch, SimulatedAdmin(small_cluster(*LINES)))
    exporters = exporters_named(inputs, served.url, None, None)
    collect(inputs, str(tmp_path), Schedule(MINUTE, MINUTE), lambda _: None, exporters)
    assert [row["bytes_in"] for row in rows(tmp_path / "_brokers")] == [pytest.approx(5)]
