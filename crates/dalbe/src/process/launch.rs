//! Starts a program so that its system calls are told ([`super::listener`]).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::thread;

use libc::sigset_t;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::inherited::Inherited;
use super::listener::{self, Filter, Listener};
use super::sys::{self, Preparation};

/// Why nobody is told of system calls.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else is told of those of this process already, and there can be one only.
    #[error("another program listens to the system calls of this one already")]
    Taken,
    /// This kernel has no such listener: Linux 5.5 has.
    #[error("this kernel or machine cannot tell of system calls")]
    Unsupported,
    /// Something else refuses.
    #[error("the kernel does not tell of system calls: {0}")]
    Refused(#[source] io::Error),
}

impl ListenError {
    fn of(errno: i32) -> Self {
        match errno {
            libc::EBUSY => Self::Taken,
            libc::EINVAL | libc::ENOSYS => Self::Unsupported,
            other => Self::Refused(io::Error::from_raw_os_error(other)),
        }
    }
}

/// Starts a program with the signal mask that this process was started with.
///
/// # Errors
/// The program cannot be started.
pub fn start(mut command: Command, inherited: &Inherited) -> io::Result<Child> {
    let mask = inherited.mask();
    sys::before_exec(&mut command, Plain { mask });
    command.spawn()
}

/// The preparation of [`start`].
struct Plain {
    mask: sigset_t,
}

impl Preparation for Plain {
    fn prepare(&mut self) -> io::Result<()> {
        sys::set_signal_mask(&self.mask)
    }
}

/// The preparation of [`launch`].
struct Watched {
    mask: sigset_t,
    /// For a process with privilege, and for one without.
    filters: Option<[Filter; 2]>,
    sockets: [UnixStream; 2],
}

impl Preparation for Watched {
    fn prepare(&mut self) -> io::Result<()> {
        sys::set_signal_mask(&self.mask)?;
        let installed = match &self.filters {
            Some([with_privilege, without]) => install(with_privilege, without),
            None => Err(libc::ENOSYS),
        };
        let [first, second] = &self.sockets;
        // Nobody may wait at the second.
        let _ = send(second, &installed);
        send(first, &installed)
    }
}

/// Starts a program, and calls `listen` in a thread of its own with the listener of its system
/// calls. It goes on until `listen` returns; the program begins only when its first call is
/// let go on.
///
/// Without CAP_SYS_ADMIN, the program and all that descend from it get no privileges by
/// set-user-ID programs (`PR_SET_NO_NEW_PRIVS`). Then the calls that run a program are told too.
///
/// The listener is also sent to the other end of `second`, for [`receive`].
///
/// If system calls cannot be told, the program is started all the same.
///
/// # Errors
/// The program cannot be started.
pub fn launch(
    mut command: Command,
    inherited: &Inherited,
    second: UnixStream,
    listen: impl FnOnce(Result<Listener, ListenError>) + Send + 'static,
) -> io::Result<Child> {
    let (ours, theirs) = UnixStream::pair()?;
    let heard = thread::Builder::new().name("listener".to_owned());
    heard.spawn(move || listen(receive(&ours)))?;
    let filters = [false, true].map(listener::filter);
    let preparation = Watched {
        mask: inherited.mask(),
        filters: filters[0]
            .zip(filters[1])
            .map(|(with, without)| [with, without]),
        sockets: [theirs, second],
    };
    sys::before_exec(&mut command, preparation);
    // Dropped with the command is the other end: whoever waits for the listener hears of it.
    command.spawn()
}

/// Installs the filter with privilege, if there is any, or else the one without.
fn install(with: &[libc::sock_filter], without: &[libc::sock_filter]) -> Result<OwnedFd, i32> {
    let number = |error: io::Error| error.raw_os_error().unwrap_or(libc::EINVAL);
    match listener::install(with).map_err(number) {
        Err(libc::EACCES) => {
            rustix::thread::set_no_new_privs(true).map_err(rustix::io::Errno::raw_os_error)?;
            listener::install(without).map_err(number)
        }
        done => done,
    }
}

/// Sends the listener, or the number of the error. Allocates nothing.
fn send(socket: &UnixStream, installed: &Result<OwnedFd, i32>) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut room);
    let errno = installed.as_ref().err().copied().unwrap_or(0);
    let listener = installed.as_ref().map(|it| [it.as_fd()]);
    if let Ok(listener) = &listener {
        rights.push(SendAncillaryMessage::ScmRights(listener));
    }
    sendmsg(
        socket,
        &[IoSlice::new(&errno.to_ne_bytes())],
        &mut rights,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Waits for the listener that [`launch`] sends, at the other end of its second socket.
///
/// # Errors
/// There is none, or the program was not started.
pub fn receive(socket: &UnixStream) -> Result<Listener, ListenError> {
    let refused = |error: rustix::io::Errno| ListenError::Refused(error.into());
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut room);
    let mut errno = [0; size_of::<i32>()];
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut errno)],
        &mut rights,
        RecvFlags::CMSG_CLOEXEC,
    )
    .map_err(refused)?;
    let mut descriptors = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut received) => received.next(),
        _ => None,
    });
    match descriptors.next() {
        Some(listener) => Ok(Listener::from_fd(listener)),
        None => Err(ListenError::of(i32::from_ne_bytes(errno))),
    }
}
