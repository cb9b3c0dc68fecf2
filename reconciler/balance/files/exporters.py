"""Asks a Prometheus over HTTP for the bytes that brokers count.

Standard library alone. Every answer is bounded in time and size, and no error holds a secret.
"""

import json
import ssl
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from reconciler.balance.model.exported import Exported
from reconciler.files.deadline import within
from reconciler.files.properties import read_properties
from reconciler.model.problem import InvalidInput, Problem

WRONG_URL, WRONG_CLIENT = "KR444", "KR445"
SECONDS = 10.0
MOST_BYTES = 1 << 28
_METRICS = "kafka_server_[Bb]roker[Tt]opic[Mm]etrics.*"
_KEYS = ("username", "password", "bearer.token", "ssl.ca.location")
_HEADER = "header."


class NotTold(Exception):
    """An endpoint told nothing; the text says why, in words that follow its name."""


@dataclass(frozen=True, slots=True)
class HttpClient:
    """How Prometheus is asked: headers, and whom TLS trusts. Its text tells no secret."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    trust: ssl.SSLContext | None = field(default=None, repr=False)


def checked_url(url: str) -> str:
    """Return a URL that can be asked and shown; raises InvalidInput for another scheme, no host, or a login in it."""
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in {"http", "https"} and bool(parts.hostname)
        has_login = "@" in parts.netloc
        _ = parts.port
    except ValueError:
        is_right, has_login = False, "@" in url
    if has_login:
        message = "a URL with a login in it would be shown: name user and password in the file of --metrics-client"
        raise InvalidInput([Problem(WRONG_URL, message)])
    if not is_right:
        raise InvalidInput([Problem(WRONG_URL, f"{url!r} is no URL of http:// or https:// with a host")])
    return url


def http_client(file: str | None, environ: Mapping[str, str]) -> HttpClient:
    """Return how to ask, as a properties file says; secrets are read where `${env:}` and `${file:}` name them."""
    if file is None:
        return HttpClient()
    properties = read_properties(Path(file), environ)
    wrong = sorted(key for key in properties if key not in _KEYS and not key.startswith(_HEADER))
    if wrong:
        known = ", ".join((*_KEYS, f"{_HEADER}NAME"))
        raise InvalidInput([Problem(WRONG_CLIENT, f"{file}: {wrong[0]} is unknown: there are {known}")])
    headers = {key.removeprefix(_HEADER): value for key, value in properties.items() if key.startswith(_HEADER)}
    if "bearer.token" in properties:
        headers["Authorization"] = f"Bearer {properties['bearer.token']}"
    elif "username" in properties:
        login = f"{properties['username']}:{properties.get('password', '')}"
        headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    if any(not value.isprintable() or not value.isascii() for value in headers.values()):
        raise InvalidInput([Problem(WRONG_CLIENT, f"{file}: a value has a character that an HTTP header cannot have")])
    trust = None
    if place := properties.get("ssl.ca.location"):
        try:
            trust = ssl.create_default_context(cafile=place)
        except (OSError, ssl.SSLError):
            message = f"{file}: ssl.ca.location names no file of certificates that can be read"
            raise InvalidInput([Problem(WRONG_CLIENT, message)]) from None
    return HttpClient(headers, trust)


def queried(client: HttpClient, url: str, match: str, at: float) -> Iterator[Exported]:
    """Yield the figures of brokers that a Prometheus has at that time in seconds; raises NotTold."""
    selector = ", ".join(filter(None, (f'__name__=~"{_METRICS}"', match)))
    asked = urlencode({"query": f"{{{selector}}}", "time": f"{at:.3f}"})
    answer = _answer(_asked(client, f"{url.rstrip('/')}/api/v1/query?{asked}"))
    for series in answer:
        labels = {str(key): str(value) for key, value in series["metric"].items()}
        name = labels.pop("__name__", "")
        yield Exported(name, labels, _number(str(series["value"][1])))


def _answer(content: bytes) -> list[Any]:
    try:
        answer = json.loads(content)
        if answer.get("status") != "success":
            raise NotTold(f"answers with an error: {str(answer.get('error'))[:200]}")
        result = answer["data"]["result"]
        pairs = [each["value"] for each in result]
        if answer["data"]["resultType"] == "vector" and all(len(pair) == len(("at", "value")) for pair in pairs):
            return list(result)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise NotTold("does not answer as a Prometheus does: name the URL that /api/v1/query stands below")


def _asked(client: HttpClient, url: str) -> bytes:
    try:
        return within(SECONDS, partial(_content, client, url))
    except TimeoutError:
        raise NotTold(f"does not answer within {SECONDS:.0f} s") from None
    except (OSError, HTTPException, ValueError) as error:
        raise NotTold(f"does not answer: {_reason(error)}") from None


def _content(client: HttpClient, url: str) -> bytes:
    parts = urlsplit(url)
    host = parts.hostname or ""
    path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    connection = (
        HTTPSConnection(host, parts.port, timeout=SECONDS, context=client.trust)
        if parts.scheme == "https"
        else HTTPConnection(host, parts.port, timeout=SECONDS)
    )
    with closing(connection):
        connection.request("GET", path, headers={"Accept": "*/*", **client.headers})
        response = connection.getresponse()
        content = response.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise NotTold(f"answers with more than {MOST_BYTES >> 20} MiB")
    if response.status != 200:  # noqa: PLR2004 - HTTP's OK
        # What Prometheus says of a wrong query stands in its answer; nobody else's words are repeated.
        raise NotTold(f"answers with HTTP status {response.status}")
    return content


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return type(error).__name__


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
