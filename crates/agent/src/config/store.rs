//! Where bulk data is kept: the stores, and places in them.

use std::fmt;
use std::path::PathBuf;

use url::{Host, Url};

use super::credentials::{Credentials, Spec};

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

    /// What it is reached at, which tells it from other stores whatever it is called;
    /// without credentials.
    #[must_use]
    pub fn address(&self) -> String {
        match self {
            Self::S3(S3 {
                endpoint,
                region,
                bucket,
                prefix,
                ..
            }) => {
                let server = match endpoint {
                    Some(endpoint) => fairbat::http::without_credentials(endpoint).to_string(),
                    None => region.clone(),
                };
                format!("s3 {server} {bucket} {prefix}")
            }
            Self::Webdav(http) => {
                let url = fairbat::http::without_credentials(&http.url);
                format!("webdav {url}")
            }
            Self::Fairbat(http) => {
                let url = fairbat::http::without_credentials(&http.url);
                format!("fairbat {url}")
            }
            Self::Local(path) => format!("local {}", path.display()),
        }
    }

    /// What anybody on the way to it can read, given what it is told; `None` where
    /// nobody can. The way to this machine itself is nobody's.
    #[must_use]
    pub fn exposes(&self, told: &Credentials) -> Option<&'static str> {
        let url = match self {
            Self::S3(store) => store.endpoint.as_ref()?,
            Self::Webdav(store) | Self::Fairbat(store) => &store.url,
            Self::Local(_) => return None,
        };
        if url.scheme() != "http" || is_loopback(url) {
            return None;
        }
        match told {
            Credentials::Anonymous => None,
            Credentials::Keys {
                session_token: None,
                ..
            } => Some("signed requests go over the network in plain text"),
            Credentials::Keys { .. } => {
                Some("the session token goes over the network in plain text")
            }
            Credentials::Password { .. } => {
                Some("user and password go over the network in plain text")
            }
            Credentials::Token(_) => Some("the token goes over the network in plain text"),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        // RFC 6761, section 6.3.
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
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

#[cfg(test)]
mod tests {
    use super::super::credentials::{Origin, Wanted};
    use super::super::secret::Secret;
    use super::*;

    fn store(url: &str) -> Store {
        Store::Webdav(Http {
            url: url.parse().unwrap(),
            credentials: Spec {
                wanted: Wanted::Login,
                origin: Origin::Environment,
            },
            cacert: None,
        })
    }

    #[test]
    fn an_address_tells_stores_apart_and_no_secret() {
        let s3 = |endpoint: Option<&str>, region: &str, bucket: &str, prefix: &str| {
            let store = S3 {
                endpoint: endpoint.map(|url| url.parse().unwrap()),
                region: region.to_owned(),
                bucket: bucket.to_owned(),
                prefix: prefix.to_owned(),
                path_style: true,
                credentials: Spec {
                    wanted: Wanted::Keys,
                    origin: Origin::Environment,
                },
                cacert: None,
            };
            Store::S3(store).address()
        };
        let url = "https://nas.example.org/";
        let Store::Webdav(http) = store(url) else {
            unreachable!("it was made as one");
        };
        let addresses = [
            s3(None, "us-east-1", "b", ""),
            s3(None, "eu-central-1", "b", ""),
            s3(None, "us-east-1", "c", ""),
            s3(None, "us-east-1", "b", "p"),
            s3(Some(url), "us-east-1", "b", ""),
            store(url).address(),
            store("https://nas.example.org/dav/").address(),
            Store::Fairbat(http).address(),
            Store::Local("/mnt/backup".into()).address(),
            Store::Local("/mnt".into()).address(),
        ];
        let different: std::collections::BTreeSet<_> = addresses.iter().collect();
        assert_eq!(different.len(), addresses.len(), "{addresses:#?}");
        let same = s3(Some(url), "eu-central-1", "b", "");
        assert_eq!(same, addresses[4], "a server has one region");
        let told = store("https://me:hunter2@nas.example.org/").address();
        assert!(!told.contains("hunter2") && !told.contains("me:"), "{told}");
    }

    #[test]
    fn only_plain_http_to_another_machine_exposes_anything() {
        let token = Credentials::Token(Secret::new("hunter2".to_owned()));
        for (url, exposes) in [
            ("http://nas.example.org/", true),
            ("http://192.0.2.1:8080/", true),
            ("http://[2001:db8::1]/", true),
            ("http://localhost.example.org/", true),
            ("https://nas.example.org/", false),
            ("http://localhost:8080/", false),
            ("http://me.localhost/", false),
            ("http://127.8.0.1/", false),
            ("http://[::1]/", false),
            ("http://[::ffff:127.0.0.1]/", false),
        ] {
            assert_eq!(store(url).exposes(&token).is_some(), exposes, "{url}");
            assert_eq!(store(url).exposes(&Credentials::Anonymous), None, "{url}");
        }
    }
}
