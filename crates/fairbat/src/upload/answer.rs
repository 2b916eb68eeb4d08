//! Where an upload goes, and what the answer to its PUT means (RFC 9110 sections 9.3.4
//! and 15). Pure.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use http::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use url::Url;

use crate::error::{ErrorKind, TransferError};
use crate::http::{Failure, Identification};
use crate::transport::PutAnswer;

/// All characters but those that RFC 3986 section 2.3 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Where a file goes: to `url` itself, or under its own name there when the path of `url`
/// ends with `/`. `None` when the file has no name (`..`).
#[must_use]
pub fn target_url(url: &Url, file: &Path) -> Option<Url> {
    let mut target = url.clone();
    if url.path().ends_with('/') {
        let name = percent_encode(file.file_name()?.as_bytes(), RESERVED);
        target.set_path(&format!("{}{name}", url.path()));
    }
    Some(target)
}

/// Whether this may be the URL of a directory with its `/` left out: it ends neither with
/// the name of the file nor with one that looks like a file's.
fn may_be_directory(url: &Url, file: &Path) -> bool {
    let last = url.path().rsplit('/').next().unwrap_or_default();
    let last: Vec<u8> = percent_decode_str(last).collect();
    let is_the_name = file.file_name().is_some_and(|name| name.as_bytes() == last);
    !last.is_empty() && !last.contains(&b'.') && !is_the_name
}

/// What to do when the server has a file that may not be replaced, after so many tries.
pub(crate) fn advice_if_there(tries: u32) -> &'static str {
    if tries > 1 {
        "it may be this one, if an earlier try got through after all: compare them"
    } else {
        "leave --create-only out to replace it"
    }
}

/// Tries before an answer of 500 is final. Such a server has often had the whole file, and
/// what is wrong there (nginx: a missing directory) stays wrong.
const MAX_TRIES_AT_500: u32 = 3;

/// What follows from an answer.
#[derive(Debug)]
pub(crate) enum PutOutcome {
    /// The server has taken the file.
    Taken,
    /// The same request is to go to this URL.
    Elsewhere(Url),
}

/// Decides on an answer from `url` to an upload of `file` by `user`; `tries` counts this
/// one.
///
/// # Errors
/// The server has not taken the file.
pub(crate) fn verdict(
    answer: &PutAnswer,
    user: &Identification,
    url: &Url,
    file: &Path,
    tries: u32,
) -> Result<PutOutcome, Failure> {
    match answer.status {
        StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
            Ok(PutOutcome::Taken)
        }
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {
            answer.next(url).map(PutOutcome::Elsewhere)
        }
        status if status.is_redirection() && answer.location.is_some() => {
            Err(redirected(answer, url))
        }
        status if status.is_success() || status.is_redirection() => Err(Failure::server(format!(
            "the server answered {status}, which does not say that it has the file"
        ))),
        _ => Err(refusal(answer, user, may_be_directory(url, file), tries)),
    }
}

/// 301, 302 and 303, after which clients ask with GET (RFC 9110 section 15.4).
fn redirected(answer: &PutAnswer, url: &Url) -> Failure {
    match answer.next(url) {
        Ok(next) => Failure::refused(
            format!(
                "the server answered {}, which does not say that the upload may go there: {next}",
                answer.status
            ),
            "if that is the right place, upload to that URL",
        ),
        Err(failure) => failure,
    }
}

/// 4xx and 5xx of a URL that may be that of a directory.
fn refusal(
    answer: &PutAnswer,
    user: &Identification,
    may_be_directory: bool,
    tries: u32,
) -> Failure {
    let status = answer.status;
    let hint = match status {
        StatusCode::FORBIDDEN => user.advice_at_403("writing there needs permission"),
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            "check the URL; the directory has to be there first".to_owned()
        }
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::CONFLICT if may_be_directory => {
            "is this a directory? a directory's URL ends with /; else check whether it is there, \
             and whether the server takes uploads by PUT (WebDAV) there"
                .to_owned()
        }
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
            let allowed = answer.allow.as_ref().and_then(|allow| allow.to_str().ok());
            match allowed {
                Some(allowed) if !allowed.is_empty() => format!(
                    "this URL takes no uploads by PUT, only {allowed}; check the URL, and whether \
                     the server has WebDAV or PUT enabled there"
                ),
                _ => "this URL takes no uploads by PUT; check the URL, and whether the server has \
                      WebDAV or PUT enabled there"
                    .to_owned(),
            }
        }
        StatusCode::CONFLICT => {
            "the directory may not be there: create it first; or what is there is no file"
                .to_owned()
        }
        StatusCode::LENGTH_REQUIRED => {
            "fairbat tells the length, so something on the way drops it: check the proxy".to_owned()
        }
        StatusCode::PRECONDITION_FAILED => {
            format!("there is a file already; {}", advice_if_there(tries))
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            "the server does not take files of this size; its limit has to be raised there \
             (nginx: client_max_body_size)"
                .to_owned()
        }
        StatusCode::LOCKED => "somebody has it locked; try again when it is free".to_owned(),
        StatusCode::INSUFFICIENT_STORAGE => {
            let error = TransferError::new(
                ErrorKind::Server,
                format!("the server answered {status}: its disk is full, or the user's quota"),
            );
            return Failure::Fatal(
                error.with_hint("free space there, then run the same command again"),
            );
        }
        StatusCode::INTERNAL_SERVER_ERROR if tries >= MAX_TRIES_AT_500 => {
            let error = TransferError::new(
                ErrorKind::Server,
                format!("the server answered {status} (tried {tries} times)"),
            );
            return Failure::Fatal(error.with_hint(
                "see the server's log; perhaps the directory is not there, or it may not write \
                 to it",
            ));
        }
        _ => return Failure::of_status(status, answer.remarks, user),
    };
    Failure::refused(format!("{} answered {status}", user.server()), hint)
}

#[cfg(test)]
mod target_tests {
    use std::ffi::OsStr;

    use super::*;

    fn target(url: &str, file: &[u8]) -> Option<String> {
        let url = Url::parse(url).unwrap();
        target_url(&url, Path::new(OsStr::from_bytes(file))).map(Into::into)
    }

    #[test]
    fn a_directory_gets_the_name_of_the_file() {
        for (url, file, expected) in [
            ("http://h", &b"a/b.iso"[..], "http://h/b.iso"),
            ("http://h/d/", b"b.iso", "http://h/d/b.iso"),
            ("http://h/d/x", b"b.iso", "http://h/d/x"),
            ("http://h/d/?k=v", b"b.iso", "http://h/d/b.iso?k=v"),
            ("http://u:p@h/d/", b"b", "http://u:p@h/d/b"),
        ] {
            assert_eq!(target(url, file).as_deref(), Some(expected), "{url}");
        }
    }

    #[test]
    fn every_byte_of_a_name_arrives() {
        assert_eq!(
            target("http://h/", b"a b%41?#\xff\xc3\xa9.~-_").unwrap(),
            "http://h/a%20b%2541%3F%23%FF%C3%A9.~-_"
        );
    }

    #[test]
    fn a_directory_entry_that_is_no_name_has_no_url() {
        assert_eq!(target("http://h/", b".."), None);
        assert_eq!(target("http://h/x", b"..").as_deref(), Some("http://h/x"));
    }

    #[test]
    fn a_url_without_the_name_of_a_file_may_be_a_directory() {
        let may_be = |url: &str, file: &[u8]| {
            may_be_directory(
                &Url::parse(url).unwrap(),
                Path::new(OsStr::from_bytes(file)),
            )
        };
        assert!(may_be("http://h/backups", b"b.tar"));
        assert!(may_be("http://h/d/back%20ups?k=v", b"b.tar"));
        assert!(!may_be("http://h/d/monday.tar", b"b.tar"));
        assert!(!may_be("http://h/d/a%20b", b"dir/a b"));
        assert!(!may_be("http://h/d/", b".."));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> PutAnswer {
        PutAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            remarks: Default::default(),
            location: None,
            allow: None,
            takes_parts: false,
        }
    }

    fn decide(answer: &PutAnswer) -> Result<PutOutcome, Failure> {
        verdict(
            answer,
            &Identification::default(),
            &Url::parse("https://h/a").unwrap(),
            Path::new("a"),
            1,
        )
    }

    #[test]
    fn only_what_says_so_is_a_success() {
        for status in [200, 201, 202, 204] {
            assert!(matches!(decide(&answer(status)), Ok(PutOutcome::Taken)));
        }
        for status in [203, 205, 206, 207, 300, 304] {
            let failed = decide(&answer(status));
            assert!(matches!(failed, Err(Failure::Transient(_))), "{status}");
        }
    }

    #[test]
    fn only_redirects_that_keep_the_method_are_followed() {
        for (status, follows) in [
            (301, false),
            (302, false),
            (303, false),
            (307, true),
            (308, true),
        ] {
            let answer = PutAnswer {
                location: Some("/b".parse().unwrap()),
                ..answer(status)
            };
            match decide(&answer) {
                Ok(PutOutcome::Elsewhere(url)) if follows => {
                    assert_eq!(url.as_str(), "https://h/b");
                }
                Err(Failure::Fatal(error)) if !follows => {
                    assert!(error.message.contains("https://h/b"), "{error}");
                }
                other => panic!("{status}: {other:?}"),
            }
        }
        let insecure = PutAnswer {
            location: Some("http://h/b".parse().unwrap()),
            ..answer(307)
        };
        assert!(matches!(decide(&insecure), Err(Failure::Fatal(_))));
    }

    #[test]
    fn a_server_that_keeps_failing_is_not_sent_the_file_for_ever() {
        let url = Url::parse("https://h/a").unwrap();
        for tries in 1..5 {
            let is_final = matches!(
                verdict(
                    &answer(500),
                    &Identification::default(),
                    &url,
                    Path::new("a"),
                    tries
                ),
                Err(Failure::Fatal(_))
            );
            assert_eq!(is_final, tries >= MAX_TRIES_AT_500, "{tries}");
        }
    }

    #[test]
    fn refusals_say_what_to_do_and_are_not_tried_again() {
        for status in [
            400, 401, 403, 404, 405, 409, 410, 411, 412, 413, 415, 423, 501, 507,
        ] {
            let Err(Failure::Fatal(error)) = decide(&answer(status)) else {
                panic!("{status} is tried again");
            };
            assert!(error.message.contains(&status.to_string()), "{error}");
            assert!(!error.hint.is_empty(), "{status}");
        }
        for status in [408, 425, 429, 500, 502, 503, 504] {
            assert!(matches!(
                decide(&answer(status)),
                Err(Failure::Transient(_))
            ));
        }
    }
}
