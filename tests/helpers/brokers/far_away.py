"""Brokers that are far away: a proxy before each of them, on which every byte takes its time.

    with FarAway((1, 2, 3), seconds=0.3) as far:          # each way
        with KafkaCluster(..., listeners={"FAR": "SSL"}, advertised={"FAR": far.addresses}) as kafka:
            far.lead_to({broker: kafka.listener("FAR", broker) for broker in kafka.alive})
            far.hang_up()                                 # ends every connection; who calls again is let in

A new connection costs one more way there and back, as a handshake would: the machine's own takes none.
"""

import asyncio
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from helpers.waiting import HANG

HOST, PIECE = "127.0.0.1", 65_536
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
"""What is read from one side, and written to it."""


class FarAway:
    """One proxy a broker, all in one thread; see the module's docstring."""

    def __init__(self, broker_ids: Sequence[int], *, seconds: float) -> None:
        self.seconds = seconds
        self.connections = 0
        self._sockets = {broker: socket.create_server((HOST, 0)) for broker in broker_ids}
        self._targets: Mapping[int, str] = {}
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="far away")

    @property
    def addresses(self) -> dict[int, str]:
        """Where each broker's proxy listens."""
        return {broker: f"{HOST}:{one.getsockname()[1]}" for broker, one in self._sockets.items()}

    @property
    def bootstrap(self) -> str:
        """All of them, as a client wants it."""
        return ",".join(self.addresses.values())

    def lead_to(self, targets: Mapping[int, str]) -> None:
        """Say where the brokers themselves listen."""
        self._targets = targets

    def hang_up(self) -> None:
        """End every connection there is."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result(HANG)

    def __enter__(self) -> Self:
        self._thread.start()
        for broker, one in self._sockets.items():
            begun = asyncio.start_server(lambda r, w, b=broker: self._serve(b, r, w), sock=one)  # type: ignore[misc]
            asyncio.run_coroutine_threadsafe(begun, self._loop).result(HANG)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(HANG)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANG)
        self._loop.close()
        for one in self._sockets.values():
            one.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _hang_up(self) -> None:
        for writer in tuple(self._open):
            writer.close()

    async def _serve(self, broker: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        host, _, port = self._targets[broker].partition(":")
        await asyncio.sleep(2 * self.seconds)
        there = None
        with suppress(OSError):
            from_broker, there = await asyncio.open_connection(host, int(port))
            self._open |= {writer, there}
            await self._both_ways((reader, writer), (from_broker, there))
        for each in filter(None, (writer, there)):
            self._open.discard(each)
            each.close()

    async def _both_ways(self, client: Ends, broker: Ends) -> None:
        await asyncio.gather(self._carry(client[0], broker[1]), self._carry(broker[0], client[1]))

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        """Hand bytes on, each so long after it came, and the end of them too."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        taking = asyncio.create_task(self._take(source, under_way))
        try:
            while True:
                due, piece = await under_way.get()
                await asyncio.sleep(due - self._loop.time())
                if not piece:
                    break
                target.write(piece)
                await target.drain()
        finally:
            taking.cancel()
            target.close()

    async def _take(self, source: asyncio.StreamReader, under_way: "asyncio.Queue[tuple[float, bytes]]") -> None:
        piece = b"first"
        while piece:
            try:
                piece = await source.read(PIECE)
            except OSError:
                piece = b""
            under_way.put_nowait((self._loop.time() + self.seconds, piece))
