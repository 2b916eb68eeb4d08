//! Where bulk data is kept: the stores, and places in them.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use super::credentials::Spec;

/// A store, by its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// An S3 bucket, or a part of one.
    S3(S3),
    /// A WebDAV collection.
    Webdav(Http),
    /// A `fairbat serve --writable`.
    Fairbat(Http),
    /// A directory of this machine, by its absolute path.
    Local(PathBuf),
}

/// What an S3 store is reached by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3 {
    /// `None` is that of AWS for the region.
    pub endpoint: Option<Url>,
    /// Region that requests are signed for.
    pub region: String,
    /// Name of the bucket.
    pub bucket: String,
    /// What all keys begin with: names joined by `/`, without one at either end;
    /// may be empty.
    pub prefix: String,
    /// Whether the bucket is in the path of a URL and not in its host.
    pub path_style: bool,
    /// Whom to be.
    pub credentials: Spec,
    /// PEM file with the only certificate authorities to trust; `None` trusts the
    /// system's.
    pub cacert: Option<PathBuf>,
}

/// What a store behind a URL is reached by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// `http` or `https`; its path ends with `/`.
    pub url: Url,
    /// Whom to be.
    pub credentials: Spec,
    /// PEM file with the only certificate authorities to trust; `None` trusts the
    /// system's.
    pub cacert: Option<PathBuf>,
}

impl Store {
    /// Where its credentials are; a directory needs none.
    #[must_use]
    pub fn credentials(&self) -> Option<&Spec> {
        match self {
            Self::S3(store) => Some(&store.credentials),
            Self::Webdav(store) | Self::Fairbat(store) => Some(&store.credentials),
            Self::Local(_) => None,
        }
    }
}

/// A directory in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the store.
    pub store: String,
    /// Names joined by `/`, without one at either end, none of them `.` or `..`;
    /// empty is all of the store.
    pub path: String,
}

impl fmt::Display for Place {
    /// As it is written: `STORE:PATH`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.store, self.path)
    }
}
