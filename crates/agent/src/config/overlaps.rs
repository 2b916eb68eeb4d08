//! Jobs that write to the same directory, or into their own source.
//!
//! The check compares names. It does not notice one server under two host names, nor
//! symbolic links.

use std::path::{Path, PathBuf};

use super::job::Course;
use super::jobs::Located;
use super::problem::Checker;
use super::store::{StoreConfig, StoreDirectory, Stores};

/// The position of a place. Two stores may be parts of one server.
#[derive(Debug)]
struct StoreLocation {
    /// The server and bucket, or this machine. Places with different roots never overlap.
    root: String,
    /// The path below the root.
    path: PathBuf,
}

impl StoreLocation {
    fn of(place: &StoreDirectory, stores: &Stores) -> Option<Self> {
        Some(match stores.get(&place.store)?.as_ref()? {
            StoreConfig::S3(store) => {
                let endpoint = store.endpoint.as_ref().map(ToString::to_string);
                let endpoint = endpoint.unwrap_or_default();
                Self {
                    root: format!("s3 {endpoint} {}", store.bucket),
                    path: Path::new(&store.prefix).join(&place.path),
                }
            }
            StoreConfig::Webdav(store) | StoreConfig::Fairbat(store) => Self {
                root: store.url.origin().ascii_serialization(),
                path: Path::new(store.url.path()).join(&place.path),
            },
            StoreConfig::Local(local) => Self {
                root: "local".to_owned(),
                path: local.path.join(&place.path),
            },
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.root == other.root && overlap(&self.path, &other.path)
    }
}

/// Whether one path contains the other, or both are equal.
fn overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// The destination of a job.
enum JobDestination<'a> {
    Store(Option<StoreLocation>),
    Directory(&'a Path),
}

/// Reports all overlaps.
pub(crate) fn check_overlaps(jobs: &[Located], stores: &Stores, check: &mut Checker<'_>) {
    let destinations = jobs.iter().map(|located| match &located.job.course {
        Course::Push { to, .. } => JobDestination::Store(StoreLocation::of(to, stores)),
        Course::Pull { to, .. } => JobDestination::Directory(to),
    });
    let destinations: Vec<JobDestination<'_>> = destinations.collect();
    for (i, located) in jobs.iter().enumerate() {
        let earlier = destinations.iter().zip(jobs).take(i);
        for (theirs, other) in earlier {
            let is_overlap = match (&destinations[i], theirs) {
                (JobDestination::Store(Some(a)), JobDestination::Store(Some(b))) => a.overlaps(b),
                (JobDestination::Directory(a), JobDestination::Directory(b)) => overlap(a, b),
                _ => false,
            };
            if is_overlap {
                let (name, other) = (&located.job.name, &other.job.name);
                let what = format!("jobs `{name}` and `{other}` write to the same directory");
                let advice = "choose destinations that do not overlap";
                check.add(located.destination.clone(), what, advice);
            }
        }
        check_self_overlap(located, stores, check);
    }
}

/// Reports a job whose ends are both on this machine, one within the other.
fn check_self_overlap(located: &Located, stores: &Stores, check: &mut Checker<'_>) {
    let (Course::Push {
        from: directory,
        to: place,
    }
    | Course::Pull {
        from: place,
        to: directory,
    }) = &located.job.course;
    let Some(Some(StoreConfig::Local(local))) = stores.get(&place.store) else {
        return;
    };
    if overlap(directory, &local.path.join(&place.path)) {
        let what = format!(
            "job `{}` writes into its own source: {place} and {} overlap",
            located.job.name,
            directory.display()
        );
        let advice = "choose separate directories";
        check.add(located.source.clone(), what, advice);
    }
}
