"""Client properties in, kafka-python's options out, every problem at once."""

import logging
from collections.abc import Mapping

import pytest

from reconciler.admin.client import redact
from reconciler.admin.client.properties import translate
from reconciler.model.problem import InvalidInput

SASL = {
    "bootstrap.servers": "k:9093",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "ada",
    "sasl.password": "s3cret",
}
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def problems(properties: Mapping[str, str]) -> list[str]:
    with pytest.raises(InvalidInput) as refused:
        translate(properties)
    return [problem.message for problem in refused.value.problems]


def without(properties: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name not in names}


def test_servers_are_host_and_port() -> None:
    connection = translate({"bootstrap.servers": "kafka-1:9093, kafka-2 ,[::1]:9094"})
    assert connection.servers == (("kafka-1", 9093), ("kafka-2", 9092), ("::1", 9094))
    assert connection.options["security_protocol"] == "PLAINTEXT"


@pytest.mark.parametrize("text", ["kafka:port", "kafka:0", "kafka:70000", ":9092"])
def test_a_server_that_is_not_host_and_port_is_refused(text: str) -> None:
    assert problems({"bootstrap.servers": f"k:1,{text}"}) == ["Server 2 of bootstrap.servers is not host:port."]


def test_without_servers_there_is_no_cluster() -> None:
    assert problems({}) == ["The client property bootstrap.servers is missing: name at least one broker as host:port."]


def test_a_login_is_translated() -> None:
    connection = translate(SASL)
    assert connection.options["sasl_mechanism"] == "SCRAM-SHA-512"
    assert connection.options["sasl_plain_username"] == connection.user == "ada"
    assert connection.options["sasl_plain_password"] == SASL["sasl.password"]
    assert redact.without_secrets("login with s3cret") == "login with [hidden]"


@pytest.mark.parametrize(
    ("text", "password"),
    [
        (f'{JAAS} username="ada" password="s3cret";', "s3cret"),
        (f"{JAAS} username=ada password=s3cret;", "s3cret"),
        (f'{JAAS} username="ada" password="a \\"b\\" = c;";', 'a "b" = c;'),
        (f'{JAAS}\n  username="ada"\n  password="x=y?";\n', "x=y?"),
    ],
)
def test_a_jaas_config_is_a_login_too(text: str, password: str) -> None:
    connection = translate({**without(SASL, "sasl.username", "sasl.password"), "sasl.jaas.config": text})
    assert (connection.user, connection.options["sasl_plain_password"]) == ("ada", password)
    assert password not in redact.without_secrets(f"login with {password}")


def test_a_login_without_a_password_is_refused() -> None:
    (told,) = problems(without(SASL, "sasl.password"))
    assert told.startswith("SASL_PLAINTEXT needs a login: write sasl.username and sasl.password")


@pytest.mark.parametrize("mechanism", ["GSSAPI", "SCRAM-SHA-1", "plain", ""])
def test_a_mechanism_that_is_not_supported_is_refused(mechanism: str) -> None:
    (told,) = problems({**SASL, "sasl.mechanism": mechanism})
    assert told == (
        "The client property sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, "
        "AWS_MSK_IAM."
    )


def test_kafkas_default_mechanism_is_not_supported() -> None:
    (told,) = problems(without(SASL, "sasl.mechanism"))
    assert told.startswith("The client property sasl.mechanism is missing, and Kafka's default, GSSAPI, is not supp")


def test_numbers_are_numbers() -> None:
    given = {"request.timeout.ms": "5000", "send.buffer.bytes": "131072", "receive.buffer.bytes": "-1"}
    connection = translate({"bootstrap.servers": "k", **given})
    assert (connection.options["request_timeout_ms"], connection.options["send_buffer_bytes"]) == (5000, 131072)
    assert "receive_buffer_bytes" not in connection.options
    assert problems({"bootstrap.servers": "k", "request.timeout.ms": "5s"}) == [
        "The client property request.timeout.ms must be a whole number from 1 to 2147483647."
    ]


def test_an_unknown_property_is_refused_with_the_nearest_name() -> None:
    assert problems({"bootstrap.servers": "k", "sasl.usrname": "ada"}) == [
        "The client property sasl.usrname is unknown (did you mean sasl.username?). Correct or remove it."
    ]


def test_what_only_the_java_client_knows_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        translate({"bootstrap.servers": "k", "client.dns.lookup": "use_all_dns_ips"})
    assert caplog.messages == ["The client property client.dns.lookup has no meaning here and is ignored."]


def test_every_problem_is_told_at_once() -> None:
    told = problems({"bootstrap.server": "k:1", "security.protocol": "TLS", "request.timeout.ms": "0"})
    assert len(told) == 4


def test_a_java_truststore_is_refused_with_the_way_out() -> None:
    ssl_only = {"bootstrap.servers": "k", "security.protocol": "SSL"}
    (told,) = problems({**ssl_only, "ssl.truststore.location": "trust.jks"})
    assert told.startswith("ssl.truststore.location names a Java truststore, which cannot be read here.")
    assert "set ssl.truststore.type to PEM" in told
