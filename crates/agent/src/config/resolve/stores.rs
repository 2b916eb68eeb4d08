//! `[stores.NAME]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::Spanned;

use super::values::{NAME_HINT, absolute, is_name, names, url};
use crate::config::credentials::{Origin, Spec, Wanted};
use crate::config::problem::Complaints;
use crate::config::raw::{Heading, RawHttp, RawLocal, RawS3, RawStore, Section};
use crate::config::store::{Http, S3, Store};

/// Region of a server that has none.
const REGION: &str = "us-east-1";

/// By their names; `None` for one that something is wrong with, so that jobs may
/// still name it.
pub(super) type Stores = BTreeMap<String, Option<Store>>;

pub(super) fn stores(
    raw: Vec<(String, Section<RawStore>)>,
    complaints: &mut Complaints<'_>,
) -> Stores {
    let mut stores = Stores::new();
    for (name, Section { heading, content }) in raw {
        if !is_name(&name) {
            let what = format!("{name:?} is no name of a store");
            complaints.add(heading.at.clone(), what, NAME_HINT);
        }
        let store = match content {
            Some(RawStore::S3(raw)) => s3(&raw, &heading, complaints).map(Store::S3),
            Some(RawStore::Webdav(raw)) => http(&raw, &heading, complaints).map(Store::Webdav),
            Some(RawStore::Fairbat(raw)) => http(&raw, &heading, complaints).map(Store::Fairbat),
            Some(RawStore::Local(raw)) => local(&raw, &heading, complaints).map(Store::Local),
            None => None,
        };
        stores.insert(name, store);
    }
    stores
}

fn s3(raw: &RawS3, heading: &Heading, complaints: &mut Complaints<'_>) -> Option<S3> {
    let endpoint = raw.endpoint.as_ref();
    let endpoint = endpoint.map(|given| url("endpoint", given, complaints));
    let hint = "write bucket = \"NAME\"";
    let bucket = heading.required("bucket", raw.bucket.as_ref(), hint, complaints);
    let bucket = bucket.and_then(|given| word("bucket", given, complaints));
    let region = raw.region.as_ref();
    let region = region.map_or(Some(REGION.to_owned()), |given| {
        word("region", given, complaints)
    });
    let prefix = raw.prefix.as_ref().map_or(Some(String::new()), |given| {
        complaints.take(given.span(), "`prefix`", names(given.get_ref()))
    });
    let credentials = spec(raw.credentials.as_ref(), Wanted::Keys, complaints);
    let cacert = file(raw.cacert.as_ref(), complaints);
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

fn http(raw: &RawHttp, heading: &Heading, complaints: &mut Complaints<'_>) -> Option<Http> {
    let hint = "write url = \"https://host.example/path/\"";
    let given = heading.required("url", raw.url.as_ref(), hint, complaints);
    let url = given.and_then(|given| url("url", given, complaints));
    let credentials = spec(raw.credentials.as_ref(), Wanted::Login, complaints);
    let cacert = file(raw.cacert.as_ref(), complaints);
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

fn local(raw: &RawLocal, heading: &Heading, complaints: &mut Complaints<'_>) -> Option<PathBuf> {
    let hint = "write path = \"/DIRECTORY\"";
    let path = heading.required("path", raw.path.as_ref(), hint, complaints)?;
    absolute("path", path, complaints)
}

/// What goes into a URL or a signature as it is.
fn word(key: &str, given: &Spanned<String>, complaints: &mut Complaints<'_>) -> Option<String> {
    let text = given.get_ref();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !text.is_empty() && text.bytes().all(fits) {
        return Some(text.clone());
    }
    let hint = "take letters, digits, - _ and . (what follows a / belongs in `prefix`)";
    complaints.add(given.span(), format!("`{key}` is no {key}"), hint);
    None
}

fn spec(
    given: Option<&Spanned<String>>,
    wanted: Wanted,
    complaints: &mut Complaints<'_>,
) -> Option<Spec> {
    let origin = match given {
        None => Origin::Environment,
        Some(given) if given.get_ref().starts_with('/') => {
            Origin::File(absolute("credentials", given, complaints)?)
        }
        Some(given) => Origin::Service(credential(given, complaints)?),
    };
    Some(Spec { wanted, origin })
}

/// The name of a file in a directory. Never shown: it may be the secret itself.
fn credential(given: &Spanned<String>, complaints: &mut Complaints<'_>) -> Option<String> {
    let name = given.get_ref();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if !name.is_empty() && !matches!(name.as_str(), "." | "..") && name.bytes().all(fits) {
        return Some(name.clone());
    }
    let hint = "write the name of a credential of the service, or the absolute path of a file; \
        secrets themselves do not belong here";
    complaints.add(
        given.span(),
        "`credentials` is neither a name nor a path",
        hint,
    );
    None
}

/// An optional file; `Some(None)` without any.
fn file(
    given: Option<&Spanned<String>>,
    complaints: &mut Complaints<'_>,
) -> Option<Option<PathBuf>> {
    let Some(given) = given else {
        return Some(None);
    };
    absolute("cacert", given, complaints).map(Some)
}
