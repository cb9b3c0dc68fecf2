"""No value of a client property is in anything that the program writes, even where the Kafka client raises with it.

The properties come from the program's own table, so that a new one is tried too; what a value looks like in other
forms is worked out here again, and not by what hides it.
"""

import base64
import json
import logging
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from urllib.parse import quote, quote_plus

import kafka.errors
import pytest
from cli.canaries import write_properties, write_snapshot_of_one, written_by
from helpers.certificates import Authority, Pair
from helpers.figures import Tell
from helpers.program.call import Program
from kafka.net.manager import KafkaConnectionManager

from reconciler.admin import client
from reconciler.admin.client import connecting, redact
from reconciler.admin.client.errors import said
from reconciler.admin.client.properties import translate
from reconciler.admin.port import Answer
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.command.exits import tell_of_thread
from reconciler.command.logs import set_up_logs
from reconciler.files.snapshot import read_snapshot
from reconciler.model.client_properties import DOMAINS, NAMES
from reconciler.model.problem import ClusterUnavailable

pytestmark = pytest.mark.long

CANARY = "Canary.x7q/Vö+w9&k"
PLAIN_CANARY = "Canary-x7q-Vw9k"
HOST = f"{PLAIN_CANARY}.invalid"
JAAS = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="{PLAIN_CANARY}";'
TOKENS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.client.credentials.client.id": "a-client",
    "sasl.oauthbearer.client.credentials.client.secret": "of-no-interest",
    "sasl.oauthbearer.token.endpoint.url": "https://login.invalid/t",
}
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
USER = {"sasl.username": "somebody", "sasl.password": "of-no-interest"}
RAISED = (kafka.errors.KafkaError, OSError, ValueError, RuntimeError)
VERBS = (
    ("snapshot", "--cluster", "c", "-vv"),
    ("diff", "--cluster", "c", "-o", "json", "-vv"),
    ("plan", "--cluster", "c", "--out", "new.json", "-vv"),
    ("doctor", "--cluster", "c", "-o", "json", "-vv"),
    ("status", "--cluster", "c", "-vv"),
    ("groups", "list", "--cluster", "c", "-o", "json", "-vv"),
    ("topics", "describe", "--cluster", "c", "-o", "json", "-vv"),
    ("apply", "plan.json", "--yes", "-vv"),
)
AS_FILES = (
    ("validate", "--cluster", "c", "-vv"),
    ("validate", "--cluster", "c", "-o", "json"),
    ("validate", "--cluster", "c", "-o", "sarif"),
    ("snapshot", "--client", "p.properties", "-o", "json", "-vv"),
)
SAMPLE = ("bootstrap.servers", "sasl.password", "sasl.jaas.config", "ssl.ca.location", "group.id", "security.protocol")
"""Those that the default run takes through everything: each kind of domain once."""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connecting, "reachable", lambda servers, *_: servers)
    write_snapshot_of_one()
    called = Program(capsys)
    write_properties({"bootstrap.servers": "k:1"})
    assert called("plan", "--cluster", "c", "--state", "s.json", "--out", "plan.json").code == 0
    yield called
    set_up_logs(0)


def given_with(name: str, folder: Path) -> tuple[Mapping[str, str], str]:
    """Return properties with a canary in that one, right as far as it can be right, and the canary."""
    authority, pair = certified()
    own = {"ssl.keystore.key": pair.key, "ssl.keystore.certificate.chain": pair.chain}
    given: dict[str, str] = {"security.protocol": "SSL"} if name.startswith("ssl") else {}
    value = canary = CANARY
    if name == "bootstrap.servers":
        value, canary = f"{HOST}:9092", HOST
    elif name == "sasl.jaas.config":
        given, value, canary = LOGIN, JAAS, PLAIN_CANARY
    elif name.endswith(".endpoint.url"):
        given, value = TOKENS, f"https://{HOST}/t"
        canary = value
    elif name.startswith("sasl."):
        given = TOKENS if "oauth" in name else {**LOGIN, **USER}
    elif name.endswith(".location"):
        path = folder / f"{PLAIN_CANARY}.pem"
        path.write_text(pair.key + pair.chain + authority.certificate + authority.revoked(pair), "utf-8")
        pairs = {"ssl.certificate.location": "ssl.key.location", "ssl.key.location": "ssl.certificate.location"}
        given |= {f"ssl.{side}.type": "PEM" for side in ("truststore", "keystore") if side in name}
        given |= {pairs.get(name, name): str(path)}
        value = canary = str(path)
    elif name in own or name == "ssl.truststore.certificates":
        given |= own if name in own else {}
        value = own.get(name, authority.certificate)
        canary = value.splitlines()[1]
    return {**given, name: value}, canary


@cache
def certified() -> tuple[Authority, Pair]:
    """Return an authority, and what it has issued."""
    authority = Authority("tests")
    return authority, authority.issue("127.0.0.1")


@cache
def forms(value: str) -> dict[str, str]:
    """Return what a value may look like, by name; in base64 beside a user, as logins send it."""
    made: dict[str, str] = {}
    for case, text in {"as it is": value, "UPPER": value.upper(), "lower": value.lower()}.items():
        raw = text.encode()
        made |= {
            case: text,
            f"{case}, repr": repr(text)[1:-1],
            f"{case}, bytes": repr(raw)[2:-1],
            f"{case}, JSON": json.dumps(text)[1:-1],
            f"{case}, base64": base64.b64encode(raw).decode().rstrip("="),
            f"{case}, base64 for URLs": base64.urlsafe_b64encode(raw).decode().rstrip("="),
            f"{case}, base64 in a login": core(b"\0ada\0", raw),
            f"{case}, base64 of user and password": core(b"ada:", raw),
            f"{case}, URL": quote(raw, safe=""),
            f"{case}, URL path": quote(raw),
            f"{case}, form": quote_plus(raw),
            f"{case}, hex": raw.hex(),
        }
    return made


def core(before: bytes, raw: bytes) -> str:
    """Return those letters of the base64 of both that the value alone decides."""
    text = base64.b64encode(before + raw).decode()
    return text[-(-len(before) * 8 // 6) : len(before + raw) * 8 // 6]


def hits(canary: str, text: str) -> list[str]:
    lowered = text.lower()
    return [name for name, form in forms(canary).items() if form.lower() in lowered]


def quoting(canary: str, raised: type[Exception]) -> Exception:
    """Return an exception of the library that quotes the value in every form, one beside the other and in a URL."""
    every = " ".join(forms(canary).values())
    logins = [base64.b64encode(before + canary.encode()).decode() for before in (b"\0ada\0", b"ada:", b"")]
    return raised(f"{every} https://u:{quote(canary, safe='')}@h/?x={quote_plus(canary)} {logins} {[canary]!r}")


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with nothing hidden: what another property hides is no merit of this one."""
    monkeypatch.setattr(redact._FILTER, "_all", ())
    monkeypatch.setattr(redact._FILTER, "_secrets", ())


def raise_from_the_library(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(manager: KafkaConnectionManager, *_: object, **__: object) -> None:
        log = logging.getLogger("kafka.net.manager")
        log.debug("config %s", manager.config)
        log.error("failed: %s", error)
        raise error

    def refuses(*_: object, **__: object) -> None:
        raise OSError(str(error))

    monkeypatch.setattr(KafkaConnectionManager, "bootstrap", fails)
    monkeypatch.setattr(urllib.request, "urlopen", refuses)


def leaks_of(
    name: str, program: Program, folder: Path, monkeypatch: pytest.MonkeyPatch, raised: tuple[type[Exception], ...]
) -> tuple[list[tuple[str, str, list[str]]], int]:
    given, canary = given_with(name, folder)
    forget(monkeypatch)
    write_properties({"bootstrap.servers": "k:1", **given})
    found, outputs = [], 0
    for each in raised:
        raise_from_the_library(monkeypatch, quoting(canary, each))
        for what, text in written_by(program, VERBS if each is not raised[0] else (*AS_FILES, *VERBS)):
            outputs += 1
            if seen := hits(canary, text):
                found.append((f"{name}, {each.__name__}", what, seen))
    return found, outputs


def names() -> list[object]:
    return [pytest.param(name, marks=() if name in SAMPLE else pytest.mark.deep) for name in sorted(NAMES)]


@pytest.mark.parametrize("name", names())
def test_no_value_is_in_anything_whatever_the_client_raises(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert leaks_of(name, program, tmp_path, monkeypatch, RAISED)[0] == []


def test_a_canary_in_each_property_is_in_no_output_of_two_verbs(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Tell
) -> None:
    monkeypatch.setattr(f"{__name__}.VERBS", VERBS[:2])
    leaks: list[tuple[str, str, list[str]]] = []
    outputs = 0
    for name in sorted(DOMAINS):
        found, count = leaks_of(name, program, tmp_path, monkeypatch, (kafka.errors.KafkaError,))
        leaks, outputs = leaks + found, outputs + count
    assert leaks == []
    count = len(forms(CANARY))
    figures(
        "canaries in properties", f"{len(DOMAINS)} properties x 2 verbs x {count} forms, {outputs} outputs: in none"
    )


class Failing:
    """A simulated cluster, reached with client properties, whose library raises where a run changes something."""

    def __init__(self, error: Exception) -> None:
        self._simulated, self._error = SimulatedAdmin(read_snapshot("s.json")), error

    def __getattr__(self, name: str) -> object:
        return getattr(self._simulated, name)

    def create_partitions(self, *_: object, is_validated_only: bool = False) -> Mapping[str, Answer]:
        if is_validated_only:
            return {"orders": Answer()}
        if isinstance(self._error, kafka.errors.KafkaError):
            raise ClusterUnavailable(f"The cluster does not answer ({said(self._error)}).")
        raise self._error


@pytest.mark.parametrize("raised", RAISED)
def test_a_run_that_the_library_breaks_off_leaves_no_value_in_its_journal(
    program: Program, monkeypatch: pytest.MonkeyPatch, raised: type[Exception]
) -> None:
    forget(monkeypatch)
    write_properties({"bootstrap.servers": "k:1", "group.id": PLAIN_CANARY, **LOGIN, **USER, "sasl.password": CANARY})

    def connected(properties: Mapping[str, str]) -> Failing:
        translate(properties)
        return Failing(raised(f"{quoting(CANARY, raised)} {quoting(PLAIN_CANARY, raised)}"))

    monkeypatch.setattr(client, "connect", connected)
    written = dict(written_by(program, VERBS[-1:]))
    assert any(name.endswith(".jsonl") and '"outcome":"failed"' in text for name, text in written.items())
    assert {
        name: found for name, text in written.items() if (found := [*hits(CANARY, text), *hits(PLAIN_CANARY, text)])
    } == {}


def test_a_thread_of_the_library_that_dies_is_told_without_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forget(monkeypatch)
    translate({"bootstrap.servers": "k:1", **LOGIN, **USER, "sasl.password": CANARY})
    error = quoting(CANARY, RuntimeError)
    tell_of_thread(threading.ExceptHookArgs((RuntimeError, error, None, None)))
    told = capsys.readouterr().err
    assert "RuntimeError: [hidden]" in told
    assert hits(CANARY, told) == []


def test_what_any_other_library_warns_of_holds_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)
    translate({"bootstrap.servers": "k:1", **LOGIN, **USER, "sasl.password": CANARY})
    set_up_logs(0)
    record = logging.LogRecord("botocore.auth", logging.WARNING, "", 1, "%s", (quoting(CANARY, ValueError),), None)
    assert logging.lastResort is not None
    told = logging.lastResort.format(record)
    assert told.startswith("warning: [hidden]")
    assert hits(CANARY, told) == []


def test_words_of_kafka_and_our_own_stay_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)
    given = {"bootstrap.servers": "kafka:9092", "client.id": "orders", "request.timeout.ms": "30000", "acks": "1"}
    translate({**given, **LOGIN, "sasl.username": "reconciler", "sasl.password": CANARY})
    ours = "topic orders: run `reconciler doctor`; SASL_PLAINTEXT, SCRAM-SHA-512, 30000 ms, KafkaError of kafka-1"
    assert redact.without_secrets(ours) == ours
    assert redact.without_values("kafka.net: KafkaTimeoutError after 30000 of kafka:9092, ('kafka', 9092), 1") == (
        "[hidden].net: KafkaTimeoutError after 30000 of [hidden], ('[hidden]', 9092), 1"
    )
