//! Where a store behind a URL is, and who asks.

use std::fmt;

use url::Url;

/// A store that takes whole files by PUT.
#[derive(Clone)]
pub struct DavSettings {
    /// `http` or `https`: a collection, which must be there. A user name and a
    /// password in it are not looked at.
    pub url: Url,
    /// Who asks.
    pub login: Login,
    /// What it speaks.
    pub dialect: Dialect,
}

/// Who asks.
#[derive(Clone)]
pub enum Login {
    /// Anybody.
    Anonymous,
    /// By Basic authentication (RFC 7617).
    Password {
        /// User name, without a colon.
        user: String,
        /// Password.
        password: String,
    },
    /// By a bearer token (RFC 6750).
    Token(String),
}

/// What a store behind a URL speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// WebDAV (RFC 4918), as any server has it.
    Webdav,
    /// That of `fairbat serve --writable`.
    Fairbat,
}

impl fmt::Debug for DavSettings {
    /// Without secrets.
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
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Password { user, .. } => write!(f, "Password({user}:***)"),
            Self::Token(_) => f.write_str("Token(***)"),
        }
    }
}
