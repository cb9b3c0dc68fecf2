"""GitHub's identity token of a job is kept in a file for logins, renewed, and printed nowhere."""

import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from helpers.program.loopback import Answer, Request, serving
from helpers.waiting import HANG

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
TOKEN, BEARER = "canary-1d70ken", "canary-b34r3r"


@pytest.fixture
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("id_token", ROOT / ".github" / "actions" / "plan" / "id_token.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class GitHub:
    """Gives a token for one audience, and a new one each time; `answers` come first."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.count = 0

    def answer(self, request: Request) -> Answer:
        if (
            request.headers.get("Authorization") != f"Bearer {BEARER}"
            or "audience=kafka.example.com" not in request.path
        ):
            return Answer(401)
        if self.answers:
            return self.answers.pop(0)
        self.count += 1
        return Answer(200, json.dumps({"value": f"{TOKEN}-{self.count}"}).encode())


def variables(address: str) -> dict[str, str]:
    return {"ACTIONS_ID_TOKEN_REQUEST_URL": f"{address}/token?v=2", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": BEARER}


class EndedError(Exception):
    """The job has ended."""


def test_a_token_is_renewed_as_a_whole_and_a_failure_is_tried_again(
    program: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    seen: list[tuple[float, str]] = []

    def pause(seconds: float) -> None:
        seen.append((seconds, file.read_text() if file.exists() else ""))
        if len(seen) == 5:
            raise EndedError

    broken = [Answer(503), Answer(200, b"["), Answer(200, b'{"value": ""}')]
    with serving(GitHub(*broken).answer) as address, pytest.raises(EndedError):
        program.main("kafka.example.com", file, variables(address), pause)
    assert seen == [(5, ""), (25, ""), (125, ""), (240, f"{TOKEN}-1"), (240, f"{TOKEN}-2")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    told = capsys.readouterr()
    assert told.out.count("::warning::GitHub gave no identity token for kafka.example.com") == 3
    assert "canary" not in told.out + told.err


@pytest.mark.parametrize("audience", ["elsewhere.example.com", "kafka.example.com"])
def test_where_none_comes_it_ends(program: ModuleType, tmp_path: Path, audience: str) -> None:
    with serving(GitHub(*[Answer(500)] * 9).answer) as address:
        assert program.main(audience, tmp_path / "token", variables(address), lambda _seconds: None) == 1
    assert list(tmp_path.iterdir()) == []
    assert program.main(audience, tmp_path / "token", {}, lambda _seconds: None) == 1


@pytest.fixture
def job() -> Iterator[list[subprocess.Popen[str]]]:
    """Return a list of started jobs; at the end of each, what it left running ends, as on GitHub."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for one in started:
        with suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)


@pytest.mark.parametrize("is_granted", [True, False])
@pytest.mark.parametrize("audience", ["", "kafka.example.com"])
def test_only_a_job_that_asks_and_may_has_the_file(
    tmp_path: Path, job: list[subprocess.Popen[str]], audience: str, *, is_granted: bool
) -> None:
    actions = tmp_path / "top" / ".github" / "actions"
    actions.mkdir(parents=True)
    (actions / "plan").symlink_to(ROOT / ".github" / "actions" / "plan")
    for name in ("install.sh", "python.sh"):
        text = (ROOT / ".github" / "actions" / name).read_text()
        (actions / name).write_text(text.replace("\naudience=\n", f"\naudience={audience}\n"))
        (actions / name).chmod(0o755)
    program = tmp_path / "reconciler" / "bin" / "reconciler"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    files = {name: str(tmp_path / name.lower()) for name in ("GITHUB_ENV", "GITHUB_PATH")}
    with serving(GitHub().answer) as address:
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path),
            **files,
            **(variables(address) if is_granted else {}),
        }
        command = [str(actions / "install.sh")]
        pipe = subprocess.PIPE
        started = subprocess.Popen(
            command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        job.append(started)
        out, _ = started.communicate(timeout=HANG)
    assert (started.returncode, out) == (0, "")
    has_token = bool(audience) and is_granted
    named = Path(files["GITHUB_ENV"]).read_text().splitlines() if Path(files["GITHUB_ENV"]).exists() else []
    file = tmp_path / "id-token"
    assert named == ([f"ID_TOKEN_FILE={file}", f"AWS_WEB_IDENTITY_TOKEN_FILE={file}"] if has_token else [])
    assert (file.read_text() if file.exists() else "") == (f"{TOKEN}-1" if has_token else "")
