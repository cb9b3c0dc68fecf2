"""Holds every Kafka client property: what its value may be, which ones cannot be honoured, which mean nothing here.

No value is shown by anything in this module: a secret may stand in any property, and in a name that lost its `=`.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from reconciler.model.problem import Problem, Severity

WRONG, UNVERIFIED, WITHOUT_EFFECT = "KR620", "KR621", "KR622"

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER, AWS_MSK_IAM = "OAUTHBEARER", "AWS_MSK_IAM"
MECHANISMS = (*PASSWORD_MECHANISMS, OAUTHBEARER, AWS_MSK_IAM)
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
ENDPOINT_ALGORITHM = "ssl.endpoint.identification.algorithm"
JAAS = re.compile(r"^\s*(?P<module>[\w.$]+)\s+required\b(?P<options>.*);\s*$", re.DOTALL)
_MOST = 2**31 - 1
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of a property: `meant` ends the sentence "The client property NAME must be …".

    `words`: all that it may be, as far as these are Kafka's words and not the user's.
    """

    meant: str
    accepts: Callable[[str], bool]
    words: tuple[str, ...] = ()
    is_secret: bool = False
    is_number: bool = False

    @property
    def is_closed(self) -> bool:
        """Whether a value that is accepted is one of ours: it may be logged, and is no secret."""
        return bool(self.words) or self.is_number


def _one_of(*words: str, is_any_case: bool = False, remedy: str = "") -> Domain:
    known = frozenset(word.casefold() if is_any_case else word for word in words)
    meant = words[0] if len(words) == 1 else f"one of {', '.join(words)}"
    return Domain(meant + remedy, lambda text: (text.casefold() if is_any_case else text) in known, words)


def _each_of(*words: str) -> Domain:
    def accepts(text: str) -> bool:
        return all(part.strip() in words for part in text.split(","))

    return Domain(f"a list, with commas, of {', '.join(words)}", accepts, words)


def _whole(low: int, high: int = _MOST) -> Domain:
    def accepts(text: str) -> bool:
        return _WHOLE.fullmatch(text) is not None and low <= int(text) <= high

    return Domain(f"a whole number from {low} to {high}", accepts, is_number=True)


def _free(meant: str, *, is_secret: bool = False) -> Domain:
    return Domain(meant, bool, is_secret=is_secret)


def _is_url(text: str, *schemes: str) -> bool:
    try:
        parts = urlsplit(text)
        is_port_right = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return parts.scheme in schemes and is_port_right and text.isascii() and text.isprintable() and " " not in text


_MILLISECONDS = _whole(1)
_BUFFER = Domain(
    f"a whole number from 1 to {_MOST}, or -1 for the system's own",
    lambda text: text == "-1" or _whole(1).accepts(text),
    is_number=True,
)
_PASSWORD = Domain("a password", lambda _text: True, is_secret=True)
_PEM_FILE = _free("the path of a PEM file")
_PEM = Domain("PEM text, which begins with -----BEGIN", lambda text: "-----BEGIN " in text)
_STORE = _one_of("PEM", is_any_case=True, remedy=": a JKS or PKCS12 store cannot be read here")
_TOKEN_CLASS = "OAuthBearerLoginCallbackHandler"  # noqa: S105 - the name of a class
_KAFKA_OAUTH = "org.apache.kafka.common.security.oauthbearer"

DOMAINS: Mapping[str, Domain] = {
    "bootstrap.servers": Domain("a list, with commas, of host:port", lambda _text: True),  # read one by one
    "client.id": _free("a text"),
    "security.protocol": _one_of(*PROTOCOLS, is_any_case=True),
    "request.timeout.ms": _MILLISECONDS,
    "connections.max.idle.ms": _MILLISECONDS,
    "metadata.max.age.ms": _MILLISECONDS,
    "reconnect.backoff.ms": _MILLISECONDS,
    "reconnect.backoff.max.ms": _MILLISECONDS,
    "retry.backoff.ms": _MILLISECONDS,
    "receive.buffer.bytes": _BUFFER,
    "send.buffer.bytes": _BUFFER,
    "sasl.mechanism": _one_of(*MECHANISMS),
    "sasl.mechanisms": _one_of(*MECHANISMS),
    "sasl.username": _free("a user's name"),
    "sasl.password": _free("a password", is_secret=True),
    "sasl.jaas.config": Domain(
        'of the form `MODULE required username="…" password="…";`', lambda text: bool(JAAS.match(text)), is_secret=True
    ),
    "sasl.client.callback.handler.class": _one_of("software.amazon.msk.auth.iam.IAMClientCallbackHandler"),
    "sasl.login.callback.handler.class": _one_of(
        f"{_KAFKA_OAUTH}.{_TOKEN_CLASS}", f"{_KAFKA_OAUTH}.secured.{_TOKEN_CLASS}"
    ),
    "sasl.oauthbearer.token.endpoint.url": Domain(
        "a URL that begins with https:// or file:///, or with http:// for this machine alone",
        lambda text: _is_url(text, "https", "http", "file"),
    ),
    "sasl.oauthbearer.client.credentials.client.id": _free("a client's id"),
    "sasl.oauthbearer.client.id": _free("a client's id"),
    "sasl.oauthbearer.client.credentials.client.secret": _free("a client's secret", is_secret=True),
    "sasl.oauthbearer.client.secret": _free("a client's secret", is_secret=True),
    "sasl.oauthbearer.scope": _free("a scope"),
    "sasl.oauthbearer.method": _one_of("default", "oidc"),
    "sasl.oauthbearer.grant.type": _one_of("client_credentials"),
    "sasl.oauthbearer.header.urlencode": _one_of("false"),
    ENDPOINT_ALGORITHM: Domain(
        "https; an empty value switches the check of host names off",
        lambda text: text.casefold() in {"https", ""},
        ("https",),
    ),
    "enable.ssl.certificate.verification": _one_of(
        "true", remedy=": a broker's certificate is always verified; give the CA as ssl.truststore.location"
    ),
    "ssl.enabled.protocols": _each_of(*TLS_VERSIONS),
    "ssl.truststore.location": _PEM_FILE,
    "ssl.truststore.certificates": _PEM,
    "ssl.truststore.type": _STORE,
    "ssl.truststore.password": _PASSWORD,
    "ssl.keystore.location": _PEM_FILE,
    "ssl.keystore.certificate.chain": _PEM,
    "ssl.keystore.key": Domain(_PEM.meant, _PEM.accepts, is_secret=True),
    "ssl.keystore.type": _STORE,
    "ssl.keystore.password": _PASSWORD,
    "ssl.key.password": _PASSWORD,
    "ssl.ca.location": _PEM_FILE,
    "ssl.certificate.location": _PEM_FILE,
    "ssl.key.location": _PEM_FILE,
    "ssl.crl.location": _PEM_FILE,
    "ssl.keymanager.algorithm": _one_of("SunX509", "PKIX"),
    "ssl.trustmanager.algorithm": _one_of("PKIX"),
}
"""What is used, or said to be what is done anyway. The bounds are Kafka's own, but that nothing waits for 0 ms, and
that a long is an int: nothing waits for more than 24 days."""

_KERBEROS = "Kerberos is not supported: log in with SCRAM, PLAIN, OAUTHBEARER or AWS_MSK_IAM, and remove it"
_ASSERTION = "assertions cannot be made here: use a client's id and secret, or a file:/// URL with a token"
_BROKERS_CHECK = "the broker checks the token, not this client: remove it"
_OPENSSL = "OpenSSL's settings on this machine decide that: remove it, and restrict them there"
_JAVA = "Java classes cannot be run here: remove it"
_INLINE = "write the same PEM text as "
CANNOT: Mapping[str, str] = {
    "bootstrap.controllers": "brokers are asked, not controllers: write bootstrap.servers",
    "metadata.broker.list": "write bootstrap.servers",
    "config.providers": "write ${env:NAME} or ${file:/path} where a value is to be read from elsewhere, and remove it",
    "enable.sasl.oauthbearer.unsecure.jwt": "write sasl.jaas.config with unsecuredLoginStringClaim_sub, for tests only",
    "https.ca.location": "the token endpoint is verified with the system's CAs: add yours there, and remove it",
    "https.ca.pem": "the token endpoint is verified with the system's CAs: add yours there, and remove it",
    "oauthbearer_token_refresh_cb": "write sasl.oauthbearer.token.endpoint.url",
    "sasl.kerberos.keytab": _KERBEROS,
    "sasl.kerberos.kinit.cmd": _KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _KERBEROS,
    "sasl.kerberos.principal": _KERBEROS,
    "sasl.kerberos.service.name": _KERBEROS,
    "sasl.kerberos.ticket.renew.jitter": _KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _KERBEROS,
    "sasl.login.class": _JAVA,
    "sasl.oauthbearer.assertion.algorithm": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.aud": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.exp.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.iss": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.jti.include": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _ASSERTION,
    "sasl.oauthbearer.assertion.claim.sub": _ASSERTION,
    "sasl.oauthbearer.assertion.file": _ASSERTION,
    "sasl.oauthbearer.assertion.jwt.template.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.file": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.passphrase": _ASSERTION,
    "sasl.oauthbearer.assertion.private.key.pem": _ASSERTION,
    "sasl.oauthbearer.assertion.template.file": _ASSERTION,
    "sasl.oauthbearer.config": "write sasl.jaas.config, or sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.expected.audience": _BROKERS_CHECK,
    "sasl.oauthbearer.expected.issuer": _BROKERS_CHECK,
    "sasl.oauthbearer.extensions": "a token is sent without extensions: remove it",
    "sasl.oauthbearer.jwks.endpoint.url": _BROKERS_CHECK,
    "sasl.oauthbearer.jwt.retriever.class": _JAVA,
    "sasl.oauthbearer.jwt.validator.class": _JAVA,
    "sasl.oauthbearer.metadata.authentication.type": "write sasl.mechanism AWS_MSK_IAM, or a file:/// URL",
    "security.providers": _JAVA,
    "ssl.ca.certificate.stores": "export the CA as PEM, and write ssl.truststore.location",
    "ssl.ca.pem": f"{_INLINE}ssl.truststore.certificates",
    "ssl.certificate.pem": f"{_INLINE}ssl.keystore.certificate.chain",
    "ssl.certificate.verify_cb": "a certificate is verified by its CA: remove it",
    "ssl.cipher.suites": _OPENSSL,
    "ssl.curves.list": _OPENSSL,
    "ssl.engine.factory.class": _JAVA,
    "ssl.engine.id": _OPENSSL,
    "ssl.engine.location": _OPENSSL,
    "ssl.key.pem": f"{_INLINE}ssl.keystore.key",
    "ssl.protocol": "write the versions that are allowed as ssl.enabled.protocols",
    "ssl.provider": _JAVA,
    "ssl.providers": _OPENSSL,
    "ssl.secure.random.implementation": "OpenSSL's own generator is used: remove it",
    "ssl.sigalgs.list": _OPENSSL,
    "ssl_ca": f"{_INLINE}ssl.truststore.certificates",
    "ssl_certificate": f"{_INLINE}ssl.keystore.certificate.chain",
    "ssl_engine_callback_data": _OPENSSL,
    "ssl_key": f"{_INLINE}ssl.keystore.key",
}
"""Properties that decide who is talked to, or how safely, and cannot be honoured: to ignore one would be a hole."""

# Kafka 3.9 to 4.3 (AdminClient, Consumer, Producer) or librdkafka know them; they tune what is not done here.
MEANINGLESS = frozenset(
    """
    acks allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
    auto.commit.enable auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset background_event_cb
    batch.num.messages batch.size broker.address.family broker.address.ttl broker.version.fallback buffer.memory
    builtin.features check.crcs client.dns.lookup client.rack closesocket_cb compression.codec compression.gzip.level
    compression.level compression.lz4.level compression.type compression.zstd.level connect_cb
    consume.callback.max.messages consume_cb coordinator.query.interval.ms debug default.api.timeout.ms
    default_topic_conf delivery.report.only.error delivery.timeout.ms dr_cb dr_msg_cb enable.auto.commit
    enable.auto.offset.store enable.gapless.guarantee enable.idempotence enable.metrics.push enable.partition.eof
    enable.random.seed enabled_events error_cb exclude.internal.topics fetch.error.backoff.ms fetch.max.bytes
    fetch.max.wait.ms fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.id
    group.instance.id group.protocol group.protocol.type group.remote.assignor heartbeat.interval.ms
    interceptor.classes interceptors internal.leave.group.on.close internal.termination.signal
    internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer key.serializer linger.ms
    log.connection.close log.queue log.thread.name log_cb log_level max.block.ms max.in.flight
    max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms max.poll.records
    max.request.size message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms
    metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms msg_order_cmp offset.store.method
    offset.store.path offset.store.sync.interval.ms offset_commit_cb opaque open_cb partition.assignment.strategy
    partitioner partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys partitioner_cb plugin.library.paths produce.offset.report
    queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages queuing.strategy rebalance_cb
    receive.message.max.bytes reconnect.backoff.jitter.ms request.required.acks resolve_cb retries
    retry.backoff.max.ms sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.scope.claim.name
    sasl.oauthbearer.sub.claim.name session.timeout.ms share.acknowledgement.mode share.acquire.mode
    socket.blocking.max.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
    socket.send.buffer.bytes socket.timeout.ms socket_cb statistics.interval.ms stats_cb
    sticky.partitioning.linger.ms throttle_cb topic.blacklist topic.metadata.propagation.max.ms
    topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
    value.deserializer value.serializer
    """.split()  # noqa: SIM905 - a name a line would be 170 lines
)
NAMES = frozenset({*DOMAINS, *CANNOT, *MEANINGLESS})
_WORDS = frozenset(word for name in NAMES for word in re.split(r"[._]", name))
_ALIKE = 0.75
_SHOWN = 60


def name_shown(name: str) -> str:
    """Return a property's name as far as it is made of words that names have, or slips of these; the rest is `…`.

    What was typed may be a password that lost its name, or stands behind one: `sasl.password.HUNTER2`.
    """
    if name in NAMES:
        return name
    parts = name.split(".", maxsplit=10)
    shown = [part if _is_word(part) else "…" for part in parts]
    return ".".join(shown)[:_SHOWN]


def problems_of_names(names: Mapping[str, str]) -> Iterator[Problem]:
    """Yield an error for each name that nobody knows, and for each that cannot be honoured."""
    for name in sorted(names):
        if name in CANNOT:
            yield Problem(WRONG, f"The client property {name} cannot be honoured: {CANNOT[name]}.")
        elif name not in NAMES:
            near = difflib.get_close_matches(name.lower(), sorted({*DOMAINS, *CANNOT}), n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            yield Problem(WRONG, f"The client property {name_shown(name)} is unknown{meant}. Correct or remove it.")


def problems_of_values(properties: Mapping[str, str]) -> Iterator[Problem]:
    """Yield an error for each known property whose value is none of its domain; the value is not in it."""
    for name, domain in DOMAINS.items():
        if name in properties and not domain.accepts(properties[name]):
            yield Problem(WRONG, f"The client property {name} must be {domain.meant}.")
    both = properties.get("sasl.mechanism"), properties.get("sasl.mechanisms")
    if None not in both and both[0] != both[1]:
        yield Problem(WRONG, "The client properties sasl.mechanism and sasl.mechanisms differ: keep one of them.")


def cautions(properties: Mapping[str, str]) -> tuple[Problem, ...]:
    """Return warnings of what these properties leave open: host names, and security that is written but not used."""
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    has_tls, has_login = protocol.endswith("SSL"), protocol.startswith("SASL_")
    found = []
    if has_tls and not properties.get(ENDPOINT_ALGORITHM, "https").strip():
        found.append(
            f"{ENDPOINT_ALGORITHM} is empty, so host names of brokers are not verified: any broker with a certificate "
            "of a CA that is trusted can take the place of yours. Remove it once the certificates name their hosts"
        )
    unused = [
        name
        for name in sorted(properties)
        if name in DOMAINS
        and ((name.startswith("sasl.") and not has_login) or (name.startswith("ssl.") and not has_tls))
    ]
    warnings = [Problem(UNVERIFIED, text, severity=Severity.WARNING) for text in found]
    if unused:
        has_login |= any(name.startswith("sasl.") for name in unused)
        has_tls |= any(name.startswith("ssl.") for name in unused)
        wanted = "SASL_SSL" if has_login and has_tls else "SASL_SSL or SASL_PLAINTEXT" if has_login else "SSL"
        said = protocol if protocol in PROTOCOLS else "none of Kafka's"
        if "security.protocol" not in properties:
            said = "not written, which means PLAINTEXT"
        verb = "have" if len(unused) > 1 else "has"
        text = f"{', '.join(unused)} {verb} no effect, as security.protocol is {said}: write {wanted}, or remove them"
        warnings.append(Problem(WITHOUT_EFFECT, text, severity=Severity.WARNING))
    return tuple(warnings)


def _is_word(part: str) -> bool:
    if part in _WORDS:
        return True
    return part.isascii() and part.isalpha() and bool(difflib.get_close_matches(part, _WORDS, n=1, cutoff=_ALIKE))
