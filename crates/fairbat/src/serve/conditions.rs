//! Whether a request's conditions hold (RFC 9110, section 13). Pure.

use std::time::SystemTime;

use http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};
use http::{HeaderMap, HeaderValue};

use crate::http::validator::EntityTag;

/// What tells this version of a file from others.
#[derive(Debug, Clone)]
pub(super) struct Validators {
    /// A strong tag; `None` while the file may still change unnoticed.
    pub(super) tag: Option<EntityTag>,
    /// `Last-Modified`; `None` without a tag.
    pub(super) modified: Option<SystemTime>,
    /// Whether that date alone names a version.
    pub(super) is_dated: bool,
}

/// What follows for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Answer as if there were no conditions.
    Proceed,
    /// The client has this version: 304.
    NotModified,
    /// It is not the version that the client means: 412.
    Failed,
}

/// Evaluates the conditions of a GET or HEAD for a file that exists, in the
/// order of section 13.2.2.
pub(super) fn evaluate(headers: &HeaderMap, seen: &Validators) -> Verdict {
    let has_tag = |name: HeaderName, compare: fn(&EntityTag, &EntityTag) -> bool| {
        tags(headers, &name).map(|tags| tags.matches(seen.tag.as_ref(), compare))
    };
    let date = |name| date(headers, &name);
    match has_tag(IF_MATCH, EntityTag::strongly_equals) {
        Some(false) => return Verdict::Failed,
        Some(true) => {}
        None => {
            let date = date(IF_UNMODIFIED_SINCE);
            if let (Some(date), Some(modified)) = (date, seen.modified)
                && modified > date
            {
                return Verdict::Failed;
            }
        }
    }
    match has_tag(IF_NONE_MATCH, EntityTag::weakly_equals) {
        Some(true) => Verdict::NotModified,
        Some(false) => Verdict::Proceed,
        None => match (date(IF_MODIFIED_SINCE), seen.modified) {
            (Some(date), Some(modified)) if modified <= date => Verdict::NotModified,
            _ => Verdict::Proceed,
        },
    }
}

/// Whether a request that changes something depends on what is there.
pub(super) fn is_conditional(headers: &HeaderMap) -> bool {
    let names = [IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE];
    names.iter().any(|name| headers.contains_key(name))
}

/// Whether a request may change what is there, `None` being nothing.
///
/// Who changes something must not be wrong about it: so a date that is not known
/// is not old enough.
pub(super) fn permits_change(headers: &HeaderMap, seen: Option<&Validators>) -> bool {
    let has_tag =
        |tags: &Tags, compare| seen.is_some_and(|seen| tags.matches(seen.tag.as_ref(), compare));
    let is_expected = match (tags(headers, &IF_MATCH), seen) {
        (Some(tags), _) => has_tag(&tags, EntityTag::strongly_equals),
        (None, None) => true,
        (None, Some(seen)) => date(headers, &IF_UNMODIFIED_SINCE)
            .is_none_or(|date| seen.modified.is_some_and(|modified| modified <= date)),
    };
    let is_excluded =
        tags(headers, &IF_NONE_MATCH).is_some_and(|tags| has_tag(&tags, EntityTag::weakly_equals));
    is_expected && !is_excluded
}

/// Whether a range may be answered with a part: there is no `If-Range`, or it
/// names this version (section 13.1.5).
///
/// A date does so only where no other version can have had it.
pub(super) fn range_applies(headers: &HeaderMap, seen: &Validators) -> bool {
    if !headers.contains_key(IF_RANGE) {
        return true;
    }
    let Some(value) = single(headers, &IF_RANGE) else {
        return false;
    };
    if value.as_bytes().contains(&b'"') {
        let tag = EntityTag::from_value(value).filter(EntityTag::is_quoted);
        return tag
            .zip(seen.tag.as_ref())
            .is_some_and(|(tag, own)| tag.strongly_equals(own));
    }
    let date = value.to_str().ok().map(httpdate::parse_http_date);
    seen.is_dated && matches!(date, Some(Ok(date)) if seen.modified == Some(date))
}

/// What a list of tags names.
#[derive(Debug)]
enum Tags {
    /// `*`: every version there is.
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

/// The tags in a field; `None` if it is not there. What is no tag matches
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
        while let Some((tag, behind)) = first_tag(rest) {
            listed.extend(tag);
            rest = behind;
        }
    }
    is_there.then_some(Tags::Listed(listed))
}

/// The first tag of a list and what stands behind it; `None` at its end, or
/// where it is malformed. Tags may contain commas.
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

/// The date in a field, if it is one.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    let value = single(headers, name)?.to_str().ok()?;
    httpdate::parse_http_date(value).ok()
}

/// The value of a field that is there exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
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
            tag: "\"v1\"".parse().ok(),
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
        use Verdict::{Failed, NotModified, Proceed};
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
            (&[(IF_MATCH, "\"v1\"")], Verdict::Failed),
            (&[(IF_MATCH, "*")], Verdict::Proceed),
            (&[(IF_NONE_MATCH, "\"v1\"")], Verdict::Proceed),
            (&[(IF_MODIFIED_SINCE, AFTER)], Verdict::Proceed),
            (&[(IF_UNMODIFIED_SINCE, BEFORE)], Verdict::Proceed),
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
    fn what_is_there_is_changed_only_as_it_is_expected() {
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
