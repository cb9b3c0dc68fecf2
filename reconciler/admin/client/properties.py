"""Kafka client properties, as the Java client and librdkafka spell them, in kafka-python's options."""

import difflib
import logging
import re
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from reconciler.admin.client import oauth
from reconciler.model.problem import InvalidInput, Problem

logger = logging.getLogger(__name__)

CODE = "KR620"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER, AWS_MSK_IAM = "OAUTHBEARER", "AWS_MSK_IAM"
MECHANISMS = (*PASSWORD_MECHANISMS, OAUTHBEARER, AWS_MSK_IAM)
SECRETS = (
    "sasl.password",
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.password",
)
DEFAULT_PORT = 9092

MILLISECONDS = {
    "request.timeout.ms": "request_timeout_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "retry.backoff.ms": "retry_backoff_ms",
}
BYTES = {"receive.buffer.bytes": "receive_buffer_bytes", "send.buffer.bytes": "send_buffer_bytes"}
SASL = ("sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password", "sasl.jaas.config")
SSL = (
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.truststore.type",
    "ssl.truststore.password",
    "ssl.keystore.location",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.type",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
)
KNOWN = ("bootstrap.servers", "client.id", "security.protocol", *SASL, *oauth.PROPERTIES, *SSL, *MILLISECONDS, *BYTES)
# They tune the Java client or librdkafka and mean nothing here: ignored, with a warning.
IGNORED = (
    "acks",
    "api.version.request",
    "auto.include.jmx.reporter",
    "auto.offset.reset",
    "broker.address.family",
    "client.dns.lookup",
    "client.rack",
    "default.api.timeout.ms",
    "enable.auto.commit",
    "enable.metrics.push",
    "group.id",
    "interceptor.classes",
    "isolation.level",
    "key.deserializer",
    "key.serializer",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "retries",
    "retry.backoff.max.ms",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "security.providers",
    "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms",
    "socket.keepalive.enable",
    "socket.timeout.ms",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "value.deserializer",
    "value.serializer",
)
JAAS = re.compile(r"^\s*(?P<module>[\w.$]+)\s+required\b(?P<options>.*);\s*$", re.DOTALL)
JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|(\S+?))(?=\s|$)')


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster: servers as (host, port), kafka-python's other options, texts to keep out of logs."""

    servers: tuple[tuple[str, int], ...]
    options: Mapping[str, object]
    secrets: tuple[str, ...] = ()

    @property
    def user(self) -> str | None:
        """The user that logs in, None without a login."""
        name = self.options.get("sasl_plain_username")
        return None if name is None else str(name)


def translate(properties: Mapping[str, str]) -> Connection:
    """Return the connection that these properties describe; every problem in them is reported at once."""
    reader = _Reader(properties)
    reader.check_names()
    servers = reader.servers()
    options = {**reader.general(), **reader.login()}
    context = reader.ssl_context(str(options["security_protocol"]))
    if reader.problems:
        raise InvalidInput(reader.problems)
    if context is not None:
        options["ssl_context"] = context
    return Connection(servers, options, reader.secrets())


class _Reader:
    """Reads properties one group at a time and collects what is wrong with them."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.given = {key: str(value).strip() for key, value in properties.items()}
        self.problems: list[Problem] = []

    def check_names(self) -> None:
        """Refuse names that nobody knows; warn of those that have no meaning here."""
        for name in sorted(self.given):
            if name in IGNORED:
                logger.warning("The client property %s has no meaning here and is ignored.", name)
            elif name not in KNOWN:
                self._refuse(f"The client property {name} is unknown{_did_you_mean(name)}. Correct or remove it.")

    def servers(self) -> tuple[tuple[str, int], ...]:
        """Return bootstrap.servers as pairs."""
        text = self.given.get("bootstrap.servers", "")
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if not parts:
            self._refuse("The client property bootstrap.servers is missing: name at least one broker as host:port.")
        return tuple(server for part in parts if (server := self._server(part)) is not None)

    def general(self) -> dict[str, object]:
        """Return everything but login and encryption."""
        options: dict[str, object] = {
            "client_id": self.given.get("client.id", "kafka-reconciler"),
            "reconnect_backoff_max_ms": 1000,  # as in Java; the library's own 30 s hide a broker that has come back
        }
        for name, option in sorted({**MILLISECONDS, **BYTES}.items()):
            if name in self.given:
                options[option] = self._number(name)
        protocol = self.given.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in PROTOCOLS:
            self._refuse(f"security.protocol is {protocol}: it must be one of {', '.join(PROTOCOLS)}.")
        options["security_protocol"] = protocol
        return options

    def login(self) -> dict[str, object]:
        """Return the SASL options, empty where the protocol has no login."""
        protocol = self.given.get("security.protocol", "PLAINTEXT").upper()
        if not protocol.startswith("SASL_"):
            return {}
        mechanism = (self.given.get("sasl.mechanism") or self.given.get("sasl.mechanisms") or "GSSAPI").upper()
        if mechanism not in MECHANISMS:
            self._refuse(
                f"sasl.mechanism is {mechanism} (Kafka's default is GSSAPI): supported are {', '.join(MECHANISMS)}."
            )
            return {}
        if mechanism == OAUTHBEARER:
            return self._token_login(mechanism)
        if mechanism == AWS_MSK_IAM:
            return self._iam_login(mechanism, protocol)
        jaas = self._jaas()
        if self.given.get("sasl.jaas.config") and not jaas:
            self._refuse(
                'sasl.jaas.config is not of the form `MODULE required username="…" password="…";`. Correct it, or '
                "write sasl.username and sasl.password."
            )
            return {}
        user = self.given.get("sasl.username", jaas.get("username", ""))
        password = self.given.get("sasl.password", jaas.get("password", ""))
        if not user or not password:
            self._refuse(
                f"{protocol} needs a login: write sasl.username and sasl.password, "
                "or sasl.jaas.config with both, as in Java's client.properties."
            )
        return {"sasl_mechanism": mechanism, "sasl_plain_username": user, "sasl_plain_password": password}

    def _token_login(self, mechanism: str) -> dict[str, object]:
        source = oauth.token_source(self.given, self._jaas())
        if isinstance(source, str):
            self._refuse(source)
            return {}
        return {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": oauth.TokenProvider(source)}

    def _iam_login(self, mechanism: str, protocol: str) -> dict[str, object]:
        options = sorted(self._jaas())
        if protocol != "SASL_SSL":
            self._refuse(f"{mechanism} needs security.protocol SASL_SSL, not {protocol}.")
        if options:
            self._refuse(
                f"sasl.jaas.config sets {', '.join(options)}, which is not known here: set AWS_PROFILE, or AWS's other "
                "variables, and leave the options of IAMLoginModule out."
            )
        if find_spec("botocore") is None:
            self._refuse(f"{mechanism} needs AWS's library, which is not installed: pip install botocore")
        return {"sasl_mechanism": mechanism}

    def ssl_context(self, protocol: str) -> ssl.SSLContext | None:
        """Return the context for TLS, None where the protocol has none."""
        if not protocol.endswith("SSL"):
            return None
        for side in ("truststore", "keystore"):
            kind = self.given.get(f"ssl.{side}.type", "").upper()
            if f"ssl.{side}.location" in self.given and kind != "PEM":
                self._refuse(
                    f"ssl.{side}.location is a Java {side} ({kind or 'JKS, the default type'}), which cannot be "
                    "read here. Export it as PEM, for example with `keytool -exportcert -rfc`, "
                    f"and set ssl.{side}.type to PEM."
                )
        for name in self._files_of_no_kind():
            self._refuse(f"{name} names {self.given[name]}, which is no file. Correct the path.")
        if self.problems:
            return None
        return self._attempt("certificates", self._build_context)

    def secrets(self) -> tuple[str, ...]:
        """Return the texts that may never be logged."""
        named = [self.given[name] for name in SECRETS if self.given.get(name)]
        jaas = self._jaas()
        return tuple(sorted({*named, *filter(None, [jaas.get("password")]), *oauth.secrets_of(self.given, jaas)}))

    def _files_of_no_kind(self) -> list[str]:
        """Return the properties that name what is there, but is no file: reading it might never end."""
        named = [name for name in SSL if name.endswith(".location") and self.given.get(name)]
        return [name for name in named if Path(self.given[name]).exists() and not Path(self.given[name]).is_file()]

    def _build_context(self) -> ssl.SSLContext:
        authorities = self.given.get("ssl.truststore.location") or self.given.get("ssl.ca.location")
        inline = self.given.get("ssl.truststore.certificates")
        context = ssl.create_default_context(cafile=authorities, cadata=inline)
        context.check_hostname = self.given.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"
        chain = self.given.get("ssl.keystore.location") or self.given.get("ssl.certificate.location")
        password = self.given.get("ssl.key.password") or self.given.get("ssl.keystore.password")
        if chain:
            context.load_cert_chain(chain, self.given.get("ssl.key.location"), password or "")
        elif self.given.get("ssl.keystore.certificate.chain"):
            _load_inline(
                context, self.given["ssl.keystore.certificate.chain"], self.given.get("ssl.keystore.key", ""), password
            )
        return context

    def _attempt(self, what: str, build: Callable[[], ssl.SSLContext]) -> ssl.SSLContext | None:
        try:
            return build()
        except FileNotFoundError:
            missing = [name for name in SSL if name.endswith(".location") and not self._exists(name)]
            self._refuse(f"The file that {' and '.join(missing) or what} names does not exist. Correct the path.")
        except OSError as error:  # ssl.SSLError is one, too
            self._refuse(f"The {what} of the ssl.* properties cannot be read: {error}. They must be PEM files.")
        return None

    def _exists(self, name: str) -> bool:
        return name not in self.given or Path(self.given[name]).is_file()

    def _jaas(self) -> dict[str, str]:
        """Return the options of sasl.jaas.config (`... required username="u" password="p";`)."""
        text = self.given.get("sasl.jaas.config")
        if text is None:
            return {}
        matched = JAAS.match(text)
        if matched is None:
            return {}
        found = JAAS_OPTION.findall(matched["options"])
        return {key: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare for key, quoted, bare in found}

    def _server(self, text: str) -> tuple[str, int] | None:
        if "@" in text or "://" in text:  # what stands before an @ may be a password
            self._refuse("bootstrap.servers holds a URL, or a user: name brokers as host:port, and logins as sasl.*.")
            return None
        host, colon, port = text.rpartition(":")
        if not colon:
            return text, DEFAULT_PORT
        if not host or not port.isdigit() or not 0 < int(port) < 65536:  # noqa: PLR2004 - the range of ports
            self._refuse(f"bootstrap.servers names {text}, which is not host:port.")
            return None
        return host.strip("[]"), int(port)

    def _number(self, name: str) -> int:
        text = self.given[name]
        if not re.fullmatch(r"[1-9]\d{0,8}", text):
            self._refuse(f"The client property {name} is {text}: it must be a whole number above 0.")
            return 1
        return int(text)

    def _refuse(self, message: str) -> None:
        self.problems.append(Problem(CODE, message))


def _did_you_mean(name: str) -> str:
    near = difflib.get_close_matches(name, KNOWN, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _load_inline(context: ssl.SSLContext, chain: str, key: str, password: str | None) -> None:
    """Load a key that is written in the properties; the library reads files only, so it lives in one for a moment."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # readable by its owner alone
        file.write(f"{key}\n{chain}\n")
        file.flush()
        context.load_cert_chain(file.name, password=password or "")
