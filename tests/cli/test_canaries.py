"""Secrets of client properties are in nothing that the program writes: streams, logs at -vv, plans, pages, errors."""

import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cli.canaries import write_properties, write_snapshot_of_one, written_by
from helpers.figures import Tell
from helpers.program.call import Program

from reconciler.admin.client import connecting, oauth
from reconciler.command.logs import set_up_logs

pytestmark = pytest.mark.long

PEM = "-----BEGIN PRIVATE KEY-----CANARYpem-----END PRIVATE KEY-----"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ada"}
TOKENS = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
KEY = {"security.protocol": "SSL", "ssl.keystore.certificate.chain": "x"}
CLIENT = {**TOKENS, oauth.ENDPOINT: "http://127.0.0.1:9/t", oauth.CLIENT_ID[0]: "me"}
# Each: the properties, and the text that may never be seen. A plain value of each property: test_property_canaries.py.
SECRETS: dict[str, tuple[Mapping[str, str], str]] = {
    "a password with quotes": ({**LOGIN, "sasl.password": """CANARY"qu'ote\\"""}, 'CANARY"qu'),
    "a password beyond ASCII": ({**LOGIN, "sasl.password": "CANARYgrößeö"}, "CANARYgr"),
    "a jaas text": ({**LOGIN, "sasl.jaas.config": f'{SCRAM} username="a" password="CANARYjaas";'}, "CANARYjaas"),
    "a jaas text of no form": ({**LOGIN, "sasl.jaas.config": "password=CANARYbroken"}, "CANARYbroken"),
    "a password of a variable": ({**LOGIN, "sasl.password": "${env:CANARY_VARIABLE}"}, "CANARYenv"),
    "a password of a file": ({**LOGIN, "sasl.password": "${file:secret.txt}"}, "CANARYfile"),
    "a password in a reference": ({**LOGIN, "sasl.password": "${vault:CANARYvault}"}, "CANARYvault"),
    "a key": (KEY | {"ssl.keystore.key": PEM}, "CANARYpem"),
    "a client's secret in jaas": (
        CLIENT | {"sasl.jaas.config": f'{oauth.LOGIN_MODULE} required clientSecret="CANARYjwt";'},
        "CANARYjwt",
    ),
    "a token": ({**TOKENS, oauth.ENDPOINT: "file://{here}/token.txt"}, "CANARYtoken"),
    "a login in a token's URL": ({**TOKENS, oauth.ENDPOINT: "https://me:CANARYurl@x/t"}, "CANARYurl"),
    "a login in a server's URL": ({"bootstrap.servers": "ada:CANARYserver@127.0.0.1:{port}"}, "CANARYserver"),
    "a misspelt password": ({**LOGIN, "sasl.pasword": "CANARYmisspelt"}, "CANARYmisspelt"),
}
CALLS = (
    ("snapshot", "--client", "p.properties", "-vv"),
    ("snapshot", "--client", "p.properties", "-vv", "-o", "json"),
    ("diff", "--cluster", "c", "-vv"),
    ("doctor", "--cluster", "c", "-vv", "-o", "json"),
    ("validate", "--cluster", "c", "-vv"),
    ("validate", "--cluster", "c", "-o", "json"),
    ("validate", "--cluster", "c", "-o", "sarif"),
    ("plan", "--cluster", "c", "--state", "s.json", "--out", "plan.json", "-vv"),
)


@pytest.fixture(scope="module")
def garbage() -> Iterator[int]:
    """Return a port where somebody listens who is no broker: the library begins, and logs what it was given."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
                accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                accepted.close()
            except OSError:
                return

    threading.Thread(target=answer, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Program]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CANARY_VARIABLE", "CANARYenv")
    monkeypatch.setattr(connecting, "BOOTSTRAP_SECONDS", 0.2)
    (tmp_path / "secret.txt").write_text("CANARYfile\n", "utf-8")
    (tmp_path / "token.txt").write_text("CANARYtoken\n", "utf-8")
    write_snapshot_of_one()
    yield Program(capsys)
    set_up_logs(0)


def outputs_about(program: Program, properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each output with its name, also where the file is wrong: a key too many, a list in place of a value."""
    path = write_properties(properties)
    path.with_name("secret.txt").write_text("CANARYfile\n", "utf-8")
    yield from written_by(program, CALLS)
    for name in properties:
        write_properties({**properties, name: [properties[name]]}, nonsense=1)
        ended = program("validate", "--cluster", "c", "-vv")
        yield f"errors with {name} as a list", ended.out + ended.err


def test_no_secret_is_in_anything_that_is_written(
    program: Program, garbage: int, tmp_path: Path, figures: Tell
) -> None:
    leaks, count = [], 0
    for what, (properties, canary) in SECRETS.items():
        written = {"bootstrap.servers": "127.0.0.1:{port}", **properties}
        filled = {
            key: value.replace("{port}", str(garbage)).replace("{here}", str(tmp_path))
            for key, value in written.items()
        }
        for name, text in outputs_about(program, filled):
            count += 1
            if canary in text:
                leaks.append((what, name, text[max(0, text.index(canary) - 200) :][:300]))
    assert leaks == []
    figures("canary secrets", f"{len(SECRETS)} secrets, {count} outputs (streams at -vv, errors, plans): in none")


@pytest.mark.parametrize(
    "client",
    [
        "\n    bootstrap.servers=127.0.0.1:9\n    sasl.password=CANARYlines",
        " |\n    bootstrap.servers=127.0.0.1:9\n    sasl.pasword=CANARYblock",
        "\n    bootstrap.servers:127.0.0.1:9\n    sasl.password:CANARYnospace",
        " {bootstrap.servers: '127.0.0.1:9', sasl.password:CANARYflow}",
        " {bootstrap.servers: '127.0.0.1:9', sasl.password:CANARYkey: x}",
    ],
)
def test_a_secret_that_lost_its_place_is_in_nothing(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, client: str
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    root = tmp_path / "desired-state" / "c"
    root.mkdir(parents=True)
    text = f"apiVersion: reconciler/v1\nkind: Cluster\nmetadata: {{name: c}}\nspec:\n  client:{client}\n"
    (root / "cluster.yaml").write_text(text, "utf-8")
    calls = [("validate", "-vv"), ("validate", "-o", "json"), ("validate", "-o", "sarif")]
    calls += [(verb, "--cluster", "c", "-vv") for verb in ("plan", "diff", "doctor", "snapshot")]
    for call in calls:
        ended = program(*call)
        assert ended.code == 1, call
        assert "CANARY" not in ended.out + ended.err, call


def test_a_traceback_holds_no_secret(program: Program, garbage: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write_properties({"bootstrap.servers": f"127.0.0.1:{garbage}", **LOGIN, "sasl.password": "CANARYtraceback"})
    program("snapshot", "--client", "p.properties")

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("login of ada:CANARYtraceback\n::error::failed")

    monkeypatch.setattr(connecting, "reachable", fails)
    ended = program("snapshot", "--client", "p.properties", "-vv")
    assert ended.code == 1
    assert "RuntimeError: login of ada:[hidden]" in ended.err
    assert "CANARYtraceback" not in ended.err
    assert not any(line.startswith("::") for line in ended.err.splitlines())
