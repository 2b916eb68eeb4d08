//! Which store, and how to get there.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use super::DavSettings;

/// Which store, and how to get there.
#[derive(Debug, Clone)]
pub enum StoreSettings {
    /// An S3-compatible one.
    S3(Box<S3Settings>),
    /// One behind a URL that takes whole files.
    Dav(Box<DavSettings>),
    /// A directory.
    Local(PathBuf),
}

/// An S3-compatible store.
#[derive(Clone)]
pub struct S3Settings {
    /// Where it is; `None` for AWS.
    pub endpoint: Option<Url>,
    /// Its region.
    pub region: String,
    /// The bucket, which must be there.
    pub bucket: String,
    /// Where in the bucket; may be empty.
    pub prefix: String,
    /// Whether the bucket is the first name of the path, and not of the host.
    pub path_style: bool,
    /// Who asks.
    pub access_key_id: String,
    /// Their secret.
    pub secret_access_key: String,
    /// Of temporary credentials.
    pub session_token: Option<String>,
}

impl fmt::Debug for S3Settings {
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Settings")
            .field("endpoint", &self.endpoint.as_ref().map(Url::host_str))
            .field("region", &self.region)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("path_style", &self.path_style)
            .finish_non_exhaustive()
    }
}
