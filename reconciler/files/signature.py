"""Checks a detached signature over a file's very bytes with the `openssl` program: decision 0048 says why that one."""

import base64
import binascii
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import ExitStack

from reconciler.files.paths import is_there
from reconciler.files.raw import invalid, raw_bytes
from reconciler.model.problem import InvalidInput, ReconcilerError, Refused

UNFIT_KEY = "KR217"
NOT_CHECKED = "KR218"
UNREADABLE = "KR219"
NOT_SIGNED = "KR426"
NOT_OF_THIS = "KR427"
_PROGRAM = "openssl"
_SECONDS = 60
_MOST_BYTES = 1 << 16
_PUBLIC = re.compile(r"-----BEGIN PUBLIC KEY-----\s([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----")
_RSA = bytes.fromhex("300d06092a864886f70d0101010500")
_LEAST_RSA_BYTES = 292
"""A SubjectPublicKeyInfo of RSA with a modulus of 2048 bits has at least so many."""
_ED25519 = bytes.fromhex("302a300506032b6570032100")
_FIXED = {
    _ED25519: 44,
    bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004"): 91,  # P-256
    bytes.fromhex("3076301006072a8648ce3d020106052b8104002203620004"): 120,  # P-384
    bytes.fromhex("30819b301006072a8648ce3d020106052b810400230381860004"): 158,  # P-521
}
"""How a SubjectPublicKeyInfo of each kind begins, uncompressed points for curves, and its length (RFC 5480, 8410)."""
_VERIFIED = frozenset({"Verified OK", "Signature Verified Successfully"})
_NOT_VERIFIED = ("verification failure", "error verifying data")
_KINDS = "EC (P-256, P-384, P-521), RSA of 2048 bits or more, or Ed25519"


def check_signature(content: bytes, name: str, key: str, signature: str) -> None:
    """Return if that key's owner signed exactly this content.

    Raises Refused where they did not, or nothing says so; InvalidInput where the key or the signature is no such file;
    ReconcilerError where nobody here can tell.
    """
    public = _public_key(key)
    signed = _signature(signature, name)
    program = shutil.which(_PROGRAM)
    if program is None:
        raise _not_checked(name, f"the program {_PROGRAM} is not on the PATH; install it")
    if not _is_verified(program, public, signed, content, name):
        raise Refused(
            f"{name}: {signature} is not its signature by the key in {key}: it was changed after it was signed, or "
            "another key signed it, or another plan. Fetch the plan and its signature again, from where it was signed",
            code=NOT_OF_THIS,
        )


def _public_key(path: str) -> bytes:
    """Return the key in that file, in DER; raises InvalidInput for what is none, or none that is fit for this."""
    text = raw_bytes(path, "public key", UNFIT_KEY, _MOST_BYTES).decode("utf-8", "replace")
    if "PRIVATE KEY-----" in text:
        raise _unfit(
            path,
            "this is a private key, which belongs where plans are signed and nowhere else. Give its public half: "
            "`openssl pkey -in KEY -pubout`",
        )
    if "-----BEGIN CERTIFICATE-----" in text:
        raise _unfit(path, "this is a certificate. Give its public key: `openssl x509 -in FILE -noout -pubkey`")
    found = _PUBLIC.findall(text)
    if len(found) != 1:
        raise _unfit(path, "this is no file with one public key in PEM, as `openssl pkey -in KEY -pubout` prints it")
    try:
        key = base64.b64decode("".join(found[0].split()), validate=True)
    except binascii.Error:
        raise _unfit(path, "its public key is damaged: its base64 does not decode. Fetch it again") from None
    if _RSA in {key[3:18], key[4:19]} and len(key) < _LEAST_RSA_BYTES:
        raise _unfit(path, "this RSA key has less than 2048 bits, which others can break. Sign with a longer one")
    if key[4:19] != _RSA and not any(key.startswith(head) and len(key) == size for head, size in _FIXED.items()):
        raise _unfit(path, f"this kind of public key is not supported. Use {_KINDS}")
    return key


def _signature(path: str, name: str) -> bytes:
    """Return the signature in that file, of which cosign and others write the base64."""
    if not is_there(path):
        raise _not_signed(name, path, "there is no such file")
    content = raw_bytes(path, "signature", UNREADABLE, _MOST_BYTES)
    if not content:
        raise _not_signed(name, path, "it is empty")
    try:
        return base64.b64decode(b"".join(content.split()), validate=True)
    except binascii.Error:
        return content


def _is_verified(program: str, key: bytes, signature: bytes, content: bytes, name: str) -> bool:
    pem = b"-----BEGIN PUBLIC KEY-----\n" + base64.encodebytes(key) + b"-----END PUBLIC KEY-----\n"
    with ExitStack() as stack:
        # Files without a name: nothing is left of them, and nobody else can change what is checked.
        key_file, signature_file, content_file = (_unnamed(stack, each) for each in (pem, signature, content))
        key_path, signature_path = f"/dev/fd/{key_file}", f"/dev/fd/{signature_file}"
        if key.startswith(_ED25519):
            words = ["pkeyutl", "-verify", "-pubin", "-inkey", key_path, "-rawin", "-in", "/dev/stdin"]
            words += ["-sigfile", signature_path]
        else:
            words = ["dgst", "-sha256", "-verify", key_path, "-signature", signature_path]
        try:
            ended = subprocess.run(  # noqa: S603 - the program of that name on the PATH, fixed words, no shell
                [program, *words],
                stdin=content_file,
                pass_fds=(key_file, signature_file),
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise _not_checked(name, f"{_PROGRAM} could not be run ({type(error).__name__})") from None
    if ended.returncode == 0 and ended.stdout.strip() in _VERIFIED:
        return True
    if ended.returncode == 1 and any(word in (ended.stdout + ended.stderr).lower() for word in _NOT_VERIFIED):
        return False
    raise _not_checked(name, f"`{_PROGRAM} {words[0]}` failed with exit code {ended.returncode}; try another version")


def _unnamed(stack: ExitStack, content: bytes) -> int:
    """Return a descriptor of a file with that content, which is gone with the stack."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    file.write(content)
    file.seek(0)
    return file.fileno()


def _unfit(path: str, why: str) -> InvalidInput:
    return invalid(UNFIT_KEY, f"{path}: {why}")


def _not_signed(name: str, path: str, why: str) -> Refused:
    return Refused(
        f"{name} is not signed: {path}: {why}. Sign it where it was reviewed, or name its signature with --signature",
        code=NOT_SIGNED,
    )


def _not_checked(name: str, why: str) -> ReconcilerError:
    return ReconcilerError(f"{name}: nobody here can check its signature: {why}", code=NOT_CHECKED)
