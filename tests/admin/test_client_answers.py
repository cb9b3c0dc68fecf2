"""How much memory an answer takes that no broker gives: measured in a process of its own, against a lone broker."""

import json
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.brokers.lone_broker import Flood, LoneBroker
from helpers.certificates import Authority

pytestmark = pytest.mark.long

LIMIT = 64 << 20
"""The largest answer that is read, as the page of KR600 says."""
ROOM = 200 << 20
ASK = """
import json, resource, sys
from kafka.protocol.metadata import MetadataRequest
from reconciler.admin.client import connecting
from reconciler.admin.client.properties import translate
from reconciler.model.problem import ClusterUnavailable

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

before = peak()
connecting.BOOTSTRAP_SECONDS = 2.0
try:
    wire = connecting.open_wire(translate(json.loads(sys.argv[1])))
    before = peak()
    wire.retry_seconds = 1.0
    topics = wire.read(lambda: MetadataRequest(topics=[])).topics
    said = f"{len(topics)} topics"
except ClusterUnavailable as error:
    said = str(error)
print(json.dumps([said, peak() - before]))
"""


def asked(broker: LoneBroker, **properties: str) -> tuple[str, int]:
    """Return what a client says of that broker, and by how many bytes its process grew over the answer."""
    given = json.dumps({"bootstrap.servers": broker.address, **properties})
    ended = subprocess.run([sys.executable, "-c", ASK, given], capture_output=True, text=True, check=True)
    said, grown = json.loads(ended.stdout)
    return said, grown


@pytest.mark.parametrize("request_number", [1, 2], ids=["while it connects", "later"])
@pytest.mark.parametrize("size", [LIMIT + 1, 1_900_000_000])
def test_an_answer_beyond_the_limit_is_refused_before_it_is_read(size: int, request_number: int) -> None:
    with LoneBroker(flood=Flood(size, request=request_number)) as broker:
        said, grown = asked(broker)
    assert "it sends an answer larger than 64.0 MiB, which no Kafka broker does" in said
    assert grown < LIMIT + ROOM


def test_over_tls_it_is_refused_too(tmp_path: Path) -> None:
    authority = Authority("lone")
    pair = authority.issue("127.0.0.1")
    (tmp_path / "key.pem").write_text(pair.key + pair.chain, "utf-8")
    (tmp_path / "ca.pem").write_text(authority.certificate, "utf-8")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "key.pem")
    with LoneBroker(context=context, flood=Flood(1_900_000_000)) as broker:
        said, grown = asked(broker, **{"security.protocol": "SSL", "ssl.ca.location": str(tmp_path / "ca.pem")})
    assert "larger than 64.0 MiB" in said
    assert grown < LIMIT + ROOM


def test_an_answer_within_the_limit_that_means_nothing_is_not_kept() -> None:
    """Each try reads it anew: the error of the one before keeps none of it."""
    with LoneBroker(flood=Flood(LIMIT, byte=1)) as broker:
        said, grown = asked(broker)
    assert "Unable to decode response" in said
    assert grown < 2 * (LIMIT + ROOM)


def test_an_answer_within_the_limit_is_read() -> None:
    with LoneBroker(flood=Flood(LIMIT)) as broker:
        said, _ = asked(broker)
    assert said == "0 topics"
