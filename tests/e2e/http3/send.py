"""send.py URL AUTHORITY METHOD BYTES [LENGTH]: sends a request with so many bytes over HTTP/3.

It announces LENGTH of them, or nothing. Prints the status of the answer.
"""

import sys

from client import run

url, authority, method, count, *length = sys.argv[1:]
fields = [(b"content-length", announced.encode()) for announced in length]


async def send(client):
    return await client.request(method, url, *fields, body=bytes(int(count)))


status, _ = run(url, authority, send)
print(status)
