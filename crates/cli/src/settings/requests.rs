//! What is sent to servers: headers and credentials. Complaints never repeat
//! a secret.

use std::ffi::OsString;
use std::path::PathBuf;

use fairbat::settings::Credentials;
use http::{HeaderName, HeaderValue, header};

use super::UsageError;

/// Headers that decide which bytes come and how they are framed: a file put
/// together under other ones would be wrong.
const RESERVED: [HeaderName; 15] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::EXPECT,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::RANGE,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Parses `Name: value`.
pub(super) fn header(line: &str) -> Result<(HeaderName, HeaderValue), UsageError> {
    let Some((name, value)) = line.split_once(':') else {
        return Err(UsageError::new(
            "--header: there is no colon; write 'Name: value'",
        ));
    };
    let name = name.trim();
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        UsageError(format!(
            "--header: '{name}' is not the name of a header; write 'Name: value'"
        ))
    })?;
    if RESERVED.contains(&name) {
        return Err(UsageError(format!(
            "--header: {name} is set by fairbat itself; leave it out"
        )));
    }
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
        UsageError(format!(
            "--header: the value of {name} has characters that a header cannot carry"
        ))
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Parses `USER:PASSWORD`; the password may contain colons and may be empty.
pub(super) fn user(text: &str) -> Result<Credentials, UsageError> {
    let Some((user, password)) = text.split_once(':') else {
        return Err(UsageError::new(
            "--user: there is no colon; write USER:PASSWORD, or USER: for an empty password",
        ));
    };
    Ok(Credentials {
        user: user.to_owned(),
        password: password.to_owned(),
    })
}

/// Where the netrc file is: `$NETRC`, else `~/.netrc`.
pub(super) fn netrc_path(
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, UsageError> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(path) = set("NETRC") {
        return Ok(path.into());
    }
    match set("HOME") {
        Some(home) => Ok(PathBuf::from(home).join(".netrc")),
        None => Err(UsageError::new(
            "--netrc: neither NETRC nor HOME is set; set NETRC to the path of the file",
        )),
    }
}
