"""Sends a message to a webhook over HTTP, by the standard library alone; its URL is a secret, and is never shown.

At most three tries, each of 10 s in all: a message may arrive twice, where the answer to the first was lost. No
redirect is followed: the address behind it was named by nobody, and a POST would arrive there as a GET without the
message.
"""

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from reconciler.files.deadline import within
from reconciler.files.properties import resolve_client
from reconciler.files.raw import invalid
from reconciler.model.notice import JSON, SLACK
from reconciler.model.problem import ReconcilerError

WRONG_URL = "KR026"
SECONDS = 10.0
PAUSES = (1.0, 3.0)
"""Seconds between the tries."""
MOST_PAUSE = 10.0
"""The longest wait that an answer may ask for (Retry-After)."""
_SLACKS = (".slack.com", ".slack-gov.com")
_REDIRECTS, _BUSY, _FAULTS = range(300, 400), 429, 500


class NotDelivered(ReconcilerError):
    """Nobody took the message."""

    code = "KR025"


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where a message goes, and in which form: `json` or `slack`."""

    url: str = field(repr=False)
    form: str

    @property
    def shown(self) -> str:
        """What messages call it: scheme and host, without the path, which is the secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/…"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown: the URL, and what of it whoever knows the host could go on with."""
        parts = urlsplit(self.url)
        behind = self.url.partition(parts.netloc)[2]
        return (self.url, *(part for part in (behind, parts.path.strip("/")) if len(part) >= _LEAST_SECRET))


_LEAST_SECRET = 8
"""What is shorter than this is in other words too, and no secret."""


def webhook(text: str, form: str | None, environ: Mapping[str, str]) -> Webhook:
    """Return the webhook of that URL, or that `${env:NAME}` or `${file:/path}` names; a host of Slack has Slack's form.

    Raises InvalidInput where it cannot be used; the message does not hold it.
    """
    url = resolve_client({"url": text}, Path(), environ, origin="--notify")["url"].strip()
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
        _ = parts.port
    except ValueError:
        is_right = False
    if not is_right or not url.isascii() or not url.isprintable() or " " in url:
        message = (
            "what --notify names is no URL of http:// or https:// with a host, and without a login in it: correct it"
        )
        raise invalid(WRONG_URL, message)
    of_host = SLACK if f".{parts.hostname}".endswith(_SLACKS) else JSON
    return Webhook(url, form or of_host)


def send(to: Webhook, body: bytes, pause: Callable[[float], None] = time.sleep) -> None:
    """Send these bytes of JSON; raises NotDelivered where nobody took them."""
    for seconds in (*PAUSES, None):
        failure, is_passing, wanted = _try(to, body)
        if not failure:
            return
        if not is_passing or seconds is None:
            raise NotDelivered(
                f"{to.shown} did not take the message of --notify: it {failure}; nobody was told"
            ) from None
        pause(min(MOST_PAUSE, max(seconds, wanted)))


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody."""

    def redirect_request(self, *_: object) -> None:
        """Return no request, which makes an error of the answer."""


def _try(to: Webhook, body: bytes) -> tuple[str, bool, float]:
    """Return what is wrong, empty for nothing; whether another try may help; for how long to wait before it."""
    request = urllib.request.Request(  # noqa: S310 - `webhook` let http and https through, and nothing else
        to.url, body, {"Content-Type": "application/json", "User-Agent": "kafka-reconciler"}
    )
    https = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    try:
        opener = urllib.request.build_opener(https, _Stay)
        with within(SECONDS, partial(opener.open, request, timeout=SECONDS)):
            return "", False, 0
    except urllib.error.HTTPError as error:
        with error:
            return _of_status(error.code, error.headers.get("Retry-After", ""))
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return "fails the check of its certificate: let this machine trust its CA", False, 0
        if isinstance(reason, TimeoutError):
            return f"does not answer within {SECONDS:.0f} s", True, 0
        why = reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
        return f"does not answer ({why}): check its name and the network", True, 0


def _of_status(status: int, retry_after: str) -> tuple[str, bool, float]:
    if status in _REDIRECTS:
        return f"answers {status}, and redirects are not followed: name the URL that it leads to", False, 0
    if status == _BUSY or status >= _FAULTS:
        return f"answers {status}", True, float(retry_after) if retry_after.isdecimal() else 0
    return f"answers {status}: check the URL, and --notify-as", False, 0
