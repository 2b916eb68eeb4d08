//! Whose connections are held, and which of the processes can be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dalbe::process::{ForeignProcess, descendants, members_of};
use dalbe::socket::TcpSocket;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::unit::control_group;

/// Whose connections are held.
#[derive(Debug, Clone)]
pub enum Scope {
    /// All that descends from this process.
    Below(i32),
    /// This process and all that descends from it.
    Tree(i32),
    /// The processes of this control group, by its directory.
    Group(PathBuf),
    /// The processes of this unit of the system's systemd, while it runs.
    Unit(String),
    /// Nobody's but those that are told ([`super::Holder::connects`]).
    Told,
}

/// A socket that was found: its descriptor in a process, and its inode.
#[derive(Debug, Clone)]
pub(super) struct FoundSocket {
    pub(super) process: Arc<ForeignProcess>,
    pub(super) descriptor: i32,
    pub(super) inode: u64,
}

/// The processes of a scope.
#[derive(Debug)]
pub(super) struct Processes {
    scope: Scope,
    known: BTreeMap<i32, Arc<ForeignProcess>>,
    /// Whether they have been looked for.
    is_begun: bool,
    /// The control group of a unit, when it ran last.
    unit_group: PathBuf,
    /// Those whose sockets could not be reached at the last look. A process that is about to end
    /// cannot either.
    suspects: BTreeSet<i32>,
    /// Those whose sockets could not be reached twice in a row.
    out_of_reach: BTreeSet<i32>,
    /// Those of them that have been told.
    reported: BTreeSet<i32>,
}

impl Processes {
    pub(super) fn of(scope: Scope) -> Self {
        Self {
            scope,
            known: BTreeMap::new(),
            is_begun: false,
            unit_group: PathBuf::new(),
            suspects: BTreeSet::new(),
            out_of_reach: BTreeSet::new(),
            reported: BTreeSet::new(),
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Finds out which processes there are now.
    ///
    /// # Errors
    /// `/proc` or the control group cannot be read.
    pub(super) fn refresh(&mut self) -> io::Result<()> {
        self.known.retain(|_, process| !process.has_ended());
        let now = match &self.scope {
            Scope::Below(root) => descendants([*root])?,
            Scope::Tree(root) => {
                if !self.is_begun {
                    self.open(*root);
                }
                // Those whose parents have ended are still of the tree.
                let known: Vec<i32> = self.known.keys().copied().collect();
                let below = descendants(known.iter().copied())?;
                known.into_iter().chain(below).collect()
            }
            Scope::Group(directory) => present_in(directory)?,
            Scope::Unit(unit) => {
                // It may have been started again in another place.
                if !self.unit_group.exists() {
                    self.unit_group = control_group(unit).unwrap_or_default();
                }
                present_in(&self.unit_group)?
            }
            Scope::Told => BTreeSet::new(),
        };
        self.is_begun = true;
        self.known.retain(|number, _| now.contains(number));
        self.out_of_reach.retain(|number| now.contains(number));
        self.reported.retain(|number| now.contains(number));
        self.suspects.retain(|number| now.contains(number));
        for number in now {
            self.open(number);
        }
        Ok(())
    }

    /// A process of the scope, which may be new.
    pub(super) fn open(&mut self, number: i32) -> Option<Arc<ForeignProcess>> {
        if let Some(known) = self.known.get(&number) {
            return Some(Arc::clone(known));
        }
        // It may have ended meanwhile.
        let opened = Arc::new(ForeignProcess::open(number).ok()?);
        if !matches!(self.scope, Scope::Told) {
            self.known.insert(number, Arc::clone(&opened));
        }
        Some(opened)
    }

    /// A socket of a process that was found could not be reached.
    fn suspect(&mut self, number: i32) {
        if !self.suspects.insert(number) {
            self.out_of_reach.insert(number);
        }
    }

    /// Those whose sockets cannot be reached, and that this has not told yet.
    pub(super) fn newly_out_of_reach(&mut self) -> Vec<i32> {
        let new: Vec<_> = self
            .out_of_reach
            .difference(&self.reported)
            .copied()
            .collect();
        self.reported.extend(&new);
        new
    }

    /// The sockets of all processes.
    pub(super) fn sockets(&mut self) -> Vec<FoundSocket> {
        let mut found = Vec::new();
        let mut refused = Vec::new();
        for (number, process) in &self.known {
            match process.sockets() {
                Ok(sockets) => {
                    found.extend(sockets.into_iter().map(|(descriptor, inode)| FoundSocket {
                        process: Arc::clone(process),
                        descriptor,
                        inode,
                    }));
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refused.push(*number);
                }
                // It has ended.
                Err(_) => {}
            }
        }
        refused.into_iter().for_each(|number| self.suspect(number));
        found
    }

    /// A socket that was found, for a moment. The right to list descriptors is not the right to
    /// duplicate them.
    pub(super) fn reach(&mut self, found: &FoundSocket) -> Option<TcpSocket> {
        match found.process.socket(found.descriptor) {
            Ok(socket) => Some(socket),
            Err(error) => {
                if error.kind() == io::ErrorKind::PermissionDenied {
                    self.suspect(found.process.number());
                }
                None
            }
        }
    }
}

/// The processes of a control group; none if it is gone.
///
/// # Errors
/// It cannot be read.
fn present_in(group: &Path) -> io::Result<BTreeSet<i32>> {
    match members_of(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        // The kernel's word for one that goes away meanwhile.
        Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {
            Ok(BTreeSet::new())
        }
        found => found,
    }
}

/// Whether the scope has any process now.
#[must_use]
pub fn is_running(scope: &Scope) -> bool {
    let mut processes = Processes::of(scope.clone());
    processes.refresh().is_ok() && !processes.is_empty()
}

/// Allows this process as many descriptors as it may have: a scope takes one for each process.
pub fn allow_descriptors() {
    let limits = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limits.maximum,
        ..limits
    };
    let _ = setrlimit(Resource::Nofile, most);
}
