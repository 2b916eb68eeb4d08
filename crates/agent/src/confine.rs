//! What the process gives up if root starts it without a service manager: the rights that
//! the unit of systemd does not give either. Afterwards it may read every file, and write
//! only where the configuration says.
//!
//! Capabilities and Landlock are properties of a thread, which its children inherit. So
//! the process does this before it has other threads.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, path_beneath_rules,
};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, no_new_privs, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use crate::config::{Config, Course, StoreConfig};
use crate::disk_path::DiskPath;
use crate::state::make_private_directory;

/// The right that the unit gives: to read every file.
const READ: CapabilitySet = CapabilitySet::DAC_READ_SEARCH;

/// What root has in its place in a container: to read and write every file.
const READ_AND_WRITE: CapabilitySet = CapabilitySet::DAC_OVERRIDE;

/// What giving files their owners back takes besides. A drop-in of the unit has the same.
const RESTORE_OWNERS: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// The version of Landlock whose rights are taken away. Later ones restrict more than
/// files, such as connecting to the service manager. An older kernel takes away what it
/// knows.
const LANDLOCK: ABI = ABI::V5;

/// Where everybody may write.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The places that the process may write to.
#[derive(Debug, Default)]
pub struct Confinement {
    /// `None` if it may write wherever its user may.
    places: Option<Vec<DiskPath>>,
}

/// The process has given up the right to write at this path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent may not write to {}", .0.display())]
pub struct Confined(PathBuf);

/// What to do about it.
pub(crate) const CONFINED_HINT: &str = "root has started it, so it writes only to the places of \
    its configuration as they were then; name the directory in write_paths of [agent], or mount \
    its disk, and restart the agent";

impl Confinement {
    /// Gives up what the agent does not need, if root has started it and no service
    /// manager has confined it. Says so in the log. What cannot be given up is no error.
    #[must_use]
    pub fn enter(config: &Config) -> Self {
        // Systemd names each start of a unit.
        let by_manager = std::env::var_os("INVOCATION_ID").is_some();
        let is_confined = by_manager && no_new_privs().unwrap_or(false);
        if !rustix::process::geteuid().is_root() || is_confined {
            return Self::default();
        }
        if let Err(error) = make_private_directory(&config.agent.state) {
            // The start fails for the same reason.
            tracing::debug!(%error, "the directory of the state cannot be made");
        }
        let permitted = capabilities(None).map_or(READ, |sets| sets.permitted);
        let (mut kept, reading) = match permitted {
            has if has.contains(READ) => (READ, "only the right to read every file"),
            has if has.contains(READ_AND_WRITE) => (
                READ_AND_WRITE,
                "only the right to read and write every file",
            ),
            _ => (CapabilitySet::empty(), "no right to files of other users"),
        };
        if config.agent.restore_owners {
            kept |= RESTORE_OWNERS;
        }
        if let Err(error) = drop_capabilities(kept) {
            tracing::warn!("root's rights cannot be given up: {error}");
        }
        let places = writable_places(config);
        let has_landlock = restrict_writes(&places).unwrap_or_else(|error| {
            tracing::warn!("Landlock cannot be used: {error}");
            false
        });
        let listed: Vec<_> = places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        tracing::info!(
            "started as root: keeps {reading}{}, takes no new ones, and {}",
            if config.agent.restore_owners {
                ", and those that give files their owners"
            } else {
                ""
            },
            match has_landlock {
                true => format!("writes only below {}", listed.join(", ")),
                false => "may write root's files, because the kernel has no Landlock, or one \
                          before Linux 5.19"
                    .to_owned(),
            }
        );
        Self {
            places: has_landlock.then(|| places.iter().map(|place| DiskPath::of(place)).collect()),
        }
    }

    /// Refuses a path where the process cannot write. Blocking.
    ///
    /// # Errors
    /// [`Confined`].
    pub(crate) fn check(&self, to: &Path) -> Result<(), Confined> {
        let Some(places) = &self.places else {
            return Ok(());
        };
        let target = DiskPath::of(to);
        match places.iter().any(|place| target.is_at_or_below(place)) {
            true => Ok(()),
            false => Err(Confined(to.to_owned())),
        }
    }
}

/// Keeps these capabilities at most, and lets nothing give others back.
fn drop_capabilities(kept: CapabilitySet) -> Result<(), Errno> {
    set_no_new_privs(true)?;
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        // The kernel refuses numbers that it does not know.
        if !kept.contains(one) && capability_is_in_bounding_set(one) == Ok(true) {
            match remove_capability_from_bounding_set(one) {
                // Root in a container may not. It cannot use the set any more either.
                Ok(()) | Err(Errno::PERM) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    clear_ambient_capability_set()?;
    let kept = kept & capabilities(None)?.permitted;
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )
}

/// The existing directories that the configuration has the agent write to.
fn writable_places(config: &Config) -> Vec<PathBuf> {
    let agent = &config.agent;
    let stores = config.stores.values().filter_map(StoreConfig::local_path);
    let pulls = config.jobs.iter().filter_map(|job| match &job.course {
        Course::Pull { to, .. } => Some(to),
        Course::Push { .. } => None,
    });
    let others = pulls.chain(&agent.write_paths).map(PathBuf::as_path);
    let named = stores.chain(others).chain(agent.socket.parent());
    let named = named.chain([agent.state.as_path()]);
    let temporary = std::env::temp_dir();
    let named = named.chain(TEMPORARY.map(Path::new));
    let named = named.chain([temporary.as_path()]);
    let existing = named.filter_map(|path| {
        // A run makes what is missing. To make a directory of the root, it needs a hand.
        let existing = path.ancestors().find(|path| path.is_dir())?;
        existing.parent().map(|_| existing.to_owned())
    });
    let mut places: Vec<_> = existing.collect();
    places.sort();
    places.dedup();
    places
}

/// Lets the thread read everything and write only below these directories. Returns
/// whether the kernel does that. The first version of Landlock would forbid to rename a
/// file from one directory to another, which stores do.
fn restrict_writes(places: &[PathBuf]) -> Result<bool, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let renaming = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer);
    let Ok(ruleset) = renaming else {
        return Ok(false);
    };
    let status = ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules(["/"], read))?
        .add_rules(path_beneath_rules(
            places,
            read | AccessFs::from_write(LANDLOCK),
        ))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_thread_that_gave_it_up_writes_only_where_it_may() {
        let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let (inside, outside) = (inside.path().to_owned(), outside.path().to_owned());
        fs::write(outside.join("file"), "x").unwrap();
        let confined = std::thread::spawn(move || {
            if !restrict_writes(std::slice::from_ref(&inside)).unwrap() {
                eprintln!("SKIPPED: the kernel has no Landlock");
                return;
            }
            fs::create_dir(inside.join("directory")).unwrap();
            fs::write(inside.join("directory/file"), "x").unwrap();
            fs::rename(inside.join("directory/file"), inside.join("file")).unwrap();
            assert_eq!(fs::read(outside.join("file")).unwrap(), b"x");
            for refused in [
                fs::write(outside.join("file"), "y"),
                fs::create_dir(outside.join("directory")),
                fs::remove_file(outside.join("file")),
            ] {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
            }
        });
        confined.join().unwrap();
    }
}
