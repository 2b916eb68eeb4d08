"""One end of a BitTorrent transfer of zeros over uTP, and nothing else.

    utp.py seed SIZE DIRECTORY ADDRESS:PORT
    utp.py leech SIZE DIRECTORY ADDRESS:PORT ADDRESS PORT

A seed has the file in DIRECTORY, prints "ready" once it listens, and serves it
until SIGTERM. A leech prints "ready" too, waits for a line on its standard
input, gets the file from the seed at ADDRESS PORT, and prints "bytes N" now and
then: payload so far. It ends when it has the file (status 0), or at SIGTERM.

Both make the same torrent from SIZE, so nothing has to be handed over. What
concerns LEDBAT is left as libtorrent has it.
"""

import hashlib
import os
import signal
import sys

import libtorrent as lt

PIECE = 4 << 20
STATISTICS_MS = 200


def torrent(size):
    whole, rest = divmod(size, PIECE)
    pieces = hashlib.sha1(bytes(PIECE)).digest() * whole
    if rest:
        pieces += hashlib.sha1(bytes(rest)).digest()
    info = {b"name": b"file", b"piece length": PIECE, b"length": size, b"pieces": pieces}
    return lt.torrent_info({b"info": info})


def say(*words):
    print(*words, flush=True)


def leave(*_):
    # Without the session's farewell to peers and trackers, which takes long.
    os._exit(0)


def alerts(session):
    """What happened since the last time; failures end this process."""
    failures = lt.listen_failed_alert, lt.torrent_error_alert, lt.file_error_alert
    session.wait_for_alert(STATISTICS_MS)
    for alert in session.pop_alerts():
        if isinstance(alert, failures):
            sys.exit(alert.message())
        yield alert


def main(role, size, directory, listen, *peer):
    session = lt.session(
        {
            "listen_interfaces": listen,
            "enable_outgoing_tcp": False,
            "enable_incoming_tcp": False,
            "enable_outgoing_utp": True,
            "enable_incoming_utp": True,
            "mixed_mode_algorithm": int(lt.bandwidth_mixed_algo_t.prefer_tcp),
            "enable_dht": False,
            "enable_lsd": False,
            "enable_upnp": False,
            "enable_natpmp": False,
            # A port that is taken is a failure, and a connection that failed
            # is tried again soon.
            "max_retry_port_bind": 0,
            "listen_system_port_fallback": False,
            "min_reconnect_time": 1,
            "alert_mask": lt.alert.category_t.status_notification
            | lt.alert.category_t.error_notification,
        }
    )
    parameters = lt.add_torrent_params()
    parameters.ti = torrent(int(size))
    parameters.save_path = directory
    parameters.flags &= ~(lt.torrent_flags.auto_managed | lt.torrent_flags.paused)
    if role == "seed":
        parameters.flags |= lt.torrent_flags.seed_mode
    handle = session.add_torrent(parameters)

    def report(*_):
        say("bytes", handle.status().total_payload_download)

    def stop(*_):
        if role == "leech":
            report()
        leave()

    signal.signal(signal.SIGTERM, stop)
    is_listening = False
    while not is_listening:
        for alert in alerts(session):
            if isinstance(alert, lt.listen_succeeded_alert):
                is_listening = True
    say("ready")
    if role == "leech":
        sys.stdin.readline()
        address, port = peer
        handle.connect_peer((address, int(port)))
    while not (role == "leech" and handle.status().is_seeding):
        for _ in alerts(session):
            pass
        if role == "leech":
            report()
    report()
    leave()


main(*sys.argv[1:])
