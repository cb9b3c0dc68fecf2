import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from helpers.program.call import ROOT, Ended, Program, all_of, captured, modules_loaded_by, run_program
from helpers.waiting import HANG

from reconciler.cli import main as entry
from reconciler.cli.main import VERBS
from reconciler.command.exits import Exit
from reconciler.command.stopping import Terminated
from reconciler.model.problem import (
    ClusterUnavailable,
    InvalidInput,
    Location,
    PlacementInfeasible,
    Problem,
    ReconcilerError,
    Refused,
    StalePlan,
)
from reconciler.model.run import RunFailed, StoppedEarly
from reconciler.workflow.inputs import NotNamed

HEAVY = {"numpy", "ortools", "pyspark", "kafka", "rich", "yaml", "jsonschema", "deepdiff"}


def _raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(entry.reconciler, "main", fail)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ReconcilerError("x"), 1),
        (InvalidInput([Problem("KR101", "x")]), 1),
        (PlacementInfeasible([Problem("KR301", "x")]), 1),
        (ClusterUnavailable("x"), 1),
        (RunFailed("x"), 1),
        (Refused("x"), 3),
        (StalePlan("x"), 4),
        (StoppedEarly("x"), 5),
        (NotNamed("x"), 64),
        (click.UsageError("x"), 64),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
        (ZeroDivisionError("x"), 1),
    ],
)
def test_every_error_has_its_exit_code_and_no_traceback(
    reconciler: Program, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    _raising(monkeypatch, error)
    ended = reconciler("plan")
    assert ended.code == code
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert ended.err.endswith("\n")


def test_an_error_carries_its_stable_code(reconciler: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _raising(monkeypatch, Refused("over the limit", code="KR411"))
    assert reconciler("plan").err == "error: over the limit (KR411)\n"


def test_every_problem_stands_on_its_own_line_with_its_place(
    reconciler: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Location("demo/web.yaml", 9, 3)
    _raising(monkeypatch, InvalidInput([Problem("KR101", "unknown key", at), Problem("KR102", "no such class")]))
    assert reconciler("plan").err == (
        "error: desired-state/demo/web.yaml:9:3: unknown key (KR101)\nerror: no such class (KR102)\n"
    )


def test_an_error_cannot_steer_the_terminal(reconciler: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _raising(monkeypatch, ReconcilerError("rack \x1b]0;title\x07 \u202e is full"))
    assert reconciler("plan").err == "error: rack \\u001b]0;title\\u0007 \\u202e is full (KR001)\n"


@pytest.mark.long
def test_our_own_fault_is_one_sentence_and_a_traceback_only_if_asked_for() -> None:
    code = "import reconciler.cli.main as m\nm.reconciler.callback = lambda: 1 / 0\nraise SystemExit(m.main({}))"
    quiet, loud = (
        captured([sys.executable, "-c", code.format(arguments)], ROOT)
        for arguments in ("['validate']", "['-v', 'validate']")
    )
    assert quiet.returncode == loud.returncode == 1
    assert quiet.stderr.startswith(
        "error: internal error, please report it: ZeroDivisionError: division by zero (KR003)"
    )
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in loud.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nonsense",),
        ("plan", "--nonsense"),
        ("nonsense",),
        ("plan", "extra"),
        ("show",),
        ("plan", "-o", "xml"),
        ("plan", "-o", "kafka-json"),
        ("-o", "kafka-json", "plan"),
        ("apply", "plan.json", "--max-duration", "90"),
        ("--color", "sometimes", "validate"),
        ("apply", "plan.json", "--state", "s.json"),
    ],
)
def test_wrong_usage_is_64_and_names_the_help(reconciler: Program, arguments: tuple[str, ...]) -> None:
    ended = reconciler(*arguments)
    assert ended.code == 64
    assert ended.out == ""
    assert all_of(ended.err, ["Usage: reconciler", "(KR002)", "--help"]) == []


def test_a_mistyped_verb_is_told_the_nearest(reconciler: Program) -> None:
    assert "Did you mean plan?" in reconciler("plam").err


def test_help_lists_every_verb_and_every_exit_code(reconciler: Program) -> None:
    ended = reconciler("--help")
    assert ended.code == 0
    assert all_of(ended.out, [*VERBS, *(str(int(code)) for code in Exit), "RECONCILER_CLUSTER", "Examples:"]) == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples_variables_and_exit_codes(reconciler: Program, verb: str) -> None:
    ended = reconciler(verb, "--help")
    assert ended.code == 0
    wanted = ["Examples:", f"reconciler {verb}", "Exit codes:", "--cluster", "RECONCILER_CLUSTER", "--journal"]
    assert all_of(ended.out, wanted) == []
    assert f"RECONCILER_{verb.upper()}_CLUSTER" not in ended.out


def test_a_verbs_own_option_has_the_verb_in_its_variable(reconciler: Program) -> None:
    assert "RECONCILER_PLAN_OUT" in reconciler("plan", "--help").out


def test_the_version_is_the_packages(reconciler: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_VERSION", "1")  # a pipeline's own variable
    assert reconciler("--version") == Ended(0, f"reconciler {version('kafka-reconciler')}\n", "")
    assert reconciler("--help").code == 0


def test_no_arguments_show_the_help(reconciler: Program) -> None:
    for arguments in ((), ("groups",)):
        ended = reconciler(*arguments)
        assert (ended.code, ended.out) == (64, "")
        assert ended.err.startswith("Usage: reconciler ")
        assert "\nVerbs:\n" in ended.err


@pytest.mark.parametrize("arguments", [("plan", "--help"), ("plan", "--nonsense")])
def test_help_and_wrong_usage_load_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert modules_loaded_by(*arguments) & HEAVY == set()


@pytest.mark.long
def test_the_program_is_a_module_too() -> None:
    ended = run_program("--help")
    assert ended.code == 0
    assert ended.out.startswith("Usage: reconciler [OPTIONS] VERB")


def test_a_closed_pipe_is_no_traceback() -> None:
    command = f"{sys.executable} -m reconciler --help | head -c 10"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, shell=True, cwd=ROOT, env=env, capture_output=True, text=True, check=False)  # noqa: S602 - a pipe is what is tested
    assert "Traceback" not in ended.stderr


@pytest.mark.long
def test_sigterm_and_sighup_end_with_143_and_sigint_with_130() -> None:
    code = (
        "import signal, time, reconciler.cli.main as m\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell in the background ignores it
        "m.reconciler.main = lambda **_: (print('ready', flush=True), time.sleep(3600))\n"
        "import sys; sys.argv = ['reconciler']; m.run()"
    )
    for number, wanted in ((signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130)):
        with subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
            _, err = process.communicate(timeout=HANG)
        assert process.returncode == wanted
        assert "Traceback" not in err


def test_errors_are_json_where_json_was_asked_for(reconciler: Program, tmp_path: Path) -> None:
    ended = reconciler("show", str(tmp_path / "missing.json"), "-o", "json")
    told = json.loads(ended.err)["error"]
    assert (ended.code, ended.out) == (1, "")
    assert (told["code"], told["exitCode"]) == ("KR100", 1)
    assert told["problems"][0]["code"] == "KR211"
