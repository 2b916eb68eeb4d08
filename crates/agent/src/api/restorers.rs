//! Whether the user at the other end of a connection may restore. The kernel knows the user.

use tokio::net::UnixStream;

/// The users who may restore, besides root and the user of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Restorers {
    /// Everybody who may open the socket.
    #[default]
    Everybody,
    /// The members of a group.
    Group {
        /// Its name, for people.
        name: String,
        /// Its number.
        id: u32,
    },
}

impl Restorers {
    /// The group that the process at the other end would have to be in to restore; `None`
    /// if it may restore.
    pub(crate) fn deny(&self, stream: &UnixStream) -> Option<String> {
        let Self::Group { name, id } = self else {
            return None;
        };
        let is_one = stream.peer_cred().is_ok_and(|peer| {
            let groups = || dalbe::socket::peer_groups(stream).unwrap_or_default();
            is_trusted(peer.uid()) || peer.gid() == *id || groups().contains(id)
        });
        (!is_one).then(|| name.clone())
    }
}

/// Whether this is root or the user of the agent.
pub(crate) fn is_trusted(user: u32) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&user)
}
