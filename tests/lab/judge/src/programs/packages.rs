//! Package managers, each with a mirror of its own.

use crate::programs::program::{Program, Service};

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "apt-update",
        moves: "an index of 37 MB, by HTTP",
        command: "fairbat run -- apt-get update -q",
        check: "test $(apt-cache pkgnames | wc -l) -ge 100000",
        proxies: &["http", "socks5h"],
        ..APT
    },
    Program {
        name: "apt-install",
        moves: "40 packages of 1 MB, by HTTP",
        before: concat!(include_str!("served/apt.sh"), "apt-get update -q"),
        command: "fairbat run -- apt-get install -q -y --download-only '^tool.*'",
        check: "rm -rf cache/archives/lock cache/archives/partial\n\
                test $(ls cache/archives | wc -l) = 40\n\
                for file in /srv/archives/*.deb; do cmp $file cache/archives/${file##*/}; done",
        proxies: &["http", "socks5h"],
        ..APT
    },
    Program {
        name: "pip",
        moves: "40 wheels of 1 MB, by HTTP",
        needs: &[("pip", "the Debian package python3-venv")],
        version: "pip --version | cut -d ' ' -f 1-2",
        settings: "export PIP_INDEX_URL=http://mirror.example.org/simple/\n\
                   export PIP_TRUSTED_HOST=mirror.example.org PIP_DISABLE_PIP_VERSION_CHECK=1",
        served: concat!(
            "python3 - <<'END'\n",
            include_str!("served/wheels.py"),
            "END"
        ),
        before: "cp /srv/requirements.txt .",
        command: "fairbat run -- pip download -q -d wheels -r requirements.txt",
        check: "diff -r wheels /srv/wheels",
        proxies: &["http"],
        ..Program::DOWNLOAD
    },
    Program {
        name: "npm",
        moves: "60 packages of 650 kB, by HTTP",
        needs: &[("npm", "the Debian package npm"), PYTHON],
        version: "echo npm $(npm --version)",
        settings: "export npm_config_registry=http://mirror.example.org/npm/\n\
                   export npm_config_update_notifier=false",
        served: concat!("python3 - <<'END'\n", include_str!("served/npm.py"), "END"),
        before: "cp /srv/package.json .",
        command: "fairbat run -- npm install --no-audit --no-fund --silent",
        check: "for package in package-0 package-59; do\n\
                tar -xOf /srv/web/npm/$package/-/$package-1.0.0.tgz package/data |\n\
                cmp - node_modules/$package/data\n\
                done\n\
                npm ls --silent >list",
        proxies: &["http"],
        ..Program::DOWNLOAD
    },
    Program {
        name: "go",
        moves: "80 modules of 500 kB, by HTTP",
        needs: &[("go", "the Debian package golang-go"), PYTHON],
        version: "go version",
        settings: "export GOPROXY=http://mirror.example.org/go GONOSUMDB=example.org\n\
                   export GOTOOLCHAIN=local GOFLAGS=-modcacherw",
        served: concat!(
            "python3 - <<'END'\n",
            include_str!("served/modules.py"),
            "END"
        ),
        before: "cp /srv/go.mod .",
        command: "fairbat run -- go mod download",
        check: "go mod verify\n\
                test $(ls -d go/pkg/mod/example.org/module*@v1.0.0 | wc -l) = 80",
        proxies: &["http", "socks5"],
        ..Program::DOWNLOAD
    },
    Program {
        name: "hf",
        moves: "a model of 40 MB, by HTTP",
        services: &[Service::Hub],
        needs: &[("hf", "tests/lab/requirements.txt")],
        version: "NO_COLOR=1 hf version | grep -o '[0-9.]*[0-9]' | sed 's|^|huggingface_hub |'",
        settings: "export HF_ENDPOINT=http://hub.example.org:8080 HF_HUB_DISABLE_TELEMETRY=1",
        served: "mkdir -p hub/example/model\n\
                 cd hub/example/model\n\
                 echo '{}' >config.json\n\
                 for number in 1 2; do head -c 20000000 /dev/urandom >part-$number.safetensors; done",
        command: "fairbat run -- hf download example/model --local-dir model",
        check: "rm -rf model/.cache; diff -r model /srv/hub/example/model",
        proxies: &["http"],
        ..Program::DOWNLOAD
    },
];

const PYTHON: (&str, &str) = ("python3", "the Debian package python3-venv");

/// With a repository, and directories of its own in the place of the machine's.
const APT: Program = Program {
    needs: &[
        ("apt-get", "the Debian package apt"),
        ("apt-ftparchive", "the Debian package apt-utils"),
        ("dpkg-deb", "the Debian package dpkg"),
    ],
    version: "apt-get --version",
    settings: "export APT_CONFIG=$HOME/apt.conf",
    served: include_str!("served/debs.sh"),
    before: include_str!("served/apt.sh"),
    ..Program::DOWNLOAD
};
