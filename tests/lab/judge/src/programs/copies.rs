//! Programs that copy between machines over SSH, git among them.

use crate::programs::program::{Program, Service};

const SSH: (&str, &str) = ("ssh", "the Debian package openssh-client");
const SSHD: (&str, &str) = ("sshd", "the Debian package openssh-server");
const GIT: (&str, &str) = ("git", "the Debian package git");

/// A directory of another machine.
const COPY: Program = Program {
    moves: "80 files of 500 kB, over SSH",
    services: &[Service::Ssh],
    needs: &[SSH, SSHD],
    version: "ssh -V 2>&1",
    served: "mkdir photos\n\
             for number in $(seq 80); do head -c 500000 /dev/urandom >photos/$number; done",
    check: "diff -r photos /srv/photos",
    ..Program::DOWNLOAD
};

/// A repository of another machine.
const CLONE: Program = Program {
    moves: "a repository of 40 MB, 81 objects",
    needs: &[GIT, ("fcgiwrap", "the Debian package fcgiwrap")],
    version: "git --version",
    served: "mkdir -p web git project\n\
             cd project\n\
             git init -q\n\
             for number in $(seq 80); do head -c 500000 /dev/urandom >$number; done\n\
             git add .\n\
             git -c user.name=lab -c user.email=lab@example.org commit -q -m files\n\
             git clone -q --bare . ../git/project.git\n\
             git -C ../git/project.git repack -a -d -q",
    check: "git -C project fsck --no-progress\n\
            test $(git -C project rev-parse HEAD) = $(git -C /srv/project rev-parse HEAD)\n\
            test -z \"$(git -C project status --porcelain)\"",
    ..Program::DOWNLOAD
};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "rsync",
        needs: &[SSH, SSHD, ("rsync", "the Debian package rsync")],
        version: "rsync --version",
        command: "fairbat run -- rsync -a backup.example.org:/srv/photos .",
        ..COPY
    },
    Program {
        name: "rsync-push",
        needs: &[SSH, SSHD, ("rsync", "the Debian package rsync")],
        version: "rsync --version",
        before: "cp -r /srv/photos .; rm -rf /srv/copy",
        command: "fairbat run -- rsync -a photos/ backup.example.org:/srv/copy",
        check: "diff -r photos /srv/copy",
        ..COPY
    },
    Program {
        name: "scp",
        moves: "8 files of 5 MB, over SSH",
        served: "mkdir photos\n\
                 for number in $(seq 8); do head -c 5000000 /dev/urandom >photos/$number; done",
        command: "fairbat run -- scp -qr backup.example.org:/srv/photos .",
        ..COPY
    },
    Program {
        name: "ssh-tar",
        before: "cp -r /srv/photos .; rm -rf /srv/copy; mkdir /srv/copy",
        command: "fairbat run -- sh -c 'tar -c photos | ssh backup.example.org tar -x -C /srv/copy'",
        check: "diff -r photos /srv/copy/photos",
        ..COPY
    },
    Program {
        name: "git-http",
        moves: "a repository of 40 MB, 81 objects, by HTTP",
        services: &[Service::Git, Service::Web],
        command: "fairbat run -- git clone -q http://git.example.org/git/project.git",
        proxies: &["http", "socks5h"],
        ..CLONE
    },
    Program {
        name: "git-ssh",
        moves: "a repository of 40 MB, 81 objects, over SSH",
        needs: &[GIT, SSH, SSHD],
        services: &[Service::Ssh],
        command: "fairbat run -- git clone -q git.example.org:/srv/git/project.git",
        ..CLONE
    },
];
