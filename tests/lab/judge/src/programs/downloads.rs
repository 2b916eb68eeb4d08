//! Programs that fetch files from a web server.

use crate::programs::program::Program;

const CURL: &[(&str, &str)] = &[("curl", "the Debian package curl")];

/// Many files, in directories.
const TREE: Program = Program {
    moves: "80 files of 500 kB, by HTTP",
    served: "mkdir -p web/tree\n\
             for number in $(seq 80); do\n\
             mkdir -p web/tree/$((number % 8))\n\
             head -c 500000 /dev/urandom >web/tree/$((number % 8))/$number\n\
             done",
    check: "diff -r tree /srv/web/tree",
    ..Program::DOWNLOAD
};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "true",
        moves: "nothing: what starting takes",
        services: &[],
        version: "echo -",
        served: "",
        command: "fairbat run -- true",
        check: "",
        connects: false,
        ..Program::DOWNLOAD
    },
    Program {
        name: "curl",
        needs: CURL,
        version: "curl --version | cut -d ' ' -f 1-2",
        command: "fairbat run -- curl -fsSO http://files.example.org/image.iso",
        proxies: &["http", "socks5h"],
        ..Program::DOWNLOAD
    },
    Program {
        name: "curl-unprivileged",
        moves: "a file of 40 MB, by HTTP, as a user without privilege",
        needs: CURL,
        version: "curl --version | cut -d ' ' -f 1-2",
        before: "chmod 777 .",
        command: "setpriv --reuid 65534 --regid 65534 --clear-groups \
                  fairbat run -- curl -fsSO http://files.example.org/image.iso",
        ..Program::DOWNLOAD
    },
    Program {
        name: "curl-upload",
        moves: "a file of 40 MB, by HTTP's PUT",
        needs: CURL,
        version: "curl --version | cut -d ' ' -f 1-2",
        served: "mkdir web; head -c 40000000 /dev/urandom >image.iso",
        before: "cp /srv/image.iso .; rm -rf /srv/web/incoming",
        command: "fairbat run -- curl -fsST image.iso http://files.example.org/incoming/",
        check: "cmp /srv/image.iso /srv/web/incoming/image.iso",
        ..Program::DOWNLOAD
    },
    Program {
        name: "pipeline",
        moves: "a tar archive of 40 MB, by HTTP, unpacked as it comes",
        needs: CURL,
        version: "curl --version | cut -d ' ' -f 1-2",
        served: "mkdir -p web tree\n\
                 for number in $(seq 80); do head -c 500000 /dev/urandom >tree/$number; done\n\
                 tar -c tree >web/tree.tar",
        command: "fairbat run -- sh -c 'curl -fsS http://files.example.org/tree.tar | tar -x'",
        check: "diff -r tree /srv/tree",
        proxies: &["http", "socks5h"],
        ..Program::DOWNLOAD
    },
    Program {
        name: "wget",
        needs: &[("wget", "the Debian package wget")],
        version: "wget --version",
        command: "fairbat run -- wget -q http://files.example.org/image.iso",
        proxies: &["http"],
        ..Program::DOWNLOAD
    },
    Program {
        name: "aria2c",
        moves: "a file of 40 MB, by HTTP over 16 connections",
        needs: &[("aria2c", "the Debian package aria2")],
        version: "aria2c --version",
        command: "fairbat run -- aria2c -q -x16 -s16 -k1M http://files.example.org/image.iso",
        proxies: &["http"],
        ..Program::DOWNLOAD
    },
    Program {
        name: "lftp",
        needs: &[("lftp", "the Debian package lftp")],
        version: "lftp --version | grep -o 'LFTP.*Version [^ ]*'",
        command: "fairbat run -- lftp -c 'mirror -P4 http://files.example.org/tree/ tree'",
        proxies: &["http"],
        ..TREE
    },
    Program {
        name: "rclone-http",
        needs: &[("rclone", "the Debian package rclone")],
        version: "rclone --version",
        command: "fairbat run -- rclone copy --http-url http://files.example.org/tree/ :http: tree",
        proxies: &["http", "socks5"],
        ..TREE
    },
];
