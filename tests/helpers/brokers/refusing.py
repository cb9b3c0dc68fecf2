"""Brokers of a service that lacks some of Kafka's requests: a proxy before each that leaves them out.

    with Refusing((1, 2, 3), lacking={43, 60}, refused={45: 31}) as service:     # requests' keys, and errors' codes
        with KafkaCluster(..., listeners={"FAR": "PLAINTEXT"}, advertised={"FAR": service.addresses}) as kafka:
            service.lead_to({broker: kafka.listener("FAR", broker) for broker in kafka.alive})
            service.asked                                         # the requests that came all the same

A request that is lacking is not among the versions that a broker tells (KIP-35), and who sends it loses the connection,
as of a broker that does not know it. A refused one is answered with the error, before any broker sees it.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from helpers.brokers.far_away import Ends, FarAway
from kafka.protocol import admin
from kafka.protocol.metadata import ApiVersionsResponse

API_VERSIONS = 18
FIRST_FLEXIBLE = {43: 2, 45: 0}
"""From which version on an answer has tagged fields behind its header (KIP-482)."""
REFUSALS: Mapping[int, Callable[[int], object]] = {
    43: lambda code: admin.ElectLeadersResponse(throttle_time_ms=0, error_code=code, replica_election_results=[]),
    45: lambda code: admin.AlterPartitionReassignmentsResponse(
        throttle_time_ms=0,
        allow_replication_factor_change=True,
        error_code=code,
        error_message="not for users of this service",
        responses=[],
    ),
}


class Refusing(FarAway):
    """One proxy a broker, all in one thread; see the module's docstring."""

    def __init__(
        self, broker_ids: Sequence[int], *, lacking: Collection[int], refused: Mapping[int, int] | None = None
    ) -> None:
        super().__init__(broker_ids, seconds=0)
        self.lacking, self.refused = frozenset(lacking), dict(refused or {})
        self.asked: list[int] = []

    async def _both_ways(self, client: Ends, broker: Ends) -> None:
        versions: dict[int, int] = {}
        await asyncio.gather(self._ask(client, broker[1], versions), self._answer(broker[0], client[1], versions))

    async def _ask(self, client: Ends, there: asyncio.StreamWriter, versions: dict[int, int]) -> None:
        """Hand requests on; keep, by correlation id, the version of those that ask for versions."""
        while frame := await next_frame(client[0]):
            key, version = (int.from_bytes(frame[at : at + 2]) for at in (0, 2))
            self.asked.append(key)
            if key in self.lacking:
                break
            if key in self.refused:
                answer = REFUSALS[key](self.refused[key]).encode(version=version)  # type: ignore[attr-defined]
                tagged = b"\0" if version >= FIRST_FLEXIBLE[key] else b""
                send_frame(client[1], frame[4:8] + tagged + bytes(answer))
                continue
            if key == API_VERSIONS:
                versions[int.from_bytes(frame[4:8])] = version
            send_frame(there, frame)
            await there.drain()
        there.close()

    async def _answer(
        self, source: asyncio.StreamReader, writer: asyncio.StreamWriter, versions: dict[int, int]
    ) -> None:
        while frame := await next_frame(source):
            version = versions.pop(int.from_bytes(frame[:4]), None)
            send_frame(writer, frame if version is None else frame[:4] + self._without(frame[4:], version))
            await writer.drain()
        writer.close()

    def _without(self, body: bytes, version: int) -> bytes:
        """Return the versions that a broker tells, without those of what is lacking."""
        told = ApiVersionsResponse.decode(body, version=version)
        left = [one for one in told.api_keys if one.api_key not in self.lacking]
        again = ApiVersionsResponse(
            error_code=told.error_code,
            api_keys=left,
            throttle_time_ms=told.throttle_time_ms,
            supported_features=told.supported_features,
            finalized_features_epoch=told.finalized_features_epoch,
            finalized_features=told.finalized_features,
            zk_migration_ready=told.zk_migration_ready,
        )
        return bytes(again.encode(version=version))


async def next_frame(source: asyncio.StreamReader) -> bytes:
    """Return the next request or answer; nothing at the end."""
    try:
        return await source.readexactly(int.from_bytes(await source.readexactly(4)))
    except (asyncio.IncompleteReadError, OSError):
        return b""


def send_frame(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(len(frame).to_bytes(4) + frame)
