"""One scrape that was missed, as Prometheus exports it: the loads are as they were, and a plan moves nothing."""

import json
from pathlib import Path

import pytest
from helpers.program.call import Program
from helpers.program.documents import document

MISSED, MINUTES = 5, 12
TOPICS = ("told", "grown")
PARTITIONS, BROKERS, RECORD = 12, 6, 1000


def _a_scrape_is_missed(tmp_path: Path) -> None:
    """Write an even cluster, and an export in which broker 1 did not answer once: its followers lag 40 records.

    Each partition takes in a hundred records a minute. Of the topic `told` brokers tell the bytes, of `grown` nothing.
    """
    home = tmp_path / "desired-state" / "even"
    home.mkdir(parents=True)
    cluster = document("Cluster", "even", "{client: {bootstrap.servers: 'b:1'}, balance: {networkIn: {within: 10%}}}")
    documents = (cluster, *(document("Topic", name) for name in TOPICS))
    (home / "cluster.yaml").write_text("---\n".join(documents), encoding="utf-8")
    replicas = {number: [1 + number % BROKERS, 1 + (number + 1) % BROKERS] for number in range(PARTITIONS)}
    partitions = [
        {"partition": number, "leader": on[0], "replicas": on, "isr": on, "sizes": [10**9, 10**9]}
        for number, on in replicas.items()
    ]
    brokers = [{"id": broker} for broker in range(1, BROKERS + 1)]
    topics = [{"name": name, "partitions": partitions} for name in TOPICS]
    snapshot = {"formatVersion": "1.0", "clusterId": "even", "brokers": brokers, "topics": topics}
    (tmp_path / "snapshot.json").write_text(json.dumps(snapshot), encoding="utf-8")
    series = []
    for topic in TOPICS:
        for number, on in replicas.items():
            for broker, behind in zip(on, (0, 140), strict=True):
                ends = {minute: 10**6 + 100 * minute - behind for minute in range(MINUTES)}
                sizes = {minute: RECORD * end for minute, end in ends.items()}
                named = {"topic": topic, "partition": str(number)}
                series += [_scraped("kafka_log_log_logendoffset", broker, ends, named)]
                series += [_scraped("kafka_log_log_size", broker, sizes, named)]
    led = PARTITIONS // BROKERS
    for broker in range(1, BROKERS + 1):
        taken = {minute: led * 100 * RECORD * minute for minute in range(MINUTES)}
        series.append(_scraped("kafka_server_brokertopicmetrics_bytesin_total", broker, taken, {"topic": "told"}))
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    (tmp_path / "export.json").write_text(json.dumps(answer), encoding="utf-8")


def _scraped(metric: str, broker: int, values: dict[int, int], labels: dict[str, str]) -> dict[str, object]:
    heard = {minute: value for minute, value in values.items() if (broker, minute) != (1, MISSED)}
    points = [[1774742400 + 60 * minute, str(value)] for minute, value in heard.items()]
    return {"metric": {"__name__": metric, "instance": str(broker), **labels}, "values": points}


@pytest.mark.usefixtures("spark")
def test_a_scrape_that_was_missed_moves_nothing_of_an_even_cluster(reconciler: Program, tmp_path: Path) -> None:
    from pyarrow import parquet

    _a_scrape_is_missed(tmp_path)
    made = reconciler("loads", "--samples", "export.json", "--cluster", "even", "--out", "measured", "-o", "json")
    assert made.code == 0, made.err
    defects = json.loads(made.out)["clusters"][0]["defects"]
    led = PARTITIONS // BROKERS
    assert (defects["counterReset"], defects["fallenOffset"]) == (0, 2 * led)
    for row in parquet.read_table(tmp_path / "measured").to_pylist():
        for name in ("bytes_in_avg", "bytes_in_max", "bytes_in_peak"):
            assert row[name] == pytest.approx(100 * RECORD / 60, rel=1e-3), row
    ended = reconciler("plan", "--cluster", "even", "--state", "snapshot.json", "--loads", "measured")
    assert (ended.code, "No changes" in ended.out) == (0, True), ended.out
