"""The table of client properties: it knows what Kafka's clients know, is as strict as they, and tells no value."""

import ctypes
import re
import subprocess
from functools import cache
from pathlib import Path

import confluent_kafka
import pytest
from helpers.brokers.kafka_jars import QUICK_JAVA, jars, java

from reconciler.model.client_properties import (
    CANNOT,
    DOMAINS,
    ENDPOINT_ALGORITHM,
    MEANINGLESS,
    NAMES,
    UNVERIFIED,
    WITHOUT_EFFECT,
    cautions,
    name_shown,
    problems_of_names,
    problems_of_values,
)

PROGRAM = Path(__file__).parent / "ClientConfigs.java"
RELEASES = ("3.9.1", "4.1.1", "4.3.0")
HOSTILE = (
    "",
    "HUNTER2",
    "-5",
    "0x10",
    "1e3",
    "2147483648",
    "99999999999999999999",
    "htps",
    "none",
    "SSLL",
    "tRUE",
    "5s",
)
# A class that the AdminClient has on its class path, and any text, are its own to judge.
SECURITY = re.compile(r"(sasl|ssl|security|https)[._]|enable\.ssl|enable\.sasl")


QUESTIONS = [
    (name, value)
    for name, domain in DOMAINS.items()
    for value in (*domain.words, *HOSTILE)
    if not name.endswith(".class")
]


@cache
def asked(version: str) -> tuple[list[str], list[str]]:
    """Return the names that the clients of a version know, and whether they take each of the questions."""
    command = [
        java(),
        *QUICK_JAVA,
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        "-cp",
        f"{jars(version)}/*",
        str(PROGRAM),
    ]
    done = subprocess.run(
        command,
        input="\n".join(f"{name}={value}" for name, value in QUESTIONS),
        capture_output=True,
        text=True,
        check=True,
    )
    names, _, answers = done.stdout.partition("\n\n")
    return names.split(), answers.split()


def of_librdkafka(folder: Path) -> set[str]:
    """Return every property that the librdkafka beside confluent_kafka lists."""
    package = Path(confluent_kafka.__file__).parent
    found = [*package.parent.glob("confluent_kafka.libs/librdkafka*"), *package.glob(".dylibs/librdkafka*")]
    if not found:
        pytest.skip("confluent_kafka has its librdkafka elsewhere on this system")
    library, libc = ctypes.CDLL(str(found[0])), ctypes.CDLL(None)
    libc.fopen.restype, libc.fclose.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    file = libc.fopen(str(folder / "listed").encode(), b"w")
    library.rd_kafka_conf_properties_show(file)
    libc.fclose(file)
    return set(re.findall(r"^(\S+) +\| +[*CP] ", (folder / "listed").read_text("utf-8"), re.MULTILINE))


def test_every_property_of_librdkafka_is_known(tmp_path: Path) -> None:
    listed = of_librdkafka(tmp_path)
    assert len(listed) > 150
    assert sorted(listed - NAMES) == []


@pytest.mark.java
@pytest.mark.parametrize("version", RELEASES)
def test_every_property_of_kafkas_clients_is_known_and_as_strict(version: str) -> None:
    names, answers = asked(version)
    assert len(names) > 100
    assert sorted({*names} - NAMES) == []
    taken = dict(zip(QUESTIONS, answers, strict=True))
    laxer = [each for each, is_taken in taken.items() if is_taken == "false" and DOMAINS[each[0]].accepts(each[1])]
    assert laxer == []
    invented = [
        (name, word)
        for name, domain in DOMAINS.items()
        for word in domain.words
        if taken.get((name, word)) == "false" or not domain.accepts(word)
    ]
    assert invented == []


@pytest.mark.java
def test_no_name_is_known_here_that_no_client_has(tmp_path: Path) -> None:
    of_java = {name for version in RELEASES for name in asked(version)[0]}
    assert sorted(NAMES - of_java - of_librdkafka(tmp_path)) == []


def test_a_name_stands_in_one_table() -> None:
    tables = (frozenset(DOMAINS), frozenset(CANNOT), MEANINGLESS)
    assert sum(map(len, tables)) == len(NAMES)


def test_what_is_ignored_decides_nothing_of_security() -> None:
    """Timings of logins, and checks of tokens that are the broker's, are all that is passed over."""
    passed = {name for name in MEANINGLESS if SECURITY.match(name)}
    harmless = re.compile(
        r"sasl\.login\.(connect|read|refresh|retry)|sasl\.oauthbearer\.(clock|jwks\.endpoint\.re|su|sc)"
    )
    assert [name for name in sorted(passed) if not harmless.match(name)] == []


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(NAMES))
def test_no_problem_with_a_property_holds_its_value(name: str) -> None:
    for value in ("HUNTER2-of-mine", "htps", "", "-7"):
        told = [*problems_of_names({name: value}), *problems_of_values({name: value}), *cautions({name: value})]
        assert not value or value not in " ".join(problem.message for problem in told)
    if name in DOMAINS and DOMAINS[name].is_closed:
        (problem,) = problems_of_values({name: "HUNTER2-of-mine"})
        assert problem.message.startswith(f"The client property {name} must be ")


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("sasl.pasword", "sasl.pasword"),
        ("sasl.password.HUNTER2", "sasl.password.…"),
        ("sasl.password.hunter", "sasl.password.…"),
        ("sasl.password=HUNTER2", "sasl.…"),
        ("HUNTER2", "…"),
        ("hunter2", "…"),
        ("correct horse", "…"),
        ("", "…"),
        ("a." * 200, "…" + ".…" * 10),
    ],
)
def test_of_a_name_is_shown_what_names_are_made_of(typed: str, shown: str) -> None:
    assert name_shown(typed) == shown


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (ENDPOINT_ALGORITHM, "htps", "must be https; an empty value switches the check of host names off."),
        (ENDPOINT_ALGORITHM, "none", "must be https; an empty value switches the check of host names off."),
        ("enable.ssl.certificate.verification", "false", "must be true: a broker's certificate is always verified; "),
        ("security.protocol", "TLS", "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."),
        ("ssl.truststore.type", "BKS", "must be PEM: a JKS or PKCS12 store cannot be read here."),
        ("metadata.max.age.ms", "0", "must be a whole number from 1 to 2147483647."),
        (
            "sasl.login.callback.handler.class",
            "com.example.Mine",
            "must be one of org.apache.kafka.common.security.oauth",
        ),
    ],
)
def test_a_wrong_value_is_told_by_what_it_must_be(name: str, value: str, says: str) -> None:
    (problem,) = problems_of_values({name: value})
    assert says in problem.message
    assert (problem.code, value in problem.message.split()) == ("KR620", False)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ssl.protocol", "cannot be honoured: write the versions that are allowed as ssl.enabled.protocols."),
        ("ssl.cipher.suites", "cannot be honoured: OpenSSL's settings on this machine decide that"),
        ("sasl.kerberos.service.name", "cannot be honoured: Kerberos is not supported"),
        ("metadata.broker.list", "cannot be honoured: write bootstrap.servers."),
        ("sasl.pasword", "is unknown (did you mean sasl.password?). Correct or remove it."),
        ("Security.Protocol", "is unknown (did you mean security.protocol?). Correct or remove it."),
    ],
)
def test_a_name_that_cannot_be_used_comes_with_what_to_write(name: str, says: str) -> None:
    (problem,) = problems_of_names({name: "x"})
    assert says in problem.message


@pytest.mark.parametrize("value", ["https", "HTTPS", ""])
def test_the_algorithm_is_https_in_any_case_or_off(value: str) -> None:
    given = {"security.protocol": "SASL_SSL", ENDPOINT_ALGORITHM: value}
    assert list(problems_of_values(given)) == []
    assert [problem.code for problem in cautions(given)] == ([] if value else [UNVERIFIED])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sasl.password": "x"}, "sasl.password has no effect, as security.protocol is not written, which means"),
        ({"security.protocol": "plaintext", "sasl.password": "x"}, "is PLAINTEXT: write SASL_SSL or SASL_PLAINTEXT,"),
        ({"security.protocol": "SSL", "sasl.username": "x"}, "security.protocol is SSL: write SASL_SSL, or remove"),
        ({"ssl.ca.location": "x"}, "write SSL, or remove them"),
        ({"security.protocol": "SASL_PLAINTEXT", "ssl.ca.location": "x"}, "is SASL_PLAINTEXT: write SASL_SSL, or"),
        ({"sasl.username": "x", "ssl.ca.location": "x"}, "sasl.username, ssl.ca.location have no effect"),
    ],
)
def test_security_that_is_written_and_not_used_is_a_warning(given: dict[str, str], says: str) -> None:
    (problem,) = cautions(given)
    assert (problem.code, says in problem.message) == (WITHOUT_EFFECT, True)


def test_a_connection_that_uses_all_it_is_given_has_no_warning() -> None:
    assert cautions({"security.protocol": "SASL_SSL", "sasl.password": "x", "ssl.ca.location": "y"}) == ()
    assert cautions({"bootstrap.servers": "k:1"}) == ()
