"""OAUTHBEARER and AWS MSK IAM: what each property comes to, and every combination that cannot work in a sentence."""

import base64
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from helpers.program.loopback import DRIPS, Answer, Request, dripping, serving
from kafka.net.sasl import SASL_MECHANISMS
from kafka.net.sasl.msk import SaslMechanismAwsMskIam
from kafka.net.sasl.oauth import SaslMechanismOAuth

from reconciler.admin.client import connect, oauth, properties, redact
from reconciler.admin.client.oauth import Token, TokenProvider, TokenUnavailable
from reconciler.admin.client.properties import translate
from reconciler.model.client_properties import MECHANISMS
from reconciler.model.problem import InvalidInput

pytestmark = pytest.mark.long

BASE = {"bootstrap.servers": "k:9093", "security.protocol": "SASL_SSL"}
TOKENS = {**BASE, "sasl.mechanism": "OAUTHBEARER"}
SECRET = "c4n4ry-secret"  # noqa: S105 - looked for, never used
TOKEN = Answer(200, b'{"access_token": "t0ken", "expires_in": 100}')


@dataclass
class Endpoint:
    """An OpenID provider's token endpoint on this machine: what it answers, and what it was asked."""

    url: str = ""
    answer: Answer = TOKEN
    asked: list[Request] = field(default_factory=list)

    def answered(self, request: Request) -> Answer:
        self.asked.append(request)
        return self.answer


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    found = Endpoint()
    with serving(found.answered) as address:
        found.url = f"{address}/token"
        yield found


def provider_of(given: Mapping[str, str]) -> TokenProvider:
    provider = translate(given).options["sasl_oauth_token_provider"]
    assert isinstance(provider, TokenProvider)
    return provider


def refusal(given: Mapping[str, str]) -> str:
    with pytest.raises(InvalidInput) as refused:
        translate(given)
    (told,) = refused.value.problems
    return told.message


def test_every_mechanism_of_ours_is_one_of_the_library() -> None:
    assert set(MECHANISMS) <= set(SASL_MECHANISMS)


@pytest.mark.parametrize(
    "login",
    [
        {names[0]: "me", secret[0]: SECRET}
        for names, secret in [(oauth.CLIENT_ID, oauth.CLIENT_SECRET), (oauth.CLIENT_ID[1:], oauth.CLIENT_SECRET[1:])]
    ]
    + [{"sasl.jaas.config": f'{oauth.LOGIN_MODULE} required clientId="me" clientSecret="{SECRET}" scope="kafka";'}],
)
def test_a_client_and_its_secret_get_a_token(endpoint: Endpoint, login: Mapping[str, str]) -> None:
    given = {**TOKENS, oauth.ENDPOINT: endpoint.url, **login}
    provider = provider_of(given)
    assert redact.without_secrets(SECRET) == redact.HIDDEN
    assert [provider.token(), provider.token()] == ["t0ken", "t0ken"]
    (request,) = endpoint.asked
    basic, body = request.headers["Authorization"], request.body.decode()
    assert base64.b64decode(basic.removeprefix("Basic ")).decode() == f"me:{SECRET}"
    assert body.startswith("grant_type=client_credentials")
    assert ("scope=kafka" in body) == ("sasl.jaas.config" in login)
    assert SaslMechanismOAuth(sasl_oauth_token_provider=provider).auth_bytes() == b"n,,\x01auth=Bearer t0ken\x01\x01"


@pytest.mark.parametrize(
    ("status", "answer", "says"),
    [
        (401, b"{}", "answered 401: check the client's id, secret and scope"),
        (200, b"<html>", "holds no access_token"),
        (200, b"[]", "holds no access_token"),
        (200, b'{"token": "x"}', "holds no access_token"),
        (200, b"[" * 100_000, "holds no access_token"),
    ],
)
def test_an_endpoint_without_a_token_is_told_without_the_secret(
    endpoint: Endpoint, status: int, answer: bytes, says: str
) -> None:
    endpoint.answer = Answer(status, answer)
    given = {**TOKENS, oauth.ENDPOINT: endpoint.url, oauth.CLIENT_ID[0]: "me", oauth.CLIENT_SECRET[0]: SECRET}
    with pytest.raises(TokenUnavailable, match=says) as error:
        provider_of(given).token()
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_a_secret_does_not_follow_a_redirect(endpoint: Endpoint) -> None:
    endpoint.answer = Answer(302, headers={"Location": endpoint.url.replace("/token", "/elsewhere")})
    given = {**TOKENS, oauth.ENDPOINT: endpoint.url, oauth.CLIENT_ID[0]: "me", oauth.CLIENT_SECRET[0]: SECRET}
    with pytest.raises(TokenUnavailable, match=r"names answered 302: write where it leads to\."):
        provider_of(given).token()
    assert len(endpoint.asked) == 1


def test_an_endpoint_that_is_not_there_is_told() -> None:
    given = {**TOKENS, oauth.ENDPOINT: "http://127.0.0.1:9/t", oauth.CLIENT_ID[0]: "me", oauth.CLIENT_SECRET[0]: SECRET}
    with pytest.raises(TokenUnavailable, match="does not answer"):
        provider_of(given).token()


def test_a_token_is_kept_for_most_of_its_life() -> None:
    now, fetched = [0.0], iter((Token("one", 100), Token("two", 100)))
    provider = TokenProvider(lambda: next(fetched), lambda: now[0])
    told = []
    for second in (0, 79, 80, 159):
        now[0] = second
        told.append(provider.token())
    assert told == ["one", "one", "two", "two"]


def test_a_provider_that_has_refused_is_asked_again_only_after_a_while(endpoint: Endpoint) -> None:
    """Each connection of each thread asks for a token, every second or so: the provider might lock the client."""
    now = [0.0]
    given = {**TOKENS, oauth.ENDPOINT: endpoint.url, oauth.CLIENT_ID[0]: "me", oauth.CLIENT_SECRET[0]: SECRET}
    source = oauth.token_source(given, {})
    assert not isinstance(source, str)
    provider = TokenProvider(source, lambda: now[0])
    asked = []
    for second, status in ((0, 401), (1, 200), (4, 200), (5, 503), (9, 200), (10, 200), (80, 401), (91, 200)):
        now[0] = second
        endpoint.answer = TOKEN if status == TOKEN.status else Answer(status, b"{}")
        try:
            told = provider.token()
        except TokenUnavailable as error:
            told = f"{error.code} {error.is_passing}"
        asked.append((told, len(endpoint.asked)))
    refused, busy = "KR605 False", "KR605 True"
    assert asked == [(refused, 1)] * 3 + [(busy, 2)] * 2 + [("t0ken", 3)] * 2 + [("t0ken", 4)]


def test_each_login_reads_the_file_of_a_token_again(tmp_path: Path) -> None:
    provider = provider_of({**TOKENS, oauth.ENDPOINT: f"file://{tmp_path}/jwt"})
    for text in ("a.b.c", "d.e.f"):
        (tmp_path / "jwt").write_text(text, "utf-8")
        assert provider.token() == text


def test_a_token_in_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text("a.b.c\n", "utf-8")
    assert provider_of({**TOKENS, oauth.ENDPOINT: f"file://{tmp_path}/jwt"}).token() == "a.b.c"
    for name, content in {"empty": b"", "two": b"a b", "bytes": b"\xff"}.items():
        (tmp_path / name).write_bytes(content)
    for name in ("empty", "two", "bytes", "gone", ""):
        with pytest.raises(TokenUnavailable, match=r"token\.endpoint\.url names"):
            provider_of({**TOKENS, oauth.ENDPOINT: f"file://{tmp_path}/{name}"}).token()


def test_a_token_that_nobody_signed_is_made_for_tests() -> None:
    text = f'{oauth.LOGIN_MODULE} required {oauth.UNSIGNED}="ada";'
    head, claims, signature = provider_of({**TOKENS, "sasl.jaas.config": text}).token().split(".")
    read = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, claims)]
    assert (read[0], read[1]["sub"], signature) == ({"alg": "none"}, "ada", "")
    assert read[1]["exp"] > read[1]["iat"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "OAUTHBEARER needs a way to a token: write sasl.oauthbearer.token.endpoint.url"),
        ({oauth.ENDPOINT: "https://x/t"}, "OAUTHBEARER needs a way to a token"),
        ({oauth.ENDPOINT: "https://x/t", oauth.CLIENT_ID[0]: "me"}, "OAUTHBEARER needs a way to a token"),
        (
            {oauth.ENDPOINT: "ftp://x/t", oauth.CLIENT_ID[0]: "me", oauth.CLIENT_SECRET[0]: "s"},
            "must be a URL that begins with https:// or file:///",
        ),
        (
            {oauth.ENDPOINT: "https://[x/t", oauth.CLIENT_ID[0]: "me", oauth.CLIENT_SECRET[0]: "s"},
            "must be a URL that begins with https:// or file:///",
        ),
        ({oauth.ENDPOINT: "http://x/t", oauth.CLIENT_ID[0]: "me", oauth.CLIENT_SECRET[0]: "s"}, "Write https://."),
        ({oauth.ENDPOINT: f"https://me:{SECRET}@x/t"}, "holds a user or a password"),
    ],
)
def test_a_login_by_token_that_cannot_be_is_refused(more: Mapping[str, str], says: str) -> None:
    told = refusal({**TOKENS, **more})
    assert says in told
    assert SECRET not in told


def test_iam_needs_encryption_and_no_options_and_the_library_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    iam = {**BASE, "sasl.mechanism": "AWS_MSK_IAM"}
    monkeypatch.setattr(properties, "find_spec", lambda _: None)
    assert refusal(iam) == "AWS_MSK_IAM needs AWS's library, which is not installed: pip install botocore"
    monkeypatch.setattr(properties, "find_spec", lambda _: ModuleType("botocore"))
    assert translate(iam).options["sasl_mechanism"] == "AWS_MSK_IAM"
    assert refusal({**iam, "security.protocol": "SASL_PLAINTEXT"}) == (
        "AWS_MSK_IAM needs security.protocol SASL_SSL, not SASL_PLAINTEXT."
    )
    module = "software.amazon.msk.auth.iam.IAMLoginModule required"
    assert translate({**iam, "sasl.jaas.config": f"{module};"}).options["sasl_mechanism"] == "AWS_MSK_IAM"
    assert "set AWS_PROFILE" in refusal({**iam, "sasl.jaas.config": f'{module} awsProfileName="x";'})


def aws(monkeypatch: pytest.MonkeyPatch, given: Mapping[str, str]) -> None:
    """Let AWS's library find this, and nothing of this machine."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    nothing = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "gone", "AWS_SHARED_CREDENTIALS_FILE": "gone"}
    for name, value in {**nothing, **given}.items():
        monkeypatch.setenv(name, value)


FOUND = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "eu-central-1"}


def test_the_login_of_aws_is_signed_as_awss_own_signer_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster of AWS is asked here: AWS's library signs the same request again."""
    aws(monkeypatch, {**FOUND, "AWS_SESSION_TOKEN": "a session/token+"})
    oauth.check_credentials_of_aws()
    host = "b-1.example.kafka.eu-central-1.amazonaws.com"
    payload = json.loads(SaslMechanismAwsMskIam(host=host, security_protocol="SASL_SSL").auth_bytes())
    credentials = Credentials("AKIDEXAMPLE", SECRET, "a session/token+")
    signer = SigV4QueryAuth(credentials, "kafka-cluster", "eu-central-1", expires=900)
    request = AWSRequest("GET", f"https://{host}/", params={"Action": "kafka-cluster:Connect"})
    request.context["timestamp"] = payload["x-amz-date"]
    signer._modify_request_before_signing(request)
    text = signer.string_to_sign(request, signer.canonical_request(request))
    assert payload["x-amz-signature"] == signer.signature(text, request)
    assert SECRET not in json.dumps(payload)
    assert redact.without_secrets(f"sent {SECRET}") == f"sent {redact.HIDDEN}"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "AWS's library finds no credentials. Set AWS_PROFILE or AWS's other variables"),
        (FOUND | {"AWS_PROFILE": SECRET}, r"finds no credentials \(ProfileNotFound\). Check AWS_PROFILE"),
        (FOUND | {"AWS_SECRET_ACCESS_KEY": ""}, "finds no credentials"),
        ({name: FOUND[name] for name in list(FOUND)[:2]}, "The region of AWS is not known. Set AWS_DEFAULT_REGION"),
    ],
)
def test_what_aws_lacks_is_told_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, given: Mapping[str, str], says: str
) -> None:
    aws(monkeypatch, given)
    with pytest.raises(TokenUnavailable, match=says) as refused:
        connect({**BASE, "sasl.mechanism": "AWS_MSK_IAM"})
    assert refused.value.code == "KR605"
    assert SECRET not in str(refused.value)


def test_a_jaas_text_of_another_form_is_refused_without_its_secret() -> None:
    scram = {**BASE, "sasl.mechanism": "SCRAM-SHA-512"}
    told = refusal({**scram, "sasl.jaas.config": f"password={SECRET}"})
    assert "must be of the form" in told
    assert SECRET not in told


@pytest.mark.parametrize("drip", DRIPS)
def test_a_provider_that_drips_is_given_up_at_the_deadline(drip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "ANSWER_SECONDS", 0.3)
    with dripping(*DRIPS[drip]) as address:
        login = {oauth.CLIENT_ID[0]: "ada", oauth.CLIENT_SECRET[0]: SECRET}
        provider = provider_of({**TOKENS, oauth.ENDPOINT: f"{address}/token", **login})
        with pytest.raises(TokenUnavailable, match="does not answer: TimeoutError"):
            provider.token()
