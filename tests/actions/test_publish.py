"""The program that shows plans on a pull request, as a workflow runs it, against an API in memory."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from actions.fake_github import AUTHOR, REPOSITORY, FakeGitHub, Fault
from helpers.plans.sample_plan import sample_plan
from helpers.program.call import ROOT, Ended, captured

from reconciler.model.plan import Plan
from reconciler.render import as_markdown
from reconciler.render.labels import LABELS

pytestmark = pytest.mark.long

PROGRAM = ROOT / ".github" / "actions" / "plan" / "publish.py"
TOKEN = "ghs_c4n4ryC4N4RYc4n4ry"  # noqa: S105 - a canary, of no account
COMMIT = "c0ffee" + "0" * 34
"""The newest commit of the pull request; GITHUB_SHA is that of GitHub's trial merge."""
EMPTY = replace(sample_plan(), stages=(), topic_changes=(), violations=(), warnings=())


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub(TOKEN).served() as started:
        yield started


def publish(
    github: FakeGitHub, folder: Path, *plans: Plan, more: tuple[str, ...] = (), number: int | None = 7, **variables: str
) -> Ended:
    """Run the program as a workflow's step does, on these plans; nothing of it may ever print the token."""
    files = []
    for index, plan in enumerate(plans):
        files += ["--markdown", str(folder / f"plan-{index}.md")]
        (folder / f"plan-{index}.md").write_text(as_markdown.plan(plan), "utf-8")
    pull_request = {"number": number, "head": {"sha": COMMIT}}
    event = {"pull_request": pull_request} if number else {"ref": "refs/heads/main"}
    (folder / "event.json").write_text(json.dumps(event))
    given = {
        "PATH": os.environ["PATH"],
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_API_URL": github.address,
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_SHA": "f" * 40,
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "GITHUB_OUTPUT": str(folder / "output"),
        **variables,
    }
    command = [sys.executable, str(PROGRAM), *files, "--pause", "0.01", *more]
    ended = captured(command, env={name: value for name, value in given.items() if value})
    for text in (ended.stdout, ended.stderr, *(path.read_text("utf-8") for path in folder.iterdir())):
        assert TOKEN not in text
    assert github.strangers == []
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def test_its_labels_are_those_of_a_plan() -> None:
    # In a process of its own: the folder of an action is no package.
    told = captured([sys.executable, "-c", "import publish; print(publish.LABELS)"], PROGRAM.parent, check=True)
    assert told.stdout.strip() == str(LABELS)


def test_it_needs_nothing_but_the_standard_library() -> None:
    ended = captured([sys.executable, "-S", "-E", "-s", PROGRAM, "--help"])
    assert (ended.returncode, "--markdown FILE" in ended.stdout) == (0, True)


def test_a_comment_is_made_once_and_then_kept_up_to_date(github: FakeGitHub, tmp_path: Path) -> None:
    first = publish(github, tmp_path, sample_plan())
    assert (first.code, first.err) == (0, "")
    assert github.bodies(7) == [as_markdown.plan(sample_plan())]
    assert publish(github, tmp_path, sample_plan()).code == 0
    assert github.writes() == ["POST", "POST"]  # the comment and its labels: what stands there is not sent again
    changed = replace(sample_plan(), id="0ther1d0")
    assert publish(github, tmp_path, changed).code == 0
    assert github.bodies(7) == [as_markdown.plan(changed)]
    assert "labels=moves data, destroys, irreversible\n" in (tmp_path / "output").read_text("utf-8")
    assert f"comments={github.comments[7][0]['html_url']}\n" in (tmp_path / "output").read_text("utf-8")


def test_what_others_wrote_is_never_touched(github: FakeGitHub, tmp_path: Path) -> None:
    body = as_markdown.plan(sample_plan())
    theirs = [
        github.add(7, body, "mallory")["body"],
        github.add(7, f"> {body}", AUTHOR)["body"],
        github.add(7, as_markdown.plan(replace(sample_plan(), cluster_name="demo-2")))["body"],
        github.add(7, "plain words")["body"],
    ]
    github.add(8, body)
    github.labels[7] += ["bug", "plan: mine", "moves data", "Plan: Metadata Only", "plan: leaders only"]
    assert publish(github, tmp_path, EMPTY, more=("--keep-others",)).code == 0
    assert github.bodies(7) == [*theirs, as_markdown.plan(EMPTY)]
    assert github.bodies(8) == [body]
    assert github.labels[7] == ["bug", "plan: mine", "moves data", "plan: no changes"]


def test_several_clusters_have_a_comment_each_and_the_heaviest_label(github: FakeGitHub, tmp_path: Path) -> None:
    leaders = replace(sample_plan(), cluster_name="b", stages=sample_plan().stages[3:], topic_changes=())
    metadata = replace(sample_plan(), cluster_name="a", stages=sample_plan().stages[:1])
    github.labels[7] += ["plan: moves data"]
    assert publish(github, tmp_path, leaders, metadata, replace(EMPTY, cluster_name="c")).code == 0
    assert [body.split("\n")[0] for body in github.bodies(7)] == [f"<!-- reconciler plan {name} -->" for name in "bac"]
    assert github.labels[7] == ["plan: destroys", "plan: irreversible"]
    assert publish(github, tmp_path, leaders, leaders).code == 1


def test_what_this_run_did_not_renew_is_folded_with_the_commit_and_its_labels_go(
    github: FakeGitHub, tmp_path: Path
) -> None:
    gone = replace(sample_plan(), cluster_name="gone")
    theirs = github.add(7, as_markdown.plan(gone), "mallory")["body"]
    what_if = github.add(7, as_markdown.plan(gone).replace("reconciler plan", "reconciler what-if", 1))["body"]
    assert publish(github, tmp_path, sample_plan(), gone).code == 0
    github.labels[7].append("bug")
    assert "plan: moves data" in github.labels[7]
    for _ in range(2):  # the plan of one has failed, or its folder is gone
        assert publish(github, tmp_path, EMPTY).code == 0
        assert github.labels[7] == ["bug", "plan: no changes"]
        assert github.bodies(7)[:3] == [theirs, what_if, as_markdown.plan(EMPTY)]
        marker, outdated, summary, *rest = github.bodies(7)[3].split("\n")
        assert (marker, outdated) == ("<!-- reconciler plan gone -->", "<!-- reconciler outdated -->")
        assert summary == f"<details><summary>Outdated: commit {COMMIT} has no plan of this cluster.</summary>"
        assert "\n".join(rest).endswith("</details>\n")
    assert publish(github, tmp_path).code == 0  # no cluster has a plan
    assert github.labels[7] == ["bug"]
    assert [body.count("<summary>Outdated") for body in github.bodies(7)] == [0, 0, 1, 1]
    assert publish(github, tmp_path, gone).code == 0  # a later commit has one again
    assert github.bodies(7)[3] == as_markdown.plan(gone)
    assert len(github.bodies(7)) == 4


def test_a_comment_that_is_too_long_to_be_folded_loses_its_text(github: FakeGitHub, tmp_path: Path) -> None:
    github.add(7, "<!-- reconciler plan long -->\n" + "x" * 65_500)
    assert publish(github, tmp_path).code == 0
    (body,) = github.bodies(7)
    assert (len(body) < 400, COMMIT in body, "x" * 10 in body) == (True, True, False)


def test_a_token_of_somebody_else_is_told_before_it_makes_a_comment_a_run(github: FakeGitHub, tmp_path: Path) -> None:
    github.login = "octo-bot"
    ended = publish(github, tmp_path, sample_plan())
    assert (ended.code, "give --author 'octo-bot'" in ended.out) == (1, True)
    assert publish(github, tmp_path, EMPTY, more=("--author", "octo-bot")).code == 0
    assert github.bodies(7) == [as_markdown.plan(EMPTY)]


@pytest.mark.parametrize("page_size", [1, 7])
def test_its_comment_and_labels_are_found_on_any_page(github: FakeGitHub, tmp_path: Path, page_size: int) -> None:
    github.page_size = page_size
    for number in range(30):
        github.add(7, f"comment {number}", "somebody")
    github.add(7, as_markdown.plan(EMPTY))
    github.labels[7] += [f"label {number}" for number in range(30)] + ["plan: no changes"]
    assert publish(github, tmp_path, sample_plan()).code == 0
    assert len(github.comments[7]) == 31
    assert github.bodies(7)[-1] == as_markdown.plan(sample_plan())
    assert github.labels[7][30:] == ["plan: moves data", "plan: destroys", "plan: irreversible"]


def test_of_two_that_two_runs_made_one_is_left(github: FakeGitHub, tmp_path: Path) -> None:
    kept = github.add(7, as_markdown.plan(EMPTY))
    github.add(7, as_markdown.plan(EMPTY).replace("\n", "\r\n"))
    assert publish(github, tmp_path, sample_plan()).code == 0
    assert [each["id"] for each in github.comments[7]] == [kept["id"]]
    assert github.bodies(7) == [as_markdown.plan(sample_plan())]


@pytest.mark.parametrize("status", [0, 500, 502, 503])
@pytest.mark.parametrize("is_done", [True, False])
def test_an_answer_that_is_lost_makes_no_second_comment(
    github: FakeGitHub, tmp_path: Path, status: int, *, is_done: bool
) -> None:
    github.faults = [Fault("POST", status, is_done=is_done), Fault("GET", 502), Fault("GET", 0)]
    assert publish(github, tmp_path, sample_plan()).code == 0
    assert github.bodies(7) == [as_markdown.plan(sample_plan())]
    assert github.labels[7] == ["plan: moves data", "plan: destroys", "plan: irreversible"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault("PATCH", 500), ""),
        (Fault("PATCH", 0), ""),
        (Fault("PATCH", 429), ""),
        (Fault("PATCH", 403, (("Retry-After", "0"),)), ""),
        (Fault("PATCH", 403, (("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1"))), ""),
        (Fault("PATCH", 404), ""),
        (Fault("PATCH", 403, (("Retry-After", "3600"),)), "asks to wait 3600 seconds"),
        (Fault("PATCH", 422), "GitHub refuses it (422)"),
        (Fault("PATCH", 302, (("Location", "https://elsewhere.invalid/"),)), "GitHub refuses it (302)"),
        (Fault("GET", 404), "not there, or the token may not see it (404)"),
    ],
)
def test_what_passes_is_tried_again_and_what_does_not_is_said(
    github: FakeGitHub, tmp_path: Path, fault: Fault, words: str
) -> None:
    github.add(7, as_markdown.plan(EMPTY))
    github.faults = [fault]
    ended = publish(github, tmp_path, sample_plan())
    assert ended.code == (1 if words else 0), ended
    assert words in ended.out
    assert ended.out.startswith("::error::" if words else "publish: ")
    assert github.bodies(7) == [as_markdown.plan(EMPTY if words else sample_plan())]


def test_it_gives_up_after_a_few_attempts(github: FakeGitHub, tmp_path: Path) -> None:
    github.faults = [Fault("GET", 503)] * 50
    ended = publish(github, tmp_path, sample_plan())
    assert (ended.code, len(github.requests)) == (1, 4)
    assert "GitHub refuses it (503)" in ended.out


def test_a_page_elsewhere_is_not_followed(github: FakeGitHub, tmp_path: Path) -> None:
    github.page_size = 1
    with FakeGitHub("another").served() as other:
        github.foreign_next = other.address
        github.add(7, "one")
        github.add(7, "two")
        ended = publish(github, tmp_path, sample_plan())
        assert (ended.code, other.requests, other.strangers) == (1, [], [])
    assert "so the token is not sent there" in ended.out


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(github: FakeGitHub, tmp_path: Path, status: int) -> None:
    with FakeGitHub("another").served() as other:
        github.faults = [Fault("GET", status, (("Location", other.address),))]
        ended = publish(github, tmp_path, sample_plan())
        assert (ended.code, other.requests) == (1, [])
    assert f"GitHub refuses it ({status})" in ended.out


@pytest.mark.parametrize(
    "address", ["http://github.invalid", "ftp://github.invalid", "file:///etc/passwd", "github.invalid"]
)
def test_the_token_is_sent_over_https_alone(github: FakeGitHub, tmp_path: Path, address: str) -> None:
    ended = publish(github, tmp_path, sample_plan(), GITHUB_API_URL=address)
    assert (ended.code, "so the token is not sent there" in ended.out) == (1, True)


def test_a_token_that_may_only_read_leaves_the_plan_in_the_summary(github: FakeGitHub, tmp_path: Path) -> None:
    github.is_read_only = True
    ended = publish(github, tmp_path, sample_plan())
    assert ended.code == 0
    assert ended.out.startswith("::warning::")
    assert (tmp_path / "summary.md").read_text("utf-8") == as_markdown.plan(sample_plan()) + "\n\n"
    assert "labels=moves data, destroys, irreversible\n" in (tmp_path / "output").read_text("utf-8")
    assert publish(github, tmp_path, sample_plan(), GITHUB_STEP_SUMMARY="").code == 1


def test_without_a_pull_request_there_is_only_the_summary(github: FakeGitHub, tmp_path: Path) -> None:
    ended = publish(github, tmp_path, sample_plan(), number=None, GITHUB_TOKEN="")
    assert (ended.code, ended.out) == (0, "publish: no pull request here: nothing is commented\n")
    assert github.requests == []
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("<!-- reconciler plan demo -->")
    assert publish(github, tmp_path, sample_plan(), number=None, more=("--pull-request", "9")).code == 0
    assert len(github.comments[9]) == 1


def test_a_summary_stays_below_its_limit_and_says_what_it_lacks(github: FakeGitHub, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    for room, whole in ((20_000, 2), (8_500, 1), (3_000, 0)):
        summary.write_text("x" * (1024 * 1024 - room))
        plans = (sample_plan(), replace(sample_plan(), cluster_name="other"))
        assert publish(github, tmp_path, *plans, number=None).code == 0
        text = summary.read_text("utf-8")
        assert summary.stat().st_size <= 1024 * 1024
        assert text.count("stay as they are.") == whole, len(as_markdown.plan(sample_plan()).encode())
        assert text.count("*Left out here: ") == 2 - whole
        assert text.count("### reconciler · ") == 2


def test_nothing_begins_for_an_empty_plan_where_only_changes_are_asked_for(github: FakeGitHub, tmp_path: Path) -> None:
    assert publish(github, tmp_path, EMPTY, more=("--only-changes", "--no-labels")).code == 0
    assert (github.bodies(7), github.labels[7]) == ([], [])
    publish(github, tmp_path, sample_plan())
    assert publish(github, tmp_path, EMPTY, more=("--only-changes",)).code == 0
    assert github.bodies(7) == [as_markdown.plan(EMPTY)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not what"),
        (b"# words\n", "is not what"),
        (b"<!-- reconciler plan demo -->\nno labels\n", "is not what"),
        (b"<!-- reconciler plan demo -->\n<!-- reconciler labels: everything -->\n", "is not what"),
        (b"<!-- reconciler plan a b -->\n<!-- reconciler labels: no changes -->\n", "is not what"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"<!-- reconciler plan a -->\n<!-- reconciler labels: no changes -->\n" + b"x" * 65_536, "is longer than"),
        (b"x" * 1_000_000, "is not what"),
    ],
)
def test_a_file_that_is_no_plans_markdown_is_refused(
    github: FakeGitHub, tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "other.md").write_bytes(content)
    folder = tmp_path / "own"
    folder.mkdir()
    ended = publish(github, folder, more=("--markdown", str(tmp_path / "sub" / "other.md")))
    assert (ended.code, words in ended.out, github.requests) == (1, True, [])


@pytest.mark.parametrize(
    "more", [("--markdown",), ("--markdown", "x", "--pull-request", "0"), ("--markdown", "x", "--nonsense")]
)
def test_wrong_usage_is_64(github: FakeGitHub, tmp_path: Path, more: tuple[str, ...]) -> None:
    assert publish(github, tmp_path, more=more).code == 64


def test_text_from_an_answer_is_no_command_of_a_workflow(github: FakeGitHub, tmp_path: Path) -> None:
    made = github.add(7, as_markdown.plan(EMPTY))
    made["html_url"] = "https://x.invalid/\n::set-env name=A::b\nlabels=owned"
    ended = publish(github, tmp_path, sample_plan())
    assert "::" not in ended.out
    assert (tmp_path / "output").read_text("utf-8") == "labels=moves data, destroys, irreversible\ncomments=\n"
