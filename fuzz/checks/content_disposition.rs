//! What must hold for any `Content-Disposition` field and the file name made
//! of it.

use std::ffi::OsStr;
use std::path::Path;

use fairbat::file_name::{FileName, JOURNAL_SUFFIX, MAX_LEN, PART_SUFFIX, name_for, safe_name};
use fairbat::http::content_disposition::suggested_name;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// Panics if a name could leave its directory, be hidden or be that of a part
/// file, or if the parser does not read back what it has read.
pub(crate) fn check(data: &[u8]) {
    let mut url = Url::parse("http://host/").expect("a valid URL");
    let suggested = suggested_name(data);
    if let Some(name) = &suggested {
        check_read_back(name);
    }
    check_name(&name_for(suggested.as_deref(), &url));

    // The same bytes as the path of the URL.
    url.set_path(&String::from_utf8_lossy(data));
    check_name(&name_for(None, &url));
}

/// The name in both notations.
fn check_read_back(name: &str) {
    let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
    let field = format!("attachment; filename=\"{quoted}\"; x=y");
    assert_eq!(suggested_name(field.as_bytes()).as_deref(), Some(name));

    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let field = format!("attachment; filename=no; filename*=UTF-8''{encoded}");
    assert_eq!(suggested_name(field.as_bytes()).as_deref(), Some(name));
}

fn check_name(name: &FileName) {
    let text = name.as_str();
    check_direct_child(name);
    check_direct_child(&name.numbered(u32::MAX));
    assert!(text.len() <= MAX_LEN);
    assert!(!text.starts_with('.') && text == text.trim());
    assert!(!text.contains(|c: char| c.is_control() || c == '/' || c == '\\'));
    let lower = text.to_ascii_lowercase();
    assert!(!lower.ends_with(PART_SUFFIX) && !lower.contains(JOURNAL_SUFFIX));
    assert_eq!(safe_name(text).as_ref(), Some(name));
}

fn check_direct_child(name: &FileName) {
    let directory = Path::new("/some/where");
    let joined = directory.join(name.as_str());
    assert_eq!(joined.parent(), Some(directory));
    assert_eq!(joined.file_name(), Some(OsStr::new(name.as_str())));
    assert!(name.as_str().len() + JOURNAL_SUFFIX.len() <= 255);
}
