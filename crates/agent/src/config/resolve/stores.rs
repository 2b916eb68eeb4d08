//! `[stores.NAME]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::Spanned;

use super::values::{NAME_ADVICE, is_name, path_in_store};
use crate::config::credentials::{Origin, Spec, Wanted};
use crate::config::problem::Checker;
use crate::config::raw::{RawHttp, RawLocal, RawS3, RawStore, RawTable, TableHeader};
use crate::config::store::{Http, S3, Store};

/// Region for servers without regions.
const DEFAULT_REGION: &str = "us-east-1";

/// The stores by name. A store with a problem is `None`: jobs may still refer to it.
pub(crate) type Stores = BTreeMap<String, Option<Store>>;

pub(crate) fn stores(raw: Vec<(String, RawTable<RawStore>)>, check: &mut Checker<'_>) -> Stores {
    let mut stores = Stores::new();
    for (name, RawTable { header, content }) in raw {
        if !is_name(&name) {
            let what = format!("{name:?} is not a valid store name");
            check.add(header.at.clone(), what, NAME_ADVICE);
        }
        let store = content.and_then(|content| match content {
            RawStore::S3(raw) => check.s3(&raw, &header).map(Store::S3),
            RawStore::Webdav(raw) => check.http(&raw, &header).map(Store::Webdav),
            RawStore::Fairbat(raw) => check.http(&raw, &header).map(Store::Fairbat),
            RawStore::Local(raw) => check.local(&raw, &header).map(Store::Local),
        });
        stores.insert(name, store);
    }
    stores
}

/// Each method checks all keys of a store before it gives up.
impl Checker<'_> {
    fn s3(&mut self, raw: &RawS3, header: &TableHeader) -> Option<S3> {
        let endpoint = raw.endpoint.as_ref();
        let endpoint = endpoint.map(|given| self.url("endpoint", given));
        let advice = "write bucket = \"NAME\"";
        let bucket = self.required(header, "bucket", raw.bucket.as_ref(), advice);
        let bucket = bucket.and_then(|given| self.url_safe("bucket", given));
        let region = match &raw.region {
            Some(given) => self.url_safe("region", given),
            None => Some(DEFAULT_REGION.to_owned()),
        };
        let prefix = match &raw.prefix {
            Some(given) => self.value(given.span(), "`prefix`", path_in_store(given.get_ref())),
            None => Some(String::new()),
        };
        let credentials = self.credentials(raw.credentials.as_ref(), Wanted::Keys);
        let cacert = self.cacert(raw.cacert.as_ref());
        Some(S3 {
            path_style: raw.path_style.unwrap_or(endpoint.is_some()),
            endpoint: match endpoint {
                Some(endpoint) => Some(endpoint?),
                None => None,
            },
            region: region?,
            bucket: bucket?,
            prefix: prefix?,
            credentials: credentials?,
            cacert: cacert?,
        })
    }

    fn http(&mut self, raw: &RawHttp, header: &TableHeader) -> Option<Http> {
        let advice = "write url = \"https://host.example/path/\"";
        let given = self.required(header, "url", raw.url.as_ref(), advice);
        let url = given.and_then(|given| self.url("url", given));
        let credentials = self.credentials(raw.credentials.as_ref(), Wanted::Login);
        let cacert = self.cacert(raw.cacert.as_ref());
        let mut url = url?;
        if !url.path().ends_with('/') {
            let directory = format!("{}/", url.path());
            url.set_path(&directory);
        }
        Some(Http {
            url,
            credentials: credentials?,
            cacert: cacert?,
        })
    }

    fn local(&mut self, raw: &RawLocal, header: &TableHeader) -> Option<PathBuf> {
        let advice = "write path = \"/DIRECTORY\"";
        let path = self.required(header, "path", raw.path.as_ref(), advice)?;
        self.absolute_path("path", path)
    }

    /// A name that goes into a URL or a signature without escapes.
    fn url_safe(&mut self, key: &str, given: &Spanned<String>) -> Option<String> {
        let text = given.get_ref();
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !text.is_empty() && text.bytes().all(fits) {
            return Some(text.clone());
        }
        let advice = "use letters, digits, - _ and . (the part after a / belongs in `prefix`)";
        self.add(given.span(), format!("`{key}` is not a valid name"), advice);
        None
    }

    /// The origin of credentials. Problems never show it, because it may be the secret
    /// itself.
    fn credentials(&mut self, given: Option<&Spanned<String>>, wanted: Wanted) -> Option<Spec> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
        let origin = match given.map(|given| (given, given.get_ref().as_str())) {
            None => Origin::Environment,
            Some((given, path)) if path.starts_with('/') => {
                Origin::File(self.absolute_path("credentials", given)?)
            }
            Some((_, name)) if !matches!(name, "" | "." | "..") && name.bytes().all(fits) => {
                Origin::Service(name.to_owned())
            }
            Some((given, _)) => {
                let what = "`credentials` is neither a name nor an absolute path";
                let advice = "write the name of a systemd credential or the absolute path of a \
                    file; do not write secrets here";
                self.add(given.span(), what, advice);
                return None;
            }
        };
        Some(Spec { wanted, origin })
    }

    /// An optional file; `Some(None)` if none is given.
    fn cacert(&mut self, given: Option<&Spanned<String>>) -> Option<Option<PathBuf>> {
        let Some(given) = given else {
            return Some(None);
        };
        self.absolute_path("cacert", given).map(Some)
    }
}
