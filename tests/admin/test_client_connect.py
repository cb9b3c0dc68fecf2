"""Getting to a cluster: a clear sentence where there is none, and no secret in any log."""

import logging
import socket
import threading
from collections.abc import Iterator

import pytest
from kafka.net import KafkaTCPTransport

from reconciler.admin.client import connect, connecting, redact
from reconciler.model.problem import ClusterUnavailable

PASSWORD = 'p4ss"wörd\\'  # noqa: S105 - a canary


@pytest.fixture
def mute_server() -> Iterator[int]:
    """Give the port of a server that accepts connections and closes them at once: no Kafka broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=hang_up)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_cluster_that_is_not_there_is_told_with_every_reason() -> None:
    port = free_port()
    with pytest.raises(ClusterUnavailable) as refused:
        connect({"bootstrap.servers": f"127.0.0.1:{port},no-such-host.invalid:9092"})
    assert str(refused.value) == (
        "None of bootstrap.servers can be reached (server 1: connection refused; server 2: no such host). "
        "Check their names and ports, that the brokers run, and that the network between lets this machine through."
    )


def test_what_is_no_broker_is_told_as_such(mute_server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 0.5)
    threads = threading.active_count()
    with pytest.raises(ClusterUnavailable, match="takes connections but does not answer as a Kafka broker") as refused:
        connect({"bootstrap.servers": f"127.0.0.1:{mute_server}"})
    assert "Check that security.protocol" in str(refused.value)
    assert threading.active_count() == threads


def test_the_password_is_not_in_the_log(
    mute_server: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 0.3)
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ada"}
    with caplog.at_level(logging.DEBUG), pytest.raises(ClusterUnavailable) as refused:
        connect({"bootstrap.servers": f"127.0.0.1:{mute_server}", **login, "sasl.password": PASSWORD})
    told = [message for message in caplog.messages if message.startswith("Starting KafkaAdminClient")]
    assert told
    assert redact.HIDDEN in told[0]
    for form in (PASSWORD, repr(PASSWORD)[1:-1], repr(PASSWORD.encode())[2:-1]):
        assert form not in caplog.text
        assert form not in str(refused.value)


@pytest.mark.parametrize(
    ("servers", "mechanism", "protocol", "is_told"),
    [
        ("kafka.invalid:9", "PLAIN", "SASL_PLAINTEXT", True),
        ("127.0.0.1:9,kafka.invalid:9", "PLAIN", "SASL_PLAINTEXT", True),
        ("kafka.invalid:9", "SCRAM-SHA-512", "SASL_PLAINTEXT", False),
        ("kafka.invalid:9", "PLAIN", "SASL_SSL", False),
        ("127.0.0.1:9,localhost:9,[::1]:9", "PLAIN", "SASL_PLAINTEXT", False),
    ],
)
def test_a_password_that_leaves_this_machine_in_the_clear_is_warned_of(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    servers: str,
    mechanism: str,
    protocol: str,
    *,
    is_told: bool,
) -> None:
    def none(*_: object, **__: object) -> None:
        raise ClusterUnavailable("none")

    monkeypatch.setattr(connecting, "reachable", none)
    login = {"sasl.mechanism": mechanism, "sasl.username": "ada", "sasl.password": PASSWORD}
    with pytest.raises(ClusterUnavailable):
        connect({"bootstrap.servers": servers, "security.protocol": protocol, **login})
    assert [message.endswith("(KR649)") for message in caplog.messages] == [True] * is_told


def test_a_secret_is_hidden_in_every_shape_and_in_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    redact.hide_in_logs("canary-4711", "canary-4711-and-more")
    logger = logging.getLogger("kafka.net.connection")
    try:
        int("canary-4711-and-more")
    except ValueError:
        logger.exception("sent %r and %s", b"\x00ada\x00canary-4711", {"password": "canary-4711-and-more"})
    assert caplog.messages == ["sent b'\\x00ada\\x00[hidden]' and {'password': '[hidden]'}"]
    assert "canary" not in caplog.text


def test_the_library_is_silent_where_logging_was_not_set_up(
    mute_server: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 0.3)
    for name in ("", "kafka", "reconciler"):
        monkeypatch.setattr(logging.getLogger(name or None), "handlers", [])
    with pytest.raises(ClusterUnavailable):
        connect({"bootstrap.servers": f"127.0.0.1:{mute_server}"})
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("times", [1, 2], ids=["set up once", "set up twice"])
def test_what_a_broker_said_before_it_hung_up_is_heard_though_both_are_read_at_once(times: int) -> None:
    for _ in range(times):
        connecting.read_in_parts()
    broker, ours = socket.socketpair()
    ours.settimeout(0)
    with ours:
        with broker:
            broker.sendall(b"login refused")
        transport = KafkaTCPTransport(None, ours, host="broker")
        assert transport._sock_recv() == (b"login refused", None)
        data, error = transport._sock_recv()
    assert data == b""
    assert "disconnected" in str(error)
