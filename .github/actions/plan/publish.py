"""Shows plans on a pull request: one comment a cluster kept up to date, labels, and the step summary.

    python3 publish.py [--markdown plan.md] [--markdown other.md ...]

Each file is what `reconciler plan -o markdown` or `show PLAN -o markdown` printed. Its first line names the cluster:
the comment that begins with the same line, and that this author wrote, is brought up to date; without one it is made.
Of the pull request's labels only those of LABELS, with the prefix before them, are ever set or taken away. Give all
clusters' files in one call: a plan's comment of this author that has no file here is folded as outdated, with
the commit that has no such plan. So neither a comment nor a label outlives its plan.
Whatever can be read is read from GitHub's variables: GITHUB_TOKEN, GITHUB_API_URL, GITHUB_REPOSITORY,
GITHUB_EVENT_PATH, GITHUB_STEP_SUMMARY, GITHUB_OUTPUT. The token needs `pull-requests: write`, and `issues: write` where
a label is not there yet.

Exit codes: 0 done, or nothing more than the summary could be written (no pull request; a token that may only read, as
that of a fork) - 1 error - 64 wrong usage.
"""  # noqa: INP001 - programs beside each other, no package

import argparse
import json
import os
import re
import sys
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from github_api import (
    ATTEMPTS,
    GitHub,
    GitHubError,
    Json,
    NotFoundError,
    ReadOnlyError,
    UnknownOutcomeError,
    github_of,
)

NATURES = ("no changes", "drift", "leaders only", "metadata only", "moves data")
DESTROYS = "destroys"
LABELS = (*NATURES, DESTROYS, "irreversible")
BODY_LIMIT = 65_536
SUMMARY_LIMIT = 1024 * 1024
USAGE = 64
_MARKER = re.compile(r"<!-- reconciler (?:plan|what-if|rollback) [A-Za-z0-9._%-]+ -->")
_PLAN_MARKER = re.compile(r"<!-- reconciler plan [A-Za-z0-9._%-]+ -->")
_OUTDATED = "<!-- reconciler outdated -->"
_LABEL_LINE = re.compile(r"<!-- reconciler labels: ([a-z, ]+) -->")
_MOST_BYTES = 4 * BODY_LIMIT
_NOTE = "\n\n*Left out here: a step's summary holds 1 MiB. The comment, or the job's files, have it.*\n\n"


class PublishError(Exception):
    """What is wrong with what was given; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A plan's Markdown: the line that it is found by, its labels, and all of it."""

    marker: str
    labels: tuple[str, ...]
    body: str


def main(arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    """Publish, and return the exit code; every error ends here, as a sentence."""
    asked = _parser().parse_args(arguments)
    try:
        comments = read_comments(asked.markdown or ())
        has_summary = write_summary(comments, variables)
        number = asked.pull_request or _event(variables)[0]
        if number is None:
            _tell("no pull request here: nothing is commented")
            return 0
        return _on_pull_request(asked, variables, comments, number, has_summary=has_summary)
    except (PublishError, GitHubError, OSError) as error:
        _tell(str(error), "error")
        return 1


def read_comments(paths: Sequence[str]) -> list[Comment]:
    """Return the files' comments; raises PublishError where two are of one cluster."""
    comments = [read_comment(path) for path in paths]
    if len({comment.marker for comment in comments}) < len(comments):
        raise PublishError("Two files are of the same cluster: give one file for each.")
    return comments


def read_comment(path: str) -> Comment:
    """Return a file's comment; raises PublishError where it is none of ours, or too long for GitHub."""
    with Path(path).open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    try:
        body = content.decode()
    except UnicodeDecodeError:
        raise PublishError(f"{path} is not UTF-8.") from None
    first, second, *_ = [*body.split("\n"), ""]
    labels = _LABEL_LINE.fullmatch(second)
    if not _MARKER.fullmatch(first) or labels is None or not set(labels[1].split(", ")) <= set(LABELS):
        raise PublishError(f"{path} is not what `reconciler show PLAN -o markdown` prints.")
    if len(body.encode("utf-16-le")) // 2 > BODY_LIMIT or len(content) > _MOST_BYTES:
        raise PublishError(f"{path} is longer than the {BODY_LIMIT:,} characters of a comment.")
    return Comment(first, tuple(labels[1].split(", ")), body)


def write_summary(comments: Sequence[Comment], variables: Mapping[str, str]) -> bool:
    """Append the comments to the step's summary, where there is one; what would not fit is left out, and said."""
    path = variables.get("GITHUB_STEP_SUMMARY")
    if not path:
        return False
    taken = Path(path).stat().st_size if Path(path).exists() else 0
    with Path(path).open("ab") as file:
        for comment in comments:
            title = next((line for line in comment.body.split("\n") if line.startswith("### ")), "### reconciler")
            for text in (f"{comment.body}\n\n", f"{title}{_NOTE}"):
                content = text.encode()
                # Later ones keep room for their title.
                if taken + len(content) + 8 * len(_NOTE) * (text[0] == "<") <= SUMMARY_LIMIT:
                    file.write(content)
                    taken += len(content)
                    break
    return True


def _event(variables: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the pull request that the workflow runs for, None for any other event, and its newest commit.

    GITHUB_SHA is another commit: GitHub's own, which merges the pull request on trial, and which nobody can look up.
    """
    path = variables.get("GITHUB_EVENT_PATH")
    if not path:
        return None, ""
    try:
        event = json.loads(Path(path).read_text("utf-8"))
    except ValueError:
        raise PublishError("GITHUB_EVENT_PATH holds no JSON.") from None
    found = event.get("pull_request") if isinstance(event, dict) else None
    number = found.get("number") if isinstance(found, dict) else None
    is_number = isinstance(number, int) and not isinstance(number, bool) and number > 0
    head = found.get("head") if isinstance(found, dict) else None
    commit = str(head.get("sha")) if isinstance(head, dict) else ""
    return number if is_number else None, commit if re.fullmatch(r"[0-9a-f]{40}", commit) else ""


def bring_up_to_date(github: GitHub, number: int, comment: Comment, author: str, *, is_new_wanted: bool) -> str:
    """Make or change the cluster's one comment, and return its address, empty for none.

    Comments of others are never touched, whatever they begin with. Where no answer came, it looks before it repeats.
    """
    for _ in range(ATTEMPTS):
        own = _own(github, number, comment, author)
        first = own[0] if own else None
        try:
            for other in own[1:]:
                _drop(github, other)
            if first is not None:
                if first.get("body") == comment.body:
                    return _address(first)
                return _address(github.send("PATCH", f"issues/comments/{_id(first)}", {"body": comment.body}))
            if not is_new_wanted:
                return ""
            made = github.send("POST", f"issues/{number}/comments", {"body": comment.body}, is_repeatable=False)
            _refuse_another(made, author)
            return _address(made)
        except UnknownOutcomeError:
            continue
        except NotFoundError:
            if first is None:
                raise
    raise GitHubError(f"The comment on pull request {number} could not be written, {ATTEMPTS} times.")


def fold_others(github: GitHub, number: int, comments: Sequence[Comment], author: str, commit: str) -> int:
    """Mark this author's comments of other clusters' plans as outdated, and return how many there are."""
    renewed = {comment.marker for comment in comments}
    count = 0
    for each in list(github.pages(f"issues/{number}/comments")):
        body = _own_body(each, author)
        marker, _, rest = body.partition("\n")
        marker = marker.rstrip("\r")
        if not _PLAN_MARKER.fullmatch(marker) or marker in renewed:
            continue
        count += 1
        if rest.startswith(_OUTDATED):
            continue
        cause = f"commit {commit} has no plan of this cluster" if commit else "the pull request has no such plan now"
        head = f"{marker}\n{_OUTDATED}\n<details><summary>Outdated: {cause}.</summary>\n"
        folded = f"{head}\n{rest}\n\n</details>\n"
        if len(folded.encode("utf-16-le")) // 2 > BODY_LIMIT:
            folded = f"{head}\nIt was too long to be kept here.\n\n</details>\n"
        try:
            github.send("PATCH", f"issues/comments/{_id(each)}", {"body": folded})
        except NotFoundError:
            continue
    return count


def set_labels(github: GitHub, number: int, wanted: Sequence[str], prefix: str) -> None:
    """Make the labels of ours those wanted; any other label stays as it is."""
    there = [str(each.get("name")) for each in github.pages(f"issues/{number}/labels")]
    goal = {f"{prefix}{label}".lower(): f"{prefix}{label}" for label in wanted}
    ours = {f"{prefix}{label}".lower() for label in LABELS}
    new = [label for key, label in goal.items() if key not in {name.lower() for name in there}]
    if new:
        github.send("POST", f"issues/{number}/labels", {"labels": list[object](new)})
    for name in there:
        if name.lower() in ours - set(goal):
            try:
                github.send("DELETE", f"issues/{number}/labels/{urllib.parse.quote(name, safe='')}")
            except NotFoundError:
                continue


def labels_of(comments: Sequence[Comment]) -> tuple[str, ...]:
    """Return the labels of several plans together: the heaviest nature, and what no rollback takes back.

    What destroys is not only metadata: beside it only moves of data are told.
    """
    found = {label for comment in comments for label in comment.labels}
    natures = found & {NATURES[-1]} if DESTROYS in found else found & set(NATURES)
    nature = [max(natures, key=NATURES.index)] if natures else []
    return (*nature, *(label for label in LABELS if label in found and label not in NATURES))


def _on_pull_request(
    asked: argparse.Namespace,
    variables: Mapping[str, str],
    comments: Sequence[Comment],
    number: int,
    *,
    has_summary: bool,
) -> int:
    github = github_of(variables, pause=asked.pause)
    wanted = labels_of(comments)
    addresses = []
    try:
        for comment in comments:
            is_new_wanted = not asked.only_changes or comment.labels != NATURES[:1]
            addresses.append(bring_up_to_date(github, number, comment, asked.author, is_new_wanted=is_new_wanted))
        if not asked.keep_others:
            fold_others(github, number, comments, asked.author, _event(variables)[1])
        if not asked.no_labels:
            set_labels(github, number, wanted, asked.label_prefix)
    except ReadOnlyError as error:
        if not has_summary:
            raise
        _tell(f"{error} The plan is in the step's summary. A pull request from a fork gets no other token.", "warning")
    _write_outputs(variables, {"labels": ", ".join(wanted), "comments": " ".join(filter(None, addresses))})
    _tell(f"pull request {number}: {len(addresses)} of {len(comments)} comments up to date; {', '.join(wanted)}")
    return 0


def _own(github: GitHub, number: int, comment: Comment, author: str) -> list[Json]:
    """Return this author's comments of that cluster, the oldest first."""
    listed = github.pages(f"issues/{number}/comments")
    own = [each for each in listed if _own_body(each, author).split("\n")[0].rstrip("\r") == comment.marker]
    return sorted(own, key=_id)


def _own_body(comment: Json, author: str) -> str:
    """Return the text of a comment of this author, empty for those of others."""
    user, body = comment.get("user"), comment.get("body")
    is_own = isinstance(user, dict) and user.get("login") == author
    return body if is_own and isinstance(body, str) else ""


def _refuse_another(made: Json, author: str) -> None:
    """Raise PublishError where the new comment is not the author's: no later run would find it, and make another."""
    user = made.get("user")
    login = user.get("login") if isinstance(user, dict) else None
    if isinstance(login, str) and login != author:
        raise PublishError(f"The token comments as {login}, not as {author}: give --author '{login}'.")


def _drop(github: GitHub, comment: Json) -> None:
    """Delete one that two runs at once made beside the first."""
    try:
        github.send("DELETE", f"issues/comments/{_id(comment)}")
    except NotFoundError:
        return


def _id(comment: Json) -> int:
    found = comment.get("id")
    if not isinstance(found, int):
        raise GitHubError("GitHub's answer has a comment without an id.")
    return found


def _address(comment: Json) -> str:
    """Return a comment's address; whatever is no plain address is not passed on."""
    found = comment.get("html_url")
    return found if isinstance(found, str) and re.fullmatch(r"https?://[\w.:/#?=&%-]+", found, re.ASCII) else ""


def _write_outputs(variables: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    path = variables.get("GITHUB_OUTPUT")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in outputs.items())


def _tell(text: str, level: str = "") -> None:
    """Print a line; an error or a warning as the command that shows it on the run's page."""
    safe = "".join(each if each.isprintable() else " " for each in text)
    if level:
        sys.stdout.write(f"::{level}::{safe.replace('%', '%25')}\n")
    else:
        sys.stdout.write(f"publish: {safe}\n")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", metavar="FILE", action="append", help="a plan's Markdown; again for more")
    parser.add_argument("--pull-request", metavar="N", type=_positive, help="instead of the event's own")
    parser.add_argument(
        "--author", default="github-actions[bot]", help="whose comments are ours (default: %(default)s)"
    )
    parser.add_argument("--label-prefix", default="plan: ", help="before each label (default: '%(default)s')")
    parser.add_argument("--no-labels", action="store_true", help="leave all labels alone")
    parser.add_argument("--keep-others", action="store_true", help="fold no comment of a cluster that has no file here")
    parser.add_argument("--only-changes", action="store_true", help="begin no comment for a plan without changes")
    parser.add_argument("--pause", metavar="SECONDS", type=float, default=1.0, help="before a second attempt")
    return parser


def _positive(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a pull request")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
