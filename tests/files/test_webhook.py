"""A message is sent to a webhook: tried again where that may help, to no other address, and its URL is never shown."""

from collections.abc import Mapping

import pytest
from helpers.program.loopback import DRIPS, dripping
from helpers.program.receiver import SECRET, Receiver, receiving

from reconciler.files import webhook as webhook_module
from reconciler.files.webhook import NotDelivered, send, webhook
from reconciler.model.notice import SLACK
from reconciler.model.problem import InvalidInput

Answer = tuple[int, Mapping[str, str]]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


def sent(receiver: Receiver, *answers: Answer, url: str = "") -> tuple[str, list[float]]:
    """Return what is wrong with a message that gets these answers, and the pauses between the tries."""
    receiver.answers = [(status, dict(headers)) for status, headers in answers]
    pauses: list[float] = []
    try:
        send(webhook(url or receiver.url, None, {}), b"{}", pauses.append)
    except NotDelivered as refused:
        return str(refused), pauses
    return "", pauses


@pytest.mark.parametrize(
    ("answers", "tries", "wrong"),
    [
        ([(503, {})], 2, ""),
        ([(503, {}), (500, {}), (429, {})], 3, "it answers 429"),
        ([(404, {})], 1, "it answers 404: check the URL"),
    ],
)
def test_a_try_that_fails_for_a_while_is_made_again_and_one_that_is_refused_is_not(
    receiver: Receiver, answers: list[Answer], tries: int, wrong: str
) -> None:
    told, _ = sent(receiver, *answers)
    assert (len(receiver.got), wrong in told, bool(told)) == (tries, True, bool(wrong))
    assert all(part not in told for part in SECRET.split("/"))


@pytest.mark.parametrize("drip", [drip for drip in DRIPS if drip != "a body without end"])
def test_one_that_drips_is_given_up_at_the_deadline_of_each_try(
    drip: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes well before a socket's time-out: without a deadline this test would not end."""
    monkeypatch.setattr(webhook_module, "SECONDS", 0.3)
    with dripping(*DRIPS[drip]) as address:
        problem, pauses = sent(receiver, url=f"{address}/{SECRET}")
    assert ("does not answer within 0 s" in problem, pauses) == (True, [1.0, 3.0])


def test_it_waits_as_long_as_it_is_asked_to_within_bounds(receiver: Receiver) -> None:
    assert sent(receiver, (429, {"Retry-After": "5"}), (429, {"Retry-After": "99"}))[1] == [5, 10]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int, receiver: Receiver) -> None:
    with receiving() as other:
        told, _ = sent(receiver, (status, {"Location": other.url}))
    assert (len(receiver.got), other.got) == (1, [])
    assert f"answers {status}, and redirects are not followed" in told


def test_a_proxy_is_asked_where_the_variables_name_one(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", receiver.host)
    assert sent(receiver, url="http://hooks.invalid/x")[0] == ""
    assert [path for path, _ in receiver.got] == ["http://hooks.invalid/x"]


@pytest.mark.parametrize(
    "url",
    [
        "SECRET",
        "ftp://host/SECRET",
        "https:///SECRET",
        "https://me:SECRET@host/x",
        "https://host:SECRET/x",
        "http://[SECRET/x",
        "https://host/SECRET x",
        "https://host/SECRET\u00e9",
        "${env:NO_SUCH}",
        "${vault:SECRET}",
        "",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        webhook(url, None, {})
    assert {problem.code for problem in refused.value.problems} <= {"KR026", "KR130"}
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "form", "is_slack"),
    [
        ("https://hooks.slack.com/services/x", None, True),
        ("https://hooks.slack-gov.com/services/x", None, True),
        ("https://hooks.slack.com.evil.invalid/x", None, False),
        ("https://notslack.com/x", None, False),
        ("https://chat.invalid/hooks/x", "slack", True),
        ("https://hooks.slack.com/services/x", "json", False),
    ],
)
def test_hosts_of_slack_get_slacks_form(url: str, form: str | None, *, is_slack: bool) -> None:
    assert (webhook(url, form, {}).form == SLACK) is is_slack
