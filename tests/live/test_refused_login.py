"""A login that brokers refuse in the middle of a run: it ends soon, says so once, and names once what it leaves."""

import base64
import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.observer import Observer
from helpers.brokers.run import MB, PLAN, SMOOTH, LiveRun
from helpers.figures import Tell
from helpers.program.loopback import Answer, Request, serving
from helpers.waiting import ATTEMPT, HANG, asked_again

from reconciler.admin.client.oauth import CLIENT_ID, CLIENT_SECRET, ENDPOINT, LOGIN_MODULE, UNSIGNED

pytestmark = pytest.mark.brokers

BROKERS, DESTINATION = (1, 2, 3), 4
BEFORE = {0: (1, 2, 3), 1: (2, 3, 1)}
AFTER = {0: (1, 2, 4), 1: (2, 3, 4)}
USER, PASSWORD = "ada", "changed-later"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def token(seconds: float) -> str:
    """Return a token that nobody signed, which the brokers of this test take for so long."""
    claims = {"sub": USER, "iat": int(time.time()), "exp": int(time.time() + seconds)}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


@pytest.fixture(scope="module")
def brokers(kafka_version: str) -> Iterator[KafkaCluster]:
    settings = {
        "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.token.oauthbearer.sasl.jaas.config": f'{LOGIN_MODULE} required {UNSIGNED}="broker";',
        "listener.name.login.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.login.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
        "connections.max.reauth.ms": "5000",
    }
    listeners = {"TOKEN": "SASL_PLAINTEXT", "LOGIN": "SASL_PLAINTEXT"}
    with KafkaCluster(
        version=kafka_version,
        broker_ids=(*BROKERS, DESTINATION),
        settings=SMOOTH | settings,
        is_plain=True,  # its own logins are what is tried, and whose they are makes no difference
        listeners=listeners,
    ) as started:
        yield started


class Tokens:
    """A token in a file that somebody renews, or no more."""

    code, says = "KR602", "The cluster refused the login"

    def __init__(self, kafka: KafkaCluster, folder: Path) -> None:
        self.file = folder / "token"
        servers = ",".join(kafka.listener("TOKEN", broker) for broker in kafka.alive)
        self.client = {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            ENDPOINT: f"file://{self.file}",
        }
        self.renew()

    def renew(self) -> None:
        self.file.write_text(token(3600), "utf-8")

    def refuse(self) -> None:
        self.file.write_text(token(-3600), "utf-8")


class Endpoint(Tokens):
    """A provider's endpoint that answers 401 from some time on."""

    code, says = "KR605", "answered 401"

    def __init__(self, kafka: KafkaCluster, folder: Path, url: str) -> None:
        super().__init__(kafka, folder)
        self.client |= {ENDPOINT: f"{url}/token", CLIENT_ID[0]: "me", CLIENT_SECRET[0]: "s3cret"}

    def answer(self, _request: Request) -> Answer:
        if not self.file.exists():
            return Answer(401, b"{}")
        return Answer(200, json.dumps({"access_token": token(3600), "expires_in": 1}).encode())

    def refuse(self) -> None:
        self.file.unlink()


class Passwords:
    """A user whose password somebody changes."""

    code, says = "KR602", "The cluster refused the login"

    def __init__(self, kafka: KafkaCluster) -> None:
        self.admin = AdminClient(kafka.properties)
        self.client = {
            "bootstrap.servers": ",".join(kafka.listener("LOGIN", broker) for broker in kafka.alive),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }
        self.renew()

    def _set(self, password: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        added = UserScramCredentialUpsertion(USER, info, password.encode())
        self.admin.alter_user_scram_credentials([added])[USER].result(HANG)

    def renew(self) -> None:
        self._set(PASSWORD)
        for broker in self.client["bootstrap.servers"].split(","):  # each hears of it by itself
            mine = AdminClient(self.client | {"bootstrap.servers": broker, "log_level": 0})
            asked_again(partial(mine.list_topics, timeout=ATTEMPT), KafkaException)

    def refuse(self) -> None:
        self._set("another")


@pytest.fixture
def login(brokers: KafkaCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tokens | Passwords]:
    if request.param == "endpoint":
        made: list[Endpoint] = []
        with serving(lambda asked: made[0].answer(asked)) as url:  # noqa: PLW0108 - it is made with the address
            made.append(Endpoint(brokers, tmp_path, url))
            yield made[0]
    else:
        yield Passwords(brokers) if request.param == "password" else Tokens(brokers, tmp_path)


@pytest.mark.parametrize("login", ["file", "endpoint", "password"], indirect=True)
def test_a_login_that_is_refused_midway_ends_the_run_and_all_that_it_leaves_is_named_once(
    brokers: KafkaCluster, login: Tokens | Passwords, tmp_path: Path, figures: Tell, request: pytest.FixtureRequest
) -> None:
    topic = f"moved-{request.node.callspec.id}"
    run = LiveRun(tmp_path, brokers, topic, BEFORE, AFTER, 10 * MB, throttle="100kB/s", client=login.client)
    applying = run.start()
    run.wait_in_flight(DESTINATION, least=50_000)
    login.refuse()
    applying.ended(1)
    lines = applying.told.splitlines()
    (error,) = (line for line in lines if line.startswith("error: "))
    assert login.says in error
    assert error.endswith(f"Then run apply again: it goes on where the cluster stands. ({login.code})")
    (named,) = (line for line in lines if "KR720" in line)
    left = Observer(brokers.bootstrap).throttles((topic,), brokers.alive)
    for where in left:
        owner, _, key = where.partition(":")
        kind = "broker" if owner.isdecimal() else "topic"
        assert f"{kind} {owner} keeps what this run set" in named
        assert key in named
    assert left
    assert "put back" not in applying.told.replace("not put back", "")
    login.renew()
    run.reconciler("cancel", PLAN)
    assert Observer(brokers.bootstrap).throttles((topic,), brokers.alive) == {}
    figures(f"a login refused midway ({topic})", f"the run ended, {len(left)} keys named in one line")
