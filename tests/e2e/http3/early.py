"""early.py ADDRESS PORT CERTIFICATE KEY ANSWERS TICKETS: serves the file `file` over HTTP/3.

It closes each connection after so many answers. Of its tickets, it takes `all`, or `none`, as after a
new start. Prints for each connection what came before it had opened: `early` for requests that were
taken, `accepted` for something else that was, `refused` for what was not, `late` for nothing.
"""

import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.buffer import Buffer
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import HandshakeCompleted, ProtocolNegotiated
from aioquic.quic.packet import QuicPacketType, pull_quic_header

from ranges import answer

address, port, certificate, key, answers, takes = sys.argv[1:]
tickets = {}


def has_early(datagram):
    buffer = Buffer(data=datagram)
    while not buffer.eof():
        start = buffer.tell()
        try:
            header = pull_quic_header(buffer, host_cid_length=8)
        except ValueError:
            return False
        if header.packet_type == QuicPacketType.ZERO_RTT:
            return True
        buffer.seek(start + header.packet_length)
    return False


class Server(QuicConnectionProtocol):
    http = None
    left = int(answers)
    is_open = False
    came = "late"

    def datagram_received(self, data, addr):
        if not self.is_open and has_early(data):
            self.came = "accepted"
        super().datagram_received(data, addr)

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        elif isinstance(event, HandshakeCompleted):
            if self.came == "accepted" and not event.early_data_accepted:
                self.came = "refused"
            print(self.came, flush=True)
            self.is_open = True
        if self.http:
            for seen in self.http.handle_event(event):
                if isinstance(seen, HeadersReceived):
                    if not self.is_open:
                        self.came = "early"
                    if self.left > 0:
                        self.answer(seen)

    def answer(self, request):
        self.left -= 1
        status, fields, data = answer(request.headers)
        head = [(b":status", b"%d" % status), *fields]
        self.http.send_headers(request.stream_id, head)
        self.http.send_data(request.stream_id, data, end_stream=True)
        self.transmit()
        if self.left == 0:
            # What is under way arrives before.
            asyncio.get_running_loop().call_later(1, self.close)


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    await serve(
        address,
        int(port),
        configuration=configuration,
        create_protocol=Server,
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        session_ticket_fetcher=lambda label: tickets.pop(label, None) if takes == "all" else None,
    )
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
