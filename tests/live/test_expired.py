"""The brokers' certificate expires while a run goes on: it says so and ends in order, and goes on with a new one."""

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from helpers.brokers.cluster import HOST, KafkaCluster
from helpers.brokers.far_away import FarAway
from helpers.brokers.run import MB, PLAN, SMOOTH, LiveRun, replaced
from helpers.certificates import Authority, Pair
from helpers.figures import Tell
from helpers.waiting import ATTEMPT, HANG
from live.faults import Tally
from live.worlds import Watched, described, steps

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

DESTINATION, OTHERS = 5, (4, 1, 2, 3)
BROKERS = (*OTHERS, DESTINATION)
LOCATION = "listener.name.far.ssl.keystore.location"
GOOD, EXPIRED, RENEWED = "good", "expired", "renewed"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three keys of one authority; the second one's certificate has run out."""
    made = tmp_path_factory.mktemp("keys")
    authority = Authority("tests")
    pairs: dict[str, Pair] = {
        GOOD: authority.issue(HOST),
        EXPIRED: authority.issue(HOST, begins=-20, ends=-10),
        RENEWED: authority.issue(HOST),
    }
    for name, pair in pairs.items():
        (made / f"{name}.pem").write_text(pair.key + pair.chain, "utf-8")
    (made / "ca.pem").write_text(authority.certificate, "utf-8")
    return made


@pytest.fixture(scope="module")
def far() -> Iterator[FarAway]:
    """What lets the test end the program's connections: those that stand outlive their certificate."""
    with FarAway(BROKERS, seconds=0) as proxies:
        yield proxies


@pytest.fixture(scope="module")
def brokers(far: FarAway, folder: Path, kafka_version: str) -> Iterator[KafkaCluster]:
    keys = {"listener.name.far.ssl.keystore.type": "PEM", LOCATION: str(folder / f"{GOOD}.pem")}
    with KafkaCluster(
        version=kafka_version,
        broker_ids=BROKERS,
        settings=SMOOTH | keys,
        is_plain=True,  # its own listener is what is tried, with a certificate that expires
        listeners={"FAR": "SSL"},
        advertised={"FAR": far.addresses},
    ) as started:
        far.lead_to({broker: started.listener("FAR", broker) for broker in BROKERS})
        yield started


@pytest.fixture
def show(brokers: KafkaCluster, far: FarAway, folder: Path) -> Callable[[str], None]:
    """Return what has every broker show another certificate, to new connections: there are no others after it."""

    def shown(name: str) -> None:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        admin.list_topics(timeout=HANG)  # only a client that knows a broker can ask it
        for broker in BROKERS:
            path = str(folder / f"{name}.pem")
            entry = ConfigEntry(LOCATION, path, incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ResourceType.BROKER, str(broker), incremental_configs=[entry])
            for answer in admin.incremental_alter_configs([resource]).values():
                answer.result(HANG)
        brokers.wait_for(
            lambda: {is_refused(one, folder / "ca.pem") for one in far.addresses.values()} == {name == EXPIRED},
            f"the {name} certificate",
        )
        far.hang_up()

    return shown


def is_refused(address: str, trusted: Path) -> bool:
    """Whether whoever calls there is shown a certificate that does not hold."""
    host, _, port = address.partition(":")
    context = ssl.create_default_context(cafile=str(trusted))
    try:
        with socket.create_connection((host, int(port)), timeout=ATTEMPT) as plain:
            context.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLCertVerificationError:
        return True
    return False


def test_a_certificate_that_expires_ends_a_run_in_order_and_a_new_one_lets_it_go_on(
    tmp_path: Path,
    brokers: KafkaCluster,
    far: FarAway,
    folder: Path,
    *,
    show: Callable[[str], None],
    tally: Tally,
    figures: Tell,
) -> None:
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem")}
    client = {"bootstrap.servers": far.bootstrap, "security.protocol": "SSL", **trust}
    before, after = replaced(OTHERS, DESTINATION, 4)
    run = LiveRun(tmp_path, brokers, "expired", before, after, 40 * MB, "250kB/s", client=client)
    with run.delivery() as delivery:
        with Watched(run.start(), brokers.bootstrap) as watched:
            run.wait_in_flight(DESTINATION)
            show(EXPIRED)
            run.assert_in_flight(to=DESTINATION)
            watched.applying.ended(1)
        told = watched.applying.told
        assert "expired" in told
        assert "Traceback" not in told
        assert "outage" in steps(tmp_path)
        throttles = {where.partition(":")[0] for where in run.checker.look().throttles}
        assert all(f"broker {broker} keeps what this run set" in told for broker in throttles - {run.topic})
        refused = run.reconciler("apply", PLAN, "--yes", expect=1)
        assert "expired" in refused.err
        show(RENEWED)
        run.start().ended(0)
    run.checker.stopped(tmp_path, PLAN, delivery, back=())
    run.reconciler("plan", "--detailed-exitcode")
    tally.passed("certificate expired", run, delivery)
    figures("certificate expired mid-run", described(watched))
