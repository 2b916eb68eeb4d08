//! The two maps of a part. Processes write requests for their sockets to one map.
//! The programs write answers about these sockets to the other. Each entry belongs
//! to a socket, and a descriptor of the socket is its key.
//!
//! Without the feature `bpf`, opening them fails with
//! [`EbpfUnavailable::NotBuilt`](super::EbpfUnavailable::NotBuilt).

#[cfg(not(feature = "bpf"))]
pub(crate) use self::not_built::SocketMaps;
#[cfg(feature = "bpf")]
pub(crate) use self::opened::SocketMaps;

#[cfg(feature = "bpf")]
mod opened {
    use std::fs;
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use libbpf_rs::libbpf_sys::BPF_F_RDONLY;
    use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
    use zerocopy::{FromBytes, Immutable, IntoBytes};

    use crate::ebpf::pins::{self, PinDirectory, io_error};
    use crate::ebpf::{EbpfPart, EbpfUnavailable};
    use crate::socket::TcpSocket;

    /// The maps of a part that is set up, opened by this process.
    #[derive(Debug)]
    pub(crate) struct SocketMaps {
        requests: MapHandle,
        answers: MapHandle,
        /// All that is pinned beside the maps.
        pins: Vec<String>,
        /// Where the requests are pinned, and which file is there.
        path: PathBuf,
        identity: Option<(u64, u64)>,
    }

    impl SocketMaps {
        /// Opens the maps, with requests of type `R` and answers of type `A`, in
        /// the version that this build speaks.
        pub(crate) fn open<R, A>(
            directory: &Path,
            part: EbpfPart,
        ) -> Result<Self, EbpfUnavailable> {
            let place = PinDirectory::new(directory, part);
            let [requests, answers] = place.maps();
            let ours = place.version(place.ours());
            let path = ours.join(requests);
            Ok(Self {
                requests: open::<R>(&place, requests, 0)?,
                answers: open::<A>(&place, answers, BPF_F_RDONLY)?,
                pins: pins::names(&ours).map_err(EbpfUnavailable::Kernel)?,
                identity: identity(&path),
                path,
            })
        }

        /// Whether these are still the maps that are set up.
        pub(crate) fn are_current(&self) -> bool {
            identity(&self.path) == self.identity
        }

        /// The names of all pins beside the maps.
        pub(crate) fn pins(&self) -> &[String] {
            &self.pins
        }

        /// Sets the request for a socket.
        pub(crate) fn request(
            &self,
            socket: &TcpSocket,
            request: &(impl IntoBytes + Immutable),
        ) -> io::Result<()> {
            self.requests
                .update(&key(socket), request.as_bytes(), MapFlags::ANY)
                .map_err(|error| io_error(&error))
        }

        /// The answer of the programs about a socket; `None` without one.
        pub(crate) fn answer<A: FromBytes + IntoBytes>(
            &self,
            socket: &TcpSocket,
        ) -> io::Result<Option<A>> {
            let mut answer = A::new_zeroed();
            self.answers
                .lookup_into(&key(socket), answer.as_mut_bytes(), MapFlags::ANY)
                .map(|is_there| is_there.then_some(answer))
                .map_err(|error| io_error(&error))
        }
    }

    /// Opens a map with values of type `T`. The version is in the path of a pin,
    /// so maps of another size there do not come from `fairbat setup`.
    fn open<T>(place: &PinDirectory, name: &str, flags: u32) -> Result<MapHandle, EbpfUnavailable> {
        let ours = place.version(place.ours());
        let map = MapHandle::from_pinned_path_with_file_flags(ours.join(name), flags);
        let map = map.map_err(|error| match error.kind() {
            ErrorKind::NotFound => match place.other_version() {
                Some(found) => EbpfUnavailable::OtherVersion {
                    found,
                    needed: place.ours(),
                },
                None => EbpfUnavailable::NotSetUp,
            },
            ErrorKind::PermissionDenied => EbpfUnavailable::NotPermitted(io_error(&error)),
            _ => EbpfUnavailable::Kernel(io_error(&error)),
        })?;
        if usize::try_from(map.value_size()).is_ok_and(|size| size == size_of::<T>()) {
            return Ok(map);
        }
        Err(EbpfUnavailable::Kernel(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} holds other maps", ours.display()),
        )))
    }

    /// The entry of a socket in a map.
    fn key(socket: &TcpSocket) -> [u8; 4] {
        socket.as_fd().as_raw_fd().to_ne_bytes()
    }

    /// Device and number of a file.
    fn identity(path: &Path) -> Option<(u64, u64)> {
        let found = fs::symlink_metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    }
}

/// Takes the place of the maps in a build without the feature `bpf`.
#[cfg(not(feature = "bpf"))]
mod not_built {
    use std::convert::Infallible;
    use std::io;
    use std::path::Path;

    use crate::ebpf::{EbpfPart, EbpfUnavailable};
    use crate::socket::TcpSocket;

    /// There are none.
    #[derive(Debug)]
    pub(crate) struct SocketMaps(Infallible);

    impl SocketMaps {
        pub(crate) fn open<R, A>(
            _directory: &Path,
            _part: EbpfPart,
        ) -> Result<Self, EbpfUnavailable> {
            Err(EbpfUnavailable::NotBuilt)
        }

        pub(crate) fn are_current(&self) -> bool {
            match self.0 {}
        }

        pub(crate) fn pins(&self) -> &[String] {
            match self.0 {}
        }

        pub(crate) fn request<R>(&self, _socket: &TcpSocket, _request: &R) -> io::Result<()> {
            match self.0 {}
        }

        pub(crate) fn answer<A>(&self, _socket: &TcpSocket) -> io::Result<Option<A>> {
            match self.0 {}
        }
    }
}
