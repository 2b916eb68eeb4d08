//! Programs that somebody wrote, in several languages.

use crate::programs::program::Program;

const PYTHON: &[(&str, &str)] = &[("python3", "the Debian package python3-venv")];

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "python",
        needs: PYTHON,
        version: "echo \"$(python3 --version), requests $(python3 -c \
                  'import requests; print(requests.__version__)')\"",
        before: concat!(
            "cat >fetch.py <<'END'\n",
            include_str!("served/fetch.py"),
            "END"
        ),
        command: "fairbat run -- python3 fetch.py http://files.example.org/image.iso image.iso",
        proxies: &["http"],
        ..Program::DOWNLOAD
    },
    Program {
        name: "java",
        needs: &[("javac", "the Debian package default-jdk-headless")],
        version: "java -version 2>&1",
        before: concat!(
            "cat >Fetch.java <<'END'\n",
            include_str!("served/Fetch.java"),
            "END\njavac Fetch.java"
        ),
        command: "fairbat run -- java -cp . Fetch http://files.example.org/image.iso image.iso",
        ..Program::DOWNLOAD
    },
    Program {
        name: "node",
        needs: &[("node", "the Debian package nodejs")],
        version: "echo node $(node --version)",
        before: concat!(
            "cat >fetch.mjs <<'END'\n",
            include_str!("served/fetch.mjs"),
            "END"
        ),
        command: "fairbat run -- node fetch.mjs http://files.example.org/image.iso image.iso",
        ..Program::DOWNLOAD
    },
    Program {
        name: "daemon",
        moves: "a file of 40 MB, by HTTP, by a process that has left its parent",
        needs: PYTHON,
        version: "python3 --version",
        before: concat!(
            "cat >daemon.py <<'END'\n",
            include_str!("served/daemon.py"),
            "END"
        ),
        command: "fairbat run -- sh -c 'python3 daemon.py http://files.example.org/image.iso image.iso; \
                  until [ -e image.iso ]; do sleep 0.01; done'",
        ..Program::DOWNLOAD
    },
];
