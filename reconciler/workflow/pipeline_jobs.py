"""Fits the jobs of the shipped pipelines to a repository: its default branch, runners, secrets, extras and token.

The shipped files name their defaults, because those for GitHub also run in this project's own repository. Each setting
replaces such a default where it is written, so the files of a repository without settings are the shipped ones.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from reconciler.files.pipelines import GITHUB, GITLAB, KUBERNETES
from reconciler.model.problem import ReconcilerError

USER, PASSWORD = "KAFKA_USERNAME", "KAFKA_PASSWORD"
BRANCH = "main"
EXTRAS: Mapping[str, tuple[str, ...]] = {GITHUB: ("aws", "loads", "spark", "all"), GITLAB: ("aws", "loads")}
"""The extras that jobs can install. GitLab's jobs take wheels alone, and PySpark has none."""
_SECRET = re.compile(r"(?!GITHUB_|ACTIONS_|RUNNER_|PATH$)[A-Z_][A-Z0-9_]*")
"""A name that GitHub takes for a secret, and that changes nothing in how a job itself runs."""
_LABEL = re.compile(r"[A-Za-z0-9._-]+")
_AUDIENCE = re.compile(r"[A-Za-z0-9._:/-]+")
_BRANCH_NAME = re.compile(r"[A-Za-z0-9._/-]+")
_RUNS_ON = "runs-on: ubuntu-24.04\n"
_IMAGE = "  image: python:3.11-slim-bookworm\n"


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Holds what the jobs of one repository need, and the jobs of another do not."""

    wheel: str | None = None
    """The file of this program that jobs on GitHub and GitLab install. It is kept beside their locks."""
    index: str = ""
    """The address of a package index that has this program, if there is no wheel."""
    secrets: tuple[str, ...] = ()
    """Secrets of GitHub's environments that jobs get as variables; if there are none, USER and PASSWORD."""
    runs_on: tuple[str, ...] = ()
    """Labels of the runners (GitHub), or tags (GitLab)."""
    audience: str = ""
    """For whom the CI's identity token of a job is; without it jobs get none."""
    extras: str = ""
    """The extra that jobs install, beside the base."""
    branch: str = BRANCH
    """The default branch. Its merges are planned and applied."""


class NotUsable(ReconcilerError):
    """A setting of jobs cannot be written into a pipeline."""

    code = "KR035"


def fitted(system: str, texts: Mapping[str, str], settings: JobSettings) -> Mapping[str, str]:
    """Return the files of the pipelines with these settings."""
    changes = _CHANGES[system]
    return {
        name: reduce(lambda text, change: change(name, text, settings), changes, text) for name, text in texts.items()
    }


def check_settings(system: str, settings: JobSettings) -> None:
    """Raise NotUsable for a setting that no pipeline of that system can have."""
    checks = (
        ("--secret", settings.secrets, _SECRET, "a name that GitHub takes, of A-Z 0-9 and _"),
        ("--runs-on", settings.runs_on, _LABEL, "a label of a-z A-Z 0-9 . _ and -"),
        (
            "--id-token",
            (settings.audience,) if settings.audience else (),
            _AUDIENCE,
            "an audience, such as a host's name",
        ),
        (
            "the default branch",
            (settings.branch,),
            _BRANCH_NAME,
            "a branch whose name has a-z A-Z 0-9 . _ - and / alone",
        ),
    )
    for option, values, pattern, need in checks:
        for value in values:
            if not pattern.fullmatch(value):
                raise NotUsable(f"{option} is {value!a}, and a pipeline needs {need}")
    extras = EXTRAS.get(system, ())
    if settings.extras and settings.extras not in extras:
        raise NotUsable(f"--extras is {settings.extras!a}: jobs on {system} can install {', '.join(extras)}")


def _with_branch(_name: str, text: str, settings: JobSettings) -> str:
    branch = BRANCH if settings.branch == BRANCH else json.dumps(settings.branch)
    text = text.replace(f"branches: [{BRANCH}]", f"branches: [{branch}]")
    return text.replace(f"\nbranch: {BRANCH}\n", f"\nbranch: {branch}\n")


def _on_runners(_name: str, text: str, settings: JobSettings) -> str:
    labels = ", ".join(map(json.dumps, settings.runs_on))
    return text.replace(_RUNS_ON, f"runs-on: [{labels}]\n") if labels else text


def _with_secrets(name: str, text: str, settings: JobSettings) -> str:
    """Name these secrets where the shipped files name a user and a password."""
    if not settings.secrets or not name.endswith(".yml"):
        return text
    return "".join(
        part if secret is None else "".join(part.replace(PASSWORD, name) for name in settings.secrets)
        for part, secret in _parts(text)
        if secret != USER
    )


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of a file; an entry of USER or PASSWORD as one text with its deeper lines, and its name."""
    lines = text.splitlines(keepends=True)
    while lines:
        first = lines.pop(0)
        depth = len(first) - len(first.lstrip())
        secret = next((name for name in (USER, PASSWORD) if first.strip().startswith(f"{name}:")), None)
        entry = [first]
        while secret and lines and len(lines[0]) - len(lines[0].lstrip()) > depth:
            entry.append(lines.pop(0))
        yield "".join(entry), secret


def _with_token(_name: str, text: str, settings: JobSettings) -> str:
    if not settings.audience:
        return text
    return text.replace("# id-token: write\n", "id-token: write\n").replace(
        "\naudience=\n", f"\naudience={settings.audience}\n"
    )


def _with_extras(_name: str, text: str, settings: JobSettings) -> str:
    return text.replace("\nextras=\n", f"\nextras={settings.extras}\n") if settings.extras else text


def _in_gitlab_jobs(_name: str, text: str, settings: JobSettings) -> str:
    """Give each job its tags and, where it has an environment, its token."""
    tags = f"  tags: [{', '.join(map(json.dumps, settings.runs_on))}]\n" if settings.runs_on else ""
    token = f"  id_tokens: {{ID_TOKEN: {{aud: {json.dumps(settings.audience)}}}}}\n" if settings.audience else ""
    return text.replace(_IMAGE, _IMAGE + tags + (token if "\n  environment:\n" in text else ""))


_CHANGES: Mapping[str, tuple[Callable[[str, str, JobSettings], str], ...]] = {
    GITHUB: (_with_branch, _on_runners, _with_secrets, _with_token, _with_extras),
    GITLAB: (_in_gitlab_jobs,),
    KUBERNETES: (_with_branch,),
}
