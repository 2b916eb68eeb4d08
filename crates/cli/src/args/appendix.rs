//! What follows the flags in the help and in the manual pages: examples,
//! files, environment, exit status.

mod agent;

use std::fmt::Write as _;

use crate::exit::ExitCode;

/// One titled block of lines, to be shown as they are.
pub(crate) struct Section {
    pub(crate) heading: &'static str,
    pub(crate) body: String,
}

/// How much of it: `-h` or `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Short,
    Long,
}

/// The sections of a command, the most useful first.
pub(crate) fn of(command: &str) -> Vec<Section> {
    match command {
        "fairbat" => vec![examples(GENERAL_EXAMPLES), exit_status()],
        "get" => vec![
            examples(GET_EXAMPLES),
            section("Files", GET_FILES),
            section("Environment", GET_ENVIRONMENT),
            section("Signals", GET_SIGNALS),
            exit_status(),
        ],
        "plan" => vec![
            examples(PLAN_EXAMPLES),
            section("Environment", PLAN_ENVIRONMENT),
            Section {
                heading: "Exit status",
                body: table(&PLAN_EXIT_STATUS),
            },
        ],
        "serve" => vec![
            examples(SERVE_EXAMPLES),
            section("Files", SERVE_FILES),
            section("Environment", SERVE_ENVIRONMENT),
            section("Signals", SERVE_SIGNALS),
            Section {
                heading: "Exit status",
                body: table(&SERVE_EXIT_STATUS),
            },
        ],
        "put" => vec![
            examples(PUT_EXAMPLES),
            section("Files", PUT_FILES),
            section("Environment", PUT_ENVIRONMENT),
            section("Signals", PUT_SIGNALS),
            Section {
                heading: "Exit status",
                body: table(&PUT_EXIT_STATUS),
            },
        ],
        "setup" => vec![
            examples(SETUP_EXAMPLES),
            section("Files", SETUP_FILES),
            Section {
                heading: "Exit status",
                body: table(&SETUP_EXIT_STATUS),
            },
        ],
        "completions" => vec![examples(COMPLETIONS_EXAMPLES)],
        "man" => vec![examples(MAN_EXAMPLES)],
        command => agent::of(command),
    }
}

/// The sections of a command as text below its help.
pub(crate) fn text(command: &str, length: Length) -> String {
    let wanted = match length {
        Length::Short => 1,
        Length::Long => usize::MAX,
    };
    let mut text = String::new();
    for section in of(command).iter().take(wanted) {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}:", section.heading);
        for line in section.body.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

const GENERAL_EXAMPLES: &str = "\
fairbat get https://example.org/big.iso
fairbat get --deadline 06:00 -d /srv/mirror https://example.org/big.iso
fairbat plan --deadline 06:00 https://example.org/big.iso
fairbat put --deadline 06:00 backup.tar https://example.org/backups/
fairbat serve /srv/backup --listen 0.0.0.0:8080 --token-file /etc/fairbat/token
fairbat status
fairbat get --help";

const GET_EXAMPLES: &str = "\
Download by six in the morning, yielding to others as far as that allows:
    fairbat get --deadline 06:00 https://example.org/big.iso
Check what arrives, and name it:
    fairbat get -o big.iso --checksum sha-256=HEX https://example.org/latest
Everything in a list, into a directory, for at most an hour at a time:
    fairbat get -i urls.txt -d /srv/mirror --max-time 1h
Each file by its own deadline, the others by noon:
    echo https://example.org/first.iso deadline=06:00 >> urls.txt
    fairbat get -i urls.txt --deadline 12:00
An ordinary download, which yields to nobody:
    fairbat get --weight 1 https://example.org/big.iso
Follow a run with a program:
    fairbat get --json https://example.org/big.iso | jq -r .event";

const GET_FILES: &str = "\
NAME                the finished file, with the server's modification time
NAME.part           what has arrived so far
NAME.part.fairbat   the journal: which parts of it are safe on the disk
$NETRC, ~/.netrc    user names and passwords, with --netrc";

const GET_ENVIRONMENT: &str = "\
FAIRBAT_<FLAG>      any flag: FAIRBAT_MAX_CONNECTIONS=2, FAIRBAT_DEADLINE=4h
FAIRBAT_LOG         log filter instead of -v: info, debug, fairbat=trace, ...
http_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY
                    proxies, as curl reads them
NO_COLOR            no colours";

const PLAN_EXAMPLES: &str = "\
Can this be here by six in the morning, and when must it start?
    fairbat plan --deadline 06:00 https://example.org/big.iso
Complain in time:
    fairbat plan -q --deadline 06:00 \"$url\" || mail -s 'no backup' me
Only what follows from the size, without a measurement:
    fairbat plan --measure 0 --deadline 4h --json \"$url\" | jq .needed_rate";

const PLAN_ENVIRONMENT: &str = "\
FAIRBAT_<FLAG>      any flag: FAIRBAT_DEADLINE=06:00, FAIRBAT_MEASURE=30s
FAIRBAT_LOG         log filter instead of -v: info, debug, fairbat=trace, ...
http_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY
                    proxies, as curl reads them";

const PLAN_EXIT_STATUS: [(ExitCode, &str); 6] = [
    (ExitCode::Done, "comfortable, tight or unknown"),
    (
        ExitCode::Other,
        "a server's refusal (404, 403), or another error",
    ),
    (ExitCode::Usage, "wrong usage"),
    (
        ExitCode::Temporary,
        "network or server trouble: worth trying again",
    ),
    (ExitCode::Late, "impossible as best effort"),
    (ExitCode::Interrupted, "interrupted"),
];

const PUT_EXAMPLES: &str = "\
Upload by six in the morning, yielding to others as far as that allows:
    fairbat put --deadline 06:00 backup.tar https://example.org/backups/
Under another name, with a user name and a password from ~/.netrc:
    fairbat put -n backup.tar https://example.org/backups/monday.tar
Replace nothing:
    fairbat put --create-only backup.tar https://example.org/backups/
To a URL that was signed for one upload:
    fairbat put -H 'Content-Type: application/x-tar' backup.tar \"$url\"";

const PUT_FILES: &str = "\
$NETRC, ~/.netrc    user names and passwords, with --netrc";

const PUT_ENVIRONMENT: &str = "\
FAIRBAT_<FLAG>      any flag: FAIRBAT_DEADLINE=4h, FAIRBAT_LIMIT_RATE=2M
FAIRBAT_LOG         log filter instead of -v: info, debug, fairbat=trace, ...
http_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY
                    proxies, as curl reads them
NO_COLOR            no colours";

const PUT_SIGNALS: &str = "\
SIGINT and SIGTERM break the upload off; the same command starts it over. A
second signal ends the process at once.";

const PUT_EXIT_STATUS: [(ExitCode, &str); 9] = [
    (ExitCode::Done, "uploaded (also late, unless --fail-late)"),
    (
        ExitCode::Other,
        "a server's refusal (401, 403, 404, 405, 409, 413, with --create-only 412; a redirect \
         that is not followed), a certificate that is not trusted, or another error",
    ),
    (ExitCode::Usage, "wrong usage"),
    (ExitCode::Integrity, "the file changed while it was read"),
    (
        ExitCode::Temporary,
        "network or server trouble (also 507, its disk is full): worth trying again",
    ),
    (ExitCode::Disk, "FILE cannot be read, or is no regular file"),
    (ExitCode::MaxTime, "stopped by --max-time"),
    (
        ExitCode::Late,
        "uploaded, but after the deadline (with --fail-late)",
    ),
    (ExitCode::Interrupted, "interrupted"),
];

const GET_SIGNALS: &str = "\
SIGINT and SIGTERM stop the downloads so that the same command continues
them; a second signal ends the process at once.";

const SERVE_EXAMPLES: &str = "\
Backups, for machines that fetch them with fairbat get:
    fairbat serve /srv/backup --listen 0.0.0.0:8080 --token-file /etc/fairbat/token
The same, over HTTPS:
    fairbat serve /srv/backup --listen '[::]:8443' --token-file /etc/fairbat/token \\
        --tls-cert cert.pem --tls-key key.pem
Token and certificate for that, which clients take by --cacert cert.pem:
    openssl rand -hex 32 > /etc/fairbat/token
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \\
        -keyout key.pem -out cert.pem -days 3650 -subj /CN=backup.example.org \\
        -addext basicConstraints=critical,CA:FALSE \\
        -addext subjectAltName=DNS:backup.example.org,IP:192.0.2.1
    export FAIRBAT_HEADER=\"Authorization: Bearer $(cat /etc/fairbat/token)\"
    fairbat get --cacert cert.pem https://backup.example.org:8443/FILE
A mirror that yields to everything else, whoever asks:
    fairbat serve --background /srv/mirror
A place for uploads, and one of them, where the token is, too:
    fairbat serve /srv/backup --writable --listen 0.0.0.0:8080 \\
        --token-file /etc/fairbat/token
    fairbat put backup.tar http://backup.example.org:8080/monday/
On a free port, for a program:
    fairbat serve --json --listen 127.0.0.1:0 . | jq -r .url";

const SERVE_FILES: &str = "\
DIR/.fairbat-upload with --writable: uploads that are not finished. What a
                    process that was killed has left there is removed when
                    the next one starts";

const SERVE_ENVIRONMENT: &str = "\
FAIRBAT_<FLAG>      any flag: FAIRBAT_LISTEN=[::]:8080, FAIRBAT_TOKEN_FILE=...
FAIRBAT_LOG         log filter instead of -v: info (each request), debug, ...";

const SERVE_SIGNALS: &str = "\
SIGINT and SIGTERM end it at once; clients can resume downloads that were under
way, and of uploads nothing is left.";

const SERVE_EXIT_STATUS: [(ExitCode, &str); 5] = [
    (ExitCode::Done, "ended by SIGTERM"),
    (
        ExitCode::Other,
        "the address is in use or not of this machine, a token or certificate cannot be used, \
         --writable without a token on other than a loopback address, or the kernel is too old",
    ),
    (ExitCode::Usage, "wrong usage"),
    (
        ExitCode::Disk,
        "DIR is missing, not readable, no directory, or with --writable not writable",
    ),
    (ExitCode::Interrupted, "ended by SIGINT"),
];

const SETUP_EXAMPLES: &str = "\
sudo fairbat setup
fairbat setup --status
sudo fairbat setup --remove
At every start of the machine, as /etc/systemd/system/fairbat-bpf.service:
    [Service]
    Type=oneshot
    RemainAfterExit=yes
    ExecStart=/usr/bin/fairbat setup
    ExecStop=/usr/bin/fairbat setup --remove
    SuccessExitStatus=3
    [Install]
    WantedBy=multi-user.target
The units of the Debian package, in dist/systemd of the source, do it with
CAP_BPF and CAP_PERFMON alone; the mount unit makes the file system.";

const SETUP_FILES: &str = "\
/run/fairbat/bpf    a BPF file system, with what is loaded
/sys/kernel/btf/vmlinux
                    what the kernel tells of its types, read
/proc/sys/net/ipv4/tcp_available_congestion_control
                    which names are taken, read";

const SETUP_EXIT_STATUS: [(ExitCode, &str); 4] = [
    (
        ExitCode::Done,
        "both set up, or removed; also when they already were. --status: both set up",
    ),
    (
        ExitCode::Other,
        "not root, the kernel refuses, or something is in the way: of both, or with --remove of \
         one. --status: one or both not set up, or another version",
    ),
    (ExitCode::Usage, "wrong usage"),
    (
        ExitCode::Partial,
        "of the two one failed as above, and is as it was before; the other is set up",
    ),
];

const COMPLETIONS_EXAMPLES: &str = "\
fairbat completions bash > ~/.local/share/bash-completion/completions/fairbat
fairbat completions zsh > ~/.zfunc/_fairbat
fairbat completions fish > ~/.config/fish/completions/fairbat.fish";

const MAN_EXAMPLES: &str = "\
fairbat man | man -l -
fairbat man --dir ~/.local/share/man/man1";

fn section(heading: &'static str, body: &str) -> Section {
    Section {
        heading,
        body: body.to_owned(),
    }
}

fn examples(body: &str) -> Section {
    section("Examples", body)
}

fn exit_status() -> Section {
    Section {
        heading: "Exit status",
        body: table(&ExitCode::ALL.map(|code| (code, code.meaning()))),
    }
}

fn table(codes: &[(ExitCode, &str)]) -> String {
    let lines: Vec<String> = codes
        .iter()
        .map(|&(code, meaning)| format!("{:>3}  {meaning}", code as u8))
        .collect();
    lines.join("\n")
}
