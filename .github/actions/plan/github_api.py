"""GitHub's REST API as far as a comment and some labels need it, with nothing but Python's standard library."""  # noqa: INP001 - programs beside each other, no package

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from typing import IO

PAGE = 100
MOST_PAGES = 100
ATTEMPTS = 4
MOST_SECONDS = 60.0
TIMEOUT_SECONDS = 30.0
_FORBIDDEN, _MISSING, _TOO_MANY, _SERVER = 403, 404, 429, 500
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

Json = dict[str, object]


class GitHubError(Exception):
    """What GitHub refused, or that it did not answer; the text never holds what was sent, and so no token."""


class ReadOnlyError(GitHubError):
    """The token may read only, as that of a pull request from a fork."""


class NotFoundError(GitHubError):
    """It is not, or no longer, there."""


class UnknownOutcomeError(GitHubError):
    """No answer came to something that was to be made: it may have been made."""


@dataclass(frozen=True, slots=True)
class GitHub:
    """One repository, as one token sees it. `pause`: seconds before the second attempt; each later one waits twice."""

    api: str
    repository: str
    token: str = field(repr=False)
    pause: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what would send the token in clear, or elsewhere than to that repository."""
        parts = urllib.parse.urlsplit(self.api)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise GitHubError("GITHUB_API_URL is no https address, so the token is not sent there.")
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repository, re.ASCII):
            raise GitHubError("GITHUB_REPOSITORY is no OWNER/NAME.")
        if not re.fullmatch(r"[\x21-\x7e]+", self.token):
            raise GitHubError("GITHUB_TOKEN is empty, or holds what no token holds.")

    def pages(self, path: str) -> Iterator[Json]:
        """Yield every item of a list, page by page."""
        address: str | None = f"{self._address(path)}?per_page={PAGE}"
        for _ in range(MOST_PAGES):
            if address is None:
                return
            items, headers = self._sent("GET", address, None, is_repeatable=True)
            if not isinstance(items, list):
                raise GitHubError(f"GET {path}: the answer is no list.")
            yield from (item for item in items if isinstance(item, dict))
            address = self._next(headers)
        raise GitHubError(f"GET {path}: more than {MOST_PAGES} pages.")

    def send(self, method: str, path: str, body: Json | None = None, *, is_repeatable: bool = True) -> Json:
        """Return the answer's object, empty for none; raises UnknownOutcomeError where it may not be sent again."""
        answer, _ = self._sent(method, self._address(path), body, is_repeatable=is_repeatable)
        return answer if isinstance(answer, dict) else {}

    def _address(self, path: str) -> str:
        return f"{self.api.rstrip('/')}/repos/{self.repository}/{path}"

    def _next(self, headers: Message) -> str | None:
        """Return the next page's address; one that leads away from the API is not followed."""
        found = re.search(r'<([^<>]+)>;[^,]*rel="next"', headers.get("Link", ""))
        if found is None:
            return None
        origins = [urllib.parse.urlsplit(each)[:2] for each in (found[1], self.api)]
        if origins[0] != origins[1]:
            raise GitHubError("The next page is not on GITHUB_API_URL, so the token is not sent there.")
        return found[1]

    def _sent(self, method: str, address: str, body: Json | None, *, is_repeatable: bool) -> tuple[object, Message]:
        what = f"{method} {urllib.parse.urlsplit(address).path}"
        request = urllib.request.Request(
            address,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "User-Agent": "kafka-reconciler",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        for attempt in range(ATTEMPTS):
            is_last = attempt == ATTEMPTS - 1
            wait = min(self.pause * 2**attempt, MOST_SECONDS)
            try:
                with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as answer:
                    return _read(what, answer.read()), answer.headers
            except urllib.error.HTTPError as error:
                asked = _asked_to_wait(error)
                if error.code >= _SERVER and not is_repeatable:
                    raise UnknownOutcomeError(f"{what}: {error.code}.") from None
                if is_last or not (asked is not None or error.code >= _SERVER):
                    raise _refusal(what, error) from None
                wait = max(wait, asked or 0.0)
            except (OSError, HTTPException) as error:
                if not is_repeatable:
                    raise UnknownOutcomeError(f"{what}: no answer ({type(error).__name__}).") from None
                if is_last:
                    raise GitHubError(f"{what}: no answer ({type(error).__name__}), {ATTEMPTS} times.") from None
            if wait > MOST_SECONDS:
                raise GitHubError(f"{what}: GitHub asks to wait {wait:.0f} seconds; run the job again later.")
            time.sleep(wait)
        raise AssertionError


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a redirect would take the token to wherever it points."""

    def redirect_request(  # noqa: PLR0917 - the signature of the standard library
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        del req, fp, code, msg, headers, newurl


_OPENER = urllib.request.build_opener(_NoRedirect)


def _read(what: str, content: bytes) -> object:
    if not content:
        return {}
    try:
        return json.loads(content)
    except ValueError:
        raise GitHubError(f"{what}: the answer is no JSON.") from None


def _asked_to_wait(error: urllib.error.HTTPError) -> float | None:
    """Return how long GitHub's rate limits ask to wait, None where it is no rate limit that refuses."""
    if error.code not in {_FORBIDDEN, _TOO_MANY}:
        return None
    after, reset = error.headers.get("Retry-After", ""), error.headers.get("X-RateLimit-Reset", "")
    if after.isdecimal():
        return float(after)
    if error.headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
        return max(0.0, float(reset) - time.time())
    return 0.0 if error.code == _TOO_MANY else None


def _refusal(what: str, error: urllib.error.HTTPError) -> GitHubError:
    if error.code == _FORBIDDEN and _asked_to_wait(error) is None:
        return ReadOnlyError(f"{what}: the token may not do that (403).")
    if error.code == _MISSING:
        return NotFoundError(f"{what}: not there, or the token may not see it (404).")
    return GitHubError(f"{what}: GitHub refuses it ({error.code}).")
