"""`--digest` of show and apply: only the plan that was reviewed is taken."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli.mirrored import topic, write
from helpers.plans.resealed import resealed
from helpers.program.call import Program
from helpers.program.documents import document


@pytest.fixture
def planned(reconciler: Program) -> Program:
    """Return the program, called beside a small cluster and its plan."""
    write("c", [topic("orders", 1)], document("Topic", "orders", "{partitions: 2}"))
    assert reconciler("plan", "--out", "plan.json").code == 0
    return reconciler


def files() -> Mapping[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


def edit_the_plan() -> str:
    """Change the plan, with a digest that fits; return the digest of the plan that was reviewed."""
    plan = json.loads(Path("plan.json").read_text())
    edited = {**plan, "run": {**plan["run"], "timeoutSeconds": plan["run"]["timeoutSeconds"] + 1}}
    Path("plan.json").write_text(json.dumps(resealed(edited)))
    return str(plan["digest"])


def test_an_edited_plan_is_taken_unless_its_digest_is_asked_for(planned: Program) -> None:
    reviewed = edit_the_plan()
    before = files()
    for verb in (("show",), ("apply", "--yes", "--metrics", "run.prom"), ("apply", "--dry-run")):
        ended = planned(*verb, "plan.json", "--digest", reviewed)
        assert (ended.code, ended.out, "(KR425)" in ended.err) == (3, "", True), ended
    assert files() == before
    for looking in (("show",), ("apply", "--dry-run")):
        assert planned(*looking, "plan.json").code == 0


def test_the_digest_that_show_prints_is_the_one_to_ask_for(planned: Program) -> None:
    (digest,) = re.findall(r"^Digest (\S+)$", planned("show", "plan.json").out, re.MULTILINE)
    for form in ("markdown", "html", "json"):
        assert digest in planned("show", "plan.json", "-o", form).out
    for _ in range(2):  # the second time it resumes
        assert planned("apply", "plan.json", "--digest", digest, "--yes").code == 0
    (journal,) = Path("runs").rglob("*.jsonl")
    assert json.loads(journal.read_text().splitlines()[0])["detail"]["digest"] == digest


@pytest.mark.parametrize("verb", ["show", "apply"])
@pytest.mark.parametrize("digest", ["", "cde58542", f"sha256:{63 * '0'}", f"sha256:{65 * '0'}", f"sha256:{64 * 'A'}"])
def test_less_or_more_than_a_whole_digest_is_wrong_usage(
    reconciler: Program, monkeypatch: pytest.MonkeyPatch, verb: str, digest: str
) -> None:
    ended = reconciler(verb, "plan.json", "--digest", digest)
    assert (ended.code, "write all of it" in ended.err) == (64, True), ended
    monkeypatch.setenv(f"RECONCILER_{verb.upper()}_DIGEST", digest)
    assert reconciler(verb, "plan.json").code == 64
