"""The tables of the guide to connections, row by row: one broker with a listener for each thing that can be wrong.

What a row says is what must come, word for word; a row without a case, and a case without a row, fail.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.recorder import Recorder
from helpers.certificates import Authority, Pair
from helpers.figures import Tell
from helpers.program.call import Ended, Program
from helpers.waiting import ATTEMPT, HANG, asked_again

from reconciler.admin.client.oauth import ENDPOINT, LOGIN_MODULE, UNSIGNED

GUIDE = Path(__file__).resolve().parents[2] / ".github" / "guides" / "connect.md"
HOST = "127.0.0.1"
PASSWORD, USER = "c4n4ry-password", "c4n4ry-ada"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
AWS_ID, AWS_KEY = "c4n4ry-id", "c4n4ry-key"

# How trust and the own certificate can be written. {a} stands for a file's path or a text, as the form has it.
JAVA, LIBRDKAFKA, INLINE = "Java's files", "librdkafka's files", "in the properties"
TRUST = {JAVA: "ssl.truststore.location", LIBRDKAFKA: "ssl.ca.location", INLINE: "ssl.truststore.certificates"}
OWN = {JAVA: "ssl.keystore.location", LIBRDKAFKA: "ssl.certificate.location", INLINE: "ssl.keystore.certificate.chain"}
KEY = {JAVA: "ssl.keystore.location", LIBRDKAFKA: "ssl.key.location", INLINE: "ssl.keystore.key"}
FORMS, FILES = (JAVA, LIBRDKAFKA, INLINE), (JAVA, LIBRDKAFKA)
MISSPELT = {JAVA: "ssl.truststore.locaton", LIBRDKAFKA: "ssl.ca.locaton", INLINE: "ssl.truststore.certificate"}


class Row(NamedTuple):
    """What the guide promises."""

    says: str
    code: str


@dataclass
class Certificates:
    """Whom the tests trust, and what they show; the broker's are signed by `ours`."""

    ours: Authority = field(default_factory=lambda: Authority("tests"))
    strangers: Authority = field(default_factory=lambda: Authority("strangers"))

    def __post_init__(self) -> None:
        self.revoked = self.ours.issue(HOST)
        self.own = self.ours.issue("client")


@dataclass
class Given:
    """The properties of one call."""

    kafka: KafkaCluster
    certificates: Certificates
    folder: Path
    form: str
    properties: dict[str, str] = field(default_factory=dict)

    def at(self, listener: str, protocol: str = "SSL", *, trust: str | None = "") -> "Given":
        """Go to a listener, and trust our CA unless another text, or None, is given."""
        self.properties |= {"bootstrap.servers": self.kafka.listener(listener), "security.protocol": protocol}
        return self if trust is None else self.trust(trust or self.certificates.ours.certificate)

    def plain(self) -> "Given":
        """Go to the listener without TLS."""
        self.properties["bootstrap.servers"] = self.kafka.bootstrap
        return self

    def trust(self, text: str) -> "Given":
        self._write(TRUST.get(self.form, TRUST[JAVA]), text)  # the form of a login is its mechanism
        return self.set("ssl.truststore.type", "PEM")

    def show(self, pair: Pair, *, key: str | None = None) -> "Given":
        """Show a certificate, with its key or another PEM text."""
        key = key or pair.key
        if self.form == JAVA:
            self._write(OWN[JAVA], key + pair.chain)
        else:
            self._write(OWN[self.form], pair.chain)
            self._write(KEY[self.form], key)
        return self.set("ssl.keystore.type", "PEM")

    def revoke(self, text: str) -> "Given":
        self._write("ssl.crl.location", text)
        return self

    def login(self, mechanism: str, user: str = USER, password: str = PASSWORD) -> "Given":
        self.properties |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
        return self

    def set(self, name: str, value: str) -> "Given":
        self.properties[name] = value
        return self

    def lose(self, name: str) -> "Given":
        """Remove the file that a property names."""
        Path(self.properties[name]).unlink()
        return self

    def rename(self, name: str, new: str) -> "Given":
        self.properties[new] = self.properties.pop(name)
        return self

    def _write(self, name: str, text: str) -> None:
        if not name.endswith(".location"):
            self.properties[name] = text
            return
        file = self.folder / f"{name}.pem"
        file.write_text(text, "utf-8")
        self.properties[name] = str(file)


Make = Callable[[Given, Certificates], Given]


class Case(NamedTuple):
    """How a row comes to be, and in which forms."""

    make: Make
    forms: tuple[str, ...] = FORMS
    environment: Mapping[str, str] = {}


DAMAGED = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n"
NO_AWS = {
    **{f"AWS_{name}": "" for name in ("PROFILE", "DEFAULT_REGION", "REGION", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY")},
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "gone",
    "AWS_SHARED_CREDENTIALS_FILE": "gone",
}
AWS = NO_AWS | {"AWS_ACCESS_KEY_ID": AWS_ID, "AWS_SECRET_ACCESS_KEY": AWS_KEY, "AWS_DEFAULT_REGION": "eu-central-1"}

TLS: Mapping[str, Case] = {
    "the CA is another one": Case(lambda g, c: g.at("GOOD", trust=c.strangers.certificate)),
    "no CA is set, and the brokers' is private": Case(lambda g, _: g.at("GOOD", trust=None), (JAVA,)),
    "the certificate is for another host": Case(lambda g, _: g.at("OTHERHOST")),
    "the certificate has expired": Case(lambda g, _: g.at("EXPIRED")),
    "the certificate is not valid yet": Case(lambda g, _: g.at("EARLY")),
    "the certificate is revoked": Case(lambda g, c: g.at("REVOKED").revoke(c.ours.revoked(c.revoked))),
    "the revocation list is of another CA": Case(lambda g, c: g.at("GOOD").revoke(c.strangers.revoked())),
    "the revocation list is out of date": Case(
        lambda g, c: g.at("GOOD").revoke(c.ours.revoked(c.revoked, begins=-5, ends=-2))
    ),
    "the revocation list's file is gone": Case(
        lambda g, c: g.at("GOOD").revoke(c.ours.revoked()).lose("ssl.crl.location")
    ),
    "the truststore's file is gone, or its path misspelt": Case(lambda g, _: g.at("GOOD").lose(TRUST[g.form]), FILES),
    "the own certificate's file is gone, or its path misspelt": Case(
        lambda g, c: g.at("GOOD").show(c.own).lose(OWN[g.form]), FILES
    ),
    "the truststore's file holds no PEM": Case(lambda g, _: g.at("GOOD", trust=PASSWORD), FILES),
    "the truststore's text is no PEM": Case(lambda g, _: g.at("GOOD", trust=PASSWORD), (INLINE,)),
    "a certificate in it is damaged": Case(lambda g, _: g.at("GOOD", trust=DAMAGED)),
    "a property's name is misspelt": Case(lambda g, _: g.at("GOOD").rename(TRUST[g.form], MISSPELT[g.form])),
    "a TLS version is misspelt, or too old": Case(lambda g, _: g.at("GOOD").set("ssl.enabled.protocols", "TLSv1.1")),
    "the check of the host's name is misspelt": Case(
        lambda g, _: g.at("GOOD").set("ssl.endpoint.identification.algorithm", "htps")
    ),
    "the check of the host's name is switched off": Case(
        lambda g, _: g.at("OTHERHOST").set("ssl.endpoint.identification.algorithm", "")
    ),
    "TLS is set up, and security.protocol is without it": Case(lambda g, _: g.at("GOOD", "PLAINTEXT").plain()),
    "the own key is encrypted, without a password": Case(
        lambda g, c: g.at("GOOD").show(c.own, key=c.own.key_with(PASSWORD))
    ),
    "the own key's password is wrong": Case(
        lambda g, c: g.at("GOOD").show(c.own, key=c.own.key_with("another")).set("ssl.key.password", PASSWORD)
    ),
    "the own key is of another certificate": Case(lambda g, c: g.at("GOOD").show(c.own, key=c.revoked.key)),
    "the brokers demand a certificate, and none is set": Case(lambda g, _: g.at("MUTUAL")),
    "the brokers do not trust the own certificate's CA": Case(
        lambda g, c: g.at("MUTUAL").show(c.strangers.issue("client"))
    ),
    "the own certificate has expired": Case(
        lambda g, c: g.at("MUTUAL").show(c.ours.issue("client", begins=-20, ends=-10))
    ),
    "the brokers speak TLS 1.1 and nothing newer": Case(lambda g, _: g.at("OLD")),
    "the brokers speak another version than ssl.enabled.protocols allows": Case(
        lambda g, _: g.at("TWO").set("ssl.enabled.protocols", "TLSv1.3")
    ),
    "this client speaks TLS, and the listener does not": Case(lambda g, _: g.at("GOOD").plain()),
    "the listener speaks TLS, and this client does not": Case(
        lambda g, _: g.at("GOOD", "PLAINTEXT", trust=None), (JAVA,)
    ),
}
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def _token(given: Given, subject: str) -> Given:
    text = f'{LOGIN_MODULE} required {UNSIGNED}="{subject}";'
    return given.set("sasl.mechanism", "OAUTHBEARER").set("sasl.jaas.config", text)


def _bad_token(given: Given, _: Certificates) -> Given:
    (given.folder / "token").write_text("c4n4ry.to.ken", "utf-8")
    return (
        given.at("TOKEN", "SASL_SSL").set("sasl.mechanism", "OAUTHBEARER").set(ENDPOINT, f"file://{given.folder}/token")
    )


def _no_token(given: Given, _: Certificates) -> Given:
    return (
        given.at("TOKEN", "SASL_SSL").set("sasl.mechanism", "OAUTHBEARER").set(ENDPOINT, f"file://{given.folder}/gone")
    )


# The form of a login is its mechanism.
LOGINS: Mapping[str, Case] = {
    "the password is wrong": Case(lambda g, _: g.at("LOGIN", "SASL_SSL").login(g.form, password=AWS_KEY), PASSWORDS),
    "the user is unknown": Case(lambda g, _: g.at("LOGIN", "SASL_SSL").login(g.form, user="c4n4ry-eve"), PASSWORDS),
    "the mechanism is not offered": Case(
        lambda g, _: g.at("TOKEN" if g.form in PASSWORDS else "LOGIN", "SASL_SSL").login(g.form),
        (*PASSWORDS, "AWS_MSK_IAM"),
        AWS,
    ),
    "the listener takes no login": Case(lambda g, _: g.at("GOOD", "SASL_SSL").login(g.form), PASSWORDS),
    "the broker is not trusted, so that no login is begun": Case(
        lambda g, c: g.at("LOGIN", "SASL_SSL", trust=c.strangers.certificate).login(g.form),
        (*PASSWORDS, "AWS_MSK_IAM"),
        AWS,
    ),
    "the token is not accepted": Case(_bad_token, ("OAUTHBEARER",)),
    "the token's file is gone": Case(_no_token, ("OAUTHBEARER",)),
    "the token endpoint's certificate is not trusted": Case(
        lambda g, _: (
            g.at("TOKEN", "SASL_SSL")
            .set("sasl.mechanism", "OAUTHBEARER")
            .set(ENDPOINT, f"https://{g.kafka.listener('GOOD')}/token")
            .set("sasl.oauthbearer.client.credentials.client.id", USER)
            .set("sasl.oauthbearer.client.credentials.client.secret", PASSWORD)
        ),
        ("OAUTHBEARER",),
    ),
    "AWS has no credentials": Case(
        lambda g, _: g.at("LOGIN", "SASL_SSL").set("sasl.mechanism", g.form), ("AWS_MSK_IAM",), NO_AWS
    ),
    "AWS's region is not known": Case(
        lambda g, _: g.at("LOGIN", "SASL_SSL").set("sasl.mechanism", g.form),
        ("AWS_MSK_IAM",),
        AWS | {"AWS_DEFAULT_REGION": ""},
    ),
    "a login of AWS goes without TLS": Case(
        lambda g, _: g.at("LOGIN", "SASL_PLAINTEXT", trust=None).set("sasl.mechanism", g.form), ("AWS_MSK_IAM",)
    ),
    "a password or token goes over an open network": Case(
        lambda g, _: (
            g.set("security.protocol", "SASL_PLAINTEXT").login("PLAIN").set("bootstrap.servers", "c4n4ry.invalid:9092")
        ),
        ("PLAIN",),
    ),
}
CASES = {**TLS, **LOGINS}
WARNINGS = ("KR621", "KR622", "KR649")
GET_IN = ("the check of the host's name is switched off", "TLS is set up, and security.protocol is without it")
ALL = [pytest.param(row, form, id=f"{row} - {form}") for row, case in CASES.items() for form in case.forms]


def documented() -> dict[str, Row]:
    """Return the rows of the guide's tables of what can be wrong."""
    text = GUIDE.read_text("utf-8").partition("## What can be wrong")[2]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    return {row[0]: Row(row[1], row[2]) for row in cells if re.fullmatch(r"KR\d{3}", row[2])}


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return Certificates()


@pytest.fixture(scope="module")
def secured(
    kafka_version: str, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory, figures: Tell
) -> Iterator[KafkaCluster]:
    """One broker, on which every listener is another case."""
    folder = tmp_path_factory.mktemp("tls")
    ours = certificates.ours
    (folder / "ca.pem").write_text(ours.certificate, "utf-8")
    (folder / "java.security").write_text("jdk.tls.disabledAlgorithms=SSLv3, RC4, NULL\n", "utf-8")  # lets TLS 1.1 in
    keys = {
        "GOOD": ours.issue(HOST),
        "OTHERHOST": ours.issue("kafka.example"),
        "EXPIRED": ours.issue(HOST, begins=-20, ends=-10),
        "EARLY": ours.issue(HOST, begins=5, ends=10),
        "REVOKED": certificates.revoked,
        "MUTUAL": ours.issue(HOST),
        "OLD": ours.issue(HOST),
        "TWO": ours.issue(HOST),
        "LOGIN": ours.issue(HOST),
        "TOKEN": ours.issue(HOST),
    }
    logins = {"LOGIN": "SASL_SSL", "TOKEN": "SASL_SSL"}
    settings = {"num.network.threads": "1"}
    for name, pair in keys.items():
        (folder / f"{name}.pem").write_text(pair.key + pair.chain, "utf-8")
        prefix = f"listener.name.{name.lower()}.ssl.keystore"
        settings |= {f"{prefix}.type": "PEM", f"{prefix}.location": str(folder / f"{name}.pem")}
    settings |= {
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.truststore.type": "PEM",
        "listener.name.mutual.ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.old.ssl.protocol": "TLSv1.1",
        "listener.name.old.ssl.enabled.protocols": "TLSv1.1",
        "listener.name.two.ssl.protocol": "TLSv1.2",
        "listener.name.two.ssl.enabled.protocols": "TLSv1.2",
        "listener.name.login.sasl.enabled.mechanisms": ",".join(PASSWORDS),
        "listener.name.login.plain.sasl.jaas.config": f'{PLAIN} required user_{USER}="{PASSWORD}";',
        "listener.name.login.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        "listener.name.login.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
        "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.token.oauthbearer.sasl.jaas.config": f'{LOGIN_MODULE} required {UNSIGNED}="broker";',
    }
    with KafkaCluster(
        version=kafka_version,
        broker_ids=(1,),
        settings=settings,
        is_plain=True,  # its own listeners are what is tried, by users without any right
        listeners={name: logins.get(name, "SSL") for name in keys},
        java_options=(f"-Djava.security.properties={folder / 'java.security'}",),
    ) as kafka:
        _add_user(kafka, folder / "ca.pem")
        yield kafka
    right = sum(len(case.forms) for case in GOOD.values())
    rows = f"{len(CASES)} rows of the guide in {len(ALL)} forms, {right} ways that get in"
    figures("TLS and logins", f"{rows}, on Kafka {kafka_version}")


def _add_user(kafka: KafkaCluster, trusted: Path) -> None:
    """Add the SCRAM user, and wait until it can log in."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for each in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        added = UserScramCredentialUpsertion(USER, ScramCredentialInfo(each, 4096), PASSWORD.encode())
        admin.alter_user_scram_credentials([added])[USER].result(HANG)
    for mechanism in PASSWORDS[1:]:
        login = {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": PASSWORD, "log_level": 0}
        servers = {"bootstrap.servers": kafka.listener("LOGIN"), "security.protocol": "SASL_SSL"}
        client = AdminClient(servers | login | {"ssl.ca.location": str(trusted)})
        asked_again(partial(client.list_topics, timeout=ATTEMPT), KafkaException)


@pytest.fixture
def given(secured: KafkaCluster, certificates: Certificates, tmp_path: Path) -> Callable[[str], Given]:
    return lambda form: Given(secured, certificates, tmp_path, form)


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capsys)


def snapshot(program: Program, given: Given) -> Ended:
    """Take a snapshot with these properties, as a user does."""
    lines = [f"{name}={json.dumps(value)[1:-1]}\n" for name, value in given.properties.items()]
    file = given.folder / "client.properties"
    file.write_text("".join(lines), "utf-8")
    return program("snapshot", "--client", str(file))


def test_each_row_of_the_guide_has_a_case_and_each_case_a_row() -> None:
    assert list(documented()) == list(CASES)


@pytest.mark.parametrize(("row", "form"), ALL)
@pytest.mark.brokers
def test_what_is_wrong_is_said_as_the_guide_has_it(
    program: Program, given: Callable[[str], Given], monkeypatch: pytest.MonkeyPatch, row: str, form: str
) -> None:
    case, promised = CASES[row], documented()[row]
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    made = case.make(given(form), given(form).certificates)
    ended = snapshot(program, made)
    assert (ended.code, bool(ended.out)) == (0, True) if row in GET_IN else (1, False), ended.err
    errors, warnings = (
        [line for line in ended.err.splitlines() if line.startswith(f"{kind}: ")] for kind in ("error", "warning")
    )
    says = promised.says.format_map(
        {"trust": TRUST.get(form), "own": OWN.get(form), "key": KEY.get(form), "misspelt": MISSPELT.get(form)}
    )
    line = warnings if promised.code in WARNINGS else errors
    assert len(errors) == (row not in GET_IN), ended.err
    assert len(warnings) == (promised.code in WARNINGS), ended.err
    assert line[0].partition(": ")[2].startswith(says), ended.err
    assert line[0].endswith(f"({promised.code})"), ended.err
    seen = [text for text in _secrets(made) if text in ended.err]
    assert seen == [], ended.err


def _secrets(given: Given) -> list[str]:
    """Return what may not be seen: the values of properties that can be anything, and parts of keys."""
    values = [
        value
        for name, value in given.properties.items()
        if name in {"bootstrap.servers", *TRUST.values(), *OWN.values(), *KEY.values()}
    ]
    return [*values, str(given.folder), HOST, "c4n4ry", given.certificates.own.key.splitlines()[1], AWS_ID, AWS_KEY]


GOOD: Mapping[str, Case] = {
    "TLS": Case(lambda g, _: g.at("GOOD")),
    "TLS 1.2 alone": Case(lambda g, _: g.at("TWO")),
    "two CAs in a truststore": Case(lambda g, c: g.at("GOOD", trust=c.strangers.certificate + c.ours.certificate)),
    "a list that does not name the broker": Case(lambda g, c: g.at("GOOD").revoke(c.ours.revoked(c.revoked))),
    "an own certificate": Case(lambda g, c: g.at("MUTUAL").show(c.own)),
    "an own certificate and its encrypted key": Case(
        lambda g, c: g.at("MUTUAL").show(c.own, key=c.own.key_with(PASSWORD)).set("ssl.key.password", PASSWORD)
    ),
    "a password": Case(lambda g, _: g.at("LOGIN", "SASL_SSL").login(g.form), PASSWORDS),
    "a token": Case(lambda g, _: _token(g.at("TOKEN", "SASL_SSL"), USER), ("OAUTHBEARER",)),
}


@pytest.mark.parametrize(
    ("what", "form"),
    [pytest.param(what, form, id=f"{what} - {form}") for what, case in GOOD.items() for form in case.forms],
)
@pytest.mark.brokers
def test_what_is_right_gets_in(
    program: Program, given: Callable[[str], Given], secured: KafkaCluster, what: str, form: str
) -> None:
    ended = snapshot(program, GOOD[what].make(given(form), given(form).certificates))
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["clusterId"] == secured.cluster_id


@pytest.mark.parametrize(
    ("row", "most"),
    [
        ("the brokers demand a certificate, and none is set", 1),
        ("the brokers speak TLS 1.1 and nothing newer", 1),
        ("this client speaks TLS, and the listener does not", 1),
        ("the listener speaks TLS, and this client does not", 2),
    ],
)
@pytest.mark.brokers
def test_what_cannot_succeed_is_not_tried_again(
    program: Program, given: Callable[[str], Given], row: str, most: int
) -> None:
    made = TLS[row].make(given(JAVA), given(JAVA).certificates)
    host, port = made.properties["bootstrap.servers"].split(":")
    with Recorder((host, int(port))) as recorder:
        ended = snapshot(program, made.set("bootstrap.servers", f"{HOST}:{recorder.port}"))
        assert ended.err.endswith(f"({documented()[row].code})\n")
    assert len(recorder.sent) == most


@pytest.mark.parametrize("mechanism", PASSWORDS)
@pytest.mark.brokers
def test_a_refused_login_is_tried_once(program: Program, given: Callable[[str], Given], mechanism: str) -> None:
    made = LOGINS["the password is wrong"].make(given(mechanism), given(mechanism).certificates)
    host, port = made.properties["bootstrap.servers"].split(":")
    with Recorder((host, int(port))) as recorder:
        ended = snapshot(program, made.set("bootstrap.servers", f"{HOST}:{recorder.port}"))
        assert ended.err.endswith("(KR602)\n")
    assert len(recorder.sent) == 2, "one connection for the checks, and one for the login"
