"""GitHub's REST API as far as comments, labels and artifacts need it, with nothing but Python's standard library."""  # noqa: INP001 - programs beside each other, no package

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from typing import IO

PAGE = 100
MOST_PAGES = 100
ATTEMPTS = 4
MOST_SECONDS = 60.0
TIMEOUT_SECONDS = 30.0
_FOUND, _FORBIDDEN, _MISSING, _TOO_MANY, _SERVER = 302, 403, 404, 429, 500
_AGENT = "kafka-reconciler"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

Json = dict[str, object]


class GitHubError(Exception):
    """What GitHub refused, or that it did not answer; the text never holds what was sent, and so no token."""


class ReadOnlyError(GitHubError):
    """The token may read only, as that of a pull request from a fork."""


class ElsewhereError(GitHubError):
    """GitHub keeps it at another `address`, where the token is not to be shown."""

    def __init__(self, message: str, address: str) -> None:
        super().__init__(message)
        self.address = address


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
        if not _is_safe(self.api):
            raise GitHubError("GITHUB_API_URL is no https address, so the token is not sent there.")
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", self.repository, re.ASCII):
            raise GitHubError("GITHUB_REPOSITORY is no OWNER/NAME.")
        if not re.fullmatch(r"[\x21-\x7e]+", self.token):
            raise GitHubError("GITHUB_TOKEN is empty, or holds what no token holds.")

    def pages(self, path: str, name: str = "") -> Iterator[Json]:
        """Yield every item of a list, page by page; `name`: the member of the answer that holds the list."""
        address: str | None = f"{self._address(path)}{'&' if '?' in path else '?'}per_page={PAGE}"
        for _ in range(MOST_PAGES):
            if address is None:
                return
            items, headers = self._sent("GET", address, None, is_repeatable=True)
            if name and isinstance(items, dict):
                items = items.get(name)
            if not isinstance(items, list):
                raise GitHubError(f"GET {path}: the answer is no list.")
            yield from (item for item in items if isinstance(item, dict))
            address = self._next(headers)
        raise GitHubError(f"GET {path}: more than {MOST_PAGES} pages.")

    def send(self, method: str, path: str, body: Json | None = None, *, is_repeatable: bool = True) -> Json:
        """Return the answer's object, empty for none; raises UnknownOutcomeError where it may not be sent again."""
        answer, _ = self._sent(method, self._address(path), body, is_repeatable=is_repeatable)
        return answer if isinstance(answer, dict) else {}

    def download(self, path: str) -> bytes:
        """Return what GitHub keeps elsewhere; the token is not shown there."""
        try:
            self.send("GET", path)
        except ElsewhereError as error:
            if not _is_safe(error.address):
                raise GitHubError(f"GET {path}: the answer leads to no https address.") from None
            request = urllib.request.Request(error.address, headers={"User-Agent": _AGENT})
            return self._opened(request, is_repeatable=True)[0]
        raise GitHubError(f"GET {path}: the answer leads nowhere.")

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
        request = urllib.request.Request(
            address,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "User-Agent": _AGENT,
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        content, headers = self._opened(request, is_repeatable=is_repeatable)
        return _read(_named(request), content), headers

    def _opened(self, request: urllib.request.Request, *, is_repeatable: bool) -> tuple[bytes, Message]:
        what = _named(request)
        for attempt in range(ATTEMPTS):
            is_last = attempt == ATTEMPTS - 1
            wait = min(self.pause * 2**attempt, MOST_SECONDS)
            try:
                with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as answer:
                    return answer.read(), answer.headers
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


def _is_safe(address: str) -> bool:
    parts = urllib.parse.urlsplit(address)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def _named(request: urllib.request.Request) -> str:
    """Return what an error calls it: without a query, which may hold a signature."""
    return f"{request.get_method()} {urllib.parse.urlsplit(request.full_url).path}"


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
    if error.code == _FOUND:
        told = f"{what}: GitHub refuses it (302) and names another address, where the token is not sent."
        return ElsewhereError(told, error.headers.get("Location", ""))
    return GitHubError(f"{what}: GitHub refuses it ({error.code}).")


def github_of(variables: Mapping[str, str], *, pause: float = 1.0) -> GitHub:
    """Return the repository that a job is about, as its token sees it."""
    return GitHub(
        api=variables.get("GITHUB_API_URL") or "https://api.github.com",
        repository=variables.get("GITHUB_REPOSITORY", ""),
        token=variables.get("GITHUB_TOKEN", ""),
        pause=pause,
    )
