"""Keeps and fetches files for other jobs of a project, and writes notes on merge requests.

    gitlab.py put FOLDER NAME FILE      keeps a file in the project's package registry
    gitlab.py snapshot CLUSTER FILE     the snapshot that the last pipeline of the default branch took
    gitlab.py results RUN DIR NAMES     what the jobs of all clusters left, as summary.py reads it; NAMES in JSON
    gitlab.py note MERGE_REQUEST FILE   one note a cluster, known by the file's first line, kept up to date
    gitlab.py asked PLAN                ends with 3 if the plan destroys records, and the default branch has moved on
    gitlab.py order RUN CLUSTER TARGET... ends with 3 if a TARGET, which copies topics that grow, is not applied yet

Every Developer's job may write to the package registry. So it has the rows of the summary alone, by which `order`
decides when a plan runs, and never which plan. A snapshot is an artifact, and the repository itself is asked for its
newest commit, by the job's own token.

Files are sent with the job's own token. Notes need RECONCILER_GITLAB_TOKEN, a token of the project with the scope `api`
and the role Reporter; without it the plan is in the job's log and artifacts alone.

Exit codes: 0 done, 1 with a sentence, 2 where what is to be got is not there, 3 where a plan is withdrawn or waits.
"""

import base64
import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from pathlib import Path
from typing import IO, Any

NOT_THERE, WITHDRAWN, WAITS = 2, 3, 3
ATTEMPTS = 4
TIMEOUT_SECONDS = 60
PAGE = 100
MOST_PAGES = 50
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_FOUND, _MISSING, _SERVER, _TOO_MANY = 302, 404, 500, 429


class GitLabError(Exception):
    """What GitLab refused, or that it did not answer; the text never holds a token."""


class MissingError(GitLabError):
    """It is not there."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a redirect would take the token to wherever it points."""

    def redirect_request(  # noqa: PLR0917 - the signature of the standard library
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        del req, fp, code, msg, headers, newurl


_OPENER = urllib.request.build_opener(_NoRedirect)


def main(arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    """Do what is asked for, and return the exit code."""
    verb, *rest = arguments
    project = f"{variables['CI_API_V4_URL']}/projects/{variables['CI_PROJECT_ID']}"
    try:
        if verb == "note":
            return note(project, int(rest[0]), Path(rest[1]), variables)
        job = {"JOB-TOKEN": variables["CI_JOB_TOKEN"]}
        if verb == "put":
            sent(kept_at(project, rest[0], rest[1]), job, "PUT", Path(rest[2]).read_bytes())
        elif verb == "snapshot":
            branch, name = (
                urllib.parse.quote(one, safe="") for one in (variables["CI_DEFAULT_BRANCH"], f"plan {rest[0]}")
            )
            place = f"{project}/jobs/artifacts/{branch}/raw/reconciler-job/snapshot.json?job={name}"
            Path(rest[1]).write_bytes(sent(place, job))
        elif verb == "asked":
            return asked(json.loads(Path(rest[0]).read_text("utf-8")), variables)
        elif verb == "order":
            return order(project, job, *rest)
        else:
            results(project, job, rest[0], Path(rest[1]), json.loads(rest[2]))
    except (GitLabError, OSError) as error:
        print(f"error: {verb} {' '.join(rest[:2])}: {error}")
        return NOT_THERE if isinstance(error, MissingError) else 1
    return 0


def kept_at(project: str, folder: str, name: str) -> str:
    """Return the address of a file in the package registry."""
    return f"{project}/packages/generic/reconciler/{urllib.parse.quote(folder)}/{urllib.parse.quote(name)}"


def asked(plan: Mapping[str, Any], variables: Mapping[str, str]) -> int:
    """Return 3, with an error, for a plan that destroys if the default branch has another commit by now."""
    is_destroying = any(
        change["kind"] == "deleteTopic" or any(one["class"] == "destroys" for one in change.get("effects", ()))
        for change in plan["topicChanges"]
    )
    if not is_destroying:
        return 0
    if newest_commit(variables) == variables["CI_COMMIT_SHA"]:
        return 0
    print(
        "error: the plan destroys records, and the default branch has another commit by now:"
        " apply the plan of its newest pipeline, or start one (KR463)"
    )
    return WITHDRAWN


def newest_commit(variables: Mapping[str, str]) -> str:
    """Return the newest commit of the default branch, as `git fetch` reads it: lines, each with its length."""
    user = base64.b64encode(f"gitlab-ci-token:{variables['CI_JOB_TOKEN']}".encode()).decode()
    address = f"{variables['CI_PROJECT_URL']}.git/info/refs?service=git-upload-pack"
    answer = sent(address, {"Authorization": f"Basic {user}"})
    reference, position = f"refs/heads/{variables['CI_DEFAULT_BRANCH']}", 0
    while position < len(answer):
        length = int(answer[position : position + 4], 16)
        commit, _, name = (
            answer[position + 4 : position + length].decode().partition("\0")[0].rstrip("\n").partition(" ")
        )
        if name == reference:
            return commit
        position += max(length, 4)
    raise GitLabError(f"the repository has no branch {variables['CI_DEFAULT_BRANCH']}")


def results(project: str, token: Mapping[str, str], run: str, folder: Path, names: Sequence[str]) -> None:
    """Fetch what each job of that run left; what is not there has no file."""
    for left in (f"result-{verb}-{name}" for name in names for verb in ("plan", "apply")):
        try:
            content = sent(kept_at(project, f"results-{run}", left), token)
        except MissingError:
            continue
        (folder / left).mkdir(parents=True, exist_ok=True)
        (folder / left / "result").write_bytes(content)


def order(project: str, token: Mapping[str, str], run: str, cluster: str, *targets: str) -> int:
    """Return 3, with an error for each target whose copies may still have to grow before the cluster's topics."""
    with tempfile.TemporaryDirectory() as folder:
        results(project, token, run, Path(folder), targets)
        waiting = [target for target in targets if not is_grown(Path(folder), target)]
    for target in waiting:
        message = f"{cluster}'s plan grows topics that {target} copies, and {target} is not applied yet"
        print(f"error: {message}: start its apply job, then retry this one", file=sys.stderr)
    return WAITS if waiting else 0


def is_grown(folder: Path, target: str) -> bool:
    """Return whether a cluster was applied, or has an empty plan; clusters.py writes the last text."""
    files = (folder / f"result-{verb}-{target}" / "result" for verb in ("apply", "plan"))
    texts = [file.read_text("utf-8", errors="replace") for file in files if file.exists()]
    return any(text.startswith(("0", "2\ndiffers, but no plan can mend it")) for text in texts)


def note(project: str, number: int, file: Path, variables: Mapping[str, str]) -> int:
    """Make or change the one note of a cluster; notes of others are never touched, whatever they begin with."""
    secret = variables.get("RECONCILER_GITLAB_TOKEN")
    if not secret:
        print("no note: without RECONCILER_GITLAB_TOKEN the plan is in this job's log and artifacts alone")
        return 0
    token = {"PRIVATE-TOKEN": secret, "Content-Type": "application/json"}
    body = file.read_text("utf-8")
    author = json.loads(sent(f"{variables['CI_API_V4_URL']}/user", token))["id"]
    notes = f"{project}/merge_requests/{number}/notes"
    own = [
        each
        for each in pages(notes, token)
        if each["author"]["id"] == author and each["body"].partition("\n")[0] == body.partition("\n")[0]
    ]
    if not own:
        sent(notes, token, "POST", json.dumps({"body": body}).encode())
    elif own[0]["body"] != body:
        sent(f"{notes}/{own[0]['id']}", token, "PUT", json.dumps({"body": body}).encode())
    return 0


def pages(address: str, token: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield every item of a list, the oldest first."""
    for page in range(1, MOST_PAGES):
        items = json.loads(sent(f"{address}?sort=asc&order_by=created_at&per_page={PAGE}&page={page}", token))
        yield from items
        if len(items) < PAGE:
            return


def sent(address: str, token: Mapping[str, str], method: str = "GET", body: bytes | None = None) -> bytes:
    """Return the answer; a store that it is kept in elsewhere is not shown the token. Only POST is not sent again."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise GitLabError("CI_API_V4_URL is no https address, so no token is sent there")
    what = f"{method} {parts.path}"
    for attempt in range(ATTEMPTS):
        request = urllib.request.Request(address, data=body, method=method, headers=dict(token))
        try:
            with _OPENER.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == _FOUND and token and method == "GET":
                return sent(error.headers.get("Location", ""), {})
            if error.code == _MISSING:
                raise MissingError(f"{what}: not there, or the token may not see it") from None
            if method == "POST" or attempt == ATTEMPTS - 1 or error.code not in {_TOO_MANY, *range(_SERVER, 600)}:
                raise GitLabError(f"{what}: GitLab refuses it ({error.code})") from None
        except OSError as error:
            if method == "POST" or attempt == ATTEMPTS - 1:
                raise GitLabError(f"{what}: no answer ({type(error).__name__})") from None
        time.sleep(float(os.environ.get("RECONCILER_PAUSE", "1")) * 2**attempt)
    raise AssertionError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
