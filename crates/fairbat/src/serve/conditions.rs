//! The validators of a served file, and the conditions of requests on them (RFC
//! 9110, sections 8.8 and 13). Pure.
//!
//! Two changes within one step of a file system's clock look like one, and the
//! kernel notes stores through a shared mapping late. So a file that has just been
//! changed has no validators yet ([`FileVersion::is_settled`]). Databases should
//! be served as snapshots.

use std::time::{Duration, SystemTime};

use http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};
use http::{HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};

use crate::checksum::to_hex;
use crate::file_version::{FileVersion, moment};
use crate::http::fields::{EntityTag, date, single};

/// Age below which a file may change again without a new time. The coarsest clock
/// of a file system in use has steps of two seconds (FAT).
const MIN_SETTLED_AGE: Duration = Duration::from_secs(2);

/// The year 10000, s since 1970: httpdate cannot write dates from here on.
const END_OF_DATES: i64 = 253_402_300_800;

impl FileVersion {
    /// Whether every later change shows as another version on every file system,
    /// because the last change was long enough before `now`. Never true for a
    /// file from the future.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let changed = moment(self.changed.0);
        let age = changed.and_then(|changed| now.duration_since(changed).ok());
        // The change may have come at the end of its second.
        age.is_some_and(|age| age >= MIN_SETTLED_AGE + Duration::from_secs(1))
    }

    /// A strong entity tag with its quotes. Only for a settled version. The tag is
    /// a digest, so it does not tell inode and device.
    pub(crate) fn entity_tag(&self) -> HeaderValue {
        let mut hasher = Sha256::new();
        for word in [self.device, self.inode, self.size] {
            hasher.update(word.to_be_bytes());
        }
        for (seconds, nanoseconds) in [self.modified, self.changed] {
            hasher.update(seconds.to_be_bytes());
            hasher.update(nanoseconds.to_be_bytes());
        }
        let tag = format!("\"{}\"", to_hex(&hasher.finalize()[..16]));
        HeaderValue::try_from(tag).expect("hex is a field value")
    }

    /// Modification time in whole seconds, for `Last-Modified`; `None` if it
    /// cannot be written, or is later than `now` (RFC 9110, section 8.8.2.1).
    pub(crate) fn last_modified(&self, now: SystemTime) -> Option<SystemTime> {
        let modified = Some(self.modified.0).filter(|&seconds| seconds < END_OF_DATES);
        modified.and_then(moment).filter(|&moment| moment <= now)
    }

    /// Whether no other version can have been seen with the same `Last-Modified`:
    /// the file was last changed when it was last modified.
    pub(crate) fn is_dated(&self) -> bool {
        (0..=1).contains(&self.changed.0.saturating_sub(self.modified.0))
    }
}

/// What tells one version of a file from others.
#[derive(Debug, Clone)]
pub(crate) struct Validators {
    /// A strong tag; `None` while the file may still change unnoticed.
    pub(crate) tag: Option<EntityTag>,
    /// `Last-Modified`; `None` without a tag.
    pub(crate) modified: Option<SystemTime>,
    /// Whether that date alone names a version.
    pub(crate) is_dated: bool,
}

impl Validators {
    /// The validators that a response tells: none until the version is settled.
    pub(crate) fn told(version: &FileVersion, now: SystemTime) -> Self {
        let validators = Self::of(version, now);
        if version.is_settled(now) {
            return validators;
        }
        Self {
            tag: None,
            modified: None,
            ..validators
        }
    }

    /// The validators that the version will have when it is settled. An upload
    /// tells them at once.
    pub(crate) fn of(version: &FileVersion, now: SystemTime) -> Self {
        Self {
            tag: EntityTag::from_value(&version.entity_tag()),
            modified: version.last_modified(now),
            is_dated: version.is_dated(),
        }
    }
}

/// What follows from the conditions of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionOutcome {
    /// Answer as without conditions.
    Proceed,
    /// The client has this version: 304.
    NotModified,
    /// The client expects another version: 412.
    Failed,
}

/// Evaluates the conditions of a GET or HEAD request for a file that exists, in
/// the order of section 13.2.2.
pub(crate) fn evaluate(headers: &HeaderMap, current: &Validators) -> ConditionOutcome {
    let has_tag = |name: HeaderName, compare: fn(&EntityTag, &EntityTag) -> bool| {
        tags(headers, &name).map(|tags| tags.matches(current.tag.as_ref(), compare))
    };
    let date = |name| date(headers, &name);
    match has_tag(IF_MATCH, EntityTag::strongly_equals) {
        Some(false) => return ConditionOutcome::Failed,
        Some(true) => {}
        None => {
            let date = date(IF_UNMODIFIED_SINCE);
            if let (Some(date), Some(modified)) = (date, current.modified)
                && modified > date
            {
                return ConditionOutcome::Failed;
            }
        }
    }
    match has_tag(IF_NONE_MATCH, EntityTag::weakly_equals) {
        Some(true) => ConditionOutcome::NotModified,
        Some(false) => ConditionOutcome::Proceed,
        None => match (date(IF_MODIFIED_SINCE), current.modified) {
            (Some(date), Some(modified)) if modified <= date => ConditionOutcome::NotModified,
            _ => ConditionOutcome::Proceed,
        },
    }
}

/// Whether a request that changes something has conditions.
pub(crate) fn is_conditional(headers: &HeaderMap) -> bool {
    let names = [IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE];
    names.iter().any(|name| headers.contains_key(name))
}

/// Whether a request may change the file with these validators; `None` if there
/// is no file. A date that is not known counts as too new, because a change must
/// not rest on a wrong assumption.
pub(crate) fn permits_change(headers: &HeaderMap, current: Option<&Validators>) -> bool {
    let has_tag = |tags: &Tags, compare| {
        current.is_some_and(|current| tags.matches(current.tag.as_ref(), compare))
    };
    let is_expected = match (tags(headers, &IF_MATCH), current) {
        (Some(tags), _) => has_tag(&tags, EntityTag::strongly_equals),
        (None, None) => true,
        (None, Some(current)) => date(headers, &IF_UNMODIFIED_SINCE)
            .is_none_or(|date| current.modified.is_some_and(|modified| modified <= date)),
    };
    let is_excluded =
        tags(headers, &IF_NONE_MATCH).is_some_and(|tags| has_tag(&tags, EntityTag::weakly_equals));
    is_expected && !is_excluded
}

/// Whether a range may be answered with a part: there is no `If-Range`, or it
/// names this version (section 13.1.5). A date names it only if no other version
/// can have had that date.
pub(crate) fn range_applies(headers: &HeaderMap, current: &Validators) -> bool {
    if !headers.contains_key(IF_RANGE) {
        return true;
    }
    let Some(value) = single(headers, &IF_RANGE) else {
        return false;
    };
    if value.as_bytes().contains(&b'"') {
        let tag = EntityTag::from_value(value).filter(EntityTag::is_quoted);
        return tag
            .zip(current.tag.as_ref())
            .is_some_and(|(tag, own)| tag.strongly_equals(own));
    }
    let date = date(headers, &IF_RANGE);
    current.is_dated && date.is_some() && current.modified == date
}

/// The tags in `If-Match` or `If-None-Match`.
#[derive(Debug)]
enum Tags {
    /// `*`: every existing version.
    Any,
    /// One of these.
    Listed(Vec<EntityTag>),
}

impl Tags {
    fn matches(&self, own: Option<&EntityTag>, equal: fn(&EntityTag, &EntityTag) -> bool) -> bool {
        match (self, own) {
            (Self::Any, _) => true,
            (Self::Listed(tags), Some(own)) => tags.iter().any(|tag| equal(tag, own)),
            (Self::Listed(_), None) => false,
        }
    }
}

/// The tags in a field; `None` without the field. Text that is no tag matches
/// nothing.
fn tags(headers: &HeaderMap, name: &HeaderName) -> Option<Tags> {
    let mut listed = Vec::new();
    let mut is_there = false;
    for line in headers.get_all(name) {
        is_there = true;
        let mut rest = line.as_bytes().trim_ascii();
        if rest == b"*" {
            return Some(Tags::Any);
        }
        while let Some((tag, after)) = first_tag(rest) {
            listed.extend(tag);
            rest = after;
        }
    }
    is_there.then_some(Tags::Listed(listed))
}

/// The first tag of a list and the rest after it; `None` at the end of the list,
/// or where it is malformed. Tags may contain commas.
fn first_tag(list: &[u8]) -> Option<(Option<EntityTag>, &[u8])> {
    let start = list.iter().position(|byte| !b", \t".contains(byte))?;
    let list = &list[start..];
    let prefix = if list.starts_with(b"W/") { 2 } else { 0 };
    let inner = list[prefix..].strip_prefix(b"\"")?;
    let end = prefix + 2 + inner.iter().position(|&byte| byte == b'"')?;
    let tag = HeaderValue::from_bytes(&list[..end]).ok();
    let tag = tag.and_then(|tag| EntityTag::from_value(&tag));
    Some((tag, &list[end..]))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BEFORE: &str = "Wed, 15 Nov 1995 04:58:07 GMT";
    const DATE: &str = "Wed, 15 Nov 1995 04:58:08 GMT";
    const AFTER: &str = "Wed, 15 Nov 1995 04:58:09 GMT";

    fn seen() -> Validators {
        Validators {
            tag: EntityTag::from_text("\"v1\""),
            modified: httpdate::parse_http_date(DATE).ok(),
            is_dated: true,
        }
    }

    fn unsettled() -> Validators {
        Validators {
            tag: None,
            modified: None,
            is_dated: false,
        }
    }

    fn headers(fields: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn conditions_are_evaluated_in_the_order_of_rfc_9110() {
        use ConditionOutcome::{Failed, NotModified, Proceed};
        for (fields, expected) in [
            (&[][..], Proceed),
            (&[(IF_MATCH, "\"v1\"")], Proceed),
            (&[(IF_MATCH, "*")], Proceed),
            (&[(IF_MATCH, "\"a,b\", \"v1\"")], Proceed),
            (&[(IF_MATCH, "\"v2\""), (IF_MATCH, "\"v1\"")], Proceed),
            (&[(IF_MATCH, "\"v2\"")], Failed),
            (&[(IF_MATCH, "W/\"v1\"")], Failed),
            (&[(IF_MATCH, "v1")], Failed),
            (&[(IF_MATCH, "")], Failed),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], Failed),
            (&[(IF_UNMODIFIED_SINCE, DATE)], Proceed),
            (&[(IF_UNMODIFIED_SINCE, "yesterday")], Proceed),
            // A tag decides alone.
            (
                &[(IF_MATCH, "\"v1\""), (IF_UNMODIFIED_SINCE, BEFORE)],
                Proceed,
            ),
            (&[(IF_NONE_MATCH, "\"v1\"")], NotModified),
            (&[(IF_NONE_MATCH, "\"x\", W/\"v1\"")], NotModified),
            (&[(IF_NONE_MATCH, "*")], NotModified),
            (&[(IF_NONE_MATCH, "\"v2\"")], Proceed),
            (&[(IF_MODIFIED_SINCE, BEFORE)], Proceed),
            (&[(IF_MODIFIED_SINCE, DATE)], NotModified),
            (&[(IF_MODIFIED_SINCE, AFTER)], NotModified),
            (
                &[(IF_NONE_MATCH, "\"v2\""), (IF_MODIFIED_SINCE, AFTER)],
                Proceed,
            ),
            (&[(IF_MATCH, "\"v2\""), (IF_NONE_MATCH, "\"v1\"")], Failed),
        ] {
            assert_eq!(evaluate(&headers(fields), &seen()), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_file_that_may_still_change_has_no_validator() {
        for (fields, expected) in [
            (&[(IF_MATCH, "\"v1\"")], ConditionOutcome::Failed),
            (&[(IF_MATCH, "*")], ConditionOutcome::Proceed),
            (&[(IF_NONE_MATCH, "\"v1\"")], ConditionOutcome::Proceed),
            (&[(IF_MODIFIED_SINCE, AFTER)], ConditionOutcome::Proceed),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], ConditionOutcome::Proceed),
        ] {
            let headers = headers(fields);
            assert_eq!(evaluate(&headers, &unsettled()), expected, "{fields:?}");
        }
        assert!(!range_applies(
            &headers(&[(IF_RANGE, "\"v1\"")]),
            &unsettled()
        ));
    }

    #[test]
    fn a_file_is_changed_only_if_the_conditions_hold() {
        for (fields, there, nothing) in [
            (&[][..], true, true),
            (&[(IF_NONE_MATCH, "*")], false, true),
            (&[(IF_NONE_MATCH, "\"v2\"")], true, true),
            (&[(IF_NONE_MATCH, "W/\"v1\"")], false, true),
            (&[(IF_MATCH, "*")], true, false),
            (&[(IF_MATCH, "\"v1\"")], true, false),
            (&[(IF_MATCH, "W/\"v1\"")], false, false),
            (&[(IF_MATCH, "\"v2\"")], false, false),
            (&[(IF_MATCH, "")], false, false),
            (&[(IF_MATCH, "\"v1\""), (IF_NONE_MATCH, "*")], false, false),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], false, true),
            (&[(IF_UNMODIFIED_SINCE, DATE)], true, true),
            (&[(IF_UNMODIFIED_SINCE, "yesterday")], true, true),
            // Only of use to who reads.
            (&[(IF_MODIFIED_SINCE, AFTER)], true, true),
        ] {
            let headers = headers(fields);
            assert_eq!(permits_change(&headers, Some(&seen())), there, "{fields:?}");
            assert_eq!(permits_change(&headers, None), nothing, "{fields:?}");
        }
        let dated = headers(&[(IF_UNMODIFIED_SINCE, AFTER)]);
        assert!(!permits_change(&dated, Some(&unsettled())));
    }

    #[test]
    fn a_range_applies_to_the_very_version_only() {
        for (fields, expected) in [
            (&[][..], true),
            (&[(IF_RANGE, "\"v1\"")], true),
            (&[(IF_RANGE, "\"v2\"")], false),
            (&[(IF_RANGE, "W/\"v1\"")], false),
            (&[(IF_RANGE, DATE)], true),
            (&[(IF_RANGE, AFTER)], false),
            (&[(IF_RANGE, BEFORE)], false),
            (&[(IF_RANGE, "*")], false),
            (&[(IF_RANGE, "")], false),
            (&[(IF_RANGE, "\"v1\""), (IF_RANGE, "\"v1\"")], false),
        ] {
            assert_eq!(
                range_applies(&headers(fields), &seen()),
                expected,
                "{fields:?}"
            );
        }
        let restored = Validators {
            modified: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(816_411_488)),
            is_dated: false,
            ..seen()
        };
        assert_eq!(restored.modified, seen().modified);
        assert!(!range_applies(&headers(&[(IF_RANGE, DATE)]), &restored));
    }
}

#[cfg(test)]
mod version_tests {
    use super::*;
    use crate::file_version::EXAMPLE;

    #[test]
    fn every_field_makes_another_tag() {
        let others = [
            FileVersion {
                device: 9,
                ..EXAMPLE
            },
            FileVersion {
                inode: 9,
                ..EXAMPLE
            },
            FileVersion { size: 9, ..EXAMPLE },
            FileVersion {
                modified: (1_000, 1),
                ..EXAMPLE
            },
            FileVersion {
                changed: (2_000, 999_999_998),
                ..EXAMPLE
            },
        ];
        for other in others {
            assert_ne!(other.entity_tag(), EXAMPLE.entity_tag(), "{other:?}");
        }
        let tag = EXAMPLE.entity_tag();
        assert!(tag.to_str().unwrap().starts_with('"') && tag.len() == 34);
    }

    #[test]
    fn a_file_settles_some_seconds_after_its_last_change() {
        let at = |seconds| moment(seconds).unwrap();
        for (now, expected) in [(0, false), (2_000, false), (2_002, false), (2_003, true)] {
            assert_eq!(EXAMPLE.is_settled(at(now)), expected, "{now}");
        }
    }

    #[test]
    fn impossible_dates_are_not_sent() {
        let now = moment(5_000).unwrap();
        let modified = |seconds| {
            let version = FileVersion {
                modified: (seconds, 0),
                ..EXAMPLE
            };
            version.last_modified(now)
        };
        assert_eq!(modified(1_000), moment(1_000));
        for impossible in [-1, 5_001, END_OF_DATES, i64::MAX, i64::MIN] {
            assert_eq!(modified(impossible), None, "{impossible}");
        }
    }
}
