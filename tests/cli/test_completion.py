"""The shells complete verbs, options, their values, and the clusters of the root; what they ask for costs little."""

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.program.call import ROOT, Program, captured, modules_loaded_by

from reconciler.cli.main import VERBS, main

pytestmark = pytest.mark.long

SHELLS = ("bash", "zsh", "fish")
Completer = Callable[..., list[str]]


@pytest.fixture
def completed(
    reconciler: Program, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Completer:
    """Return a function that completes the last of some words as bash asks for it, in a folder with two clusters."""
    for name in ("prod-eu", "prod-us"):
        assert reconciler("init", "--cluster", name).code == 0
    shutil.copytree(tmp_path / "desired-state", tmp_path / "other")
    shutil.rmtree(tmp_path / "other" / "prod-us")

    def complete(*words: str, of: str = "bash") -> list[str]:
        monkeypatch.setenv("_RECONCILER_COMPLETE", f"{of}_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["reconciler", *words]))
        monkeypatch.setenv("COMP_CWORD", words[-1] if of == "fish" else str(len(words)))
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main([])
        out, err = capsys.readouterr()
        assert err == ""
        return [line for line in str(out).splitlines() if line]

    return complete


def test_every_verb_is_completed(completed: Completer) -> None:
    assert completed("") == [f"plain,{verb}" for verb in VERBS]
    assert completed("va") == ["plain,validate"]
    assert completed("groups", "si") == ["plain,simulate"]


def test_options_and_their_values_are_completed(completed: Completer) -> None:
    assert completed("validate", "-o", "") == ["plain,text", "plain,json", "plain,sarif"]
    assert completed("validate", "--outp") == ["plain,--output"]
    assert completed("--color", "al") == ["plain,always"]
    assert "plain,--detailed-exitcode" in completed("plan", "--")
    assert completed("doctor", "--fix", "") == ["plain,throttles"]


def test_clusters_of_the_root_are_completed(completed: Completer) -> None:
    assert completed("plan", "--cluster", "") == ["plain,prod-eu", "plain,prod-us"]
    assert completed("plan", "--cluster", "prod-u") == ["plain,prod-us"]
    assert completed("--cluster", "") == ["plain,prod-eu", "plain,prod-us"]
    assert completed("-C", "other", "plan", "--cluster", "") == ["plain,prod-eu"]
    assert completed("plan", "-C", "other", "--cluster", "") == ["plain,prod-eu"]
    assert completed("plan", "-C", "nowhere", "--cluster", "") == []


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("apply", "pl"), "file"),
        (("show", "pl"), "file"),
        (("cancel", "pl"), "file"),
        (("plan", "--out", "pl"), "file"),
        (("plan", "--state", "sn"), "file"),
        (("plan", "--loads", "lo"), "dir"),
        (("-C", "de"), "dir"),
    ],
)
def test_files_and_folders_are_left_to_the_shell(words: tuple[str, ...], kind: str, completed: Completer) -> None:
    assert [each.partition(",")[0] for each in completed(*words)] == [kind]


def test_an_unknown_verb_completes_to_nothing_without_an_error(completed: Completer) -> None:
    assert completed("plna", "x") == []


def test_zsh_and_fish_get_what_a_verb_does_with_its_name(completed: Completer) -> None:
    told = VERBS["validate"].summary
    assert completed("val", of="zsh") == ["plain", "validate", told]
    assert completed("val", of="fish") in ([f"plain,validate\t{told}"], ["plain", "validate", told])


def test_completing_verbs_loads_none_of_them() -> None:
    environment = {"_RECONCILER_COMPLETE": "zsh_complete", "COMP_WORDS": "reconciler ", "COMP_CWORD": "1"}
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        loaded = modules_loaded_by()
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert loaded & {"numpy", "ortools", "pyspark", "kafka", "rich", "yaml", "jsonschema"} == set()


ASKED = "reconciler plan --cluster prod-"
IN_BASH = """
source completion
COMP_WORDS=(reconciler plan --cluster prod-) COMP_CWORD=3
_reconciler_completion reconciler
printf '%s\\n' "${COMPREPLY[@]}"
"""
IN_FISH = f"source completion\ncomplete --do-complete '{ASKED}'\n"
IN_ZSH = """
compdef() { :; }
compadd() { print -l -- ${(P)@[-1]}; }
source completion
words=(reconciler plan --cluster prod-); CURRENT=4
_reconciler_completion
"""
SCRIPTS = {"bash": IN_BASH, "zsh": IN_ZSH, "fish": IN_FISH}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.usefixtures("completed")
def test_a_shell_completes_as_its_script_asks(shell: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    asking = {**environment, "_RECONCILER_COMPLETE": f"{shell}_source"}
    script = captured(["reconciler"], tmp_path, asking, check=True).stdout
    assert re.search(rf"_RECONCILER_COMPLETE={shell}_complete", script)
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here: its script was made, and its protocol is tested above")
    (tmp_path / "completion").write_text(script, "utf-8")
    (tmp_path / "ask").write_text(SCRIPTS[shell], "utf-8")
    ended = captured([shell, *(["-f"] if shell == "zsh" else []), "ask"], tmp_path, environment)
    assert ended.returncode == 0, ended.stderr
    assert {"prod-eu", "prod-us"} <= set(ended.stdout.split()), ended.stderr


def test_help_says_how_to_switch_completion_on(reconciler: Program) -> None:
    told = reconciler("--help").out
    assert [shell for shell in SHELLS if f"_RECONCILER_COMPLETE={shell}_source" not in told] == []
