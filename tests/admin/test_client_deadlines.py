"""Whatever the library does, nobody waits for it for ever: each of its calls that can wait is held in turn."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import kafka.errors
import pytest
from helpers.brokers.lone_broker import NODE, LoneBroker
from helpers.certificates import Authority
from helpers.waiting import HANG
from kafka import KafkaAdminClient
from kafka.cluster import ClusterMetadata
from kafka.future import Future
from kafka.net import KafkaSSLTransport, KafkaTCPTransport
from kafka.net.connection import KafkaConnection, SaslReauthenticator
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from reconciler.admin.client import connecting, wire
from reconciler.admin.client.connecting import open_another, open_wire
from reconciler.admin.client.exchange import NoAnswer, NotSent, look_for_brokers
from reconciler.admin.client.properties import translate
from reconciler.admin.client.wire import Wire
from reconciler.model.problem import CheckFailed, ClusterUnavailable, OutcomeUnknown

pytestmark = pytest.mark.long

Held = tuple[type | ModuleType, str, str]
SHORT = 0.1
"""A deadline that comes soon: what is tried is that there is one. Nothing that is to succeed has it."""
AUTHORITY = Authority("lone")


def hurry(monkeypatch: pytest.MonkeyPatch, asking: Wire | None = None) -> None:
    """Let deadlines come soon from now on."""
    for module, names in (
        (connecting, ("REACH_SECONDS", "BOOTSTRAP_SECONDS", "CLOSE_SECONDS", "SETUP_SECONDS")),
        (wire, ("FIRST_TRY_SECONDS", "CLOSE_SECONDS", "ONE_BROKER_SECONDS", "PAUSE_SECONDS")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, SHORT)
    if asking is not None:
        asking.request_seconds = asking.retry_seconds = asking.setup_seconds = SHORT


@pytest.fixture(params=["plain", "TLS"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LoneBroker]:
    """A broker that a client can connect to."""
    context = None
    if request.param == "TLS":
        pair = AUTHORITY.issue("127.0.0.1")
        (tmp_path / "key.pem").write_text(pair.key + pair.chain, "utf-8")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "key.pem")
    with LoneBroker(context=context) as started:
        started.protocol = "SSL" if context else "PLAINTEXT"  # type: ignore[attr-defined]
        yield started


def properties(folder: Path, protocol: str, *servers: LoneBroker) -> dict[str, str]:
    (folder / "ca.pem").write_text(AUTHORITY.certificate, "utf-8")
    trust = {"ssl.ca.location": str(folder / "ca.pem")} if protocol == "SSL" else {}
    return {
        "bootstrap.servers": ",".join(one.address for one in servers),
        "security.protocol": protocol,
        **trust,
    }


def opened(folder: Path, broker: LoneBroker) -> Wire:
    """Return a wire with a connection that stands."""
    made = open_wire(translate(properties(folder, broker.protocol, broker)))  # type: ignore[attr-defined]
    made.read(lambda: MetadataRequest(topics=[]))
    return made


def skip_other(broker: LoneBroker, held: Held) -> None:
    """Skip what is never called with this protocol."""
    other = KafkaTCPTransport if broker.protocol == "SSL" else KafkaSSLTransport  # type: ignore[attr-defined]
    if held[0] is other and held[1] == "handshake":
        pytest.skip("the other protocol's")


class Holding:
    """Stands in for calls of the library that never return; `release` lets them end, as errors."""

    def __init__(self) -> None:
        self._released = threading.Event()

    def release(self) -> None:
        self._released.set()

    def thread(self, *_: object, **__: object) -> None:
        """Hold the thread that calls."""
        self._released.wait()
        raise kafka.errors.KafkaConnectionError("released")

    async def task(self, *_: object, **__: object) -> None:
        """Hold the task, and let the library's thread go on."""
        await Future()

    def future(self, *_: object, **__: object) -> Future:
        """Return what never comes."""
        return Future()


@pytest.fixture
def holding() -> Iterator[Holding]:
    made = Holding()
    yield made
    made.release()


READY: tuple[Held, ...] = (
    (NetworkSelector, "run", "thread"),
    (NetworkSelector, "call_soon_threadsafe", "thread"),
    (KafkaConnectionManager, "get_connection", "thread"),
    (KafkaConnection, "send_request", "thread"),
    (KafkaConnection, "send_request", "future"),
    (KafkaTCPTransport, "write", "thread"),
    (KafkaTCPTransport, "write", "nothing"),
)
"""What may hold a request on a connection that stands."""
SETTING_UP: tuple[Held, ...] = (
    (KafkaConnectionManager, "_build_transport", "thread"),
    (KafkaConnectionManager, "_build_transport", "task"),
    (KafkaSSLTransport, "handshake", "task"),
    (KafkaTCPTransport, "handshake", "task"),
    (KafkaConnection, "initialize", "task"),
    (KafkaConnection, "_get_api_versions", "task"),
    (socket, "getaddrinfo", "thread"),
)
"""What may hold a connection that is being set up."""
OPENING: tuple[Held, ...] = (
    *SETTING_UP,
    (NetworkSelector, "start", "thread"),
    (KafkaConnectionManager, "bootstrap", "thread"),
    (ClusterMetadata, "refresh_metadata", "task"),
    (ClusterMetadata, "update_metadata", "thread"),
)
CLOSING: tuple[Held, ...] = (
    (KafkaAdminClient, "close", "thread"),
    (NetworkSelector, "stop", "thread"),
    (NetworkSelector, "close", "thread"),
    (KafkaConnectionManager, "close", "thread"),
)


def named(held: tuple[Held, ...]) -> list[object]:
    return [pytest.param(one, id=f"{one[0].__name__}.{one[1]}-{one[2]}") for one in held]


def hold(monkeypatch: pytest.MonkeyPatch, holding: Holding, held: Held) -> None:
    owner, name, how = held
    stand_in: Callable[..., object] = (lambda *_, **__: None) if how == "nothing" else getattr(holding, how)
    monkeypatch.setattr(owner, name, stand_in)


def listing() -> ListPartitionReassignmentsRequest:
    return ListPartitionReassignmentsRequest(timeout_ms=1, topics=None)


def moving() -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(timeout_ms=1, topics=[])


@pytest.mark.parametrize("held", named((*READY, *SETTING_UP)))
def test_no_question_and_no_change_waits_for_ever(
    tmp_path: Path, broker: LoneBroker, monkeypatch: pytest.MonkeyPatch, holding: Holding, held: Held
) -> None:
    skip_other(broker, held)
    asking = opened(tmp_path, broker)
    try:
        if held in SETTING_UP:
            asking.manager.run(asking.manager.close, NODE)
        hold(monkeypatch, holding, held)
        hurry(monkeypatch, asking)
        with pytest.raises(ClusterUnavailable):
            asking.read(listing)
        assert asking.read_each({NODE: listing}) == {}
        # Unknown only where the request may have left; else the next one is free to try.
        with pytest.raises((OutcomeUnknown, ClusterUnavailable)):
            asking.write(moving)
        with pytest.raises((NotSent, OutcomeUnknown)):
            asking.write_to(NODE, moving)
        with pytest.raises((NotSent, NoAnswer)):
            look_for_brokers(asking.manager, NODE, SHORT, SHORT)
    finally:
        holding.release()
        monkeypatch.undo()
        asking.close()


@pytest.mark.parametrize("held", named(OPENING))
def test_nobody_waits_for_ever_to_connect(
    tmp_path: Path, broker: LoneBroker, monkeypatch: pytest.MonkeyPatch, holding: Holding, held: Held
) -> None:
    skip_other(broker, held)
    hold(monkeypatch, holding, held)
    hurry(monkeypatch)
    with pytest.raises(ClusterUnavailable):
        opened(tmp_path, broker)


@pytest.mark.parametrize("held", named(CLOSING))
def test_nobody_waits_for_ever_for_the_end(
    tmp_path: Path, broker: LoneBroker, monkeypatch: pytest.MonkeyPatch, holding: Holding, held: Held
) -> None:
    asking = opened(tmp_path, broker)
    with monkeypatch.context() as context:
        hold(context, holding, held)
        hurry(context)
        asking.close()
    holding.release()
    asking.client._client.close()


def test_a_request_that_is_asked_while_the_session_logs_in_again_is_not_kept_for_ever_and_has_not_left(
    tmp_path: Path, broker: LoneBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = opened(tmp_path, broker)
    before = len(broker.received)
    monkeypatch.setattr(SaslReauthenticator, "is_reauthenticating", True)
    hurry(monkeypatch, asking)
    with pytest.raises(NotSent):
        asking.write_to(NODE, moving)
    assert len(broker.received) == before
    asking.close()


def test_a_request_never_leaves_once_its_asker_has_given_up(
    tmp_path: Path, broker: LoneBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = opened(tmp_path, broker)
    held, released = KafkaConnectionManager.get_connection, threading.Event()

    def late(*arguments: object, **options: object) -> object:
        released.wait()
        return held(*arguments, **options)

    monkeypatch.setattr(KafkaConnectionManager, "get_connection", late)
    hurry(monkeypatch, asking)
    with pytest.raises(NotSent, match="no connection within"):
        asking.write_to(NODE, moving)
    released.set()
    monkeypatch.undo()
    asking.request_seconds = asking.setup_seconds = asking.retry_seconds = HANG
    asking.read(lambda: MetadataRequest(topics=[]))  # what was given up has had its turn by now
    assert moving().API_KEY not in broker.received
    asking.close()


PORTS: Mapping[str, dict[str, object]] = {
    "takes connections and is silent": {"is_silent": True},
    "closes after each byte": {"hangs_up_after": 1},
}


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS)
def test_a_port_that_is_no_broker_is_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, port: dict[str, bool]
) -> None:
    if "is_silent" in port:
        hurry(monkeypatch)
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 1)  # so long the library tries who hangs up
    with LoneBroker(**port) as other, pytest.raises(ClusterUnavailable) as refused:  # type: ignore[arg-type]
        open_wire(translate(properties(tmp_path, protocol, other)))
    says = {
        ("PLAINTEXT", "is_silent"): "None of bootstrap.servers answers (the broker: it takes connections and says",
        ("SSL", "is_silent"): "None of bootstrap.servers answers (the broker: it takes connections and says",
        ("PLAINTEXT", "hangs_up_after"): "What bootstrap.servers names takes connections but does not answer as a",
        ("SSL", "hangs_up_after"): "The broker broke off the TLS handshake",
    }
    assert str(refused.value).startswith(says[protocol, next(iter(port))])
    assert isinstance(refused.value, CheckFailed) == ((protocol, next(iter(port))) == ("SSL", "hangs_up_after"))


@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "last"])
def test_the_next_of_several_servers_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broker: LoneBroker, *, port: dict[str, bool], is_first: bool
) -> None:
    monkeypatch.setattr(connecting, "REACH_SECONDS", SHORT)
    with LoneBroker(**port) as other:  # type: ignore[arg-type]
        servers = (other, broker) if is_first else (broker, other)
        found = open_wire(translate(properties(tmp_path, broker.protocol, *servers)))  # type: ignore[attr-defined]
        assert found.brokers() == [NODE]
        another = open_another(found, HANG)
        assert another.brokers() == [NODE]
        for one in (found, another):
            one.close()
