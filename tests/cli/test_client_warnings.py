"""What client properties leave open is told by every verb that connects, once, and in JSON where it has warnings."""

import json
from collections.abc import Iterator, Mapping

import pytest
from cli.canaries import write_properties, write_snapshot_of_one
from helpers.program.call import Program

from reconciler.admin import client
from reconciler.admin.client.properties import translate
from reconciler.admin.simulated import SimulatedAdmin
from reconciler.command.logs import set_up_logs
from reconciler.files.snapshot import read_snapshot

pytestmark = pytest.mark.long

INSECURE = {
    "bootstrap.servers": "k:1",
    "security.protocol": "SSL",
    "ssl.endpoint.identification.algorithm": "",
    "group.id": "x",
}
VERBS = (
    ("snapshot",), ("diff",), ("plan", "--out", "plan.json"), ("doctor",), ("status",), ("groups", "list"),
    ("topics", "list"),     ("apply", "plan.json", "--yes"), ("cancel", "plan.json", "--yes"),
)  # fmt: skip


@pytest.fixture
def secured(reconciler: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    write_properties(INSECURE)
    write_snapshot_of_one()

    def connected(properties: Mapping[str, str]) -> SimulatedAdmin:
        translate(properties)
        return SimulatedAdmin(read_snapshot("s.json"))

    monkeypatch.setattr(client, "connect", connected)
    yield reconciler
    set_up_logs(0)


def test_every_verb_that_connects_tells_once_that_host_names_are_not_verified(secured: Program) -> None:
    for verb in VERBS:
        told = secured(*verb).err.splitlines()
        warned = [line for line in told if line.startswith("warning: ssl.endpoint.identification.algorithm is empty")]
        assert len(warned) == 1, verb
        assert warned[0].endswith("Remove it once the certificates name their hosts (KR621)")
        noted = [line for line in told if line.endswith("group.id has no meaning here and is ignored.")]
        assert len(noted) == 1, verb


@pytest.mark.parametrize(("verb", "where"), [("plan", "warnings"), ("doctor", "findings"), ("groups list", "warnings")])
def test_json_has_the_warning_too(secured: Program, verb: str, where: str) -> None:
    document = json.loads(secured(*verb.split(), "-o", "json").out)
    assert "KR621" in [each["code"] for each in document[where]]


def test_a_snapshot_is_read_without_a_connection_and_without_its_warnings(secured: Program) -> None:
    ended = secured("plan", "--state", "s.json", "-o", "json")
    assert "KR621" not in ended.out + ended.err
