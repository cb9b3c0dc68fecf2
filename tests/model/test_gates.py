"""What a gate may say, what is told of one that says something else, and when it fails."""

import pytest

from reconciler.model.gates import LEAST_COVERAGE, Seen, WrongGate, failures, parse_gate

RULES = ("negative", "counterReset")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("coverge<95%", "did you mean coverage?"),
        ("counterreset>0", "did you mean counterReset?"),
        ("rubbish>0", "the names are coverage, age, negative, counterReset."),
        ("coverage>95%", "did you mean coverage<95%?"),
        ("negative<1%", "did you mean negative>1%?"),
        ("coverage<0.95", "did you mean coverage<95%?"),
        ("age>2", "did you mean age>2h?"),
        ("age>5%", "did you mean age>5h?"),
        ("negative>1d", "did you mean negative>100%?"),
        ("coverage<101%", "a share is at most 100%"),
        ("coverage", "is no gate: write a name, < or >, and a bound"),
        ("coverage<=95%", "is no gate"),
    ],
)
def test_a_wrong_gate_is_told_with_what_was_meant(text: str, told: str) -> None:
    with pytest.raises(WrongGate) as wrong:
        parse_gate(text, RULES)
    assert told in str(wrong.value)


@pytest.mark.parametrize(
    "text", ["coverage<95%", "coverage<87.5%", "age>2h", "age>90min", "negative>0.1%", "negative>7"]
)
def test_a_gate_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_gate(text.replace("90min", "90m"), RULES)) == text.replace("90min", "1h30m")


@pytest.mark.parametrize(
    ("text", "seen", "told"),
    [
        ("coverage<95%", Seen("prod", 0.95), None),
        ("coverage<95%", Seen("prod", 0.9499), "prod: coverage is 94.9%, below 95%"),
        ("age>2h", Seen("prod", age_seconds=7200), None),
        ("age>2h", Seen("prod", age_seconds=9000), "prod: age is 2h30m, above 2h"),
        ("negative>1%", Seen("prod", samples=100, counts={"negative": 1}), None),
        ("negative>1%", Seen("prod", samples=100, counts={"negative": 2}), "prod: negative is 2%, above 1%"),
        ("negative>1%", Seen("prod", samples=0, counts={"negative": 2}), "prod: negative is 100%, above 1%"),
        ("counterReset>0", Seen("prod", counts={"counterReset": 0}), None),
        (
            "counterReset>0",
            Seen("prod", counts={"negative": 0}),
            "prod: counterReset is not known, so --fail-on 'counterReset>0' cannot be held",
        ),
        ("counterReset>0", Seen("prod", counts={"counterReset": 3}), "prod: counterReset is 3, above 0"),
        (
            "counterReset>0",
            Seen("prod"),
            "prod: counterReset is not known, so --fail-on 'counterReset>0' cannot be held",
        ),
        ("age>2h", Seen("prod"), "prod: age is not known, so --fail-on 'age>2h' cannot be held"),
    ],
)
def test_a_gate_fails_beyond_its_bound_and_where_nothing_is_known(text: str, seen: Seen, told: str | None) -> None:
    found = list(failures([parse_gate(text, RULES)], seen, but="it is written", advice="measure longer"))
    assert [each.message for each in found] == ([f"{told}: it is written; measure longer"] if told else [])
    assert all(each.code == ("KR277" if "not known" in each.message else "KR268") for each in found)


def test_the_gate_that_nobody_wrote_has_a_code_of_its_own() -> None:
    found = list(failures([LEAST_COVERAGE], Seen("prod", 0.6), but="no plan is made", advice="measure longer"))
    assert [str(each) for each in found] == [
        "prod: coverage is 60%, below 75%: no plan is made; measure longer (KR269)"
    ]
