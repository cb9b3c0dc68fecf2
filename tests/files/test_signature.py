"""Who signed a plan: their key tells, over the very bytes that are read; whatever cannot be checked is never taken."""

import base64
import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.plans.sample_plan import sample_plan

from reconciler.files.plan_file import Seal, read_plan, write_plan
from reconciler.files.signature import check_signature
from reconciler.model.problem import InvalidInput, ReconcilerError

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="signs with the openssl program, which is not here")
EC = "EC ec_paramgen_curve:P-256"
P256 = base64.b64encode(bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004") + bytes(64)).decode()
CANARY = "MIICANARYkey"
VERIFIED, NOT_SIGNED, NOT_OF_THIS, UNFIT_KEY, NOT_CHECKED = "", "KR426", "KR427", "KR217", "KR218"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan").write_bytes(b"the plan\n")


def openssl(*arguments: str) -> None:
    try:
        subprocess.run([str(OPENSSL), *arguments], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        pytest.skip(f"this openssl knows no {' '.join(arguments)}")


def key_pair(kind: str = EC, name: str = "key") -> None:
    """Make NAME.pem and NAME.pub."""
    algorithm, _, option = kind.partition(" ")
    openssl("genpkey", "-algorithm", algorithm, *(["-pkeyopt", option] if option else []), "-out", f"{name}.pem")
    openssl("pkey", "-in", f"{name}.pem", "-pubout", "-out", f"{name}.pub")


def sign(file: str = "plan", key: str = "key", *, is_raw: bool = False) -> None:
    how = (
        ["pkeyutl", "-sign", "-rawin", "-inkey", f"{key}.pem", "-in"]
        if is_raw
        else ["dgst", "-sha256", "-sign", f"{key}.pem"]
    )
    openssl(*how, *([file] if is_raw else []), "-out", f"{file}.sig", *([] if is_raw else [file]))


def checked(key: str = "key.pub", signature: str = "plan.sig") -> tuple[str, str]:
    """Return the code and the message with which a signature of the plan is refused; both are empty if it is right."""
    try:
        check_signature(Path("plan").read_bytes(), "plan", key, signature)
    except InvalidInput as refused:
        return refused.problems[0].code, str(refused)
    except ReconcilerError as refused:
        return refused.code, str(refused)
    return VERIFIED, ""


@pytest.mark.long
@needs_openssl
@pytest.mark.parametrize(
    "kind", [EC, "EC ec_paramgen_curve:P-384", "EC ec_paramgen_curve:P-521", "RSA rsa_keygen_bits:2048", "ED25519"]
)
def test_the_key_of_its_signer_verifies_a_plan_and_no_byte_more(kind: str) -> None:
    key_pair(kind)
    sign(is_raw=kind == "ED25519")
    assert checked()[0] == VERIFIED
    Path("plan").write_bytes(b"the plan\n\n")
    assert checked()[0] == NOT_OF_THIS


def signed_by_another_key() -> None:
    key_pair(name="other")
    sign(key="other")


def signature_of_another_file() -> None:
    Path("other").write_text("{}")
    sign("other")
    Path("other.sig").rename("plan.sig")


def changed(file: str, change: Callable[[bytes], bytes]) -> Callable[[], object]:
    return lambda: Path(file).write_bytes(change(Path(file).read_bytes()))


@pytest.mark.long
@needs_openssl
@pytest.mark.parametrize(
    ("harm", "code"),
    [
        pytest.param(lambda: None, VERIFIED, id="as signed"),
        pytest.param(changed("plan.sig", base64.b64encode), VERIFIED, id="signature in base64, as cosign writes it"),
        pytest.param(lambda: Path("plan.sig").unlink(), NOT_SIGNED, id="unsigned"),
        pytest.param(changed("plan.sig", lambda _: b""), NOT_SIGNED, id="empty signature"),
        pytest.param(signature_of_another_file, NOT_OF_THIS, id="signature of another file"),
        pytest.param(signed_by_another_key, NOT_OF_THIS, id="signature by another key"),
        pytest.param(changed("plan.sig", lambda old: old[:20]), NOT_OF_THIS, id="cut signature"),
        pytest.param(changed("plan.sig", lambda _: b"no signature at all"), NOT_OF_THIS, id="no signature"),
        pytest.param(changed("plan.sig", lambda old: old[:-1] + bytes([old[-1] ^ 1])), NOT_OF_THIS, id="a bit of it"),
        pytest.param(changed("plan", lambda old: old.replace(b"\n", b"\r\n")), NOT_OF_THIS, id="CRLF"),
        pytest.param(changed("plan", lambda old: b"\xef\xbb\xbf" + old), NOT_OF_THIS, id="BOM"),
        pytest.param(changed("plan", lambda old: old.rstrip()), NOT_OF_THIS, id="a newline less"),
    ],
)
def test_a_plan_counts_only_as_it_was_signed(harm: Callable[[], object], code: str) -> None:
    key_pair()
    sign()
    harm()
    assert checked()[0] == code


def pem(kind: str, content: str = CANARY) -> str:
    return f"-----BEGIN {kind}-----\n{content}\n-----END {kind}-----\n"


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (None, "no such file"),
        ("", "no file with one public key"),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 kim", "no file with one public key"),
        (2 * pem("PUBLIC KEY", P256), "no file with one public key"),
        (pem("PRIVATE KEY"), "this is a private key"),
        (pem("EC PRIVATE KEY"), "this is a private key"),
        (f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{CANARY}\n", "this is a private key"),
        (pem("OPENSSH PRIVATE KEY"), "this is a private key"),
        (pem("CERTIFICATE"), "this is a certificate"),
        (pem("PUBLIC KEY", "MFkwEwYH=KoZ"), "its public key is damaged"),
        (pem("PUBLIC KEY", "MFkwEwYHKoZI"), "this kind of public key"),
    ],
)
def test_a_file_that_is_no_public_key_is_named_and_nothing_of_it_shown(key: str | None, says: str) -> None:
    if key is not None:
        Path("key.pub").write_text(key)
    Path("plan.sig").write_text("MEUCIQ==")
    code, message = checked()
    assert (code, says in message, CANARY in message) == (UNFIT_KEY, True, False), message


@needs_openssl
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("RSA rsa_keygen_bits:1024", "less than 2048 bits"),
        ("EC ec_paramgen_curve:secp256k1", "not supported"),
        ("X25519", "not supported"),
    ],
)
def test_a_weak_or_strange_key_is_refused(kind: str, says: str) -> None:
    key_pair(kind)
    code, message = checked()
    assert (code, says in message) == (UNFIT_KEY, True), message


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is searched for programs alone; beside it are a key and a signature."""
    Path("key.pub").write_text(pem("PUBLIC KEY", P256))
    Path("plan.sig").write_text("MEUCIQ==")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def write_openssl(tools: Path, script: str) -> None:
    (tools / "openssl").write_text(f"#!/bin/sh\n{script}\n")
    (tools / "openssl").chmod(0o755)


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
def test_a_missing_or_strange_openssl_never_verifies(tools: Path, script: str | None, says: str) -> None:
    if script is not None:
        write_openssl(tools, script)
    code, message = checked()
    assert (code, says in message) == (NOT_CHECKED, True), message


def test_openssl_gets_no_secret_and_the_bytes_that_are_read(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan's file is replaced while it is verified: the bytes that were verified are those that are read."""
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.defpath}")
    monkeypatch.setenv("KAFKA_PASSWORD", "canary")
    write_openssl(tools, 'env >seen.env\ncat >seen.plan\necho "{}" >plan\necho "Verified OK"')
    write_plan(sample_plan(), "plan")
    content = Path("plan").read_bytes()
    found = read_plan("plan", Seal(key="key.pub"))
    assert (Path("seen.plan").read_bytes(), json.loads(content)["digest"]) == (content, found.digest)
    assert "canary" not in Path("seen.env").read_text()


@needs_openssl
def test_a_packed_plan_is_signed_as_it_is_packed() -> None:
    write_plan(sample_plan(), "plan")
    Path("plan.gz").write_bytes(gzip.compress(Path("plan").read_bytes()))
    key_pair()
    sign("plan")
    with pytest.raises(ReconcilerError, match=r"plan.sig is not its signature"):
        read_plan("plan.gz", Seal(key="key.pub", signature="plan.sig"))
    sign("plan.gz")
    assert read_plan("plan.gz", Seal(key="key.pub")).id == read_plan("plan").id
