//! Credentials in netrc files.
//!
//! A netrc file has the format of ftp(1), read as curl reads it. Words are
//! separated by white space. `machine NAME` or `default` opens an entry;
//! `login`, `password` and `account` follow in any order; `macdef` opens a macro
//! that lasts to the next empty line. As in curl, keywords may have any case,
//! words may stand in double quotes with `\n`, `\r`, `\t` and `\x` for any
//! other x, and comments go from `#` to the end of the line where a keyword
//! could stand. Unknown words are ignored, unless one may be a misspelt `login` or
//! `password`: then the entry gives no credentials. Errors never quote the file,
//! because the quote may be a password.

use std::path::Path;

use crate::settings::Credentials;

/// The entries of a netrc file.
#[derive(Clone, Default)]
pub struct Netrc {
    entries: Vec<NetrcEntry>,
}

/// Shows no password.
impl std::fmt::Debug for Netrc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hosts = self.entries.iter().map(|entry| &entry.host);
        f.debug_list().entries(hosts).finish()
    }
}

#[derive(Clone, Default)]
struct NetrcEntry {
    /// `None` is the `default` entry.
    host: Option<String>,
    login: Option<String>,
    password: Option<String>,
    /// The line of the first unknown word, from 1.
    unknown: Option<usize>,
}

/// Why a netrc file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NetrcError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// The file is not UTF-8. A guess would send a wrong password.
    #[error("is not UTF-8 text")]
    NotUtf8,
    /// A quoted word is not closed on its line.
    #[error("has an unclosed quote in line {line}")]
    UnclosedQuote {
        /// Line number, from 1.
        line: usize,
    },
    /// An entry lacks one of login and password, and has a word that may be
    /// meant as its keyword.
    #[error("has an unknown word in line {line}, and no {missing}")]
    UnknownWord {
        /// Line number, from 1.
        line: usize,
        /// The keyword that is missing.
        missing: &'static str,
    },
    /// A keyword is the last word of the file.
    #[error("ends after a keyword that needs a value (line {line})")]
    MissingValue {
        /// Line number, from 1.
        line: usize,
    },
}

impl Netrc {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub fn load(path: &Path) -> Result<Self, NetrcError> {
        let bytes = std::fs::read(path)?;
        let text = String::from_utf8(bytes).map_err(|_| NetrcError::NotUtf8)?;
        Self::parse(&text)
    }

    /// Reads the text of a netrc file.
    ///
    /// # Errors
    /// A quote is not closed, or a value is missing.
    pub fn parse(text: &str) -> Result<Self, NetrcError> {
        let mut words = Words::new(text.trim_start_matches('\u{feff}'));
        let mut entries: Vec<NetrcEntry> = Vec::new();
        while let Some(word) = words.keyword()? {
            match word.to_ascii_lowercase().as_str() {
                "machine" => entries.push(NetrcEntry {
                    host: Some(words.value()?),
                    ..NetrcEntry::default()
                }),
                "default" => entries.push(NetrcEntry::default()),
                "login" => {
                    let login = words.value()?;
                    set(&mut entries, |entry| entry.login = Some(login));
                }
                "password" => {
                    let password = words.value()?;
                    set(&mut entries, |entry| entry.password = Some(password));
                }
                // The value could look like a keyword.
                "account" => drop(words.value()?),
                "macdef" => words.skip_macro(),
                _ => set(&mut entries, |entry| {
                    entry.unknown.get_or_insert(words.line);
                }),
            }
        }
        Ok(Self { entries })
    }

    /// The credentials for `host`, written as in a URL.
    ///
    /// The first `machine` of that name counts, without regard to case, else the
    /// first `default`. An entry without login and password means that there
    /// are none.
    ///
    /// # Errors
    /// [`NetrcError::UnknownWord`].
    pub fn lookup(&self, host: &str) -> Result<Option<Credentials>, NetrcError> {
        let host = without_brackets(host);
        let named = |entry: &&NetrcEntry| {
            entry
                .host
                .as_deref()
                .is_some_and(|name| without_brackets(name).eq_ignore_ascii_case(host))
        };
        let entry = self.entries.iter().find(named);
        entry
            .or_else(|| self.entries.iter().find(|entry| entry.host.is_none()))
            .map_or(Ok(None), NetrcEntry::credentials)
    }
}

impl NetrcEntry {
    fn credentials(&self) -> Result<Option<Credentials>, NetrcError> {
        let missing = match (&self.login, &self.password) {
            (None, None) => return Ok(None),
            (None, Some(_)) => Some("login"),
            (Some(_), None) => Some("password"),
            (Some(_), Some(_)) => None,
        };
        if let Some((line, missing)) = self.unknown.zip(missing) {
            return Err(NetrcError::UnknownWord { line, missing });
        }
        Ok(Some(Credentials {
            user: self.login.clone().unwrap_or_default(),
            password: self.password.clone().unwrap_or_default(),
        }))
    }
}

/// Sets a part of the last entry. Words before the first entry are ignored.
fn set(entries: &mut [NetrcEntry], part: impl FnOnce(&mut NetrcEntry)) {
    if let Some(entry) = entries.last_mut() {
        part(entry);
    }
}

/// The host without brackets: an IPv6 address has them in a URL, but not in most
/// netrc files.
fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host)
}

/// The words of a netrc file, line by line.
struct Words<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    /// The rest of the current line.
    rest: &'a str,
    /// The number of the current line, from 1.
    line: usize,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            lines: text.lines().enumerate(),
            rest: "",
            line: 0,
        }
    }

    /// The next word where a keyword or a comment may stand.
    fn keyword(&mut self) -> Result<Option<String>, NetrcError> {
        while self.seek() {
            if self.rest.starts_with('#') {
                self.rest = "";
            } else {
                return self.word().map(Some);
            }
        }
        Ok(None)
    }

    /// The value of the keyword just read.
    fn value(&mut self) -> Result<String, NetrcError> {
        let line = self.line;
        if self.seek() {
            self.word()
        } else {
            Err(NetrcError::MissingValue { line })
        }
    }

    /// Skips to the line after the next empty one.
    fn skip_macro(&mut self) {
        self.rest = "";
        while self.next_line() && !self.rest.trim().is_empty() {}
        self.rest = "";
    }

    /// Skips white space. Returns whether another word follows.
    fn seek(&mut self) -> bool {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if !self.rest.is_empty() {
                return true;
            }
            if !self.next_line() {
                return false;
            }
        }
    }

    fn next_line(&mut self) -> bool {
        match self.lines.next() {
            Some((index, text)) => {
                self.line = index + 1;
                self.rest = text;
                true
            }
            None => false,
        }
    }

    /// The word at the start of the rest.
    fn word(&mut self) -> Result<String, NetrcError> {
        if let Some(quoted) = self.rest.strip_prefix('"') {
            return self.quoted(quoted);
        }
        let end = self
            .rest
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word.to_owned())
    }

    /// The word whose opening quote stood before `text`.
    fn quoted(&mut self, text: &'a str) -> Result<String, NetrcError> {
        let mut word = String::new();
        let mut chars = text.chars();
        loop {
            match chars.next() {
                Some('"') => {
                    self.rest = chars.as_str();
                    return Ok(word);
                }
                Some('\\') => word.extend(chars.next().map(|c| match c {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                })),
                Some(c) => word.push(c),
                None => return Err(NetrcError::UnclosedQuote { line: self.line }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, host: &str) -> Option<(String, String)> {
        let credentials = Netrc::parse(text).unwrap().lookup(host).unwrap()?;
        Some((credentials.user, credentials.password))
    }

    fn assert_found(text: &str, host: &str, user: &str, password: &str) {
        assert_eq!(
            found(text, host),
            Some((user.to_owned(), password.to_owned())),
            "{text:?}"
        );
    }

    #[test]
    fn reads_entries_on_one_line_or_many() {
        let text = "machine a.example login u password p\n\
                    MACHINE b.example\n\tPassword\n  q\n  account x\n  LOGIN v\n";
        assert_found(text, "a.example", "u", "p");
        assert_found(text, "b.example", "v", "q");
        assert_found(text, "B.Example", "v", "q");
        assert_eq!(found(text, "c.example"), None);
        assert_eq!(found(text, "example"), None);
    }

    #[test]
    fn the_first_entry_of_a_host_counts_and_default_last() {
        let text = "machine a login u password p\n\
                    default login d password e\n\
                    machine a login v password q\n\
                    machine b login w password r\n";
        assert_found(text, "a", "u", "p");
        assert_found(text, "b", "w", "r");
        assert_found(text, "c", "d", "e");
    }

    #[test]
    fn a_host_called_default_is_not_the_default() {
        assert_eq!(found("machine default login u password p", "a"), None);
    }

    #[test]
    fn comments_stand_where_a_keyword_could() {
        let text = "# machine a login no password no\n\
                    machine a login u password p # login no\n\
                    #machine b\n  # indented\n\
                    machine b login #u password p#q\n";
        assert_found(text, "a", "u", "p");
        assert_found(text, "b", "#u", "p#q");
    }

    #[test]
    fn quoted_words_keep_spaces_and_lose_escapes() {
        assert_found(
            r#"machine "a" login "u v" password "p\"q\\r\t#""#,
            "a",
            "u v",
            "p\"q\\r\t#",
        );
        assert_found("machine a login \"\" password p", "a", "", "p");
        // Outside quotes they are characters like others.
        assert_found(r#"machine a login u password p\q"r"#, "a", "u", r#"p\q"r"#);
    }

    #[test]
    fn a_macro_lasts_to_the_empty_line() {
        for newline in ["\n", "\r\n"] {
            let text = [
                "machine a login u password p macdef init",
                "machine b login no password no",
                "  quit",
                "",
                "machine b login v password q",
                "",
            ]
            .join(newline);
            assert_found(&text, "a", "u", "p");
            assert_found(&text, "b", "v", "q");
        }
        assert_eq!(
            found("macdef init\nmachine a login u password p", "a"),
            None
        );
    }

    #[test]
    fn values_may_look_like_keywords_and_unknown_words_are_ignored() {
        assert_found(
            "machine a account default login machine password login",
            "a",
            "machine",
            "login",
        );
        assert_found("machine a port 21 login u password p", "a", "u", "p");
        assert_found("login x machine a login u password p", "a", "u", "p");
    }

    #[test]
    fn half_an_entry_is_kept_and_an_empty_one_means_none() {
        assert_found("machine a login u", "a", "u", "");
        assert_found("machine a password p", "a", "", "p");
        assert_eq!(found("machine a default login d password e", "a"), None);
        assert_eq!(found("", "a"), None);
    }

    #[test]
    fn a_misspelt_keyword_is_no_empty_password() {
        let text = "machine a login u\n  passwor secret\n\
                    machine b logn u password secret\n\
                    machine c port 21 login u password p\n\
                    machine d port 21\n";
        let netrc = Netrc::parse(text).unwrap();
        for (host, expected) in [
            ("a", "has an unknown word in line 2, and no password"),
            ("b", "has an unknown word in line 3, and no login"),
        ] {
            let error = netrc.lookup(host).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        assert_found(text, "c", "u", "p");
        assert_eq!(found(text, "d"), None);
    }

    #[test]
    fn ipv6_hosts_match_with_or_without_brackets() {
        assert_found("machine ::1 login u password p", "[::1]", "u", "p");
        assert_found("machine [::1] login u password p", "[::1]", "u", "p");
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        assert_found("\u{feff}machine a login u password p", "a", "u", "p");
    }

    #[test]
    fn errors_name_the_line_and_no_content() {
        for (text, expected) in [
            (
                "machine a\nlogin \"sec\nret\"",
                "has an unclosed quote in line 2",
            ),
            (
                "machine a login u\npassword\n\n",
                "ends after a keyword that needs a value (line 2)",
            ),
            (
                "machine",
                "ends after a keyword that needs a value (line 1)",
            ),
        ] {
            let error = Netrc::parse(text).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn debug_output_hides_passwords() {
        let netrc = Netrc::parse("machine a login u password secret").unwrap();
        assert!(!format!("{netrc:?}").contains("secret"));
    }

    #[test]
    fn loads_a_file_or_says_why_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("netrc");
        assert!(matches!(
            Netrc::load(&path),
            Err(NetrcError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound
        ));
        std::fs::write(&path, "machine a login u password p").unwrap();
        let found = Netrc::load(&path).unwrap().lookup("a").unwrap();
        assert_eq!(found.unwrap().user, "u");
        std::fs::write(&path, b"machine a login u password \xe9").unwrap();
        assert!(matches!(Netrc::load(&path), Err(NetrcError::NotUtf8)));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_without_panic(text in "([a-z\"\\\\# \n]|machine |login |macdef |\\PC){0,60}") {
            let _ = Netrc::parse(&text);
        }

        #[test]
        fn any_password_survives_quoting(password in "\\PC{0,30}") {
            let quoted = password.replace('\\', "\\\\").replace('"', "\\\"");
            let text = format!("machine a password \"{quoted}\" login u");
            assert_found(&text, "a", "u", &password);
        }
    }
}
