"""`--digest`, `--verify` and `--signature`: only the plan that was reviewed, or signed, is taken."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from cli.mirrored import topic, write
from helpers.plans.resealed import resealed
from helpers.program.call import ROOT, Program
from helpers.program.documents import document

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="signs with the openssl program, which is not here")


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


def sign_the_plan() -> None:
    for words in (
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out plans.pem",
        "pkey -in plans.pem -pubout -out plans.pub",
        "dgst -sha256 -sign plans.pem -out plan.json.sig plan.json",
    ):
        subprocess.run([str(OPENSSL), *words.split()], check=True, capture_output=True)


@needs_openssl
def test_an_edited_plan_is_taken_unless_its_digest_or_signature_is_asked_for(planned: Program) -> None:
    sign_the_plan()
    for looking in (("show",), ("apply", "--dry-run")):
        assert planned(*looking, "plan.json", "--verify", "plans.pub").code == 0
    reviewed = edit_the_plan()
    before = files()
    for seal, code in ((("--digest", reviewed), "(KR425)"), (("--verify", "plans.pub"), "(KR427)")):
        for verb in (("show",), ("apply", "--yes", "--metrics", "run.prom"), ("apply", "--dry-run")):
            ended = planned(*verb, "plan.json", *seal)
            assert (ended.code, ended.out, code in ended.err) == (3, "", True), ended
    assert files() == before
    for looking in (("show",), ("apply", "--dry-run")):
        assert planned(*looking, "plan.json").code == 0


@needs_openssl
def test_the_signature_may_be_in_another_file(planned: Program) -> None:
    sign_the_plan()
    Path("plan.json.sig").rename("elsewhere.sig")
    verify = ("show", "plan.json", "--verify", "plans.pub")
    assert planned(*verify, "--signature", "elsewhere.sig").code == 0
    unsigned = planned(*verify)
    assert (unsigned.code, unsigned.out, "(KR426)" in unsigned.err) == (3, "", True), unsigned


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


@pytest.mark.parametrize("name", ["VERIFY", "SIGNATURE"])
@pytest.mark.parametrize("value", ["", "-"])
def test_a_check_that_names_no_file_is_wrong_usage_and_not_left_out(
    reconciler: Program, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"RECONCILER_APPLY_{name}", value)
    assert reconciler("apply", "plan.json", "--dry-run").code == 64


def test_a_signature_without_a_key_and_a_plan_from_stdin_without_its_signature_are_wrong_usage(
    reconciler: Program,
) -> None:
    assert "--verify KEY" in reconciler("show", "plan.json", "--signature", "plan.json.sig").err
    assert "--signature" in reconciler("show", "-", "--verify", "plans.pub").err


def test_of_a_private_key_nothing_is_shown(planned: Program) -> None:
    Path("plans.pub").write_text("-----BEGIN PRIVATE KEY-----\nMIICANARYkey\n-----END PRIVATE KEY-----\n")
    before = files()
    ended = planned("apply", "plan.json", "--yes", "--verify", "plans.pub")
    assert (ended.code, ended.out, "(KR217)" in ended.err, "CANARY" in ended.err) == (1, "", True, False), ended
    assert files() == before


@pytest.mark.long
@needs_openssl
def test_the_commands_of_the_guide_sign_and_verify(
    planned_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(planned_demo, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    guide = (ROOT / ".github" / "guides" / "review.md").read_text()
    (block,) = [text for text in re.findall(r"```sh\n(.*?)```", guide, re.DOTALL) if "openssl" in text]
    program = tmp_path / "bin" / "reconciler"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reconciler "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-ec", block], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith("Done in")) == (0, True), done.stderr
