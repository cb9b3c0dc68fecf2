"""A plan that somebody edited, digest and all: refused where a digest or a signature is asked for, before anything."""

import base64
import copy
import gzip
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.depth import parts
from helpers.figures import Tell
from helpers.plans.resealed import resealed
from helpers.program.call import ROOT, Ended, Program

from reconciler.files.plan_file import read_plan

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="signs with the openssl program, which is not here")
OTHER_DIGEST, NOT_SIGNED, NOT_OF_THIS = "(KR425)", "(KR426)", "(KR427)"
Document = dict[str, Any]
Edit = Callable[[Document, random.Random], None]


@pytest.fixture
def planned(planned_demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the program is called: the demo, its plan, and what a run may write to."""
    shutil.copytree(planned_demo, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def openssl(*arguments: str) -> None:
    subprocess.run([str(OPENSSL), *arguments], check=True, capture_output=True)


def key_pair(kind: str, name: str = "plans") -> None:
    """Make NAME.pem and NAME.pub."""
    algorithm, _, option = kind.partition(" ")
    openssl("genpkey", "-algorithm", algorithm, *(["-pkeyopt", option] if option else []), "-out", f"{name}.pem")
    openssl("pkey", "-in", f"{name}.pem", "-pubout", "-out", f"{name}.pub")


def sign(plan: str, key: str = "plans.pem") -> None:
    openssl("dgst", "-sha256", "-sign", key, "-out", f"{plan}.sig", plan)


EC = "EC ec_paramgen_curve:P-256"


@pytest.fixture
def signed(planned: Path) -> Path:
    """Return the folder with a signed plan and the public key."""
    key_pair(EC)
    sign("plan.json")
    return planned


def everything(folder: Path, but: Sequence[str] = ()) -> Mapping[str, bytes]:
    """Return every file of the folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in but
    }


# Edits, each of another kind of member


def moves_of(plan: Document) -> list[Document]:
    return [move for stage in plan["stages"] for move in stage.get("moves", [])]


def swap_replicas(plan: Document, chance: random.Random) -> None:
    to = chance.choice([move for move in moves_of(plan) if len(move["to"]) > 1])["to"]
    first, second = chance.sample(range(len(to)), 2)
    to[first], to[second] = to[second], to[first]


def send_elsewhere(plan: Document, chance: random.Random) -> None:
    to = chance.choice(moves_of(plan))["to"]
    to[chance.randrange(len(to))] = chance.choice([broker for broker in range(1, 2000) if broker not in to])


def lie_about_before(plan: Document, chance: random.Random) -> None:
    chance.choice(moves_of(plan))["from"] = chance.sample(range(1, 400), chance.randint(1, 3))


def add_a_move(plan: Document, chance: random.Random) -> None:
    stage = chance.choice([stage for stage in plan["stages"] if stage["kind"] == "reassign"])
    old, new = chance.sample(range(1, 400), 2)
    more = {"topic": f"t{chance.random()}", "partition": chance.randrange(99), "from": [old], "to": [new]}
    stage["moves"].append({**more, "bytes": chance.randrange(10**9), "reason": "balance"})


def drop_a_move(plan: Document, chance: random.Random) -> None:
    moves = chance.choice([stage for stage in plan["stages"] if stage["kind"] == "reassign"])["moves"]
    del moves[chance.randrange(len(moves))]


def change_throttle(plan: Document, chance: random.Random) -> None:
    stage = chance.choice([stage for stage in plan["stages"] if stage["kind"] == "reassign"])
    stage["throttleBytesPerSecond"] = chance.choice([None, chance.randrange(1, 10**12)])


def change_bytes(plan: Document, chance: random.Random) -> None:
    chance.choice(moves_of(plan))["bytes"] = chance.randrange(10**12)


def another_cluster(plan: Document, chance: random.Random) -> None:
    plan["cluster"][chance.choice(["clusterId", "name"])] = f"c{chance.random()}"


def delete_a_topic(plan: Document, chance: random.Random) -> None:
    change: Document = {"kind": "deleteTopic", "topic": f"orders{chance.random()}", "topicId": None, "declared": True}
    lost = {
        "class": "destroys",
        "what": "",
        "bytes": chance.randrange(10**9),
        "total": True,
        "groups": [],
        "liveGroups": [],
    }
    change["effects"] = [lost]
    plan["topicChanges"].append(change)
    stages = [stage for stage in plan["stages"] if stage["kind"] == "topics"]
    stages[-1]["topicChanges"].append(len(plan["topicChanges"]) - 1)


def change_configs(plan: Document, chance: random.Random) -> None:
    change = chance.choice([one for one in plan["topicChanges"] if one["kind"] in {"createTopic", "alterConfigs"}])
    change["configs" if "configs" in change else "set"]["retention.ms"] = str(chance.randrange(10**9))


def change_assignment(plan: Document, chance: random.Random) -> None:
    change = chance.choice([one for one in plan["topicChanges"] if "assignment" in one])
    partition = chance.choice(sorted(change["assignment"]))
    change["assignment"][partition] = chance.sample(range(1, 500), 3)


def drop_warnings(plan: Document, chance: random.Random) -> None:
    del plan["warnings"][chance.randrange(len(plan["warnings"])) :]
    plan["source"]["observedAt"] = f"2026-11-{chance.randint(10, 30)}T{chance.randint(10, 23)}:00:00Z"


def drop_limits(plan: Document, chance: random.Random) -> None:
    plan["violations"] = []
    plan["diskPeak"] = {str(broker): chance.randrange(10**12) for broker in range(1, 7)}


def need_fewer_brokers(plan: Document, chance: random.Random) -> None:
    plan["requires"]["brokersAlive"] = sorted(chance.sample(range(1, 99), chance.randint(0, 3)))


def forget_topic_ids(plan: Document, chance: random.Random) -> None:
    plan["requires"]["topicIds"] = {f"t{chance.random()}": "another"}


def change_run(plan: Document, chance: random.Random) -> None:
    plan["run"][chance.choice(["timeoutSeconds", "electionBatch"])] = chance.randrange(1, 10**9)


def elect_another(plan: Document, chance: random.Random) -> None:
    stage = chance.choice([stage for stage in plan["stages"] if stage["kind"] == "elect"])
    chance.choice(stage["elections"])["leader"] = chance.randrange(7, 10**6)


def change_the_way_back(plan: Document, chance: random.Random) -> None:
    chance.choice(plan["rollback"]["assignments"])["replicas"] = chance.sample(range(1, 600), 3)


def change_old_throttles(plan: Document, chance: random.Random) -> None:
    rate = {"leader.replication.throttled.rate": str(chance.randrange(10**9))}
    plan["rollback"]["throttles"]["brokers"] = {str(chance.randint(1, 6)): rate}


def change_the_proof(plan: Document, chance: random.Random) -> None:
    plan["proof"]["prices"] = {str(broker): chance.randrange(10**9) for broker in range(1, 7)}


def change_the_source(plan: Document, chance: random.Random) -> None:
    plan["source"][chance.choice(["commit", "desiredDigest"])] = f"{chance.random()}"


def change_the_balance(plan: Document, chance: random.Random) -> None:
    plan["balance"]["after"]["1"]["replicas"] = chance.randrange(1000, 10**9)


EDITS: tuple[Edit, ...] = (
    swap_replicas, send_elsewhere, lie_about_before, add_a_move, drop_a_move, change_throttle, change_bytes,
    another_cluster, delete_a_topic, change_configs, change_assignment, drop_warnings, drop_limits, need_fewer_brokers,
    forget_topic_ids, change_run, elect_another, change_the_way_back, change_old_throttles, change_the_proof,
    change_the_source, change_the_balance,
)  # fmt: skip


def with_its_summary(plan: Document) -> Document:
    """Return the plan with a summary that its edited stages agree with: counted anew, from the contract's words."""
    moves, summary = moves_of(plan), plan["summary"]
    chains = {key: list(found) for key, found in itertools.groupby(sorted(moves, key=key_of), key=key_of)}
    in_order = {key: [move for move in moves if key_of(move) == key] for key in chains}
    summary["replicaMoves"] = sum(len(set(move["to"]) - set(move["from"])) for move in moves)
    summary["bytes"] = sum(move["bytes"] for move in moves)
    summary["partitions"] = len(chains)
    summary["leaderChanges"] = sum(one[0]["from"][0] != one[-1]["to"][0] for one in in_order.values())
    summary["topicChanges"] = len(plan["topicChanges"])
    lost = [change["effects"][0]["bytes"] for change in plan["topicChanges"] if change["kind"] == "deleteTopic"]
    if lost:
        summary["destroys"] = {"topics": len(lost), "bytes": sum(lost), "groups": 0}
    return plan


def key_of(move: Document) -> tuple[str, int]:
    return (move["topic"], move["partition"])


def edited_plans(original: Document, count: int) -> list[str]:
    """Return that many plans, each edited once or more, whose digests and ids fit, and no two of them equal."""
    chance = random.Random(15)
    made: dict[str, None] = {}
    for number in itertools.count():
        plan = copy.deepcopy(original)
        for edit in (EDITS[number % len(EDITS)], *chance.sample(EDITS, chance.randint(0, 2))):
            edit(plan, chance)
        made[json.dumps(resealed(with_its_summary(plan)))] = None
        if len(made) == count:
            return list(made)
    raise AssertionError


@pytest.mark.long
@needs_openssl
@parts("count", 100, deep=1000)
def test_no_edited_plan_runs_where_a_digest_or_a_signature_is_asked_for(
    reconciler: Program, signed: Path, count: int, figures: Tell
) -> None:
    original = json.loads(Path("plan.json").read_text())
    before = everything(signed, but=["plan.json"])
    readable = 0
    for number, text in enumerate(edited_plans(original, count)):
        Path("plan.json").write_text(text)
        asked = ("--dry-run",) if number % 4 == 0 else ("--yes", "--metrics", "run.prom")
        for seal, code in ((("--digest", original["digest"]), OTHER_DIGEST), (("--verify", "plans.pub"), NOT_OF_THIS)):
            ended = reconciler("apply", "plan.json", *asked, *seal)
            assert (ended.code, code in ended.err, ended.out) == (3, True, ""), (text, ended.err)
        readable += read_plan("plan.json").digest != original["digest"]
    # Nothing else could have told: each says of itself that it is whole.
    assert readable == count
    assert everything(signed, but=["plan.json"]) == before
    figures(f"edited plans ({count})", f"{count} of {count} refused by --digest, {count} of {count} by --verify")


@pytest.mark.usefixtures("planned")
def test_without_either_a_plan_that_agrees_with_itself_is_taken(
    reconciler: Program,
) -> None:
    plan = json.loads(Path("plan.json").read_text())
    digest = plan["digest"]
    plan["run"]["timeoutSeconds"] += 1
    Path("plan.json").write_text(json.dumps(resealed(plan)))
    assert reconciler("apply", "plan.json", "--dry-run").code == 0
    assert reconciler("show", "plan.json").code == 0
    assert reconciler("show", "plan.json", "--digest", digest).code == 3


@pytest.mark.usefixtures("planned")
def test_the_digest_that_show_prints_is_the_one_to_ask_for(
    reconciler: Program,
) -> None:
    shown = reconciler("show", "plan.json").out
    (digest,) = [line.removeprefix("Digest ") for line in shown.splitlines() if line.startswith("Digest ")]
    for form in ("markdown", "html", "json"):
        assert digest in reconciler("show", "plan.json", "-o", form).out
    assert reconciler("apply", "plan.json", "--digest", digest, "--yes").code == 0
    (journal,) = Path("runs").rglob("*.jsonl")
    assert json.loads(journal.read_text().splitlines()[0])["detail"]["digest"] == digest
    assert reconciler("apply", "plan.json", "--digest", digest, "--yes").code == 0  # to resume is to ask again
    refused = reconciler("apply", "plan.json", "--digest", f"sha256:{64 * '0'}", "--yes")
    assert (refused.code, refused.out, OTHER_DIGEST in refused.err) == (3, "", True)


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("verb", ["show", "apply"])
@pytest.mark.parametrize(
    "digest", ["", "sha256:", "cde58542", f"sha256:{63 * '0'}", f"sha256:{65 * '0'}", f"sha256:{64 * 'A'}", 64 * "0"]
)
def test_less_or_more_than_a_whole_digest_is_wrong_usage(
    reconciler: Program, monkeypatch: pytest.MonkeyPatch, verb: str, digest: str
) -> None:
    asked = reconciler(verb, "plan.json", "--digest", digest)
    assert (asked.code, "write all of it" in asked.err) == (64, True), asked.err
    monkeypatch.setenv(f"RECONCILER_{verb.upper()}_DIGEST", digest)
    assert reconciler(verb, "plan.json").code == 64


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("name", ["VERIFY", "SIGNATURE"])
@pytest.mark.parametrize("value", ["", "-"])
def test_a_check_that_names_no_file_is_wrong_usage_and_not_left_out(
    reconciler: Program, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"RECONCILER_APPLY_{name}", value)
    assert reconciler("apply", "plan.json", "--dry-run").code == 64


@pytest.mark.usefixtures("planned")
def test_a_signature_without_a_key_and_a_plan_from_stdin_without_its_signature_are_wrong_usage(
    reconciler: Program,
) -> None:
    assert "--verify KEY" in reconciler("show", "plan.json", "--signature", "plan.json.sig").err
    assert "--signature" in reconciler("show", "-", "--verify", "plans.pub").err


@pytest.mark.usefixtures("planned")
@needs_openssl
@pytest.mark.parametrize(
    "kind", [EC, "EC ec_paramgen_curve:P-384", "EC ec_paramgen_curve:P-521", "RSA rsa_keygen_bits:2048"]
)
def test_whoever_signed_it_is_told_by_their_key(reconciler: Program, kind: str) -> None:
    key_pair(kind)
    sign("plan.json")
    assert reconciler("show", "plan.json", "--verify", "plans.pub").code == 0
    key_pair(kind, "other")
    assert_refused(reconciler("show", "plan.json", "--verify", "other.pub"), NOT_OF_THIS)


@pytest.mark.usefixtures("planned")
@needs_openssl
def test_ed25519_signs_plans_too(
    reconciler: Program,
) -> None:
    try:
        key_pair("ED25519")
        openssl("pkeyutl", "-sign", "-inkey", "plans.pem", "-rawin", "-in", "plan.json", "-out", "plan.json.sig")
    except subprocess.CalledProcessError:
        pytest.skip("this openssl does not sign with Ed25519")
    assert reconciler("apply", "plan.json", "--verify", "plans.pub", "--dry-run").code == 0
    with Path("plan.json").open("a") as plan:
        plan.write("\n")
    assert_refused(reconciler("apply", "plan.json", "--verify", "plans.pub", "--dry-run"), NOT_OF_THIS)


@pytest.mark.usefixtures("signed")
@needs_openssl
def test_a_signature_in_base64_as_cosign_writes_it_counts_and_so_does_one_elsewhere(
    reconciler: Program,
) -> None:
    Path("cosign.txt").write_bytes(base64.b64encode(Path("plan.json.sig").read_bytes()) + b"\n")
    Path("plan.json.sig").unlink()
    verify = ("--verify", "plans.pub")
    assert reconciler("show", "plan.json", *verify, "--signature", "cosign.txt").code == 0
    assert reconciler("apply", "plan.json", *verify, "--signature", "cosign.txt", "--yes").code == 0
    assert_refused(reconciler("apply", "plan.json", *verify, "--yes"), NOT_SIGNED)


def other_plans_signature() -> None:
    Path("other.json").write_text("{}")
    sign("other.json")
    shutil.copy("other.json.sig", "plan.json.sig")


def other_keys_signature() -> None:
    key_pair(EC, "other")
    sign("plan.json", "other.pem")


def edited(change: Callable[[bytes], bytes], name: str = "plan.json") -> Callable[[], None]:
    def harm() -> None:
        Path(name).write_bytes(change(Path(name).read_bytes()))

    return harm


@needs_openssl
@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda: Path("plan.json.sig").unlink(), NOT_SIGNED),
        (edited(lambda _: b"", "plan.json.sig"), NOT_SIGNED),
        (other_plans_signature, NOT_OF_THIS),
        (other_keys_signature, NOT_OF_THIS),
        (edited(lambda told: told[:20], "plan.json.sig"), NOT_OF_THIS),
        (edited(lambda told: told[:-1] + bytes([told[-1] ^ 1]), "plan.json.sig"), NOT_OF_THIS),
        (edited(lambda _: b"no signature at all", "plan.json.sig"), NOT_OF_THIS),
        (edited(lambda told: told.replace(b"\n", b"\r\n")), NOT_OF_THIS),
        (edited(lambda told: b"\xef\xbb\xbf" + told), NOT_OF_THIS),
        (edited(lambda told: told + b"\n"), NOT_OF_THIS),
        (edited(lambda told: told.rstrip(b"\n")), NOT_OF_THIS),
        (edited(lambda told: json.dumps(json.loads(told)).encode()), NOT_OF_THIS),
        (edited(lambda _: b"no plan at all"), NOT_OF_THIS),
    ],
    ids=[
        "unsigned", "empty signature", "signature of another file", "signature by another key", "cut signature",
        "bent signature", "no signature", "CRLF", "BOM", "a newline more", "a newline less", "other spaces", "no plan",
    ],
)  # fmt: skip
def test_what_is_not_signed_as_it_lies_there_is_refused(
    reconciler: Program, signed: Path, harm: Callable[[], None], code: str
) -> None:
    harm()
    before = everything(signed)
    for verb in (("show",), ("apply", "--yes"), ("apply", "--dry-run")):
        assert_refused(reconciler(*verb, "plan.json", "--verify", "plans.pub"), code)
    assert everything(signed) == before


@pytest.mark.usefixtures("signed")
@needs_openssl
def test_a_packed_plan_is_signed_as_it_is_packed(
    reconciler: Program,
) -> None:
    Path("plan.json.gz").write_bytes(gzip.compress(Path("plan.json").read_bytes()))
    seal = ("--verify", "plans.pub")
    assert_refused(reconciler("show", "plan.json.gz", *seal, "--signature", "plan.json.sig"), NOT_OF_THIS)
    sign("plan.json.gz")
    assert reconciler("show", "plan.json.gz", *seal).code == 0


CANARY = "MIICANARYkey"


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (None, "no such file"),
        ("", "no file with one public key"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 kim", "no file with one public key"),
        (f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n", "this is a private key"),
        (f"-----BEGIN EC PRIVATE KEY-----\n{CANARY}\n-----END EC PRIVATE KEY-----\n", "this is a private key"),
        (f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{CANARY}\n", "this is a private key"),
        (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARY}\n", "this is a private key"),
        (f"-----BEGIN CERTIFICATE-----\n{CANARY}\n-----END CERTIFICATE-----\n", "this is a certificate"),
        ("-----BEGIN PUBLIC KEY-----\nMFkwEwYH=KoZ\n-----END PUBLIC KEY-----\n", "its public key is damaged"),
        ("-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZI\n-----END PUBLIC KEY-----\n", "this kind of public key"),
    ],
)
def test_what_is_no_public_key_is_told_and_nothing_of_it_shown(
    reconciler: Program, planned: Path, key: str | None, says: str
) -> None:
    if key is not None:
        Path("plans.pub").write_text(key)
    Path("plan.json.sig").write_text("MEUCIQ==")
    before = everything(planned)
    ended = reconciler("apply", "plan.json", "--yes", "--verify", "plans.pub")
    assert (ended.code, ended.out, says in ended.err, "(KR217)" in ended.err) == (1, "", True, True), ended.err
    assert CANARY not in ended.err
    assert everything(planned) == before


@pytest.mark.usefixtures("planned")
@needs_openssl
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("RSA rsa_keygen_bits:1024", "less than 2048 bits"),
        ("EC ec_paramgen_curve:secp256k1", "not supported"),
        ("X25519", "not supported"),
    ],
)
def test_a_weak_or_strange_key_is_refused(reconciler: Program, kind: str, says: str) -> None:
    try:
        key_pair(kind)
    except subprocess.CalledProcessError:
        pytest.skip("this openssl makes no such key")
    ended = reconciler("show", "plan.json", "--verify", "plans.pub")
    assert (ended.code, says in ended.err, "(KR217)" in ended.err) == (1, True, True), ended.err


P256 = base64.b64encode(bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004") + bytes(64)).decode()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (None, "openssl is not on the PATH"),
        ("exit 0", "failed with exit code 0"),
        ("echo 'Verified OK'; exit 1", "failed with exit code 1"),
        ("echo 'dgst: unknown option' >&2; exit 1", "failed with exit code 1"),
        ("kill -9 $$", "failed with exit code -9"),
    ],
)
def test_a_missing_or_strange_openssl_never_verifies(
    reconciler: Program, planned: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, says: str
) -> None:
    tools = planned / "bin"
    tools.mkdir()
    if script is not None:
        (tools / "openssl").write_text(f"#!/bin/sh\n{script}\n")
        (tools / "openssl").chmod(0o755)
    Path("plans.pub").write_text(f"-----BEGIN PUBLIC KEY-----\n{P256}\n-----END PUBLIC KEY-----\n")
    Path("plan.json.sig").write_text("MEUCIQ==")
    monkeypatch.setenv("PATH", str(tools))
    ended = reconciler("apply", "plan.json", "--dry-run", "--verify", "plans.pub")
    assert (ended.code, ended.out, says in ended.err, "(KR218)" in ended.err) == (1, "", True, True), ended.err


def test_openssl_is_given_no_secret_and_the_bytes_that_are_read(
    reconciler: Program, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan's file is replaced while it is verified: what was verified is what is shown."""
    tools = planned / "bin"
    tools.mkdir()
    script = 'env >seen.env\ncat >seen.plan\necho "{}" >plan.json\necho "Verified OK"\n'
    (tools / "openssl").write_text(f"#!/bin/sh\n{script}")
    (tools / "openssl").chmod(0o755)
    Path("plans.pub").write_text(f"-----BEGIN PUBLIC KEY-----\n{P256}\n-----END PUBLIC KEY-----\n")
    Path("plan.json.sig").write_text("MEUCIQ==")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KAFKA_PASSWORD", "canary")
    plan = Path("plan.json").read_bytes()
    ended = reconciler("show", "plan.json", "--verify", "plans.pub")
    assert (ended.code, json.loads(plan)["digest"] in ended.out) == (0, True), ended.err
    assert Path("seen.plan").read_bytes() == plan
    assert "canary" not in Path("seen.env").read_text()


def assert_refused(ended: Ended, code: str) -> None:
    assert (ended.code, ended.out, code in ended.err) == (3, "", True), ended.err


@pytest.mark.long
@needs_openssl
def test_the_commands_of_the_guide_sign_and_verify(planned: Path) -> None:
    guide = (ROOT / ".github" / "guides" / "review.md").read_text()
    (block,) = [text for text in re.findall(r"```sh\n(.*?)```", guide, re.DOTALL) if "openssl" in text]
    program = planned / "bin" / "reconciler"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reconciler "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-ec", block], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.startswith("Done in")) == (0, True), done.stderr
