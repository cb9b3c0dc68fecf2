"""A broker that is frozen keeps nobody from the others: each verb ends and names it, and once it is thawed it is used.

On plain connections, with SASL, TLS, and SASL over TLS; at once, and when Kafka has fenced it. What a verb says of each
broker is compared with who is frozen, and with what the same verb said while all were well.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.brokers.by_hand import create, delete
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import active_controller
from helpers.brokers.lone_broker import LoneBroker
from helpers.brokers.run import MB, PLAN, SMOOTH, LiveRun
from helpers.certificates import Authority
from helpers.depth import parts
from helpers.figures import Tell
from helpers.program.documents import document
from helpers.program.warm import Ended, reconciler
from live.faults import Tally, finish

pytestmark = pytest.mark.brokers

BROKERS, HOST = (1, 2, 3, 4), "127.0.0.1"
LISTS = {0: (1, 2, 3), 1: (2, 3, 4), 2: (3, 4, 1), 3: (4, 1, 2)}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PROTOCOLS = ("plain", "SASL", "TLS", "SASL over TLS")
VERBS = {
    "snapshot": ("snapshot", "--out", "snapshot.json.gz"),
    "status": ("status",),
    "plan": ("plan", "--out", "plan.json"),
    "doctor": ("doctor",),
    "topics": ("topics", "list"),
    "diff": ("diff",),
    "collect": ("collect", "--out", "samples"),
}
SAYS = {"doctor": "broker {} ", "collect": "broker {} "}
UNANSWERED = "No answer came from broker {},"
"""How a verb names a broker that is frozen; the others observe the whole cluster, and say it in one form."""


@pytest.fixture(scope="module")
def brokers(kafka_version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Four brokers with a listener for each protocol, which are missed only when a test waits for it."""
    folder, authority = tmp_path_factory.mktemp("silent"), Authority("silent")
    pair = authority.issue(HOST)
    (folder / "key.pem").write_text(pair.key + pair.chain, "utf-8")
    (folder / "ca.pem").write_text(authority.certificate, "utf-8")
    settings = {
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": str(folder / "key.pem"),
        "listener.name.login.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.login.scram-sha-512.sasl.jaas.config": SCRAM,
        "broker.session.timeout.ms": "20000",
    }
    with KafkaCluster(
        version=kafka_version,
        broker_ids=BROKERS,
        listeners={"TLS": "SSL", "LOGIN": "SASL_PLAINTEXT"},
        settings=SMOOTH | settings,
    ) as kafka:
        create(kafka, {"t": LISTS})
        kafka.trusted = folder / "ca.pem"  # type: ignore[attr-defined]
        yield kafka


def properties(kafka: KafkaCluster, protocol: str) -> dict[str, str]:
    """Return the client properties for a protocol; all brokers are among bootstrap.servers, in their order."""
    login = {key: value for key, value in kafka.client.items() if key.startswith("sasl.")}

    def at(listener: str) -> str:
        return ",".join(kafka.listener(listener, broker) for broker in BROKERS)

    return {
        "plain": {"bootstrap.servers": kafka.bootstrap},
        "SASL": {"bootstrap.servers": at("LOGIN"), "security.protocol": "SASL_PLAINTEXT", **login},
        "TLS": {
            "bootstrap.servers": at("TLS"),
            "security.protocol": "SSL",
            "ssl.ca.location": str(kafka.trusted),  # type: ignore[attr-defined]
        },
        "SASL over TLS": kafka.client,
    }[protocol]


def write(folder: Path, client: Mapping[str, str]) -> None:
    root = folder / "desired-state" / "live"
    root.mkdir(parents=True, exist_ok=True)
    spec = f"{{client: {json.dumps(client)}}}"
    topic = document("Topic", "t", "{partitions: 4, replicationFactor: 3, config: {retention.ms: 2d}}")
    (root / "cluster.yaml").write_text("---\n".join((document("Cluster", "live", spec), topic)), "utf-8")


@contextmanager
def frozen(kafka: KafkaCluster, broker: int, *, until_fenced: bool = False) -> Iterator[None]:
    kafka.pause(broker)
    try:
        if until_fenced:
            kafka.wait_until_gone(broker)
        yield
    finally:
        kafka.resume(broker)
        kafka.wait_until_alive(BROKERS)


def snapshot(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress((folder / "snapshot.json.gz").read_bytes()))
    return content


Shown = tuple[Mapping[str, object], Mapping[int, object]]


def shown(content: Mapping[str, Any], but: int | None) -> Shown:
    """Return what a snapshot has that no move of leaders changes: replicas, and log dirs of all but one broker."""
    topics = {
        topic["name"]: [partition["replicas"] for partition in topic["partitions"]] for topic in content["topics"]
    }
    dirs = {one["id"]: [each["path"] for each in one.get("logDirs", ())] for one in content["brokers"]}
    return topics, {id_: paths for id_, paths in dirs.items() if id_ != but}


def check_all_but(folder: Path, kafka: KafkaCluster, broker: int, before: object) -> None:
    """Run each verb while a broker is frozen: it ends well, names the broker, and shows what the others know.

    Once Kafka has fenced it, it is like any that is down.
    """
    for verb, arguments in VERBS.items():
        # To the doctor one that is fenced is an error.
        ended = reconciler(*arguments, cwd=folder, expect=None if verb == "doctor" else 0)
        is_named = SAYS.get(verb, UNANSWERED).format(broker) in ended.out + ended.err
        assert is_named or broker not in kafka._listed(), (verb, broker, ended)
        if verb == "snapshot":
            assert shown(snapshot(folder), broker) == before


def check_well(folder: Path) -> Shown:
    """Run each verb while all is well, and return what there is to see."""
    said = {verb: reconciler(*arguments, cwd=folder) for verb, arguments in VERBS.items()}
    assert not [verb for verb, ended in said.items() if _misses(ended)], said
    return shown(snapshot(folder), None)


def _misses(ended: Ended) -> bool:
    return "No answer came from" in ended.err or "did not tell" in ended.out


CASES = [(protocol, broker, fenced) for protocol in PROTOCOLS for broker in BROKERS for fenced in (False, True)]


@parts("cases", [("SASL over TLS", 0, False), ("plain", 4, False)], deep=CASES)
def test_a_frozen_broker_is_named_what_the_others_know_is_shown_and_thawed_it_is_used_again(
    tmp_path: Path, brokers: KafkaCluster, figures: Tell, cases: list[tuple[str, int, bool]]
) -> None:
    for protocol, number, fenced in cases:
        broker = number or active_controller(brokers.bootstrap)  # 0: the one that hurts most
        write(tmp_path, properties(brokers, protocol))
        topics, dirs = check_well(tmp_path)
        others = topics, {id_: paths for id_, paths in dirs.items() if id_ != broker}
        with frozen(brokers, broker, until_fenced=fenced):
            check_all_but(tmp_path, brokers, broker, others)
        assert check_well(tmp_path) == (topics, dirs)
    figures("frozen brokers", f"{len(cases)} cases of {len(VERBS)} verbs on Kafka {brokers.version}, each ended")


@parts("broker", [3], deep=list(BROKERS))
def test_a_broker_that_freezes_in_a_runs_middle_stops_no_run_for_good(
    tmp_path: Path, brokers: KafkaCluster, tally: Tally, broker: list[int]
) -> None:
    for each in broker:
        destination = next(one for one in BROKERS[::-1] if one != each)
        a, b, c = (one for one in BROKERS if one != destination)
        before = {0: (a, b, c), 1: (b, c, a), 2: (c, a, b), 3: (a, c, b)}
        after = {number: (first, second, destination) for number, (first, second, _) in before.items()}
        client = properties(brokers, "SASL over TLS")
        run = LiveRun(tmp_path / str(each), brokers, f"middle-{each}", before, after, 4 * MB, "250kB/s", client=client)
        with run.delivery() as delivery:
            applying = run.start()
            run.wait_in_flight(destination)
            with frozen(brokers, each, until_fenced=True):
                pass
            finish(run, applying)
        run.checker.finished(run.folder, PLAN, delivery)
        tally.passed(f"broker {each} frozen in the middle", run, delivery)
        delete(brokers, run.topic)


@parts("protocols", PROTOCOLS[-1:], deep=PROTOCOLS)
@pytest.mark.parametrize("port", [{"is_silent": True}, {"hangs_up_after": 1}], ids=["silent", "closes after a byte"])
def test_a_port_that_does_not_answer_is_passed_over_wherever_it_is_named(
    tmp_path: Path, brokers: KafkaCluster, port: Mapping[str, Any], protocols: Sequence[str]
) -> None:
    with LoneBroker(**port) as other:
        for protocol in protocols:
            client = properties(brokers, protocol)
            servers = client["bootstrap.servers"]
            for listed in (f"{other.address},{servers}", f"{servers},{other.address}"):
                write(tmp_path, client | {"bootstrap.servers": listed})
                ended = reconciler(*VERBS["snapshot"], cwd=tmp_path)
                assert not _misses(ended), ended
            write(tmp_path, client | {"bootstrap.servers": other.address})
            ended = reconciler(*VERBS["snapshot"], cwd=tmp_path, expect=1)
            assert "(KR600)" in ended.err or "(KR648)" in ended.err, ended
