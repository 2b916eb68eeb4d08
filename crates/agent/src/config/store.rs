//! The stores of the configuration, and places in them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::DeValue;
use toml::{Spanned, Value};
use url::{Host, Url};

use super::credentials::{self, CredentialsError, Origin, Spec, StoreCredentials, Wanted};
use super::problem::{Checker, suggestion};
use super::table::{NAME_ADVICE, Table, is_name, path_in_store};

/// The values of `type`.
const TYPES: [&str; 4] = ["s3", "webdav", "fairbat", "local"];

pub(crate) const S3_KEYS: [&str; 7] = [
    "endpoint",
    "region",
    "bucket",
    "prefix",
    "path_style",
    "credentials",
    "cacert",
];
pub(crate) const HTTP_KEYS: [&str; 3] = ["url", "credentials", "cacert"];
pub(crate) const LOCAL_KEYS: [&str; 2] = ["path", "file_mode"];

/// Region for servers without regions.
const DEFAULT_REGION: &str = "us-east-1";

/// Mode of the files in a local store: only the agent reads what it may read.
pub const DEFAULT_FILE_MODE: u32 = 0o600;

/// The stores by name. A store with a problem is `None`: jobs may still refer to it.
pub(crate) type Stores = BTreeMap<String, Option<StoreConfig>>;

/// A store, by its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// An S3 bucket, or a part of one.
    S3(S3),
    /// A WebDAV collection.
    Webdav(Http),
    /// A `fairbat serve --writable`.
    Fairbat(Http),
    /// A directory of this machine.
    Local(Local),
}

/// A directory of this machine that is a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// Its absolute path.
    pub path: PathBuf,
    /// Mode of its files, 0o600 to 0o666 without execute bits. Whoever may read them may
    /// enter its directories.
    pub file_mode: u32,
}

/// How to reach an S3 store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3 {
    /// The server; `None` is that of AWS for the region.
    pub endpoint: Option<Url>,
    /// The region for signatures.
    pub region: String,
    /// The name of the bucket.
    pub bucket: String,
    /// The start of all keys: names joined by `/`, without one at either end. May be
    /// empty.
    pub prefix: String,
    /// Whether the bucket is in the path of a URL instead of its host.
    pub path_style: bool,
    /// The origin of the credentials.
    pub credentials: Spec,
    /// PEM file with the only trusted certificate authorities; `None` trusts those of the
    /// system.
    pub cacert: Option<PathBuf>,
}

/// How to reach a store behind a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// An `http` or `https` URL whose path ends with `/`.
    pub url: Url,
    /// The origin of the credentials.
    pub credentials: Spec,
    /// PEM file with the only trusted certificate authorities; `None` trusts those of the
    /// system.
    pub cacert: Option<PathBuf>,
}

impl StoreConfig {
    /// Reads the credentials of this store, whose name is `name`. A local directory needs
    /// none. `variable` reads an environment variable.
    ///
    /// # Errors
    /// [`CredentialsError`].
    pub fn read_credentials(
        &self,
        name: &str,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<StoreCredentials, CredentialsError> {
        match self.credentials() {
            Some(spec) => credentials::read(name, spec, variable),
            None => Ok(StoreCredentials::Anonymous),
        }
    }

    fn credentials(&self) -> Option<&Spec> {
        match self {
            Self::S3(store) => Some(&store.credentials),
            Self::Webdav(store) | Self::Fairbat(store) => Some(&store.credentials),
            Self::Local(_) => None,
        }
    }

    /// The file with the credentials, if the configuration names one.
    pub(crate) fn credentials_file(&self) -> Option<&Path> {
        match &self.credentials()?.origin {
            Origin::File(path) => Some(path),
            Origin::Service(_) | Origin::Environment => None,
        }
    }

    /// The directory, if the store is one of this machine.
    #[must_use]
    pub fn local_path(&self) -> Option<&Path> {
        match self {
            Self::Local(local) => Some(&local.path),
            Self::S3(_) | Self::Webdav(_) | Self::Fairbat(_) => None,
        }
    }

    /// PEM file with the only trusted certificate authorities; `None` trusts those of the
    /// system.
    #[must_use]
    pub fn cacert(&self) -> Option<&Path> {
        match self {
            Self::S3(store) => store.cacert.as_deref(),
            Self::Webdav(store) | Self::Fairbat(store) => store.cacert.as_deref(),
            Self::Local(_) => None,
        }
    }

    /// The address of the store, without credentials. It identifies the store even if its
    /// name changes.
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
            Self::Local(local) => format!("local {}", local.path.display()),
        }
    }

    /// A warning if others on the network can read something secret in requests with these
    /// credentials. Requests to this machine itself are safe.
    #[must_use]
    pub fn exposes(&self, credentials: &StoreCredentials) -> Option<&'static str> {
        let url = match self {
            Self::S3(store) => store.endpoint.as_ref()?,
            Self::Webdav(store) | Self::Fairbat(store) => &store.url,
            Self::Local(_) => return None,
        };
        if url.scheme() != "http" || is_loopback(url) {
            return None;
        }
        match credentials {
            StoreCredentials::Anonymous => None,
            StoreCredentials::Keys {
                session_token: None,
                ..
            } => Some("signed requests cross the network unencrypted"),
            StoreCredentials::Keys { .. } => {
                Some("the session token crosses the network unencrypted")
            }
            StoreCredentials::Password { .. } => {
                Some("user and password cross the network unencrypted")
            }
            StoreCredentials::Token(_) => Some("the token crosses the network unencrypted"),
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
pub struct StoreDirectory {
    /// The name of the store.
    pub store: String,
    /// Names joined by `/`, without one at either end and without `.` and `..`. Empty
    /// means the whole store.
    pub path: String,
}

impl fmt::Display for StoreDirectory {
    /// The form of the configuration: `STORE:PATH`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.store, self.path)
    }
}

/// Reads `[stores]`.
pub(crate) fn stores<'t>(value: Spanned<DeValue<'t>>, check: &mut Checker<'t>) -> Stores {
    let at = value.span();
    let DeValue::Table(stores) = value.into_inner() else {
        let advice = "write [stores.NAME] for each store";
        check.add(at, "`stores` is not a table", advice);
        return Stores::new();
    };
    let store = |(name, value): (Spanned<_>, Spanned<_>)| {
        let name = String::from(name.into_inner());
        if !is_name(&name) {
            let what = format!("{name:?} is not a valid store name");
            check.add(value.span(), what, NAME_ADVICE);
        }
        let store = store(&name, value, check);
        (name, store)
    };
    stores.into_iter().map(store).collect()
}

/// Reads `[stores.NAME]`. Its valid keys depend on its type.
fn store<'t>(
    name: &str,
    mut value: Spanned<DeValue<'t>>,
    check: &mut Checker<'t>,
) -> Option<StoreConfig> {
    let title = format!("store `{name}`");
    let kind = match value.get_mut() {
        DeValue::Table(table) => table.remove("type"),
        _ => None,
    };
    let Some(kind) = kind else {
        let advice = "write type = \"s3\", \"webdav\", \"fairbat\" or \"local\"";
        check.add(value.span(), format!("{title} has no `type`"), advice);
        return None;
    };
    match kind.get_ref().as_str() {
        Some("s3") => Table::new(value, title, &S3_KEYS, check)
            .s3()
            .map(StoreConfig::S3),
        Some("webdav") => Table::new(value, title, &HTTP_KEYS, check)
            .http()
            .map(StoreConfig::Webdav),
        Some("fairbat") => Table::new(value, title, &HTTP_KEYS, check)
            .http()
            .map(StoreConfig::Fairbat),
        Some("local") => Table::new(value, title, &LOCAL_KEYS, check)
            .local()
            .map(StoreConfig::Local),
        other => {
            let what = format!("the type of {title} is unknown");
            check.add(
                kind.span(),
                what,
                suggestion(other.unwrap_or_default(), &TYPES),
            );
            None
        }
    }
}

/// Each method reads all keys before it gives up.
impl Table<'_, '_> {
    fn s3(mut self) -> Option<S3> {
        let endpoint: Option<String> = self.get("endpoint");
        let endpoint = endpoint.and_then(|text| self.url("endpoint", &text));
        let bucket = self.required("bucket", "write bucket = \"NAME\"");
        let bucket = bucket.and_then(|text| self.url_safe("bucket", text));
        let region = self
            .get("region")
            .and_then(|text| self.url_safe("region", text));
        let prefix: Option<String> = self.get("prefix");
        let prefix = prefix.and_then(|text| self.parsed("prefix", path_in_store(&text)));
        let path_style = self.get("path_style").unwrap_or(endpoint.is_some());
        let credentials = self.credentials(Wanted::Keys);
        let cacert = self.path("cacert");
        Some(S3 {
            endpoint,
            region: region.unwrap_or_else(|| DEFAULT_REGION.to_owned()),
            bucket: bucket?,
            prefix: prefix.unwrap_or_default(),
            path_style,
            credentials: credentials?,
            cacert,
        })
    }

    fn http(mut self) -> Option<Http> {
        let url = self.required("url", "write url = \"https://host.example/path/\"");
        let url = url.and_then(|text| self.url("url", &text));
        let credentials = self.credentials(Wanted::Login);
        let cacert = self.path("cacert");
        let mut url = url?;
        if !url.path().ends_with('/') {
            let directory = format!("{}/", url.path());
            url.set_path(&directory);
        }
        Some(Http {
            url,
            credentials: credentials?,
            cacert,
        })
    }

    fn local(mut self) -> Option<Local> {
        let path = self.required("path", "write path = \"/DIRECTORY\"");
        let path = path.and_then(|text| self.absolute_path("path", &text));
        let file_mode = match self.has("file_mode") {
            true => self.file_mode(),
            false => Some(DEFAULT_FILE_MODE),
        };
        Some(Local {
            path: path?,
            file_mode: file_mode?,
        })
    }

    /// The mode of files, as text in octal.
    fn file_mode(&mut self) -> Option<u32> {
        const KEY: &str = "file_mode";
        let mode = match self.get(KEY)? {
            Value::String(text) => u32::from_str_radix(&text, 8).ok(),
            _ => None,
        };
        let mode = mode.filter(|mode| mode & 0o600 == 0o600 && mode & !0o666 == 0);
        if mode.is_none() {
            let advice = "write \"0600\" with its quotes, or \"0640\" to let the group read the \
                files; directories get the execute bits that they need";
            self.wrong(
                KEY,
                "is not a mode for files that their owner can write",
                advice,
            );
        }
        mode
    }

    /// A name that goes into a URL or a signature without escapes.
    fn url_safe(&mut self, key: &str, text: String) -> Option<String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !text.is_empty() && text.bytes().all(fits) {
            return Some(text);
        }
        let advice = "use letters, digits, - _ and . (the part after a / belongs in `prefix`)";
        self.wrong(key, "is not a valid name", advice);
        None
    }

    /// The origin of credentials. Problems never show it, because it may be the secret
    /// itself.
    fn credentials(&mut self, wanted: Wanted) -> Option<Spec> {
        const KEY: &str = "credentials";
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
        let origin = match self.get::<String>(KEY) {
            None => Origin::Environment,
            Some(path) if path.starts_with('/') => Origin::File(self.absolute_path(KEY, &path)?),
            Some(name) if !matches!(&*name, "" | "." | "..") && name.bytes().all(fits) => {
                Origin::Service(name)
            }
            Some(_) => {
                let advice = "write the name of a systemd credential or the absolute path of a \
                    file; do not write secrets here";
                self.wrong(KEY, "is neither a name nor an absolute path", advice);
                return None;
            }
        };
        Some(Spec { wanted, origin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::credentials::{Origin, SecretText, Wanted};

    fn store(url: &str) -> StoreConfig {
        StoreConfig::Webdav(Http {
            url: url.parse().unwrap(),
            credentials: Spec {
                wanted: Wanted::Login,
                origin: Origin::Environment,
            },
            cacert: None,
        })
    }

    fn local(path: &str) -> StoreConfig {
        StoreConfig::Local(Local {
            path: path.into(),
            file_mode: DEFAULT_FILE_MODE,
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
            StoreConfig::S3(store).address()
        };
        let url = "https://nas.example.org/";
        let StoreConfig::Webdav(http) = store(url) else {
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
            StoreConfig::Fairbat(http).address(),
            local("/mnt/backup").address(),
            local("/mnt").address(),
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
        let token = StoreCredentials::Token(SecretText::new("hunter2".to_owned()));
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
            assert_eq!(
                store(url).exposes(&StoreCredentials::Anonymous),
                None,
                "{url}"
            );
        }
    }
}
