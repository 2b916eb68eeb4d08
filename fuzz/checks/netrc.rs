//! What must hold for any netrc file.

use fairbat::http::netrc::{Netrc, NetrcError};

/// Panics if an error quotes the file or names a line that is not there, or if an entry
/// is not found as it was written.
pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let lines = text.lines().count().max(1);
    match Netrc::parse(text) {
        Ok(netrc) => {
            // Hosts have any case, and addresses their brackets or not.
            let found = |host: &str| {
                let credentials = netrc.lookup(host).map_err(|error| error.to_string());
                credentials.map(|found| found.map(|it| (it.user, it.password)))
            };
            let host = text.split_ascii_whitespace().nth(1).unwrap_or_default();
            assert_eq!(found(host), found(&host.to_ascii_uppercase()));
            assert_eq!(found("::1"), found("[::1]"));
        }
        Err(NetrcError::UnclosedQuote { line } | NetrcError::MissingValue { line }) => {
            assert!((1..=lines).contains(&line), "line {line} of {lines}");
        }
        Err(error) => panic!("{error}"),
    }
    check_written(text);
}

/// Makes three words of the text, and reads the entry that is written with them.
fn check_written(text: &str) {
    let mut words = text.splitn(3, '\n').map(|word| word.replace('\r', "\t"));
    let (Some(host), Some(user), Some(password)) = (words.next(), words.next(), words.next())
    else {
        return;
    };
    let quoted = |word: &str| {
        let word = word.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", word.replace('\n', "\\n"))
    };
    let [host, user, password] = [host, user, password].map(|word| (quoted(&word), word));
    let text = format!(
        "machine {} password {} login {}",
        host.0, password.0, user.0
    );
    let netrc = Netrc::parse(&text).expect("each quote is closed");
    let found = netrc.lookup(&host.1).expect("all words are known");
    let found = found.expect("the host has an entry");
    assert_eq!((found.user, found.password), (user.1, password.1));
}
