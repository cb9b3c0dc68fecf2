"""What users of Terraform, kubectl and Kafka's own tools type is answered with the right name here."""

import pytest
from helpers.program.call import ROOT, Program
from helpers.program.written_commands import verbs

from reconciler.command.habits import HABITS

ANSWERS = [
    ("destroy", "There is no verb 'destroy'. To delete a topic, declare it with state: absent"),
    ("plan -out=p", "No such option '-out'. To save the plan: --out FILE"),
    ("plan -out p", "No such option '-out'. To save the plan: --out FILE"),
    ("plan -var=password=secret", "No such option '-var'. There are no variables"),
    ("apply --auto-approve p", "No such option '--auto-approve'. To be asked nothing: --yes."),
    ("--context prod plan", "No such option '--context'. To name a cluster: --cluster NAME."),
    ("get topics -n prod", "There is no verb 'get'. To list topics: reconciler topics list"),
    ("topics create orders", "There is no verb 'create'. Topics are changed in their YAML files"),
    ("groups --list", "No such option '--list'. To list topics: reconciler topics list; to list consumer groups:"),
    ("apply", "Missing argument 'PLAN'."),
]


@pytest.mark.quick
@pytest.mark.parametrize(("typed", "message"), ANSWERS)
def test_a_habit_is_answered_with_the_right_name(reconciler: Program, typed: str, message: str) -> None:
    ended = reconciler(*typed.split())
    (told,) = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert (ended.code, ended.out) == (64, "")
    assert told.startswith(f"error: {message}")
    assert told.endswith(" (KR002)")


@pytest.mark.quick
def test_no_habit_is_an_option_of_a_verb() -> None:
    options = {name for _, verb in verbs() for param in verb.params for name in param.opts}
    assert {word for words in HABITS for word in words.split()} & options == set()


@pytest.mark.quick
def test_an_unknown_cluster_is_answered_with_those_there_are(reconciler: Program) -> None:
    for verb in ("plan", "status"):
        ended = reconciler(verb, "-C", str(ROOT / "desired-state"), "--cluster", "prod")
        assert "/desired-state has no cluster 'prod'; it has demo: check --cluster and -C" in ended.err
        assert ended.code != 0
