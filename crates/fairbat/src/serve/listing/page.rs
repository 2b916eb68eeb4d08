//! Which part of a listing a request asks for. Pure.

use percent_encoding::percent_decode_str;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    /// It begins behind this name, whether or not there is one of that name.
    pub(super) after: Vec<u8>,
    /// Entries in it, at most; at least 1 in a request.
    pub(super) left: usize,
}

impl Page {
    /// `after=NAME&limit=N`, either of which may be missing; other parameters mean
    /// nothing. A name is percent-encoded as it would be in a path: `+` is itself.
    ///
    /// `None` when the limit is no number above 0.
    pub(super) fn of(query: &str) -> Option<Self> {
        let mut page = Self {
            after: Vec::new(),
            left: usize::MAX,
        };
        for parameter in query.split('&') {
            match parameter.split_once('=') {
                Some(("after", name)) => page.after = percent_decode_str(name).collect(),
                Some(("limit", limit)) => {
                    page.left = limit.parse().ok().filter(|&limit| limit > 0)?;
                }
                _ => {}
            }
        }
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bytes_and_limits_are_above_0() {
        let page = |after: &[u8], left| {
            let after = after.to_vec();
            Some(Page { after, left })
        };
        for (query, expected) in [
            ("", page(b"", usize::MAX)),
            ("limit=7", page(b"", 7)),
            ("after=a%20b+c%ff&limit=1", page(b"a b+c\xff", 1)),
            ("limit=2&after=%26%3D&x=y&z", page(b"&=", 2)),
            ("limit=0", None),
            ("limit=-1", None),
            ("limit=", None),
            ("limit=many", None),
        ] {
            assert_eq!(Page::of(query), expected, "{query}");
        }
    }
}
