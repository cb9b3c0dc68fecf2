"""Gets tokens for SASL/OAUTHBEARER: of a file, an OpenID provider (client credentials), or, for tests, not signed.

AWS's own login is here, too, as far as it is ours: whether there is anything to log in with.
"""

import base64
import json
import ssl
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from kafka.net.sasl.oauth import AbstractTokenProvider

from reconciler.admin.client.exchange import within
from reconciler.admin.client.redact import hide_in_logs
from reconciler.model.problem import CheckFailed

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID = ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id", "clientId")
CLIENT_SECRET = ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret", "clientSecret")
SCOPE = ("sasl.oauthbearer.scope", "scope")
UNSIGNED = "unsecuredLoginStringClaim_sub"
PROPERTIES = (
    ENDPOINT,
    *(name for names in (CLIENT_ID, CLIENT_SECRET, SCOPE) for name in names if "." in name),
    "sasl.oauthbearer.method",
)
LOGIN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
WAYS = (
    f"write {ENDPOINT} (https://…, or file:///… for a token that something else renews) and, for https, "
    f"{CLIENT_ID[0]} and {CLIENT_SECRET[0]}, or clientId and clientSecret in sasl.jaas.config"
)
ANSWER_SECONDS = 10.0
MOST_BYTES = 1 << 20
REDIRECTS = range(300, 400)
# A token is asked for anew after this share of its life, as in Java's login.refresh.window.factor.
KEPT_FOR = 0.8
# A provider that has refused is not asked again so soon, whichever thread wants to connect: it may lock the client.
REFUSED_SECONDS = 5.0
SERVER_FAULTS = 500
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class TokenUnavailable(CheckFailed):
    """There is no token to log in with; `is_passing`: the provider does not answer, and may later."""

    code = "KR605"


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and for how many seconds it is good."""

    text: str
    seconds: float


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # the library has no types
    """Keeps a token until most of its life is over, and for a while why there is none: each connection asks."""

    def __init__(self, fetch: Callable[[], Token], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._fetch, self._clock = fetch, clock
        self._known: Token | TokenUnavailable | None = None
        self._until = 0.0

    def token(self) -> str:
        """Return a token that is good now; TokenUnavailable says why there is none."""
        if self._known is None or self._clock() >= self._until:
            try:
                self._known = self._fetch()
                self._until = self._clock() + self._known.seconds * KEPT_FOR
                hide_in_logs(self._known.text)
            except TokenUnavailable as error:
                self._known, self._until = error, self._clock() + REFUSED_SECONDS
        if isinstance(self._known, TokenUnavailable):
            raise self._known
        return self._known.text


def token_source(given: Mapping[str, str], jaas: Mapping[str, str]) -> Callable[[], Token] | str:
    """Return what fetches a token as these properties say, or a sentence on what is wrong with them."""
    endpoint = given.get(ENDPOINT, "")
    if not endpoint and jaas.get(UNSIGNED):
        subject = jaas[UNSIGNED]
        return lambda: unsigned(subject, time.time())
    parts = urlsplit(endpoint)
    if parts.username or parts.password:
        return f"{ENDPOINT} holds a user or a password: write them as {CLIENT_ID[0]} and {CLIENT_SECRET[0]}."
    if parts.scheme == "file" and parts.path:
        return lambda: _of_file(Path(parts.path))
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        return f"{ENDPOINT} is http://: a secret would cross the network in the clear. Write https://."
    user, secret = _first(given, jaas, CLIENT_ID), _first(given, jaas, CLIENT_SECRET)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not user or not secret:
        return f"OAUTHBEARER needs a way to a token: {WAYS}."
    scope = _first(given, jaas, SCOPE)
    return lambda: _of_provider(endpoint, user, secret, scope)


def check_credentials_of_aws() -> None:
    """Look for what AWS_MSK_IAM signs with, as AWS's library does; TokenUnavailable says what is missing.

    The Kafka library would look for it too late: in a thread of its own, for each try to connect.
    """
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        session = Session()
        credentials, region = session.get_credentials(), session.get_config_variable("region")
        frozen = None if credentials is None else credentials.get_frozen_credentials()
    except BotoCoreError as error:
        raise TokenUnavailable(
            f"AWS's library finds no credentials ({type(error).__name__}). Check AWS_PROFILE and AWS's other variables."
        ) from None
    if frozen is None:
        raise TokenUnavailable(
            "AWS's library finds no credentials. Set AWS_PROFILE or AWS's other variables, or give this machine a role."
        )
    hide_in_logs(*filter(None, (frozen.secret_key, frozen.token)))
    if not region:
        raise TokenUnavailable("The region of AWS is not known. Set AWS_DEFAULT_REGION to that of the cluster.")


def unsigned(subject: str, now: float) -> Token:
    """Return a token that nobody signed, which only brokers take that are set up for tests."""
    claims = {"sub": subject, "iat": int(now), "exp": int(now) + 3600}
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "none"}, claims))
    return Token(".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + ".", 3600)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody: the client's secret is for the endpoint that was written, and no other."""

    def redirect_request(self, *_: object) -> None:
        """Return no request, which makes an error of the answer."""


def _first(given: Mapping[str, str], jaas: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((found for name in names if (found := given.get(name) or jaas.get(name))), "")


def _of_file(path: Path) -> Token:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TokenUnavailable(f"{ENDPOINT} names what is no file. Correct the path.")
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no token"
        raise TokenUnavailable(f"The file that {ENDPOINT} names cannot be read: {reason}.") from None
    if not text or any(each.isspace() for each in text):
        raise TokenUnavailable(f"The file that {ENDPOINT} names holds no token: one line of JWT.")
    return Token(text, 0)  # Another program renews the file at any time, so each login reads it again.


def _content(request: urllib.request.Request) -> bytes:
    https = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    with urllib.request.build_opener(https, _Stay).open(request, timeout=ANSWER_SECONDS) as response:
        return bytes(response.read(MOST_BYTES))


def _of_provider(endpoint: str, user: str, secret: str, scope: str) -> Token:
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    login = base64.b64encode(f"{user}:{secret}".encode()).decode()
    hide_in_logs(login, secret)
    request = urllib.request.Request(  # noqa: S310 - `token_source` let https, and http to this machine, through
        endpoint, urlencode(form).encode(), {"Authorization": f"Basic {login}", "Accept": "application/json"}
    )
    told = f"What {ENDPOINT} names "
    try:
        answer = json.loads(within(ANSWER_SECONDS, partial(_content, request)))
        return Token(str(answer["access_token"]), float(answer.get("expires_in", 60)))
    except urllib.error.HTTPError as error:
        check = "write where it leads to" if error.code in REDIRECTS else "check the client's id, secret and scope"
        is_passing = error.code >= SERVER_FAULTS
        raise TokenUnavailable(f"{told}answered {error.code}: {check}.", is_passing=is_passing) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLError):
            raise TokenUnavailable(
                f"{told}fails the check of its certificate. Look at its name and its dates, and let this machine trust "
                "its CA."
            ) from None
        raise TokenUnavailable(
            f"{told}does not answer: {type(reason).__name__}. Check its name and the network.", is_passing=True
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TokenUnavailable(f"{told}answered something that holds no access_token.") from None
