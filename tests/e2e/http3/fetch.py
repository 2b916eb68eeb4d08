"""fetch.py URL AUTHORITY FILE RANGE: fetches a file whole and a range of it over HTTP/3, at once.

Prints the status and the length of the first answer, and the status and the bytes of the second.
"""

import asyncio
import pathlib
import sys

from client import run

url, authority, path, part = sys.argv[1:]


async def fetch(client):
    return await asyncio.gather(
        client.request("GET", url),
        client.request("GET", url, (b"range", f"bytes={part}".encode())),
    )


(status, whole), (partial, piece) = run(url, authority, fetch)
pathlib.Path(path).write_bytes(whole)
print(status, len(whole), partial, piece.hex())
