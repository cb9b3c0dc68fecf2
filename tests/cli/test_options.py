from collections.abc import Iterator

import click
import pytest
from helpers.program.call import Program

from reconciler.cli import main
from reconciler.command import options
from reconciler.command.options import Asked
from reconciler.command.terminal import is_colored
from reconciler.workflow.inputs import Inputs


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Inputs]:
    """Return what `validate` was asked to read from."""
    found: list[Inputs] = []

    class Validated:
        clusters = ("c",)
        topics = 0
        problems = ()

    def validate(inputs: Inputs) -> type[Validated]:
        found.append(inputs)
        return Validated

    monkeypatch.setattr("reconciler.workflow.validate.validate_files", validate)
    return found


def test_shared_options_stand_before_or_after_the_verb(reconciler: Program, seen: list[Inputs]) -> None:
    assert reconciler("-C", "a", "--cluster", "x", "validate").code == 0
    assert reconciler("validate", "-C", "a", "--cluster", "x").code == 0
    assert [(each.root, each.cluster) for each in seen] == [("a", "x"), ("a", "x")]


def test_after_the_verb_wins_then_before_it_then_the_variable(
    reconciler: Program, seen: list[Inputs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_CLUSTER", "variable")
    for arguments in (
        ("validate",),
        ("--cluster", "before", "validate"),
        ("--cluster", "b", "validate", "--cluster", "after"),
    ):
        assert reconciler(*arguments).code == 0
    assert [each.cluster for each in seen] == ["variable", "before", "after"]


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("RECONCILER_ROOT", "root"),
        ("RECONCILER_CLUSTER", "cluster"),
        ("RECONCILER_STATE", "state"),
        ("RECONCILER_CLIENT", "client"),
        ("RECONCILER_BOOTSTRAP_SERVER", "bootstrap_server"),
        ("RECONCILER_JOURNAL", "journal"),
    ],
)
def test_every_shared_option_has_its_variable(
    reconciler: Program, seen: list[Inputs], monkeypatch: pytest.MonkeyPatch, variable: str, field: str
) -> None:
    monkeypatch.setenv(variable, "value")
    assert reconciler("validate").code == 0
    assert getattr(seen[0], field) == "value"


def test_a_variable_named_after_the_verb_is_not_a_shared_option(
    reconciler: Program, seen: list[Inputs], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILER_VALIDATE_CLUSTER", "value")
    assert reconciler("validate").code == 0
    assert seen[0].cluster is None


def test_verbosity_adds_up(reconciler: Program, seen: list[Inputs], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    monkeypatch.setattr("reconciler.cli.main.Asked", lambda: asked)
    assert reconciler("-v", "validate", "-v").code == 0
    assert asked.verbosity == 2
    assert seen


@pytest.mark.parametrize(
    ("choice", "environ", "is_terminal", "wanted"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False),
        ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colour_follows_the_option_then_the_variables_then_the_terminal(
    choice: str, environ: dict[str, str], *, is_terminal: bool, wanted: bool
) -> None:
    assert is_colored(choice, is_terminal=is_terminal, environ=environ) is wanted


def _commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, (*names, name))
        else:
            yield (*names, name), command


def test_every_form_of_output_belongs_to_some_verb() -> None:
    of_verbs = set()
    for _, command in _commands(main.reconciler):
        kinds = [each.type for each in command.params if "-o" in each.opts]
        of_verbs |= {choice for kind in kinds if isinstance(kind, click.Choice) for choice in kind.choices}
    assert of_verbs == set(options.OUTPUTS)


def test_a_verbs_own_option_has_a_variable_of_its_name() -> None:
    shared = {"-C", "--cluster", "--state", "--client", "--bootstrap-server", "-o", "--journal", "--color", "-v", "-h"}
    checked = 0
    for names, command in _commands(main.reconciler):
        for parameter in command.params:
            if not isinstance(parameter, click.Option) or parameter.opts[0] in shared:
                continue
            long = next(option for option in parameter.opts if option.startswith("--"))
            own = parameter.envvar or "_".join(("RECONCILER", *names, parameter.name or ""))
            asked = "_".join(("RECONCILER", *names, long.removeprefix("--")))
            assert str(own).upper().replace("-", "_") == asked.upper().replace("-", "_"), (names, parameter.opts)
            checked += 1
    assert checked > 40
