//! The servers at the other end of the link, at the ports that people know.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use fairbat_tests::bin::{fairbat_binary, s3_server_binary};

use crate::programs::directories::Directories;
use crate::programs::program::Service;
use lab_run::contender::others::PROXY;
use lab_run::contender::process::Program as Process;
use lab_run::host::{Class, Host};
use lab_run::machine::Context as _;

/// Names of the server.
pub(crate) const HOSTS: &str = "files.example.org backup.example.org git.example.org \
                                mirror.example.org hub.example.org objects.example.org";

/// How long a server may take to listen.
const GRACE: Duration = Duration::from_secs(10);

/// Who may write to the store, as the settings of its programs have it.
const ACCESS_KEY: &str = "lab-access";
/// By what.
const SECRET_KEY: &str = "lab-secret";

/// Where fcgiwrap listens for nginx, in the working directory.
const GATEWAY: &str = "git.socket";

/// Files of SSH, in the working directory.
const SSH_FILES: &str = "ssh";

/// What answers as the Hugging Face Hub does, a program in Python.
const HUB: &str = include_str!("served/hub.py");

/// Starts a server at this host; it listens when this returns.
///
/// # Errors
/// It does not.
pub(crate) fn start(
    service: Service,
    host: &Host,
    directories: &Directories,
) -> io::Result<Process> {
    let address = IpAddr::from(host.address(Class::Background));
    let (name, port, command) = match service {
        Service::Git => {
            let socket = directories.work.join(GATEWAY);
            // What was killed leaves it.
            let _ = fs::remove_file(&socket);
            let mut command = Command::new("fcgiwrap");
            command.arg("-s").arg(format!("unix:{}", socket.display()));
            let mut process = Process::start(host, &directories.work, "fcgiwrap", command)?;
            process.tells(GRACE, |_| socket.exists().then_some(()))?;
            return Ok(process);
        }
        Service::Web => ("nginx", 80, nginx(address, directories)?),
        Service::Ssh => ("sshd", 22, sshd(address, directories)?),
        Service::Store => {
            let mut command = Command::new(s3_server_binary());
            command
                .arg(directories.served.join("store"))
                .arg(SocketAddr::new(address, 9000).to_string())
                .args([ACCESS_KEY, SECRET_KEY]);
            ("store", 9000, command)
        }
        Service::Hub => {
            let program = directories.work.join("hub.py");
            fs::write(&program, HUB)?;
            let mut command = Command::new(directories.of("python3")?);
            command
                .arg(program)
                .arg(directories.served.join("hub"))
                .args([address.to_string(), "8080".to_owned()]);
            ("hub", 8080, command)
        }
    };
    let mut process = Process::start(host, &directories.work, name, command)?;
    process.tells(GRACE, |_| {
        let connect = move || TcpStream::connect((address, port)).is_ok();
        host.within(connect).then_some(())
    })?;
    Ok(process)
}

/// Starts `fairbat proxy` at the client; it listens when this returns.
///
/// # Errors
/// It does not.
pub(crate) fn start_proxy(client: &Host, directories: &Directories) -> io::Result<Process> {
    let mut command = Command::new(fairbat_binary());
    command.args(["proxy", "--listen", PROXY]);
    let mut process = Process::start(client, &directories.work, "proxy", command)?;
    process.tells(GRACE, |_| {
        client
            .within(|| TcpStream::connect(PROXY).is_ok())
            .then_some(())
    })?;
    Ok(process)
}

/// Serves `/srv/web`, takes uploads below `/incoming/`, and asks git below `/git/`.
fn nginx(address: IpAddr, directories: &Directories) -> io::Result<Command> {
    let work = directories.work.display();
    let configuration = format!(
        "daemon off;
master_process off;
pid {work}/nginx.pid;
events {{ worker_connections 512; }}
http {{
    client_body_temp_path {work}/nginx-body;
    proxy_temp_path {work}/nginx-proxy;
    fastcgi_temp_path {work}/nginx-fastcgi;
    uwsgi_temp_path {work}/nginx-uwsgi;
    scgi_temp_path {work}/nginx-scgi;
    types {{ text/html html; application/json json info; text/plain mod list; }}
    default_type application/octet-stream;
    access_log off;
    sendfile on;
    server {{
        listen {address}:80;
        root {root}/web;
        autoindex on;
        index index.html index.json;
        location /incoming/ {{
            client_max_body_size 0;
            dav_methods PUT;
            create_full_put_path on;
        }}
        location /git/ {{
            gzip off;
            fastcgi_pass unix:{work}/{GATEWAY};
            fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
            fastcgi_param GIT_PROJECT_ROOT {root};
            fastcgi_param GIT_HTTP_EXPORT_ALL 1;
            fastcgi_param PATH_INFO $uri;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
            fastcgi_param HTTP_GIT_PROTOCOL $http_git_protocol;
            fastcgi_param REMOTE_ADDR $remote_addr;
        }}
    }}
}}
",
        root = directories.served.display(),
    );
    let path = directories.work.join("nginx.conf");
    fs::write(&path, configuration)?;
    let mut command = Command::new(directories.of("nginx")?);
    command.arg("-c").arg(path).args(["-e", "stderr"]);
    Ok(command)
}

fn sshd(address: IpAddr, directories: &Directories) -> io::Result<Command> {
    // Its processes without privilege are kept here.
    fs::create_dir_all("/run/sshd").doing("make /run/sshd")?;
    let files = directories.work.join(SSH_FILES);
    let path = files.join("sshd_config");
    let configuration = format!(
        "ListenAddress {address}:22\n\
         HostKey {host_key}\n\
         AuthorizedKeysFile {own}\n\
         PidFile none\n\
         StrictModes no\n\
         UsePAM no\n\
         PasswordAuthentication no\n\
         PermitRootLogin prohibit-password\n\
         Subsystem sftp internal-sftp\n",
        host_key = files.join("host").display(),
        own = files.join("own.pub").display(),
    );
    fs::write(&path, configuration)?;
    // It starts itself again, and so has to know where it is.
    let mut command = Command::new(directories.of("sshd")?);
    command.args(["-D", "-e", "-f"]).arg(path);
    Ok(command)
}

/// Makes keys, and returns the client's configuration, which has them for every host; `None`
/// without ssh.
///
/// # Errors
/// When a key cannot be made.
pub(crate) fn configure_ssh(directories: &Directories) -> io::Result<Option<PathBuf>> {
    let Some(keygen) = directories.find("ssh-keygen") else {
        return Ok(None);
    };
    let files = directories.work.join(SSH_FILES);
    fs::create_dir(&files)?;
    for name in ["host", "own"] {
        make_key(&keygen, &files.join(name))?;
    }
    let public = fs::read_to_string(files.join("host.pub"))?;
    let known = files.join("known_hosts");
    let line = |name: &str| format!("{name} {public}");
    fs::write(&known, HOSTS.split(' ').map(line).collect::<String>())?;
    let configuration = files.join("ssh_config");
    fs::write(
        &configuration,
        format!(
            "Host *\n\
             IdentityFile {own}\n\
             UserKnownHostsFile {known}\n\
             StrictHostKeyChecking yes\n\
             BatchMode yes\n",
            own = files.join("own").display(),
            known = known.display(),
        ),
    )?;
    Ok(Some(configuration))
}

fn make_key(keygen: &Path, path: &Path) -> io::Result<()> {
    let mut command = Command::new(keygen);
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path);
    let status = command.stdin(Stdio::null()).status();
    match status.doing("start ssh-keygen")?.success() {
        true => Ok(()),
        false => Err(io::Error::other("ssh-keygen made no key")),
    }
}
