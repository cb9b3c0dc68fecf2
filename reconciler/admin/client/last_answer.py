"""Hears a broker that answers and hangs up at once, as after a refused login: the library drops such an answer.

Seen in kafka-python 3.0.12: what `_sock_recv` read before the end of the stream is thrown away with the connection.
"""

from collections.abc import Callable

from kafka.net import KafkaSSLTransport, KafkaTCPTransport

Received = tuple[bytes, Exception | None]


def keep_last_answers() -> None:
    """Have the library hand on all bytes before it tells the end of a stream, which the next read finds again."""
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        read = transport._sock_recv  # noqa: SLF001 - the library offers no other place
        if read.__module__ != __name__:
            transport._sock_recv = _data_first(read)  # noqa: SLF001


def _data_first(read: Callable[[object], Received]) -> Callable[[object], Received]:
    def data_first(transport: object) -> Received:
        data, error = read(transport)
        return (data, None) if data else (data, error)

    return data_first
