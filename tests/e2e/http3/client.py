"""A client of HTTP/3 that sends whatever it is told."""

import asyncio
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.answers = {}

    async def request(self, method, url, *fields, body=b""):
        """Sends a request. Returns the status and the body of its answer."""
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = (asyncio.get_running_loop().create_future(), [], bytearray())
        parts = urlsplit(url)
        head = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", parts.netloc.encode()),
            (b":path", (parts.path + (f"?{parts.query}" if parts.query else "")).encode()),
            *fields,
        ]
        self.http.send_headers(stream_id=stream, headers=head, end_stream=not body)
        if body:
            self.http.send_data(stream_id=stream, data=body, end_stream=True)
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


def run(url, authority, use):
    """Opens a connection to the server of this URL, and uses it."""

    async def main():
        configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
        configuration.load_verify_locations(authority)
        parts = urlsplit(url)
        async with connect(
            parts.hostname, parts.port, configuration=configuration, create_protocol=Client
        ) as client:
            return await use(client)

    return asyncio.run(asyncio.wait_for(main(), 60))
