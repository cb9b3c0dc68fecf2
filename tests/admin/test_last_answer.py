"""What a broker said before it hung up is heard, though both are read at once."""

import socket

import pytest
from kafka.net import KafkaTCPTransport

from reconciler.admin.client.connecting import hear_last_answers


@pytest.mark.parametrize("times", [1, 2], ids=["set up once", "set up twice"])
def test_bytes_come_before_the_end_of_the_stream(times: int) -> None:
    for _ in range(times):
        hear_last_answers()
    broker, ours = socket.socketpair()
    ours.settimeout(0)
    with ours:
        with broker:
            broker.sendall(b"login refused")
        transport = KafkaTCPTransport(None, ours, host="broker")
        assert transport._sock_recv() == (b"login refused", None)
        data, error = transport._sock_recv()
    assert data == b""
    assert "disconnected" in str(error)
