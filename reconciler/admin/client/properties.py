"""Turns Kafka client properties, as the Java client and librdkafka spell them, into kafka-python's options."""

import logging
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from reconciler.admin.client import oauth, tls
from reconciler.admin.client.redact import hide_in_logs
from reconciler.model.client_properties import (
    AWS_MSK_IAM,
    DOMAINS,
    JAAS,
    MEANINGLESS,
    MECHANISMS,
    OAUTHBEARER,
    WRONG,
    cautions,
    problems_of_names,
    problems_of_values,
)
from reconciler.model.problem import InvalidInput, Problem

logger = logging.getLogger(__name__)

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
JAAS_NAMES = frozenset({"username", "clientId", "scope", oauth.UNSIGNED})
SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")
JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|(\S+?))(?=\s|$)')


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster: servers as (host, port), kafka-python's other options."""

    servers: tuple[tuple[str, int], ...]
    options: Mapping[str, object]

    @property
    def user(self) -> str | None:
        """The user that logs in, None without a login."""
        name = self.options.get("sasl_plain_username")
        return None if name is None else str(name)


def translate(properties: Mapping[str, str]) -> Connection:
    """Return the connection that these properties describe; every problem in them is reported at once.

    From here on no value of them is in what the Kafka client says.
    """
    reader = _Reader(properties)
    reader.hide()
    reader.check()
    servers = reader.servers()
    if reader.problems:
        raise InvalidInput(reader.problems)
    options = {**reader.general(), **reader.login()}
    context = reader.ssl_context(str(options["security_protocol"]))
    if reader.problems:
        raise InvalidInput(reader.problems)
    reader.warn()
    if context is not None:
        options["ssl_context"] = context
    return Connection(servers, options)


class _Reader:
    """Reads properties one group at a time and collects what is wrong with them."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.given = {key: str(value).strip() for key, value in properties.items()}
        self.problems: list[Problem] = []

    def hide(self) -> None:
        """Keep what was given out of logs and exceptions: all of it, but words and numbers that Kafka has for it."""
        is_secret = {name: name in DOMAINS and DOMAINS[name].is_secret for name in self.given}
        secrets = [text for name, text in self.given.items() if is_secret[name]]
        values = [text for name, text in self.given.items() if not is_secret[name] and not _is_ours(name, text)]
        for option, text in self._jaas().items():
            (values if option in JAAS_NAMES else secrets).append(text)
        for server in self.given.get("bootstrap.servers", "").split(","):
            host, _, port = server.strip().rpartition(":")
            values += [server.strip(), *([host.strip("[]")] if port.isdigit() else [])]
        hide_in_logs(*secrets, values=tuple(values))

    def check(self) -> None:
        """Refuse names that nobody knows, and values that no property has."""
        self.problems += [*problems_of_names(self.given), *problems_of_values(self.given)]

    def warn(self) -> None:
        """Log what these properties leave open, and which have no meaning here."""
        for problem in cautions(self.given):
            logger.warning("%s (%s)", problem.message, problem.code)
        for name in sorted(MEANINGLESS & self.given.keys()):
            logger.warning("The client property %s has no meaning here and is ignored.", name)

    def servers(self) -> tuple[tuple[str, int], ...]:
        """Return bootstrap.servers as pairs."""
        parts = [part.strip() for part in self.given.get("bootstrap.servers", "").split(",")]
        if not any(parts):
            self._refuse("The client property bootstrap.servers is missing: name at least one broker as host:port.")
        found = (self._server(number, part) for number, part in enumerate(parts, start=1) if part)
        return tuple(server for server in found if server is not None)

    def general(self) -> dict[str, object]:
        """Return everything but login and encryption."""
        options: dict[str, object] = {
            "client_id": self.given.get("client.id", "kafka-reconciler"),
            "reconnect_backoff_max_ms": 1000,  # as in Java; the library's own 30 s hide a broker that has come back
            # A broker waits 30 s for a controller that is frozen before it asks the next one, and then answers.
            "request_timeout_ms": 35_000,
        }
        for name, option in sorted({**MILLISECONDS, **BYTES}.items()):
            if name in self.given and self.given[name] != "-1":
                options[option] = int(self.given[name])
        options["security_protocol"] = self.given.get("security.protocol", "PLAINTEXT").upper()
        return options

    def login(self) -> dict[str, object]:
        """Return the SASL options, empty where the protocol has no login."""
        protocol = self.given.get("security.protocol", "PLAINTEXT").upper()
        if not protocol.startswith("SASL_"):
            return {}
        mechanism = self.given.get("sasl.mechanism") or self.given.get("sasl.mechanisms")
        if mechanism is None:
            self._refuse(
                "The client property sasl.mechanism is missing, and Kafka's default, GSSAPI, is not supported: "
                f"it must be one of {', '.join(MECHANISMS)}."
            )
            return {}
        if mechanism == OAUTHBEARER:
            return self._token_login(mechanism)
        if mechanism == AWS_MSK_IAM:
            return self._iam_login(mechanism, protocol)
        jaas = self._jaas()
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
        if protocol != "SASL_SSL":
            self._refuse(f"{mechanism} needs security.protocol SASL_SSL, not {protocol}.")
        if self._jaas():
            self._refuse(
                "sasl.jaas.config sets options of IAMLoginModule, which are not known here: set AWS_PROFILE, or AWS's "
                "other variables, and leave the options out."
            )
        if find_spec("botocore") is None:
            self._refuse(f"{mechanism} needs AWS's library, which is not installed: pip install botocore")
        return {"sasl_mechanism": mechanism}

    def ssl_context(self, protocol: str) -> ssl.SSLContext | None:
        """Return the context for TLS, None where the protocol has none."""
        if not protocol.endswith("SSL"):
            return None
        context, wrong = tls.context_of(self.given)
        self.problems += wrong
        return context

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

    def _server(self, number: int, text: str) -> tuple[str, int] | None:
        if "@" in text or "://" in text:  # what stands before an @ may be a password
            self._refuse("bootstrap.servers holds a URL, or a user: name brokers as host:port, and logins as sasl.*.")
            return None
        found = SERVER.fullmatch(text)
        port = int(found["port"] or DEFAULT_PORT) if found else 0
        if found is None or not 0 < port < 65536:  # noqa: PLR2004 - the range of ports
            self._refuse(f"Server {number} of bootstrap.servers is not host:port.")
            return None
        return found["host"].strip("[]"), port

    def _refuse(self, message: str) -> None:
        self.problems.append(Problem(WRONG, message))


def _is_ours(name: str, text: str) -> bool:
    """Whether the value is one of Kafka's words, or a number: neither is a secret, and both are in many texts."""
    domain = DOMAINS.get(name)
    if domain is None:
        return text in {"true", "false"} or re.fullmatch(r"-?[0-9]{1,7}", text) is not None
    return domain.is_closed and domain.accepts(text)
