"""Builds the TLS context of a connection from its ssl.* properties: whom to trust, and who this client is.

What is wrong with them is told by the property's name alone: neither a path nor a line of a file is ever shown.
"""

import re
import ssl
import stat
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from reconciler.model.client_properties import ENDPOINT_ALGORITHM, WRONG
from reconciler.model.problem import Problem

TRUSTED = ("ssl.truststore.location", "ssl.truststore.certificates", "ssl.ca.location")
OWN = ("ssl.keystore.location", "ssl.keystore.certificate.chain", "ssl.certificate.location")
# A key stands in the keystore's file, or beside the chain that is written in the properties, or in a file of its own.
KEY_OF = dict(zip(OWN, ("ssl.keystore.location", "ssl.keystore.key", "ssl.key.location"), strict=True))
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CERTIFICATE, LIST, KEY = "certificate", "revocation list", "private key"
KINDS = {
    "CERTIFICATE": CERTIFICATE,
    "TRUSTED CERTIFICATE": CERTIFICATE,
    "X509 CERTIFICATE": CERTIFICATE,
    "X509 CRL": LIST,
}
BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


class Context(ssl.SSLContext):
    """A client's context; `has_certificate` tells whether this client can say who it is."""

    has_certificate = False


class _Unusable(Exception):
    """A property's value serves for nothing; the text is a whole sentence."""


def context_of(given: Mapping[str, str]) -> tuple[ssl.SSLContext | None, list[Problem]]:
    """Return the context, or none and a problem for each thing that is wrong with these properties."""
    context = Context(ssl.PROTOCOL_TLS_CLIENT)  # verifies the certificate and the host's name, whatever follows
    # Who is trusted is who stands in the truststore, as in Java: it may be a CA that another one signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = given.get(ENDPOINT_ALGORITHM, "https") != ""
    wrong: list[str] = []
    for step in (_limit_versions, _trust, _revoke, _identify):
        try:
            step(context, given)
        except _Unusable as error:
            wrong.append(str(error))
    return (None if wrong else context), [Problem(WRONG, message) for message in wrong]


def _limit_versions(context: Context, given: Mapping[str, str]) -> None:
    text = given.get("ssl.enabled.protocols", ",".join(VERSIONS))
    versions = [VERSIONS[name.strip()] for name in text.split(",")]
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _trust(context: Context, given: Mapping[str, str]) -> None:
    """Trust the CAs that are given, or where none is those of this machine."""
    name = _one_of(TRUSTED, given)
    if name is None:
        context.load_default_certs()
        return
    certificates = _blocks(name, given, CERTIFICATE)
    try:
        context.load_verify_locations(cadata="".join(certificates))
    except (ssl.SSLError, ValueError):
        raise _Unusable(f"{name} holds a certificate that cannot be read. Export it anew, as PEM.") from None


def _revoke(context: Context, given: Mapping[str, str]) -> None:
    """Refuse brokers whose certificate is on the list; one whose CA has no list here is refused, too."""
    name = "ssl.crl.location"
    if not given.get(name):
        return
    with _file_of(_blocks(name, given, LIST)) as file:
        try:
            context.load_verify_locations(file)
        except ssl.SSLError:
            raise _Unusable(f"{name} holds a revocation list that cannot be read. Fetch it anew, as PEM.") from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: Context, given: Mapping[str, str]) -> None:
    """Load this client's own key and certificate, where it has one."""
    name = _one_of(OWN, given)
    lonely = [
        key for key in ("ssl.keystore.key", "ssl.key.location") if given.get(key) and KEY_OF.get(name or "") != key
    ]
    if lonely:
        raise _Unusable(
            f"{lonely[0]} has no certificate beside it. Set {next(o for o in OWN if KEY_OF[o] == lonely[0])}."
        )
    if name is None:
        return
    key = KEY_OF[name] if given.get(KEY_OF[name]) else name
    if key == name == "ssl.keystore.certificate.chain":
        raise _Unusable(f"{name} has no key beside it. Set ssl.keystore.key.")
    password = given.get("ssl.key.password") or given.get("ssl.keystore.password") or ""
    asked: list[bool] = []

    def tell() -> str:
        asked.append(True)  # only a key that is encrypted is asked for
        return password

    private = _blocks(key, given, KEY)
    # A key in a file stays there; one that is written in the properties has no other place.
    file_of_key = given[key] if key.endswith(".location") else None
    with _file_of([*([] if file_of_key else private), *_blocks(name, given, CERTIFICATE)]) as file:
        try:
            context.load_cert_chain(file, file_of_key, tell)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            told = _why_not_loaded(error, name, key, is_encrypted=bool(asked), has_password=bool(password))
            raise _Unusable(told) from None
    context.has_certificate = True


def _why_not_loaded(error: Exception, name: str, key: str, *, is_encrypted: bool, has_password: bool) -> str:
    if "KEY_VALUES_MISMATCH" in str(error):
        return f"The key of {key} does not belong to the first certificate of {name}. Put the two of one pair together."
    if is_encrypted and not has_password:
        return f"The key of {key} is encrypted. Set ssl.key.password."
    if is_encrypted:
        return f"ssl.key.password does not open the key of {key}. Correct the password."
    return f"{name} or its key cannot be read, or is too weak to be used. Export both anew, as PEM."


def _one_of(names: tuple[str, ...], given: Mapping[str, str]) -> str | None:
    set_ = [name for name in names if given.get(name)]
    if len(set_) > 1:
        raise _Unusable(f"{' and '.join(set_)} are both set. Keep one of them.")
    return set_[0] if set_ else None


def _blocks(name: str, given: Mapping[str, str], kind: str) -> list[str]:
    """Return the PEM blocks of one kind, each as OpenSSL reads it: lines that are run together are taken apart."""
    is_store = name in {"ssl.truststore.location", "ssl.keystore.location"}
    if is_store and given.get(name.replace("location", "type"), "").upper() != "PEM":
        side = name.split(".")[1]
        raise _Unusable(
            f"{name} names a Java {side}, which cannot be read here. Export it as PEM, for example with "
            f"`keytool -exportcert -rfc`, and set ssl.{side}.type to PEM."
        )
    text = _text_of(name, given[name]) if name.endswith(".location") else given[name]
    found = [
        f"-----BEGIN {label}-----\n{_wrapped(body)}\n-----END {label}-----\n"
        for label, body in BLOCK.findall(text)
        if (KEY if label.endswith("PRIVATE KEY") else KINDS.get(label)) == kind
    ]
    if not found:
        raise _Unusable(f"{name} holds no {kind} in PEM form. Put in one that begins with -----BEGIN.")
    return found[:1] if kind == KEY else found


def _wrapped(body: str) -> str:
    # Headers of an old encrypted key need their own lines.
    return body.strip("\n") if ":" in body else "\n".join(textwrap.wrap("".join(body.split()), 64))


def _text_of(name: str, path: str) -> str:
    file = Path(path)
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # reading it might never end
            raise _Unusable(f"{name} names what is no file. Correct the path.")
        return file.read_bytes().decode("ascii", "replace")
    except (FileNotFoundError, NotADirectoryError):
        raise _Unusable(f"The file that {name} names does not exist. Correct the path.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no path"
        raise _Unusable(f"The file that {name} names cannot be read: {reason}. Give this user the right to.") from None


@contextmanager
def _file_of(blocks: list[str]) -> Iterator[str]:
    """Yield a file with these blocks: OpenSSL reads some kinds from files only, so they live in one for a moment."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # readable by its owner alone
        file.write("".join(blocks))
        file.flush()
        yield file.name
