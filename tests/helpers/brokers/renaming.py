"""Brokers behind a proxy that renames topics in what Metadata asks and tells, and nowhere else.

    with Renaming((1, 2, 3), prefix="tenant-") as proxy:          # `names`: of these topics alone
        with KafkaCluster(..., listeners={"FAR": "PLAINTEXT"}, advertised={"FAR": proxy.addresses}) as kafka:
            proxy.lead_to({broker: kafka.listener("FAR", broker) for broker in kafka.alive})

So does Kroxylicious' filter for tenants: DescribeConfigs, DescribeLogDirs and ListPartitionReassignments keep the
brokers' names.
"""

import asyncio
from collections.abc import Collection, Sequence

from helpers.brokers.far_away import Ends, FarAway
from helpers.brokers.refusing import next_frame, send_frame
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

METADATA, FLEXIBLE = 3, 9
"""From that version on header and body have tagged fields (KIP-482)."""


class Renaming(FarAway):
    """One proxy a broker, all in one thread; see the module's docstring."""

    def __init__(self, broker_ids: Sequence[int], *, prefix: str, names: Collection[str] = ()) -> None:
        super().__init__(broker_ids, seconds=0)
        self.prefix, self.names = prefix, frozenset(names)

    async def _both_ways(self, client: Ends, broker: Ends) -> None:
        versions: dict[bytes, int] = {}
        await asyncio.gather(self._ask(client[0], broker[1], versions), self._answer(broker[0], client[1], versions))

    async def _ask(self, source: asyncio.StreamReader, there: asyncio.StreamWriter, versions: dict[bytes, int]) -> None:
        while frame := await next_frame(source):
            key, version = (int.from_bytes(frame[at : at + 2]) for at in (0, 2))
            if key == METADATA:
                versions[frame[4:8]] = version
                begin = 10 + int.from_bytes(frame[8:10]) + (version >= FLEXIBLE)
                asked = MetadataRequest.decode(frame[begin:], version=version)
                for topic in asked.topics or ():
                    topic.name = topic.name.removeprefix(self.prefix)
                frame = frame[:begin] + _encoded(asked, version)
            send_frame(there, frame)
            await there.drain()
        there.close()

    async def _answer(
        self, source: asyncio.StreamReader, writer: asyncio.StreamWriter, versions: dict[bytes, int]
    ) -> None:
        while frame := await next_frame(source):
            version = versions.pop(frame[:4], None)
            if version is not None:
                begin = 4 + (version >= FLEXIBLE)
                told = MetadataResponse.decode(frame[begin:], version=version)
                for topic in told.topics:
                    if not self.names or topic.name in self.names:
                        topic.name = f"{self.prefix}{topic.name}"
                frame = frame[:begin] + _encoded(told, version)
            send_frame(writer, frame)
            await writer.drain()
        writer.close()


def _encoded(decoded: MetadataRequest | MetadataResponse, version: int) -> bytes:
    decoded._header = None  # what the library has decoded lacks what it wants to encode
    return bytes(decoded.encode(version=version))
