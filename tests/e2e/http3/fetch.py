"""fetch.py URL AUTHORITY FILE RANGE: fetches a file whole and a range of it over HTTP/3, at once.

Prints the status and the length of the first answer, and the status and the bytes of the second.
"""

import asyncio
import pathlib
import sys
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

url, authority, path, part = sys.argv[1:]
parts = urlsplit(url)


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.answers = {}

    async def get(self, *fields):
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = (asyncio.get_running_loop().create_future(), [], bytearray())
        head = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", parts.netloc.encode()),
            (b":path", parts.path.encode()),
            *fields,
        ]
        self.http.send_headers(stream_id=stream, headers=head, end_stream=True)
        self.transmit()
        return await self.answers[stream][0]

    def quic_event_received(self, event):
        for seen in self.http.handle_event(event):
            done, head, body = self.answers[seen.stream_id]
            if isinstance(seen, HeadersReceived):
                head.extend(seen.headers)
            elif isinstance(seen, DataReceived):
                body.extend(seen.data)
            if seen.stream_ended:
                done.set_result((dict(head)[b":status"].decode(), bytes(body)))


async def main():
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
    configuration.load_verify_locations(authority)
    async with connect(
        parts.hostname, parts.port, configuration=configuration, create_protocol=Client
    ) as client:
        (status, whole), (partial, piece) = await asyncio.gather(
            client.get(), client.get((b"range", f"bytes={part}".encode()))
        )
    pathlib.Path(path).write_bytes(whole)
    print(status, len(whole), partial, piece.hex())


asyncio.run(asyncio.wait_for(main(), 60))
