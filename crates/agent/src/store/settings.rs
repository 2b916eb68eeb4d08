//! Which store, and how to reach it.

use std::fmt;
use std::path::PathBuf;

use url::Url;

/// Which store, and how to reach it.
#[derive(Debug, Clone)]
pub enum StoreSettings {
    /// An S3-compatible store.
    S3(Box<S3Settings>),
    /// A server that takes whole files by PUT.
    Dav(Box<DavSettings>),
    /// A directory.
    Local(PathBuf),
}

/// An S3-compatible store.
#[derive(Clone)]
pub struct S3Settings {
    /// Endpoint; `None` for AWS.
    pub endpoint: Option<Url>,
    /// Region.
    pub region: String,
    /// The bucket. It must exist.
    pub bucket: String,
    /// Path within the bucket; may be empty.
    pub prefix: String,
    /// Whether the bucket is the first name of the path instead of a part of the
    /// host name.
    pub path_style: bool,
    /// Access key ID.
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: String,
    /// Session token of temporary credentials.
    pub session_token: Option<String>,
}

impl fmt::Debug for S3Settings {
    /// Leaves secrets out.
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

/// A server that takes whole files by PUT.
#[derive(Clone)]
pub struct DavSettings {
    /// URL of a collection, `http` or `https`. The collection must exist. A user
    /// name or password in the URL is ignored.
    pub url: Url,
    /// Credentials.
    pub login: Login,
    /// Protocol.
    pub dialect: Dialect,
}

/// Credentials for a server.
#[derive(Clone)]
pub enum Login {
    /// None.
    Anonymous,
    /// Basic authentication (RFC 7617).
    Password {
        /// User name, without a colon.
        user: String,
        /// Password.
        password: String,
    },
    /// A bearer token (RFC 6750).
    Token(String),
}

/// The protocol of a server that takes whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// WebDAV (RFC 4918).
    Webdav,
    /// The HTTP of `fairbat serve --writable`.
    Fairbat,
}

impl fmt::Debug for DavSettings {
    /// Leaves secrets out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DavSettings")
            .field("host", &self.url.host_str())
            .field("port", &self.url.port())
            .field("path", &self.url.path())
            .field("login", &self.login)
            .field("dialect", &self.dialect)
            .finish()
    }
}

impl fmt::Debug for Login {
    /// Leaves secrets out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Password { user, .. } => write!(f, "Password({user}:***)"),
            Self::Token(_) => f.write_str("Token(***)"),
        }
    }
}
