//! The socket of the API: its permissions, and the socket that a dead agent has left
//! behind.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use rustix::fs::Mode;
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::UnixListener;

/// Who may open a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketAccess {
    /// The agent's user and group. The group comes from the directory or from the service.
    Group,
    /// Everybody.
    Everybody,
}

impl SocketAccess {
    /// The mode of the socket.
    fn mode(self) -> u32 {
        match self {
            Self::Group => 0o660,
            Self::Everybody => 0o666,
        }
    }
}

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

/// Listens at `path`, in an existing directory. Replaces the socket of a dead agent.
/// Needs a tokio runtime.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] while another agent listens there,
/// [`io::ErrorKind::AlreadyExists`] if the path is not a socket, or the error of the
/// system. Each names the path.
pub fn listen(path: &Path, access: SocketAccess) -> io::Result<UnixListener> {
    let named = |error: io::Error| {
        let what = format!("cannot listen at {}: {error}", path.display());
        io::Error::new(error.kind(), what)
    };
    bind(path, access).map_err(named)
}

fn bind(path: &Path, access: SocketAccess) -> io::Result<UnixListener> {
    let address = SockAddr::unix(path)?;
    make_room(path, &address)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // The kernel gives the file the mode of the socket less the umask. So the file is
    // never too open, and its mode has to be set once more.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(access.mode()))?;
    socket.bind(&address).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            "its directory is not there (systemd makes it: RuntimeDirectory=fairbat/agent)",
        ),
        _ => error,
    })?;
    fs::set_permissions(path, fs::Permissions::from_mode(access.mode()))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    UnixListener::from_std(std::os::fd::OwnedFd::from(socket).into())
}

/// Removes a socket on which no process listens.
fn make_room(path: &Path, address: &SockAddr) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        let what = "there is a file that is not a socket; move it away, or choose another path";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // An agent that hangs and accepts nothing is still alive.
    probe.set_nonblocking(true)?;
    match probe.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        Ok(()) | Err(_) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another agent is running and listens there; end it first",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[tokio::test]
    async fn the_socket_of_a_dead_agent_is_replaced_and_that_of_a_living_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.sock");
        let living = listen(&path, SocketAccess::Group).unwrap();
        assert_eq!(mode(&path), 0o660);
        let refused = listen(&path, SocketAccess::Group).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        let said = refused.to_string();
        assert!(said.contains("another agent is running"), "{said}");
        assert!(said.contains("agent.sock"), "{said}");
        drop(living);
        assert!(path.exists(), "what a dead agent leaves behind");
        let _again = listen(&path, SocketAccess::Everybody).unwrap();
        assert_eq!(mode(&path), 0o666);
    }

    #[tokio::test]
    async fn nothing_else_is_removed_and_no_directory_made() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "kept").unwrap();
        let refused = listen(&file, SocketAccess::Group).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).unwrap(), b"kept");
        let refused = listen(
            &directory.path().join("none/agent.sock"),
            SocketAccess::Group,
        )
        .unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        let said = refused.to_string();
        assert!(said.contains("RuntimeDirectory"), "{said}");
        let long = directory.path().join("n".repeat(120));
        assert_eq!(
            listen(&long, SocketAccess::Group).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }
}
