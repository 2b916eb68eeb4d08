"""The file `file` of this directory, with ranges, as an ASGI application."""

import pathlib
import re

DATA = pathlib.Path("file").read_bytes()


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    fields = [(b"etag", b'"one"'), (b"accept-ranges", b"bytes")]
    asked = re.fullmatch(rb"bytes=(\d+)-(\d+)", dict(scope["headers"]).get(b"range", b""))
    status, data = 200, DATA
    if asked:
        first, last = int(asked[1]), min(int(asked[2]), len(DATA) - 1)
        status, data = 206, DATA[first : last + 1]
        fields.append((b"content-range", b"bytes %d-%d/%d" % (first, last, len(DATA))))
    fields.append((b"content-length", b"%d" % len(data)))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    for start in range(0, len(data), 65536):
        piece = data[start : start + 65536]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
