//! Programs that back up, and copy to and from object stores.

use crate::programs::program::{Program, Service};

const RESTIC: &[(&str, &str)] = &[("restic", "the Debian package restic")];

/// Files at the client, which go to a bucket.
const BACKUP: Program = Program {
    moves: "40 files of 1 MB, to S3",
    services: &[Service::Store],
    needs: RESTIC,
    version: "restic version",
    settings: "export AWS_ACCESS_KEY_ID=lab-access AWS_SECRET_ACCESS_KEY=lab-secret\n\
               export RESTIC_REPOSITORY=s3:http://objects.example.org:9000/backups\n\
               export RESTIC_PASSWORD=lab",
    served: "mkdir -p store/backups documents\n\
             for number in $(seq 40); do head -c 1000000 /dev/urandom >documents/$number; done",
    before: "cp -r /srv/documents .\n\
             rm -rf /srv/store/backups; mkdir /srv/store/backups\n\
             restic -q init",
    ..Program::DOWNLOAD
};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "restic-backup",
        command: "fairbat run -- restic -q backup documents",
        // What the store has, as a directory.
        check: "export RESTIC_REPOSITORY=/srv/store/backups\n\
                restic -q check --read-data\n\
                restic -q restore latest --target restored\n\
                diff -r /srv/documents $(find restored -name documents)",
        ..BACKUP
    },
    Program {
        name: "restic-restore",
        moves: "40 files of 1 MB, from S3",
        before: "if ! [ -e /srv/store/backups/config ]; then\n\
                 restic -q init; cd /srv; restic -q backup documents\n\
                 cd; rm -rf .cache\n\
                 fi",
        command: "fairbat run -- restic -q restore latest --target restored",
        check: "diff -r /srv/documents $(find restored -name documents)",
        ..BACKUP
    },
    Program {
        name: "rclone-s3",
        needs: &[("rclone", "the Debian package rclone")],
        version: "rclone --version",
        settings: "export RCLONE_CONFIG_STORE_TYPE=s3 RCLONE_CONFIG_STORE_PROVIDER=Other\n\
                   export RCLONE_CONFIG_STORE_ENDPOINT=http://objects.example.org:9000\n\
                   export RCLONE_CONFIG_STORE_ACCESS_KEY_ID=lab-access\n\
                   export RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY=lab-secret",
        before: "cp -r /srv/documents .\n\
                 rm -rf /srv/store/backups; mkdir /srv/store/backups",
        command: "fairbat run -- rclone sync documents store:backups/documents",
        check: "diff -r /srv/documents /srv/store/backups/documents",
        ..BACKUP
    },
    Program {
        name: "borg",
        moves: "40 files of 1 MB, over SSH",
        services: &[Service::Ssh],
        needs: &[
            ("borg", "the Debian package borgbackup"),
            ("sshd", "the Debian package openssh-server"),
        ],
        version: "borg --version",
        settings: "export BORG_REPO=ssh://backup.example.org/srv/borg BORG_PASSPHRASE=lab",
        before: "cp -r /srv/documents .\n\
                 rm -rf /srv/borg\n\
                 borg init -e repokey",
        command: "fairbat run -- borg create ::nightly documents",
        check: "borg check --verify-data\n\
                mkdir restored; cd restored; borg extract ::nightly\n\
                diff -r documents /srv/documents",
        ..BACKUP
    },
];
