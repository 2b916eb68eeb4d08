//! The sections below the flags in the help and the manual pages: examples, files,
//! environment, signals and exit status.

use fairbat::manual::Section;

use crate::exit::ExitCode;

/// The sections of a command, the most useful first. `-h` shows the first one only.
pub(crate) fn of(command: &str) -> Vec<Section> {
    match command {
        "fairbat" => vec![examples(GENERAL_EXAMPLES), all_exit_codes()],
        "get" => vec![
            examples(GET_EXAMPLES),
            Section::lines("Files", GET_FILES),
            environment(GET_VARIABLES, TRANSFER_ENVIRONMENT),
            Section::lines("Signals", GET_SIGNALS),
            all_exit_codes(),
        ],
        "plan" => vec![
            examples(PLAN_EXAMPLES),
            environment(PLAN_VARIABLES, TRANSFER_ENVIRONMENT),
            exit_status(PLAN_EXIT_STATUS),
        ],
        "put" => vec![
            examples(PUT_EXAMPLES),
            Section::lines("Files", NETRC),
            environment(PUT_VARIABLES, TRANSFER_ENVIRONMENT),
            Section::lines("Signals", PUT_SIGNALS),
            exit_status(PUT_EXIT_STATUS),
        ],
        "serve" => vec![
            examples(SERVE_EXAMPLES),
            Section::lines("Files", SERVE_FILES),
            environment(SERVE_VARIABLES, SERVE_ENVIRONMENT),
            Section::lines("Signals", SERVE_SIGNALS),
            exit_status(SERVE_EXIT_STATUS),
        ],
        "run" => vec![
            examples(RUN_EXAMPLES),
            Section::lines("Files", RUN_FILES),
            environment(RUN_VARIABLES, LOG_AND_COLOUR),
            Section::lines("Signals", RUN_SIGNALS),
            exit_status(RUN_EXIT_STATUS),
        ],
        "runs" => vec![
            examples("fairbat runs\nfairbat runs nightly"),
            Section::lines("Files", RUN_FILES),
            exit_status(RUNS_EXIT_STATUS),
        ],
        "proxy" => vec![
            examples(PROXY_EXAMPLES),
            environment(
                "FAIRBAT_LISTEN=[::]:3128, FAIRBAT_ALLOW=10.0.0.0/8",
                LOG_AND_COLOUR,
            ),
            exit_status(PROXY_EXIT_STATUS),
        ],
        "setup" => vec![
            examples(SETUP_EXAMPLES),
            Section::lines("Files", SETUP_FILES),
            exit_status(SETUP_EXIT_STATUS),
        ],
        "doctor" => vec![
            examples(DOCTOR_EXAMPLES),
            Section::lines("Files", NETRC),
            environment(DOCTOR_VARIABLES, TRANSFER_ENVIRONMENT),
            exit_status(DOCTOR_EXIT_STATUS),
        ],
        "completions" => vec![
            examples(COMPLETIONS_EXAMPLES),
            exit_status(OUTPUT_EXIT_STATUS),
        ],
        "man" => vec![examples(MAN_EXAMPLES), exit_status(OUTPUT_EXIT_STATUS)],
        "status" => of_agent(STATUS_EXAMPLES, STATUS_EXIT_STATUS),
        "add" => of_agent(ADD_EXAMPLES, ADD_EXIT_STATUS),
        "pause" => of_agent("fairbat pause home add-3", TASKS_EXIT_STATUS),
        "resume" => of_agent("fairbat resume home add-3", TASKS_EXIT_STATUS),
        "cancel" => of_agent("fairbat cancel add-3", TASKS_EXIT_STATUS),
        "start" => of_agent(START_EXAMPLES, WAIT_EXIT_STATUS),
        "restore" => of_agent(RESTORE_EXAMPLES, WAIT_EXIT_STATUS),
        "fleet" => of_agent(FLEET_EXAMPLES, FLEET_EXIT_STATUS),
        _ => Vec::new(),
    }
}

/// The sections of a command that talks to the agent.
fn of_agent(shown: &'static str, codes: &str) -> Vec<Section> {
    vec![
        examples(shown),
        Section::lines("Files", AGENT_FILES),
        environment("FAIRBAT_SOCKET=/run/other/agent.sock", NO_COLOUR),
        exit_status(codes),
    ]
}

fn examples(body: &'static str) -> Section {
    Section::lines("Examples", body)
}

/// `variables` are examples of flags as variables, `others` the lines of other variables.
fn environment(variables: &str, others: &str) -> Section {
    let body = format!("FAIRBAT_<FLAG>      any flag: {variables}\n{others}");
    Section::lines("Environment", body)
}

fn all_exit_codes() -> Section {
    let lines = ExitCode::ALL.map(|code| format!("{}  {}", code as u8, code.meaning()));
    exit_status(&lines.join("\n"))
}

/// The lines are codes and meanings with two spaces in between. The codes are aligned.
fn exit_status(lines: &str) -> Section {
    let aligned = |(code, meaning)| format!("{code:>3}  {meaning}");
    let lines = lines.lines().filter_map(|line| line.split_once("  "));
    let lines: Vec<String> = lines.map(aligned).collect();
    Section::lines("Exit status", lines.join("\n"))
}

const RUN_EXAMPLES: &str = "\
Back up, and let everybody else go first:
    fairbat run -- restic backup /home
Be done by six in the morning, as far as earlier nights tell how much there is to do:
    fairbat run --deadline 06:00 --name nightly -- rclone sync /srv remote:srv
Let a running process yield until Ctrl-C:
    fairbat run --pid 4711
Let a service yield until Ctrl-C:
    sudo fairbat run --unit ollama.service";

const RUN_FILES: &str = "\
$XDG_STATE_HOME/fairbat/runs, ~/.local/state/fairbat/runs
                    what the runs of each --name have moved";

const RUN_VARIABLES: &str = "FAIRBAT_WEIGHT=0.1, FAIRBAT_DEADLINE=06:00";

const LOG_AND_COLOUR: &str = "\
FAIRBAT_LOG         log filter, replaces -v: info, debug, fairbat=trace, ...
NO_COLOR            no colours";

const RUN_SIGNALS: &str = "\
SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 are passed on to the
command. With --pid, --unit and --cgroup, they end fairbat, and the connections
are free.";

const RUN_EXIT_STATUS: &str = "\
0  the command has ended with 0; with --pid, --unit or --cgroup: all connections are free again
2  wrong usage
125  fairbat itself has failed
126  the command cannot be run
127  there is no such command; any other status is that of the command";

const RUNS_EXIT_STATUS: &str = "\
0  done
1  there is no run of this name
2  wrong usage";

const PROXY_EXAMPLES: &str = "\
For programs of this machine:
    fairbat proxy
    https_proxy=http://127.0.0.1:3128 apt-get update
For the machines at home, with a token:
    fairbat proxy --listen 0.0.0.0:3128 --allow 192.168.0.0/16 --token-file token
    curl -x http://me:TOKEN@192.168.1.2:3128 https://example.org/big.iso";

const PROXY_EXIT_STATUS: &str = "\
0  ended by SIGTERM
1  it cannot listen, the token cannot be used, or another error
2  wrong usage
130  interrupted";

const GENERAL_EXAMPLES: &str = "\
fairbat get https://example.org/big.iso
fairbat get --deadline 06:00 -d /srv/mirror https://example.org/big.iso
fairbat plan --deadline 06:00 https://example.org/big.iso
fairbat put --deadline 06:00 backup.tar https://example.org/backups/
fairbat serve /srv/backup --listen 0.0.0.0:8080 --token-file /etc/fairbat/token
fairbat run -- restic backup /home
fairbat status
fairbat get --help";

const GET_EXAMPLES: &str = "\
Download by six in the morning, and yield as far as that allows:
    fairbat get --deadline 06:00 https://example.org/big.iso
Choose the name and check the digest:
    fairbat get -o big.iso --checksum sha-256=HEX https://example.org/latest
Download a list into a directory, for at most an hour:
    fairbat get -i urls.txt -d /srv/mirror --max-time 1h
Give one file a deadline of its own, and all others noon:
    echo https://example.org/first.iso deadline=06:00 >> urls.txt
    fairbat get -i urls.txt --deadline 12:00
Download what a program names, one URL per line, as it comes:
    find-files | fairbat get -i - --follow -d /srv/mirror
Download without yielding:
    fairbat get --weight 1 https://example.org/big.iso
Follow the download in a program:
    fairbat get --json https://example.org/big.iso | jq -r .event";

const GET_FILES: &str = "\
NAME                the finished file, with the server's modification time
NAME.part           the data so far
NAME.part.fairbat   the journal: the parts that are safely on the disk
$NETRC, ~/.netrc    user names and passwords, with --netrc";

const NETRC: &str = "$NETRC, ~/.netrc    user names and passwords, with --netrc";

const GET_VARIABLES: &str = "FAIRBAT_MAX_CONNECTIONS=2, FAIRBAT_DEADLINE=4h";

const TRANSFER_ENVIRONMENT: &str = "\
FAIRBAT_LOG         log filter, replaces -v: info, debug, fairbat=trace, ...
http_proxy, HTTPS_PROXY, ALL_PROXY, NO_PROXY
                    proxies, as for curl
NO_COLOR            no colours";

const GET_SIGNALS: &str = "\
SIGINT and SIGTERM stop the downloads. The same command continues them. A
second signal ends the process at once.";

const PLAN_EXAMPLES: &str = "\
Can this file be here by six in the morning? When must the download start?
    fairbat plan --deadline 06:00 https://example.org/big.iso
Send a mail if a deadline cannot be met:
    fairbat plan -q --deadline 06:00 \"$url\" || mail -s 'no backup' me
Calculate the needed rate from the size, without a measurement:
    fairbat plan --measure 0 --deadline 4h --json \"$url\" | jq .needed_rate";

const PLAN_VARIABLES: &str = "FAIRBAT_DEADLINE=06:00, FAIRBAT_MEASURE=30s";

const PLAN_EXIT_STATUS: &str = "\
0  comfortable, tight or unknown
1  the server refuses (404, 403), or another error
2  wrong usage
5  a problem of the network or the server; try again
11  impossible as best effort
130  interrupted";

const PUT_EXAMPLES: &str = "\
Upload by six in the morning, and yield as far as that allows:
    fairbat put --deadline 06:00 backup.tar https://example.org/backups/
Choose another name, and log in with ~/.netrc:
    fairbat put -n backup.tar https://example.org/backups/monday.tar
Never replace an existing file:
    fairbat put --create-only backup.tar https://example.org/backups/
Upload to a signed URL:
    fairbat put -H 'Content-Type: application/x-tar' backup.tar \"$url\"";

const PUT_VARIABLES: &str = "FAIRBAT_DEADLINE=4h, FAIRBAT_LIMIT_RATE=2M";

const PUT_SIGNALS: &str = "\
SIGINT and SIGTERM stop the upload. The same command starts it over. A second
signal ends the process at once.";

const PUT_EXIT_STATUS: &str = "\
0  uploaded; also if late, without --fail-late
1  the server refuses (401, 403, 404, 405, 409, 413; 412 with --create-only; a redirect that \
    is not followed), its certificate is not trusted, or another error
2  wrong usage
4  the file changed while it was read
5  a problem of the network or the server, such as a full disk there (507); try again
6  FILE cannot be read, or is not a regular file
10  stopped by --max-time
11  uploaded after the deadline, with --fail-late
130  interrupted";

const SERVE_EXAMPLES: &str = "\
Serve backups to machines that fetch them with fairbat get:
    fairbat serve /srv/backup --listen 0.0.0.0:8080 --token-file /etc/fairbat/token
The same over HTTPS:
    fairbat serve /srv/backup --listen '[::]:8443' --token-file /etc/fairbat/token \\
        --tls-cert cert.pem --tls-key key.pem --allow-host backup.example.org
Make the token and the certificate, and download with them:
    (umask 077; openssl rand -hex 32 > /etc/fairbat/token)
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \\
        -keyout key.pem -out cert.pem -days 3650 -subj /CN=backup.example.org \\
        -addext basicConstraints=critical,CA:FALSE \\
        -addext subjectAltName=DNS:backup.example.org,IP:192.0.2.1
    export FAIRBAT_HEADER=\"Authorization: Bearer $(cat /etc/fairbat/token)\"
    fairbat get --cacert cert.pem https://backup.example.org:8443/FILE
Run a mirror whose responses all yield:
    fairbat serve --background /srv/mirror
Accept uploads, and upload a file with the same token:
    fairbat serve /srv/backup --writable --listen 0.0.0.0:8080 \\
        --token-file /etc/fairbat/token --allow-host backup.example.org
    fairbat put backup.tar http://backup.example.org:8080/monday/
Listen on a free port, and tell it to a program:
    fairbat serve --json --listen 127.0.0.1:0 . | jq -r .url";

const SERVE_FILES: &str = "\
DIR/.fairbat-upload unfinished uploads, with --writable. After a crash, the
                    next start removes what is left there";

const SERVE_VARIABLES: &str = "FAIRBAT_LISTEN=[::]:8080, FAIRBAT_SERVE_HTTP3=yes";

const SERVE_ENVIRONMENT: &str =
    "FAIRBAT_LOG         log filter, replaces -v: info (each request), debug, ...";

const SERVE_SIGNALS: &str = "\
SIGINT and SIGTERM stop the server at once. Clients can resume their downloads.
Unfinished uploads are removed.";

const SERVE_EXIT_STATUS: &str = "\
0  stopped by SIGTERM
1  the address is in use or not of this machine, the token or the certificate cannot be used, \
    --writable lacks a token on a public address, or the kernel is too old
2  wrong usage
6  DIR is missing, not a directory, not readable, or not writable with --writable
130  stopped by SIGINT";

const SETUP_EXAMPLES: &str = "\
sudo fairbat setup
fairbat setup --status
sudo fairbat setup --remove
At each start of the machine, as /etc/systemd/system/fairbat-bpf.service:
    [Service]
    Type=oneshot
    RemainAfterExit=yes
    ExecStart=/usr/bin/fairbat setup
    ExecStop=/usr/bin/fairbat setup --remove
    SuccessExitStatus=3
    [Install]
    WantedBy=multi-user.target
The Debian package has units for this. They need only CAP_BPF and CAP_PERFMON,
and a mount unit makes the file system. In the source, see dist/systemd.";

const SETUP_FILES: &str = "\
/run/fairbat/bpf    the BPF file system with the loaded parts
/sys/kernel/btf/vmlinux
                    the kernel's data types (read)
/proc/sys/net/ipv4/tcp_available_congestion_control
                    the names in use (read)";

const SETUP_EXIT_STATUS: &str = "\
0  both parts are loaded, or removed. With --status: both are loaded
1  both parts failed: not root, the kernel refuses, or a file is in the way. With --remove: \
    one part failed. With --status: a part is not loaded, or is another version
2  wrong usage
3  one part failed and is as before; the other is loaded";

const DOCTOR_EXAMPLES: &str = "\
What can this machine do?
    fairbat doctor
How well will a download from this server yield?
    fairbat doctor --path https://example.org/big.iso";

const DOCTOR_VARIABLES: &str = "FAIRBAT_MEASURE=60s";

const DOCTOR_EXIT_STATUS: &str = "\
0  written, whatever it says
1  it cannot be written; with --path also: the server refuses (404, 403), or another error
2  wrong usage
5  with --path: a problem of the network or the server; try again
130  interrupted";

const OUTPUT_EXIT_STATUS: &str = "\
0  written, whatever it says
1  it cannot be written
2  wrong usage";

const COMPLETIONS_EXAMPLES: &str = "\
fairbat completions bash > ~/.local/share/bash-completion/completions/fairbat
fairbat completions zsh > ~/.zfunc/_fairbat
fairbat completions fish > ~/.config/fish/completions/fairbat.fish";

const MAN_EXAMPLES: &str = "\
fairbat man | man -l -
fairbat man --dir ~/.local/share/man/man1";

const AGENT_FILES: &str = "\
/run/fairbat/agent.sock
                    the agent's socket; members of its group may use it";

const NO_COLOUR: &str = "NO_COLOR            no colours";

const STATUS_EXAMPLES: &str = "\
fairbat status
fairbat status --watch home
Which tasks will be late?
    fairbat status --json | jq -r '.tasks[] | select(.late_s > 0) | .id'";

const ADD_EXAMPLES: &str = "\
Download by six in the morning:
    fairbat add --deadline 06:00 -d /srv/mirror https://example.org/big.iso
Watch the download:
    id=$(fairbat add -d /srv/mirror https://example.org/big.iso)
    fairbat status --watch \"$id\"";

const START_EXAMPLES: &str = "\
fairbat start home
Back up before a risky step:
    fairbat start --wait home && upgrade";

const RESTORE_EXAMPLES: &str = "\
fairbat restore home --to /srv/restored --wait
Restore in spare bandwidth, by the morning:
    fairbat restore home --to /srv/restored --deadline 06:00";

const FLEET_EXAMPLES: &str = "\
fairbat fleet status
fairbat fleet hold media
fairbat fleet release media";

const FLEET_EXIT_STATUS: &str = "\
0  done
1  the agent takes part in no site, there is no permission to use its socket, or another error
2  wrong usage
5  no agent answers, or no coordinator; try again
130  interrupted";

const STATUS_EXIT_STATUS: &str = "\
0  shown
1  no such task, no permission to use the agent's socket, or another error
2  wrong usage
5  the agent does not run, has ended, or does not answer; try again
130  interrupted";

const ADD_EXIT_STATUS: &str = "\
0  the agent has accepted the download
1  the agent refuses, no permission to use its socket, or another error
2  wrong usage
5  the agent does not run, has ended, or does not answer; try again
130  interrupted";

const TASKS_EXIT_STATUS: &str = "\
0  done
1  no such task, the agent refuses, no permission to use its socket, or another error
2  wrong usage
3  the agent refuses some of several tasks; the others are done
5  the agent does not run, has ended, or does not answer; try again
130  interrupted";

const WAIT_EXIT_STATUS: &str = "\
0  accepted by the agent; with --wait: all files are in step, in time or late
1  no such job, the agent refuses, no permission to use its socket, or another error; with \
    --wait also: the run failed for good, or was cancelled
2  wrong usage
3  with --wait: some files failed or changed while they were read; the others are in step
5  the agent does not run, has ended, or does not answer; with --wait also: the run failed, \
    and the agent will try again
130  interrupted; the agent continues the accepted task";
