"""TLS: what the ssl.* properties come to, every fault in them a sentence, and nothing sent after a failed check."""

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.brokers.tls_server import TlsServer
from helpers.certificates import Authority

from reconciler.admin.client import connect, connecting, tls
from reconciler.admin.client.checks import CAUSES, failed_check
from reconciler.admin.client.exchange import NotSent
from reconciler.admin.client.properties import translate
from reconciler.admin.client.tls import Context, context_of
from reconciler.admin.client.wire import Wire
from reconciler.model.problem import CheckFailed, ClusterUnavailable

pytestmark = pytest.mark.long

AUTHORITY, STRANGERS = Authority("tests"), Authority("strangers")
BROKER, CLIENT = AUTHORITY.issue("127.0.0.1"), AUTHORITY.issue("client")
PASSWORD = "c4n4ry-password"  # noqa: S105 - looked for, never used elsewhere
PROPERTIES = Mapping[str, str]


def wrong(given: PROPERTIES) -> list[str]:
    context, problems = context_of(given)
    assert (context is None) == bool(problems)
    assert {problem.code for problem in problems} <= {"KR620"}
    return [problem.message for problem in problems]


def context(given: PROPERTIES) -> Context:
    found, problems = context_of(given)
    assert problems == []
    assert isinstance(found, Context)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "ca.pem": AUTHORITY.certificate,
        "both.pem": f"two authorities: é\n{STRANGERS.certificate}\n{AUTHORITY.certificate}",
        "pair.pem": CLIENT.key + CLIENT.chain,
        "chain.pem": CLIENT.chain + AUTHORITY.certificate,
        "key.pem": CLIENT.key,
        "locked.pem": CLIENT.chain + CLIENT.key_with(PASSWORD),
        "mixed.pem": CLIENT.chain + BROKER.key,
        "revoked.pem": AUTHORITY.revoked(BROKER),
        "text.pem": "hello",
        "broken.pem": "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
        "brokenlist.pem": "-----BEGIN X509 CRL-----\naGVsbG8=\n-----END X509 CRL-----\n",
        "cut.pem": CLIENT.chain[:200],
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_without_a_word_the_machines_own_authorities_are_trusted_and_everything_is_checked() -> None:
    found = context({})
    assert (found.verify_mode, found.check_hostname, found.has_certificate) == (ssl.CERT_REQUIRED, True, False)
    assert (found.minimum_version, found.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert found.cert_store_stats() == ssl.create_default_context().cert_store_stats()


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("TLSv1.2", (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)),
        ("TLSv1.3", (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)),
        ("TLSv1.3, TLSv1.2", (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)),
    ],
)
def test_versions_are_limited(text: str, versions: tuple[ssl.TLSVersion, ssl.TLSVersion]) -> None:
    found = context({"ssl.enabled.protocols": text})
    assert (found.minimum_version, found.maximum_version) == versions


@pytest.mark.parametrize(
    ("text", "is_checked"), [("https", True), ("HTTPS", True), ("htps", True), ("none", True), ("", False)]
)
def test_only_an_empty_text_switches_the_hosts_name_off(text: str, *, is_checked: bool) -> None:
    found = context({"ssl.endpoint.identification.algorithm": text})
    assert (found.check_hostname, found.verify_mode) == (is_checked, ssl.CERT_REQUIRED)


@pytest.mark.parametrize("name", tls.TRUSTED)
def test_a_truststore_of_several_authorities_is_read_in_each_form(folder: Path, name: str) -> None:
    text = (folder / "both.pem").read_text("utf-8")
    value = text if name.endswith("certificates") else str(folder / "both.pem")
    assert len(context({name: value, "ssl.truststore.type": "PEM"}).get_ca_certs()) == 2


def test_pem_whose_lines_are_run_together_is_read_as_java_reads_it() -> None:
    def line(text: str) -> str:
        return " ".join(text.split("\n"))

    given = {"ssl.truststore.certificates": line(AUTHORITY.certificate + STRANGERS.certificate)}
    assert len(context(given).get_ca_certs()) == 2
    own = {"ssl.keystore.certificate.chain": line(CLIENT.chain), "ssl.keystore.key": line(CLIENT.key)}
    assert context(own).has_certificate


PEM = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}


@pytest.mark.parametrize(
    "given",
    [
        {"ssl.keystore.location": "{folder}/pair.pem"},
        {"ssl.keystore.location": "{folder}/locked.pem", "ssl.key.password": PASSWORD},
        {"ssl.keystore.location": "{folder}/locked.pem", "ssl.keystore.password": PASSWORD},
        {"ssl.certificate.location": "{folder}/chain.pem", "ssl.key.location": "{folder}/key.pem"},
        {"ssl.certificate.location": "{folder}/pair.pem"},
        {"ssl.keystore.certificate.chain": CLIENT.chain, "ssl.keystore.key": CLIENT.key},
        {
            "ssl.keystore.certificate.chain": CLIENT.chain + AUTHORITY.certificate,
            "ssl.keystore.key": CLIENT.key_with(PASSWORD),
            "ssl.key.password": PASSWORD,
        },
    ],
)
def test_a_client_has_a_certificate_in_each_form(folder: Path, given: PROPERTIES) -> None:
    assert context(PEM | {name: value.format(folder=folder) for name, value in given.items()}).has_certificate


GONE = "The file that {name} names does not exist. Correct the path."
NO_PEM = "{name} holds no {kind} in PEM form. Put in one that begins with -----BEGIN."
UNREADABLE = "{name} holds a certificate that cannot be read. Export it anew, as PEM."


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ssl.ca.location": "gone.pem"}, GONE.format(name="ssl.ca.location")),
        ({"ssl.truststore.location": "gone.pem"}, GONE.format(name="ssl.truststore.location")),
        ({"ssl.keystore.location": "gone.pem"}, GONE.format(name="ssl.keystore.location")),
        ({"ssl.crl.location": "gone.pem"}, GONE.format(name="ssl.crl.location")),
        (
            {"ssl.certificate.location": "chain.pem", "ssl.key.location": "gone.pem"},
            GONE.format(name="ssl.key.location"),
        ),
        ({"ssl.ca.location": "."}, "ssl.ca.location names what is no file. Correct the path."),
        ({"ssl.ca.location": "text.pem"}, NO_PEM.format(name="ssl.ca.location", kind="certificate")),
        ({"ssl.ca.location": "cut.pem"}, NO_PEM.format(name="ssl.ca.location", kind="certificate")),
        ({"ssl.ca.location": "key.pem"}, NO_PEM.format(name="ssl.ca.location", kind="certificate")),
        ({"ssl.ca.location": "broken.pem"}, UNREADABLE.format(name="ssl.ca.location")),
        (
            {"ssl.truststore.certificates": "hello"},
            NO_PEM.format(name="ssl.truststore.certificates", kind="certificate"),
        ),
        ({"ssl.crl.location": "ca.pem"}, NO_PEM.format(name="ssl.crl.location", kind="revocation list")),
        (
            {"ssl.crl.location": "brokenlist.pem"},
            "ssl.crl.location holds a revocation list that cannot be read. Fetch it anew, as PEM.",
        ),
        ({"ssl.keystore.location": "chain.pem"}, NO_PEM.format(name="ssl.keystore.location", kind="private key")),
        ({"ssl.keystore.location": "key.pem"}, NO_PEM.format(name="ssl.keystore.location", kind="certificate")),
        (
            {"ssl.keystore.location": "locked.pem"},
            "The key of ssl.keystore.location is encrypted. Set ssl.key.password.",
        ),
        (
            {"ssl.keystore.location": "locked.pem", "ssl.key.password": f"not {PASSWORD}"},
            "ssl.key.password does not open the key of ssl.keystore.location. Correct the password.",
        ),
        (
            {"ssl.keystore.location": "mixed.pem"},
            (
                "The key of ssl.keystore.location does not belong to the first certificate of ssl.keystore.location. "
                "Put the two of one pair together."
            ),
        ),
        (
            {"ssl.keystore.certificate.chain": BROKER.chain, "ssl.keystore.key": CLIENT.key},
            (
                "The key of ssl.keystore.key does not belong to the first certificate of "
                "ssl.keystore.certificate.chain. "
                "Put the two of one pair together."
            ),
        ),
        (
            {"ssl.keystore.certificate.chain": CLIENT.chain},
            "ssl.keystore.certificate.chain has no key beside it. Set ssl.keystore.key.",
        ),
        (
            {"ssl.keystore.key": CLIENT.key},
            "ssl.keystore.key has no certificate beside it. Set ssl.keystore.certificate.chain.",
        ),
        (
            {"ssl.key.location": "key.pem"},
            "ssl.key.location has no certificate beside it. Set ssl.certificate.location.",
        ),
        (
            {"ssl.keystore.certificate.chain": CLIENT.chain, "ssl.keystore.key": CLIENT.key_with(PASSWORD)},
            "The key of ssl.keystore.key is encrypted. Set ssl.key.password.",
        ),
        (
            {"ssl.ca.location": "ca.pem", "ssl.truststore.location": "ca.pem"},
            "ssl.truststore.location and ssl.ca.location are both set. Keep one of them.",
        ),
        (
            {"ssl.keystore.location": "pair.pem", "ssl.keystore.type": "JKS"},
            (
                "ssl.keystore.location names a Java keystore, which cannot be read here. Export it as PEM, for example "
                "with `keytool -exportcert -rfc`, and set ssl.keystore.type to PEM."
            ),
        ),
    ],
)
def test_each_fault_of_a_file_or_a_text_is_told_by_the_propertys_name(
    folder: Path, given: PROPERTIES, says: str
) -> None:
    placed = {n: str(folder / value) if n.endswith("location") else value for n, value in given.items()}
    (told,) = wrong(PEM | placed)
    assert told == says
    assert str(folder) not in told


def test_a_file_that_may_not_be_read_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert wrong({"ssl.ca.location": str(folder / "ca.pem")}) == [
        "The file that ssl.ca.location names cannot be read: Permission denied. Give this user the right to."
    ]


def test_all_faults_are_told_at_once(folder: Path) -> None:
    given = {"ssl.ca.location": "gone", "ssl.crl.location": "gone"}
    assert len(wrong(given | {"ssl.certificate.location": str(folder / "gone")})) == 3


@pytest.fixture
def server(folder: Path) -> Iterator[TlsServer]:
    (folder / "broker.pem").write_text(BROKER.key + BROKER.chain, "utf-8")
    with TlsServer(folder / "broker.pem") as running:
        yield running


LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "ada", "sasl.password": PASSWORD}


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"ssl.ca.location": "strangers.pem"}, "KR606"),
        ({}, "KR606"),
        ({"ssl.ca.location": "ca.pem", "host": "localhost"}, "KR607"),
        ({"ssl.ca.location": "ca.pem", "ssl.crl.location": "revoked.pem"}, "KR609"),
        ({"ssl.ca.location": "ca.pem", "ssl.crl.location": "others.pem"}, "KR609"),
        ({"ssl.ca.location": "ca.pem", "ssl.crl.location": "stale.pem"}, "KR609"),
    ],
)
def test_after_a_failed_check_no_byte_of_a_login_is_sent_and_nothing_is_tried_again(
    folder: Path, server: TlsServer, given: PROPERTIES, code: str, versions: str
) -> None:
    (folder / "strangers.pem").write_text(STRANGERS.certificate, "utf-8")
    (folder / "others.pem").write_text(STRANGERS.revoked(), "utf-8")
    (folder / "stale.pem").write_text(AUTHORITY.revoked(begins=-3, ends=-2), "utf-8")
    named = {name: str(folder / value) for name, value in given.items() if name.endswith("location")}
    servers = {"bootstrap.servers": f"{given.get('host', '127.0.0.1')}:{server.port}"}
    with pytest.raises(CheckFailed) as refused:
        connect({**LOGIN, **servers, **named, "ssl.enabled.protocols": versions})
    assert refused.value.code == code
    server.wait_until_idle()
    assert (server.received, server.connections, server.handshakes) == (b"", 1, 0)
    assert PASSWORD not in str(refused.value)
    assert "127.0.0.1" not in str(refused.value)


def test_a_good_certificate_passes_and_what_answers_then_is_no_broker(
    folder: Path, server: TlsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 0.3)
    servers = {"bootstrap.servers": f"127.0.0.1:{server.port}", "ssl.ca.location": str(folder / "ca.pem")}
    with pytest.raises(ClusterUnavailable, match="does not answer as a Kafka broker") as refused:
        connect({**servers, "security.protocol": "SSL"})
    assert refused.value.code == "KR600"
    server.wait_until_idle()
    assert server.received.startswith(connecting.WHAT_DO_YOU_SPEAK)


def test_a_server_that_fails_its_check_only_when_the_library_comes_is_not_tried_again_either(
    folder: Path, server: TlsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where somebody steps in between our check and the library's."""
    monkeypatch.setattr(connecting, "reachable", lambda servers, *_, **__: servers)
    (folder / "strangers.pem").write_text(STRANGERS.certificate, "utf-8")
    servers = {"bootstrap.servers": f"127.0.0.1:{server.port}", "ssl.ca.location": str(folder / "strangers.pem")}
    with pytest.raises(CheckFailed) as refused:
        connect({**LOGIN, **servers})
    assert refused.value.code == "KR606"
    server.wait_until_idle()
    assert (server.received, server.connections, server.handshakes) == (b"", 1, 0)


def test_of_two_servers_the_one_that_fails_its_check_is_left_out_and_told(
    folder: Path, server: TlsServer, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"bootstrap.servers": "k", "security.protocol": "SSL", "ssl.ca.location": str(folder / "ca.pem")}
    trusted = translate(given).options["ssl_context"]
    assert isinstance(trusted, ssl.SSLContext)
    good, other = ("127.0.0.1", server.port), ("localhost", server.port)
    assert connecting.reachable((other, good), trusted) == (good,)
    (told,) = caplog.messages
    assert told.startswith("The certificate of server 1 is for another host.")
    assert told.endswith("It is left out. (KR607)")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1)", "KR606"),
        ("[SSL: SSLV3_ALERT_CERTIFICATE_EXPIRED] sslv3 alert certificate expired (_ssl.c:1)", "KR646"),
        ("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required (_ssl.c:1)", "KR646"),
        ("[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca (_ssl.c:1)", "KR646"),
        ("[SSL: UNSUPPORTED_PROTOCOL] unsupported protocol (_ssl.c:1)", "KR647"),
        ("Handshake failed: [SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1)", "KR648"),
        ("Handshake failed: [Errno 104] Connection reset by peer", "KR648"),
        ("Invalid frame length: 352518912", "KR648"),
        ("Invalid frame length: 1213486160", None),
        ("[SSL: SSLV3_ALERT_BAD_RECORD_MAC] sslv3 alert bad record mac (_ssl.c:1)", None),
        ("Connection reset by peer", None),
        ("socket disconnected", None),
    ],
)
def test_what_openssl_says_is_told_by_its_cause(said: str, code: str | None) -> None:
    found = failed_check(said, "broker 3", has_certificate=True)
    assert (found.code if found else None) == code


def test_who_shows_no_certificate_is_told_how_and_who_shows_one_is_told_what_is_wrong_with_it() -> None:
    said = "[SSL: SSLV3_ALERT_BAD_CERTIFICATE] sslv3 alert bad certificate"
    told = [str(failed_check(said, "broker 3", has_certificate=has)) for has in (False, True)]
    assert told[0].startswith("Broker 3 lets only clients in that show a certificate, and none is set.")
    assert told[1].startswith("Broker 3 does not accept the certificate of this client.")


def test_every_cause_says_what_to_do_next() -> None:
    assert all(cause.sentence.count(". ") >= 1 and cause.sentence.endswith(".") for cause in CAUSES)


class _Manager:
    """The library beside a broker whose certificate has run out: it says why once, and waits before its next try."""

    cluster = SimpleNamespace(broker_metadata=lambda _node: object(), brokers=lambda: [SimpleNamespace(node_id=1)])

    def __init__(self) -> None:
        self.tries = 0

    def run(self, *_: object) -> object:
        self.tries += 1
        why = ssl.SSLError("certificate verify failed: certificate has expired") if self.tries == 1 else None
        raise NotSent("broker 1: not ready") from why


def test_a_failed_check_counts_until_the_library_tries_again() -> None:
    manager = _Manager()
    client: Any = SimpleNamespace(_manager=manager)
    asked = Wire(client, retry_seconds=0, connection=translate({"bootstrap.servers": "k"}))
    for tries in (1, 2):
        with pytest.raises(CheckFailed, match="expired") as refused:
            asked.read(lambda: None)
        assert (refused.value.code, manager.tries) == ("KR608", tries)
    asked.refused = {node: (told, 0.0) for node, (told, _) in asked.refused.items()}
    with pytest.raises(ClusterUnavailable) as unavailable:
        asked.read(lambda: None)
    assert unavailable.value.code == "KR600"
