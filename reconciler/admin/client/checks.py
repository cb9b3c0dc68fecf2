"""Says why a connection cannot be, where more tries change nothing: a check failed, here or at the broker.

The Kafka library hands on what OpenSSL said as text, so text is what is read here; whoever meets the error itself gives
its text. No message names a host, a user or a path: they may be anything that stood in the properties.
"""

import re
from dataclasses import dataclass

import kafka.errors

from reconciler.admin.client.properties import Connection
from reconciler.admin.client.tls import Context
from reconciler.model.problem import CheckFailed

TRUST, HOST, DATES, REVOKED = "KR606", "KR607", "KR608", "KR609"
CLIENT, VERSION, MIXED = "KR646", "KR647", "KR648"
# A TLS alert (0x15, version 3.x), taken for the length of an answer.
ALERT_AS_LENGTH = range(0x15030000, 0x15040000)


@dataclass(frozen=True, slots=True)
class Cause:
    """What OpenSSL says of it, our code, and our sentence about `{who}`."""

    said: re.Pattern[str]
    code: str
    sentence: str


def _cause(said: str, code: str, sentence: str) -> Cause:
    return Cause(re.compile(said, re.IGNORECASE), code, sentence)


NO_CERTIFICATE = (
    "{who} lets only clients in that show a certificate, and none is set. "
    "Set ssl.keystore.location, or ssl.keystore.certificate.chain and ssl.keystore.key."
)
CAUSES = (
    _cause(
        r"certificate is not yet valid",
        DATES,
        "The certificate of {who}, or of a CA above it, is not valid yet. Compare the clocks of both machines.",
    ),
    _cause(
        r"certificate has expired",
        DATES,
        "The certificate of {who}, or of a CA above it, has expired. Have it renewed.",
    ),
    _cause(
        r"(Hostname|IP address) mismatch",
        HOST,
        "The certificate of {who} is for another host. Write the name that it is for in bootstrap.servers or "
        "advertised.listeners, or have one made for this name.",
    ),
    _cause(
        r"certificate revoked \(",
        REVOKED,
        "The certificate of {who} is revoked by the list of ssl.crl.location. Have it replaced.",
    ),
    _cause(
        r"unable to get certificate CRL",
        REVOKED,
        "ssl.crl.location holds no list of the CA that signed the certificate of {who}. Add that CA's list.",
    ),
    _cause(
        r"CRL (has expired|is not yet valid)",
        REVOKED,
        "The list of ssl.crl.location is out of date, so that nobody knows whether {who} is revoked. Fetch it anew.",
    ),
    _cause(
        r"CERTIFICATE_VERIFY_FAILED",
        TRUST,
        "The certificate of {who} is signed by no CA that is trusted here. Set ssl.truststore.location (or "
        "ssl.truststore.certificates, or ssl.ca.location) to the CA that signed it.",
    ),
    _cause(
        r"alert[ _]((bad|unsupported|no)[ _])?certificate|alert[ _](unknown[ _]ca|access[ _]denied|decrypt[ _]error)",
        CLIENT,
        "{who} does not accept the certificate of this client. Have it signed by a CA that the brokers trust, and "
        "look at its dates.",
    ),
    _cause(
        r"protocol[ _]version|unsupported[ _]protocol|alert[ _](handshake[ _]failure|insufficient[ _]security)|"
        r"no[ _]protocols[ _]available|version[ _]too[ _]low|key[ _]too[ _]small|legacy",
        VERSION,
        "{who} and this client have no safe TLS version or cipher in common. Let the listener offer TLSv1.2 or "
        "TLSv1.3, and look at ssl.enabled.protocols.",
    ),
    _cause(
        r"Handshake failed.*(EOF occurred|reset by peer|Broken pipe|closed)|WRONG_VERSION_NUMBER|wrong version number",
        MIXED,
        "{who} broke off the TLS handshake, as a listener without TLS does. Correct the port in bootstrap.servers, or "
        "security.protocol.",
    ),
)
SPEAKS_TLS = "{who} speaks TLS, and this client does not. Set security.protocol to SSL or SASL_SSL."


def final_refusal(error: BaseException | None, who: str, connection: Connection) -> CheckFailed | None:
    """Return what the library's error says that nothing but another property, certificate or user changes.

    None where another try may well succeed.
    """
    if isinstance(error, kafka.errors.SaslAuthenticationFailedError):
        check = (
            "Check sasl.username, sasl.password and sasl.mechanism; the password may have been changed."
            if connection.user is not None
            else "Check whose token or credentials they are and sasl.mechanism; renew what has expired."
        )
        told = f"The cluster refused the login. {check}"
    elif isinstance(error, kafka.errors.UnsupportedSaslMechanismError):
        told = "The listener does not offer the mechanism of sasl.mechanism. Ask which ones it has enabled."
    elif isinstance(error, kafka.errors.IllegalSaslStateError):
        told = "The listener takes no login. Set security.protocol to PLAINTEXT or SSL, or correct the port."
    else:
        context = connection.options.get("ssl_context")
        has_certificate = isinstance(context, Context) and context.has_certificate
        return None if error is None else failed_check(str(error), who, has_certificate=has_certificate)
    return CheckFailed(told, code="KR602")


def failed_check(said: str, who: str, *, has_certificate: bool) -> CheckFailed | None:
    """Return the cause behind what was said of a connection; None where another try may well succeed."""
    length = re.search(r"Invalid frame length: (\d+)", said)
    if length and int(length[1]) in ALERT_AS_LENGTH:
        return CheckFailed(_sentence(SPEAKS_TLS, who), code=MIXED)
    cause = next((cause for cause in CAUSES if cause.said.search(said)), None)
    if cause is None:
        return None
    sentence = NO_CERTIFICATE if cause.code == CLIENT and not has_certificate else cause.sentence
    return CheckFailed(_sentence(sentence, who), code=cause.code, is_passing=cause.code == MIXED)


def _sentence(template: str, who: str) -> str:
    text = template.format(who=who)
    return text[0].upper() + text[1:] if template.startswith("{who}") else text  # a property's name stays as it is
