"""One end of BitTorrent transfers of zeros over uTP, and nothing else.

    utp.py seed JOBS TARGET GAIN DIRECTORY ADDRESS:PORT
    utp.py leech JOBS TARGET GAIN DIRECTORY ADDRESS:PORT ADDRESS PORT

JOBS is a file with a line "MOMENT BYTES NAME" for each transfer: when it begins,
in seconds of the system's monotonic clock. Each is a torrent and a connection of
its own, begun at its moment however many are at work. Both ends make the same
torrents of the lines, so nothing has to be handed over.

A seed has the files, made of holes, in DIRECTORY, prints "ready" once it listens,
and serves them until SIGTERM. A leech prints "ready" too, gets each file from the
seed at ADDRESS PORT, and prints "done NAME MOMENT" when it is there. It ends when
all are (status 0), or at SIGTERM; either way with "bytes N": payload in all.

TARGET is LEDBAT's target delay, ms, and GAIN by how many bytes a window grows in
one round trip at most; what else concerns LEDBAT is left as libtorrent has it, uTP's
timers among it.
"""

import collections
import hashlib
import math
import os
import resource
import select
import signal
import sys
import time

import libtorrent as lt

PIECE = 4 << 20
HASH = hashlib.sha1(bytes(PIECE)).digest()
# Longest time that a signal waits for.
TURN_S = 0.2
# Bytes that say that there are alerts, read at once.
NEWS = 4096
# How long before its moment a torrent is made, at rest: then all that is left to
# be done at its moment is to connect.
LEAD_S = 2.0
# More than there can be of anything, and longer than any run, s.
UNLIMITED = 100_000
# What libtorrent takes at most here.
MOST_BOOST = 255

Job = collections.namedtuple("Job", "at size name")

LIMITS = {
    # An interested peer is unchoked at once, not when the choker looks again
    # (unchoke_interval, 15 s).
    "unchoke_slots_limit": -1,
    # All have their connection. libtorrent lowers it to what there may be of
    # open files, though uTP needs none; see raise_open_files.
    "connections_limit": UNLIMITED,
    # A torrent that is resumed connects at once by its boost, but never more of
    # them a second than this, and "smooth" means fewer near the limit. The same
    # goes for connecting again.
    "torrent_connect_boost": MOST_BOOST,
    "connection_speed": UNLIMITED,
    "smooth_connects": False,
    # A connection that failed is tried again soon, and every time.
    "min_reconnect_time": 1,
    "max_failcount": UNLIMITED,
    # Who is slow because LEDBAT yields is neither given up nor snubbed, which
    # would leave one request outstanding: uTP has timers of its own.
    "peer_connect_timeout": UNLIMITED,
    "handshake_timeout": UNLIMITED,
    "peer_timeout": UNLIMITED,
    "inactivity_timeout": UNLIMITED,
    "piece_timeout": UNLIMITED,
    "request_timeout": UNLIMITED,
    # As many as TCP's on Linux. With the default, 3, a starved connection is
    # given up after seconds, begins again with slow start, and is refused until
    # the other end has given it up, too.
    "utp_num_resends": 15,
    # So many seconds of the present rate are requested: one that was starved a
    # second ago has enough requested to be fast now. What this makes of 1 Gbit/s
    # is as many blocks as libtorrent can count (16 bits).
    "request_queue_time": 8,
    # The seed reads the next blocks before the socket has taken these; with the
    # default, 10 KiB, one block at a time while it is slow.
    "send_buffer_low_watermark": 64 << 10,
    # A handshake with encryption takes more round trips and processor time.
    "out_enc_policy": int(lt.enc_policy.pe_disabled),
    "in_enc_policy": int(lt.enc_policy.pe_disabled),
    # No news is lost when many finish at once.
    "alert_queue_size": UNLIMITED,
}

SETTINGS = {
    **LIMITS,
    "enable_outgoing_tcp": False,
    "enable_incoming_tcp": False,
    "enable_outgoing_utp": True,
    "enable_incoming_utp": True,
    "mixed_mode_algorithm": int(lt.bandwidth_mixed_algo_t.prefer_tcp),
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    # A port that is taken is a failure.
    "max_retry_port_bind": 0,
    "listen_system_port_fallback": False,
    "alert_mask": lt.alert.category_t.status_notification
    | lt.alert.category_t.error_notification,
}


def read_jobs(path):
    with open(path, encoding="utf-8") as lines:
        words = [line.split() for line in lines]
    return [Job(float(at), int(size), name) for at, size, name in words]


def parameters(job, directory):
    whole, rest = divmod(job.size, PIECE)
    pieces = HASH * whole
    if rest:
        pieces += hashlib.sha1(bytes(rest)).digest()
    info = {
        b"name": job.name.encode(),
        b"piece length": PIECE,
        b"length": job.size,
        b"pieces": pieces,
    }
    torrent = lt.add_torrent_params()
    torrent.ti = lt.torrent_info({b"info": info})
    torrent.save_path = directory
    # Neither queued nor counted by active_downloads, active_seeds and the like.
    torrent.flags &= ~(lt.torrent_flags.auto_managed | lt.torrent_flags.paused)
    return torrent


def raise_open_files():
    """Lets this process open as many files as it may; returns how many."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def say(*words):
    print(*words, flush=True)


def leave():
    # Without the session's farewell to peers and trackers, which takes long.
    os._exit(0)


class End:
    """What both ends have: a session, and torrents that are made ahead."""

    def __init__(self, jobs, directory, listen):
        self.jobs = jobs
        self.directory = directory
        self.unmade = collections.deque(jobs)
        self.is_over = False
        settings = {
            "listen_interfaces": listen,
            # No file is closed for another, as far as that goes.
            "file_pool_size": min(raise_open_files() // 2, UNLIMITED),
        }
        self.session = lt.session({**SETTINGS, **self.SETTINGS, **settings})
        # Not wait_for_alert, which looks into an alert while libtorrent may be
        # moving them.
        self.news, news = os.pipe()
        os.set_blocking(self.news, False)
        os.set_blocking(news, False)
        self.session.set_alert_fd(news)

    def alerts(self, until=math.inf):
        """What happens until a moment, or some of it; failures end this process."""
        failures = lt.listen_failed_alert, lt.torrent_error_alert, lt.file_error_alert
        wait = min(max(until - time.monotonic(), 0), TURN_S)
        if select.select([self.news], [], [], wait)[0]:
            os.read(self.news, NEWS)
        for alert in self.session.pop_alerts():
            if isinstance(alert, failures):
                sys.exit(alert.message())
            yield alert

    def listen(self):
        while not self.is_over:
            for alert in self.alerts():
                if isinstance(alert, lt.listen_succeeded_alert):
                    return

    def make(self):
        """Makes the torrents that are due; when the next one is."""
        while self.unmade:
            due = self.unmade[0].at - LEAD_S
            if due > time.monotonic():
                return due
            self.add(self.unmade.popleft())
        return math.inf


class Seed(End):
    # Else each piece is read and hashed before any of it is sent.
    SETTINGS = {"disable_hash_checks": True}

    def add(self, job):
        path = os.path.join(self.directory, job.name)
        with open(path, "ab") as file:
            file.truncate(job.size)
        torrent = parameters(job, self.directory)
        torrent.flags |= lt.torrent_flags.seed_mode
        self.session.add_torrent(torrent)

    def run(self):
        while not self.is_over:
            for _ in self.alerts(self.make()):
                pass

    def last_words(self):
        pass


class Leech(End):
    SETTINGS = {}

    def __init__(self, jobs, directory, listen, address, port):
        super().__init__(jobs, directory, listen)
        self.peer = address, int(port)
        self.resting = collections.deque()
        self.at_work = {}
        self.done = 0
        self.payload = 0

    def add(self, job):
        torrent = parameters(job, self.directory)
        torrent.peers = [self.peer]
        torrent.flags |= lt.torrent_flags.paused
        self.resting.append((job, self.session.add_torrent(torrent)))

    def begin(self):
        """Begins what is due; when the next one is."""
        while self.resting:
            job, torrent = self.resting[0]
            if job.at > time.monotonic():
                return job.at
            self.resting.popleft()
            self.at_work[job.name] = job, torrent
            torrent.resume()
        return math.inf

    def finish(self, name):
        job, torrent = self.at_work.pop(name)
        say("done", name, time.monotonic())
        self.done += 1
        self.payload += job.size
        # Of several, nobody looks at what is in them.
        if len(self.jobs) > 1:
            self.session.remove_torrent(torrent, lt.options_t.delete_files)

    def run(self):
        while self.done < len(self.jobs) and not self.is_over:
            due = min(self.make(), self.begin())
            for alert in self.alerts(due):
                if isinstance(alert, lt.torrent_finished_alert):
                    self.finish(alert.torrent_name)

    def last_words(self):
        at_work = [torrent for _, torrent in self.at_work.values()]
        got = sum(torrent.status().total_payload_download for torrent in at_work)
        say("bytes", self.payload + got)


def main(role, jobs, target, gain, *rest):
    SETTINGS["utp_target_delay"] = int(target)
    SETTINGS["utp_gain_factor"] = int(gain)
    end = {"seed": Seed, "leech": Leech}[role](read_jobs(jobs), *rest)

    # No more than this: it comes in the middle of anything.
    def stop(*_):
        end.is_over = True

    signal.signal(signal.SIGTERM, stop)
    end.listen()
    say("ready")
    end.run()
    end.last_words()
    leave()


main(*sys.argv[1:])
