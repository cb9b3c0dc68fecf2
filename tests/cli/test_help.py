"""Every verb's and every option's help: complete, and with examples that the program takes as they are written."""

import click
import pytest
from helpers.program.call import Program
from helpers.program.written_commands import commands_in, exit_code_of_reading, verbs

VERBS = {" ".join(words): command for words, command in verbs()}
NO_VARIABLE = {"--help", "--verbose", "--version"}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verbs_help_is_complete(reconciler: Program, verb: str) -> None:
    ended = reconciler(*verb.split(), "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"Usage: reconciler {verb} " in ended.out
    assert VERBS[verb].help
    for option in options_of(VERBS[verb]):
        assert all(name in ended.out for name in option.opts), option.opts
    for part in ("Examples:", "Exit codes:"):
        assert part in ended.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_says_what_it_does_and_which_variable_sets_it(verb: str) -> None:
    for option in options_of(VERBS[verb]):
        assert option.help, option.opts
        assert option.help.endswith("."), option.opts
        assert option.show_envvar or option.opts[-1] in NO_VARIABLE, option.opts


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_a_verb_are_commands_that_it_takes(
    reconciler: Program, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = list(commands_in(VERBS[verb].epilog or ""))
    assert any(example[: len(verb.split())] == tuple(verb.split()) for example in examples)
    refused = [each for each in examples if exit_code_of_reading(each, monkeypatch) != 0]
    assert refused == [], reconciler(*verb.split(), "--help").out


def test_reading_alone_notices_what_the_program_does_not_take(
    reconciler: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    del reconciler  # it keeps the variables of this machine away
    assert exit_code_of_reading(("plan", "--out", "x"), monkeypatch) == 0
    assert exit_code_of_reading(("plan", "--outt", "x"), monkeypatch) == 64
    assert exit_code_of_reading(("apply", "plan.json", "--max-duration", "soon"), monkeypatch) == 64
    assert exit_code_of_reading(("groups", "lagg"), monkeypatch) == 64


def test_commands_are_found_behind_pipes_and_before_redirections_and_comments() -> None:
    text = (
        "  a -o yaml | reconciler import -\n$ reconciler plan > x # 1\nno command\nreconciler 'a b' && reconciler c\n"
    )
    assert list(commands_in(text)) == [("import", "-"), ("plan",), ("a b",), ("c",)]


def options_of(command: click.Command) -> list[click.Option]:
    """Return a verb's options, those that all verbs share included."""
    return [each for each in command.get_params(click.Context(command)) if isinstance(each, click.Option)]
