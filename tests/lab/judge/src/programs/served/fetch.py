# Fetches a URL into a file, in pieces, by requests.
import sys

import requests

url, path = sys.argv[1:]
with requests.get(url, stream=True, timeout=30) as response:
    response.raise_for_status()
    with open(path, "wb") as file:
        for piece in response.iter_content(1 << 16):
            file.write(piece)
