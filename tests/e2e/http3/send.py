"""send.py URL AUTHORITY METHOD BYTES [LENGTH]: sends a request with so many bytes over HTTP/3.

It announces LENGTH of them, or nothing. Prints the status of the answer.
"""

import asyncio
import sys
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

url, authority, method, count, *length = sys.argv[1:]
parts = urlsplit(url)
target = parts.path + (f"?{parts.query}" if parts.query else "")


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.status = asyncio.get_running_loop().create_future()

    async def send(self):
        stream = self._quic.get_next_available_stream_id()
        head = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", parts.netloc.encode()),
            (b":path", target.encode()),
            *((b"content-length", announced.encode()) for announced in length),
        ]
        body = bytes(int(count))
        self.http.send_headers(stream_id=stream, headers=head, end_stream=not body)
        if body:
            self.http.send_data(stream_id=stream, data=body, end_stream=True)
        self.transmit()
        return await self.status

    def quic_event_received(self, event):
        for seen in self.http.handle_event(event):
            if isinstance(seen, HeadersReceived) and not self.status.done():
                self.status.set_result(dict(seen.headers)[b":status"].decode())


async def main():
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
    configuration.load_verify_locations(authority)
    async with connect(
        parts.hostname, parts.port, configuration=configuration, create_protocol=Client
    ) as client:
        print(await client.send())


asyncio.run(asyncio.wait_for(main(), 60))
