//! The files and directories of the agent itself. No download, restore or pull may write
//! there, and no job sends its secrets to a store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::disk_path::DiskPath;

/// What the agent has on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Configuration,
    State,
    Socket,
    Store,
    Credentials,
    Authorities,
}

/// The places of the agent.
#[derive(Debug, Clone)]
pub(crate) struct ReservedPlaces(Vec<(Use, PathBuf)>);

/// A place that is not for others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {how} {what} of the agent, {}", path.display(), place.display())]
pub struct Reserved {
    path: PathBuf,
    /// How the path is related to the place.
    how: &'static str,
    what: &'static str,
    place: PathBuf,
}

/// What to do about it.
pub(crate) const RESERVED_HINT: &str = "choose another place";

impl Use {
    fn name(self) -> &'static str {
        match self {
            Self::Configuration => "the configuration",
            Self::State => "the state",
            Self::Socket => "the socket",
            Self::Store => "a store",
            Self::Credentials => "the credentials",
            Self::Authorities => "the certificate authorities",
        }
    }
}

impl ReservedPlaces {
    /// The places of an agent with this configuration. `variable` reads an environment
    /// variable.
    pub(crate) fn of(config: &Config, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let agent = &config.agent;
        let mut places = vec![
            (Use::Configuration, config.file.clone()),
            (Use::State, agent.state.clone()),
            (Use::Socket, agent.socket.clone()),
        ];
        let directory = variable("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        places.extend(directory.map(|path| (Use::Credentials, path)));
        for store in config.stores.values() {
            let mut add = |what, path: Option<&Path>| {
                places.extend(path.map(|path| (what, path.to_owned())));
            };
            add(Use::Store, store.local_path());
            add(Use::Credentials, store.credentials_file());
            add(Use::Authorities, store.cacert());
        }
        Self(places)
    }

    /// Refuses to write a file, or files of a directory, at one of the places. Blocking.
    ///
    /// # Errors
    /// [`Reserved`].
    pub(crate) fn check_target(&self, to: &Path) -> Result<(), Reserved> {
        let target = DiskPath::of(to);
        self.check(to, "is in", |_, place| target.is_at_or_below(place))
    }

    /// Refuses to fill a directory that contains one of the places. One with the
    /// configuration is no such directory: /etc is restored as well. Blocking.
    ///
    /// # Errors
    /// [`Reserved`].
    pub(crate) fn check_tree(&self, to: &Path) -> Result<(), Reserved> {
        self.check_target(to)?;
        let target = DiskPath::of(to);
        self.check(to, "contains", |what, place| {
            what != Use::Configuration && place.is_at_or_below(&target)
        })
    }

    /// Refuses to read secrets. A store, and a directory around all that, may be read.
    /// Blocking.
    ///
    /// # Errors
    /// [`Reserved`].
    pub(crate) fn check_source(&self, from: &Path) -> Result<(), Reserved> {
        let source = DiskPath::of(from);
        self.check(from, "is in", |what, place| {
            matches!(what, Use::State | Use::Credentials) && source.is_at_or_below(place)
        })
    }

    fn check(
        &self,
        path: &Path,
        how: &'static str,
        is_refused: impl Fn(Use, &DiskPath) -> bool,
    ) -> Result<(), Reserved> {
        let mut places = self.0.iter();
        match places.find(|(what, place)| is_refused(*what, &DiskPath::of(place))) {
            None => Ok(()),
            Some((what, place)) => Err(Reserved {
                path: path.to_owned(),
                how,
                what: what.name(),
                place: place.clone(),
            }),
        }
    }
}
