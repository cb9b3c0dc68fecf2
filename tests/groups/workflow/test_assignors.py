"""Assignors by name: those that ship, and a user's own class, found in the current folder."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from reconciler.groups.assignors.registry import ASSIGNORS, UnknownAssignor
from reconciler.groups.workflow.assignors import UnusableAssignor, assignors_named, own_assignor
from reconciler.model.assignment import Assignor, SubscribedTopic, Subscriber

OWN = """
    print("loaded")

    class Base:
        def assign(self, members, topics):
            print("assigning")
            return {members[0].member_id: {name: tuple(range(t.partitions)) for name, t in topics.items()}}

    class FirstTakesAll(Base):
        name = "first-takes-all"
        is_server_side = True

    class AlsoNamed(Base):
        name = "first-takes-all"

    class Kafkas(Base):
        name = "range"

    class JavaLike(Base):
        def name(self):
            return "java-like"

    class NeedsArguments(Base):
        def __init__(self, weight):
            self.weight = weight

    class Nameless(Base):
        pass

    class Broken(Base):
        def __init__(self):
            import not_there_either

    class Idle:
        name = "idle"

    class ShortSighted:
        name = "short"
        def assign(self, members):
            return {}

    class Outer:
        class Inner(Base):
            name = "inner"

    instance = FirstTakesAll()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which holds a user's package and broken modules."""
    package = tmp_path / "team_x"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "own.py").write_text(dedent(OWN))
    (package / "fails.py").write_text("import os\nraise ValueError('no licence\\nsecond line')\n")
    (package / "misses.py").write_text("import no_such_library\n")
    (package / "leaves.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.split(".")[0] == "team_x"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_without_names_all_that_ship_are_taken() -> None:
    assert [assignor.name for assignor in assignors_named([])] == list(ASSIGNORS)
    assert [assignor.name for assignor in assignors_named(["sticky", "range", "sticky"])] == ["sticky", "range"]


@pytest.mark.usefixtures("folder")
def test_an_own_class_is_found_in_the_current_folder_and_asked_like_any_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found: Assignor = own_assignor("team_x.own:FirstTakesAll")
    assert found.name == "first-takes-all"
    assert getattr(found, "is_server_side", None) is True
    assert getattr(found, "is_cooperative", None) is False
    given = found.assign([Subscriber("a", ("t",)), Subscriber("b", ("t",))], {"t": SubscribedTopic("t", 2)})
    assert given == {"a": {"t": (0, 1)}}
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "loaded\nassigning\n")


@pytest.mark.usefixtures("folder")
def test_a_class_within_a_class_is_found() -> None:
    assert own_assignor("team_x.own:Outer.Inner").name == "inner"


def test_the_current_folder_never_hides_a_module_of_the_program(folder: Path) -> None:
    (folder / "base64.py").write_text("class Own:\n    name = 'x'\n")
    with pytest.raises(UnusableAssignor, match=r"base64 has no class Own"):
        own_assignor("base64:Own")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("team_x.own:", "write a class of your own as package.module:Class"),
        (":Own", "write a class of your own as package.module:Class"),
        ("team_x/own.py:Own", "write a class of your own as package.module:Class"),
        ("team_x.own:Own:More", "write a class of your own as package.module:Class"),
        ("team_y.own:Own", "there is no module team_y in"),
        ("team_x.absent:Own", "there is no module team_x.absent in"),
        ("team_x.misses:Own", "importing team_x.misses fails: ModuleNotFoundError: No module named 'no_such_library'"),
        ("team_x.fails:Own", "importing team_x.fails fails: ValueError: no licence"),
        ("team_x.leaves:Own", "importing team_x.leaves fails: SystemExit: 3"),
        ("team_x.own:FirstTakesEverything", "has no class FirstTakesEverything; did you mean FirstTakesAll?"),
        ("team_x.own:Zzz", "classes there with assign(): AlsoNamed, Base, Broken,"),
        ("team_x.own:instance", "instance is no class but FirstTakesAll; name its class"),
        ("team_x.own:NeedsArguments", "NeedsArguments() fails, and it is made without arguments: TypeError"),
        ("team_x.own:Broken", "Broken() fails, and it is made without arguments: ModuleNotFoundError"),
        ("team_x.own:Idle", "Idle has no method assign(members, topics)"),
        ("team_x.own:ShortSighted", "assign must take members and topics: too many positional arguments"),
        ("team_x.own:Nameless", "under which it is shown; it has none"),
        ("team_x.own:JavaLike", "under which it is shown; it has a method: make it a property"),
        ("team_x.own:Kafkas", "it is called range, which is Kafka's own; give it another name"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_own_class_is_told_in_a_sentence(text: str, told: str) -> None:
    with pytest.raises(UnusableAssignor) as raised:
        own_assignor(text)
    message = str(raised.value)
    assert told in message
    assert message.startswith(f"assignor {text}: ")
    assert "\n" not in message


@pytest.mark.usefixtures("folder")
def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(UnusableAssignor, match="another one named is called first-takes-all too"):
        assignors_named(["team_x.own:FirstTakesAll", "team_x.own:AlsoNamed"])


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(UnknownAssignor, match="server-uniform"):
        assignors_named(["stiky"])
