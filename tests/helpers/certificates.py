"""Certificates of a test's own: authorities, keys for one host, dates in the past or future, revocation lists.

authority = Authority("tests")
broker = authority.issue("127.0.0.1")              # a key and its certificate
broker.chain, broker.key                           # PEM; `broker.key_with("password")` is encrypted
authority.issue("127.0.0.1", begins=-20, ends=-10) # days from now: this one has expired
authority.certificate                              # PEM: what a client trusts
authority.revoked(broker)                          # PEM: a list that revokes it
"""

import datetime as dt
import functools
import ipaddress
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = dt.datetime.now(dt.UTC)
PEM = serialization.Encoding.PEM


def _days(count: float) -> dt.datetime:
    return NOW + dt.timedelta(days=count)


@dataclass(frozen=True)
class Pair:
    """A private key and its certificate."""

    certificate: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @functools.cached_property
    def chain(self) -> str:
        """The certificate, as PEM."""
        return self.certificate.public_bytes(PEM).decode()

    @functools.cached_property
    def key(self) -> str:
        """The key, as PEM (PKCS #8, the one form that Java reads)."""
        return self._key(serialization.NoEncryption())

    def key_with(self, password: str) -> str:
        """Return the key encrypted."""
        return self._key(serialization.BestAvailableEncryption(password.encode()))

    def _key(self, how: serialization.KeySerializationEncryption) -> str:
        return self.private.private_bytes(PEM, serialization.PrivateFormat.PKCS8, how).decode()


@dataclass
class Authority:
    """A certificate authority."""

    name: str
    _own: Pair = field(init=False)

    def __post_init__(self) -> None:
        private = ec.generate_private_key(ec.SECP256R1())
        builder = self._begun(self.name, private.public_key(), -30, 30)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._own = Pair(builder.sign(private, hashes.SHA256()), private)

    @property
    def certificate(self) -> str:
        """The authority's own certificate, as PEM."""
        return self._own.chain

    def issue(self, host: str, *, begins: float = -1, ends: float = 10) -> Pair:
        """Return a key with a certificate for this name or address, good from and to these days from now."""
        private = ec.generate_private_key(ec.SECP256R1())
        try:
            name: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            name = x509.DNSName(host)
        builder = self._begun(host, private.public_key(), begins, ends)
        builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=False)
        return Pair(builder.sign(self._own.private, hashes.SHA256()), private)

    def revoked(self, *pairs: Pair, begins: float = -1, ends: float = 10) -> str:
        """Return the list of what this authority has revoked, as PEM."""
        builder = x509.CertificateRevocationListBuilder(self._own.certificate.subject, _days(begins), _days(ends))
        for pair in pairs:
            entry = x509.RevokedCertificateBuilder(pair.certificate.serial_number, _days(-0.5)).build()
            builder = builder.add_revoked_certificate(entry)
        return builder.sign(self._own.private, hashes.SHA256()).public_bytes(PEM).decode()

    def _begun(
        self, subject: str, public: ec.EllipticCurvePublicKey, begins: float, ends: float
    ) -> x509.CertificateBuilder:
        def named(text: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])

        return x509.CertificateBuilder(
            issuer_name=named(self.name),
            subject_name=named(subject),
            public_key=public,
            serial_number=x509.random_serial_number(),
            not_valid_before=_days(begins),
            not_valid_after=_days(ends),
        )
