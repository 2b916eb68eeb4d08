"""The file `file` of this directory, with ranges, as an ASGI application."""

from ranges import answer


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    status, fields, data = answer(scope["headers"])
    await send({"type": "http.response.start", "status": status, "headers": fields})
    for start in range(0, len(data), 65536):
        piece = data[start : start + 65536]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
