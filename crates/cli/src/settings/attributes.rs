//! What may follow a URL on a line of `--input-file`: `deadline=WHEN`.
//!
//! It must not know where the line stands; whoever reads the list names the
//! file and the line number.

use jiff::{Timestamp, Zoned};

/// What a line says of its URL.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    /// The URL's own deadline, before `--deadline`.
    pub(super) deadline: Option<Timestamp>,
}

impl Attributes {
    /// Reads the words after the URL; times of day and spans count from `now`.
    ///
    /// # Errors
    /// The first word that is wrong, and what to write.
    pub(super) fn parse<'a>(
        words: impl IntoIterator<Item = &'a str>,
        now: &Zoned,
    ) -> Result<Self, String> {
        let mut attributes = Self::default();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if name != "deadline" {
                return Err(format!(
                    "{word:?} is not an attribute; after the URL only deadline=WHEN may follow \
                     (a space within the URL is written %20)"
                ));
            }
            if value.is_empty() {
                return Err(
                    "the deadline is missing; write deadline=06:00, deadline=4h or \
                     deadline=2026-05-01T06:00:00+02:00, without spaces"
                        .to_owned(),
                );
            }
            let deadline = super::deadline(value, now).map_err(|error| error.to_string())?;
            if attributes.deadline.replace(deadline).is_some() {
                return Err("there are two deadlines; leave one".to_owned());
            }
        }
        Ok(attributes)
    }
}
