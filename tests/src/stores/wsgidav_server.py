"""Serves ROOT by WebDAV on 127.0.0.1: ROOT PORT USER PASSWORD. PORT 0 is any
free port; the URL is the line on standard output."""

import sys

from cheroot.wsgi import Server
from wsgidav.wsgidav_app import WsgiDAVApp

root, port, user, password = sys.argv[1:]
app = WsgiDAVApp(
    {
        "provider_mapping": {"/": root},
        "simple_dc": {"user_mapping": {"*": {user: {"password": password}}}},
        "http_authenticator": {
            "accept_basic": True,
            "accept_digest": False,
            "default_to_digest": False,
        },
        "dir_browser": {"enable": False},
        "verbose": 1,
    }
)
server = Server(("127.0.0.1", int(port)), app)
server.prepare()
print(f"http://127.0.0.1:{server.bind_addr[1]}", flush=True)
server.serve()
