"""The container file, read as its builder would: CI builds no image; what can be known without one is checked here."""

import json
import re
import tomllib
from collections.abc import Iterator

from journeys.installed import ROOT

FILE = ROOT / ".github" / "Containerfile"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def instructions() -> Iterator[tuple[str, str]]:
    """Yield each instruction with its arguments; continued lines are joined."""
    text = re.sub(r"\\\n\s*", "", FILE.read_text("utf-8"))
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, arguments = line.partition(" ")
            yield name, arguments


def last_stage() -> list[tuple[str, str]]:
    """Return the instructions of the image that is made."""
    found = list(instructions())
    return found[max(index for index, (name, _) in enumerate(found) if name == "FROM") :]


def copied() -> list[str]:
    """Return what is copied from the context."""
    return [
        source
        for name, arguments in instructions()
        if name == "COPY" and not arguments.startswith("--from=")
        for source in arguments.split()[:-1]
    ]


def test_every_base_is_pinned_and_is_the_same_python() -> None:
    bases = [arguments.split()[0] for name, arguments in instructions() if name == "FROM"]
    assert len(bases) == 2
    assert len(set(bases)) == 1  # a virtual environment does not outlive another interpreter
    version = re.fullmatch(r"python:(\d+\.\d+)\.\d+-slim-\w+@sha256:[0-9a-f]{64}", bases[0])
    assert version is not None, "a tag moves; a digest does not"
    assert PROJECT["project"]["requires-python"] == f">={version[1]}"


def test_it_does_not_run_as_root() -> None:
    stage = last_stage()
    (user,) = [arguments for name, arguments in stage if name == "USER"]
    assert user.isdecimal()  # an orchestrator that forbids root can only judge a number
    assert int(user) > 0
    assert [name for name, _ in stage].index("USER") < [name for name, _ in stage].index("ENTRYPOINT")
    assert any(name == "RUN" and f"--uid {user}" in arguments for name, arguments in stage)


def test_it_starts_the_program_that_was_installed() -> None:
    (entry,) = [json.loads(arguments) for name, arguments in last_stage() if name == "ENTRYPOINT"]
    environment, _, program = entry[0].rpartition("/bin/")
    assert program in PROJECT["project"]["scripts"]
    assert ("COPY", f"--from=build {environment} {environment}") in last_stage()
    assert any(f"{environment}/bin/pip install" in arguments for name, arguments in instructions() if name == "RUN")


def test_nothing_is_installed_but_what_the_locks_name() -> None:
    installs = [
        part for name, line in instructions() if name == "RUN" for part in line.split("&&") if "install" in part
    ]
    assert len(installs) == 2
    assert "--require-hashes --only-binary :all: -r" in installs[0]
    assert "--no-index --no-deps ./*.whl" in installs[1]


def test_nothing_is_fetched_or_secret() -> None:
    assert {name for name, _ in instructions()} <= {
        "FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD",
    }  # fmt: skip
    text = FILE.read_text("utf-8").lower()
    assert [word for word in ("curl", "wget", "password", "secret", "token", ":latest") if word in text] == []


def test_its_extras_are_those_of_the_package_that_have_a_lock() -> None:
    named = re.findall(r"EXTRAS=(\w+)", FILE.read_text("utf-8"))
    assert named
    assert set(named) <= set(PROJECT["project"]["optional-dependencies"])
    assert {f"{name}.txt" for name in (*named, "base")} == {one for one in copied() if one.endswith(".txt")}
