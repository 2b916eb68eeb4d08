"""The file `file` of this directory, whole or in part."""

import pathlib
import re

DATA = pathlib.Path("file").read_bytes()


def answer(asked):
    """The status, the fields and the body of the answer to a request with these fields."""
    fields = [(b"etag", b'"one"'), (b"accept-ranges", b"bytes")]
    part = re.fullmatch(rb"bytes=(\d+)-(\d+)", dict(asked).get(b"range", b""))
    status, data = 200, DATA
    if part:
        first, last = int(part[1]), min(int(part[2]), len(DATA) - 1)
        status, data = 206, DATA[first : last + 1]
        fields.append((b"content-range", b"bytes %d-%d/%d" % (first, last, len(DATA))))
    fields.append((b"content-length", b"%d" % len(data)))
    return status, fields, data
