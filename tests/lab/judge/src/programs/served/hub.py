"""Answers as the Hugging Face Hub does: hub.py DIRECTORY ADDRESS PORT.

A model NAMESPACE/NAME is a directory below DIRECTORY. Of the Hub's API there is what a
download asks for: what a revision has, and its files, each with the ETag that the Hub gives to
large files, which is the SHA-256 of the content.
"""

import hashlib
import http.server
import json
import os
import re
import sys

ROOT = sys.argv[1]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ETAGS = {}


def etag(path):
    if path not in ETAGS:
        with open(path, "rb") as file:
            ETAGS[path] = hashlib.file_digest(file, "sha256").hexdigest()
    return ETAGS[path]


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        path = self.path.split("?")[0]
        if found := re.fullmatch(r"/api/models/([\w-]+/[\w-]+)/revision/\w+", path):
            self.say(self.about(found[1]), with_body)
        elif found := re.fullmatch(r"/api/models/([\w-]+/[\w-]+)/tree/\w+", path):
            self.say(self.tree(found[1]), with_body)
        elif found := re.fullmatch(r"/([\w-]+/[\w-]+)/resolve/\w+/([\w.-]+)", path):
            self.send(f"{ROOT}/{found[1]}/{found[2]}", with_body)
        else:
            self.send_error(404)

    def about(self, model):
        files = sorted(os.listdir(f"{ROOT}/{model}"))
        return {
            "id": model,
            "modelId": model,
            "sha": COMMIT,
            "private": False,
            "downloads": 0,
            "likes": 0,
            "tags": [],
            "siblings": [{"rfilename": name} for name in files],
        }

    def tree(self, model):
        for name in sorted(os.listdir(f"{ROOT}/{model}")):
            path = f"{ROOT}/{model}/{name}"
            size, oid = os.path.getsize(path), etag(path)
            lfs = {"oid": oid, "size": size, "pointerSize": 134}
            yield {"type": "file", "oid": oid[:40], "size": size, "path": name, "lfs": lfs}

    def say(self, value, with_body):
        value = value if isinstance(value, dict) else list(value)
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def send(self, path, with_body):
        size = os.path.getsize(path)
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.send_header("ETag", f'"{etag(path)}"')
        self.send_header("X-Linked-ETag", f'"{etag(path)}"')
        self.send_header("X-Linked-Size", str(size))
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if with_body:
            with open(path, "rb") as file:
                self.wfile.flush()
                self.connection.sendfile(file)


http.server.ThreadingHTTPServer((sys.argv[2], int(sys.argv[3])), Hub).serve_forever()
