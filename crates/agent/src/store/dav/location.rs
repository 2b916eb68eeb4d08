//! URLs of keys, and names from the references in a server's answers. Pure.

use fairbat::http::without_credentials;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use crate::store::backend::check_key;
use crate::store::error::{StoreError, StoreErrorKind};

/// The characters that are encoded: all but the unreserved ones (RFC 3986, section
/// 2.3).
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The collection that holds all objects of a store.
#[derive(Debug, Clone)]
pub(crate) struct RootUrl {
    /// Ends with a slash, and has neither credentials nor a query.
    url: Url,
    /// The names of its path, decoded.
    names: Vec<Vec<u8>>,
}

impl RootUrl {
    /// # Errors
    /// The scheme is neither `http` nor `https`.
    pub(crate) fn new(url: &Url) -> Result<Self, StoreError> {
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            let message = "the URL of this store is none of http or https";
            return Err(StoreError::new(StoreErrorKind::Refused, message));
        }
        let mut url = without_credentials(url);
        url.set_query(None);
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        let names = names_of(url.path());
        Ok(Self { url, names })
    }

    /// The URL of the file under a key.
    ///
    /// # Errors
    /// The key is invalid.
    pub(crate) fn file(&self, key: &str) -> Result<String, StoreError> {
        check_key(key)?;
        let mut url = self.url.to_string();
        for (i, name) in key.split('/').enumerate() {
            if i > 0 {
                url.push('/');
            }
            url.extend(utf8_percent_encode(name, &RESERVED));
        }
        Ok(url)
    }

    /// The URL of the collection under a key; the empty key is the whole store.
    ///
    /// # Errors
    /// The key is invalid.
    pub(crate) fn collection(&self, key: &str) -> Result<String, StoreError> {
        match key {
            "" => Ok(self.url.to_string()),
            key => Ok(self.file(key)? + "/"),
        }
    }

    /// Resolves a reference in an answer about the collection under a key.
    pub(crate) fn resolve(&self, key: &str, reference: &str) -> Reference {
        let Ok(url) = self.url.join(reference) else {
            return Reference::Elsewhere;
        };
        let names = names_of(url.path());
        let own = key.split('/').filter(|name| !name.is_empty());
        let own = own.map(|name| name.as_bytes().to_vec());
        let asked: Vec<_> = self.names.iter().cloned().chain(own).collect();
        let Some(below) = names.strip_prefix(asked.as_slice()) else {
            return Reference::Elsewhere;
        };
        match below {
            [] => Reference::Itself,
            [name] => match std::str::from_utf8(name) {
                Ok(name) if !name.contains('/') && !matches!(name, "." | "..") => {
                    Reference::Member(name.to_owned())
                }
                Ok(_) | Err(_) => Reference::NoKey,
            },
            _ => Reference::Elsewhere,
        }
    }
}

/// What a reference stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The collection itself.
    Itself,
    /// The member of this name.
    Member(String),
    /// A member whose name cannot be part of a key.
    NoKey,
    /// Something outside of the collection.
    Elsewhere,
}

fn names_of(path: &str) -> Vec<Vec<u8>> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names
        .map(|name| percent_decode_str(name).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(url: &str) -> RootUrl {
        RootUrl::new(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn each_name_is_encoded_once() {
        let root = root("https://me:secret@h:8443/dav/my%20files?x#y");
        for (key, path) in [
            ("a/b", "a/b"),
            ("100%25/%2E%2e", "100%2525/%252E%252e"),
            ("é &+;=", "%C3%A9%20%26%2B%3B%3D"),
        ] {
            let url = format!("https://h:8443/dav/my%20files/{path}");
            assert_eq!(root.file(key).unwrap(), url);
            assert_eq!(root.collection(key).unwrap(), url + "/");
        }
        let all = "https://h:8443/dav/my%20files/";
        assert_eq!(root.collection("").unwrap(), all);
        for key in ["", "/a", "a/", "a//b", "..", "a/../b", "."] {
            assert!(root.file(key).is_err(), "{key:?}");
        }
        assert!(RootUrl::new(&"ftp://h/".parse().unwrap()).is_err());
    }

    #[test]
    fn names_come_back_however_a_server_writes_them() {
        let root = root("http://h/my files");
        let member = |name: &str| Reference::Member(name.to_owned());
        for (reference, meant) in [
            ("/my%20files/a/", Reference::Itself),
            ("http://h/my%20files/a", Reference::Itself),
            ("http://other:81/my files/a/", Reference::Itself),
            ("/my%20files/a/b%2525c", member("b%25c")),
            ("/%6dy%20files/a/b/", member("b")),
            ("/my%20files/a/b+c&amp;", member("b+c&amp;")),
            ("/my%20files/a/b%2Fc", Reference::NoKey),
            ("/my%20files/a/b%FFc", Reference::NoKey),
            ("/my%20files/a/b/c", Reference::Elsewhere),
            ("/my%20files/a/%2e%2e/c", Reference::Elsewhere),
            ("/my%20files/", Reference::Elsewhere),
            ("http://[", Reference::Elsewhere),
        ] {
            assert_eq!(root.resolve("a", reference), meant, "{reference}");
        }
        assert_eq!(root.resolve("", "/my%20files/x"), member("x"));
    }
}
