//! `Link` fields (RFC 8288) of Metalink/HTTP (RFC 6249): other URLs of the same file, and a Metalink
//! that describes it.

use http::HeaderMap;
use http::header::LINK;
use url::Url;

/// Links that are read of one answer. Later ones are skipped.
const MAX_LINKS: usize = 100;

/// Lowest priority.
const LAST: u32 = 999_999;

/// The media type of a Metalink (RFC 5854, section 6).
const METALINK: &str = "application/metalink4+xml";

/// What a server says of the file besides sending it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// Other URLs of the file, by priority and then in the order in which they came.
    pub duplicates: Vec<Url>,
    /// Where a Metalink of the file is.
    pub metalink: Option<Url>,
}

impl Links {
    /// Those of an answer to a request for `base`. What is malformed is skipped with the rest of
    /// its line; other relations and schemes are skipped.
    #[must_use]
    pub fn of(headers: &HeaderMap, base: &Url) -> Self {
        let (mut found, mut count) = (Vec::new(), 0);
        let mut metalink = None;
        for line in headers.get_all(LINK) {
            let Ok(line) = line.to_str() else { continue };
            let mut rest = line;
            while let Some((link, after)) = link(rest) {
                rest = after;
                count += 1;
                if count > MAX_LINKS {
                    break;
                }
                let url = base.join(link.target).ok();
                let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else {
                    continue;
                };
                if link.parameter("anchor").is_some() {
                    // It says something of another file.
                } else if link.has_relation("duplicate") {
                    found.push((priority_of(link.parameter("pri")), url));
                } else if link.has_relation("describedby") && link.is_metalink() {
                    metalink.get_or_insert(url);
                }
            }
        }
        found.sort_by_key(|(priority, _)| *priority);
        Self {
            duplicates: found.into_iter().map(|(_, url)| url).collect(),
            metalink,
        }
    }
}

/// A link: its target, and its parameters in their order.
struct Link<'a> {
    target: &'a str,
    parameters: Vec<(&'a str, String)>,
}

impl Link<'_> {
    /// The first value of a parameter: later ones do not count (RFC 8288, section 3.3).
    fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn has_relation(&self, relation: &str) -> bool {
        let relations = self.parameter("rel").unwrap_or_default();
        let mut relations = relations.split_ascii_whitespace();
        relations.any(|other| other.eq_ignore_ascii_case(relation))
    }

    fn is_metalink(&self) -> bool {
        let media_type = self.parameter("type");
        media_type.is_some_and(|it| it.eq_ignore_ascii_case(METALINK))
    }
}

/// The priority of one of several URLs, 1 to 999,999, where 1 comes first (RFC 5854, section
/// 4.2.16.2; RFC 6249, section 3.1). Without one that can be read, it is the last.
pub(crate) fn priority_of(text: Option<&str>) -> u32 {
    let priority = text.and_then(|text| text.parse().ok());
    priority.unwrap_or(LAST).clamp(1, LAST)
}

/// The next link of a line, and what comes after it; `None` at the end, and where it is malformed.
fn link(line: &str) -> Option<(Link<'_>, &str)> {
    let line = line.trim_start_matches([' ', '\t', ',']);
    let (target, mut rest) = line.strip_prefix('<')?.split_once('>')?;
    let mut parameters = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        let Some(after) = rest.strip_prefix(';') else {
            break;
        };
        let after = after.trim_ascii_start();
        let end = after.find(['=', ';', ',']).unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        let (value, after) = match after.strip_prefix('=') {
            Some(after) => value(after.trim_ascii_start())?,
            None => (String::new(), after),
        };
        parameters.push((name.trim_ascii_end(), value));
        rest = after;
    }
    let is_end = rest.is_empty() || rest.starts_with(',');
    is_end.then_some((Link { target, parameters }, rest))
}

/// A value of a parameter, quoted or not, and what comes after it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([';', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return Some((value.trim_ascii_end().to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((value, &quoted[index + 1..])),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn links(lines: &[&str]) -> Links {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(LINK, HeaderValue::from_str(line).expect("a value"));
        }
        let base = Url::parse("http://www.example.com/dir/example.ext").expect("a URL");
        Links::of(&headers, &base)
    }

    #[test]
    fn duplicates_come_by_priority_and_the_metalink_is_found() {
        let links = links(&[
            "<http://www2.example.com/example.ext>; rel=duplicate",
            "<ftp://ftp.example.com/example.ext>; rel=duplicate; pri=1",
            "<http://example.com/example.ext.torrent>; rel=describedby; \
             type=\"application/x-bittorrent\"",
            "<http://example.com/example.ext.meta4>; rel=describedby; \
             type=\"application/metalink4+xml\"",
            "<http://example.com/example.ext.asc>; rel=describedby; \
             type=\"application/pgp-signature\"",
            "<http://a.example/x>; REL = \"next duplicate\" ;pri=2;geo=gb; depth=1, \
             <../other>; title=\"a, \\\"b\\\"; c\"; rel=duplicate; pri=1; rel=next",
        ]);
        let urls: Vec<&str> = links.duplicates.iter().map(Url::as_str).collect();
        assert_eq!(
            urls,
            [
                "http://www.example.com/other",
                "http://a.example/x",
                "http://www2.example.com/example.ext"
            ]
        );
        let metalink = links.metalink.as_ref().map(Url::as_str);
        assert_eq!(metalink, Some("http://example.com/example.ext.meta4"));
    }

    #[test]
    fn the_examples_of_rfc_6249_are_read() {
        // Sections 1.1 and 7.
        let brief = [
            "<http://www2.example.com/example.ext>; rel=duplicate; pref",
            "<ftp://ftp.example.com/example.ext>; rel=duplicate",
            "<http://example.com/example.ext.torrent>; rel=describedby; \
             type=\"application/x-bittorrent\"",
            "<http://example.com/example.ext.meta4>; rel=describedby; \
             type=\"application/metalink4+xml\"",
            "<http://example.com/example.ext.asc>; rel=describedby; \
             type=\"application/pgp-signature\"",
        ];
        // Section 3.
        let with_priorities = [
            "<http://www2.example.com/example.ext>; rel=duplicate; pri=1; pref",
            "<ftp://ftp.example.com/example.ext>; rel=duplicate; pri=2; geo=gb; depth=1",
        ];
        // Section 3.4: other files of this server are there, too.
        let with_depth = [
            "<http://www2.example.com/dir1/dir2/dir3/dir4/dir5/example.ext>; rel=duplicate; \
             pri=1; pref; depth=4",
        ];
        // Sections 4 and 5.
        let with_a_name = [
            "<http://example.com/example.ext.torrent>; rel=describedby; \
             type=\"application/x-bittorrent\"; name=\"differentname.ext\"",
            "<http://example.com/example.ext.meta4>; rel=describedby; \
             type=\"application/metalink4+xml\"",
            "<http://example.com/example.ext.p7m>; rel=describedby; \
             type=\"application/pkcs7-mime\"",
        ];
        let duplicate = "http://www2.example.com/example.ext";
        let deep = "http://www2.example.com/dir1/dir2/dir3/dir4/dir5/example.ext";
        let metalink = Some("http://example.com/example.ext.meta4");
        for (lines, duplicates, metalink) in [
            (&brief[..], &[duplicate][..], metalink),
            (&with_priorities, &[duplicate], None),
            (&with_depth, &[deep], None),
            (&with_a_name, &[], metalink),
        ] {
            let links = links(lines);
            let found: Vec<&str> = links.duplicates.iter().map(Url::as_str).collect();
            assert_eq!(found, duplicates);
            assert_eq!(links.metalink.as_ref().map(Url::as_str), metalink);
        }
    }

    #[test]
    fn the_links_of_mirrorbits_are_read() {
        // As mirrorbits v0.6.1-7-g7357f8c sends them with its redirection to the first mirror.
        let links = links(&[
            "<http://127.0.1.12/dir/other file & more.txt>; rel=duplicate; pri=1; geo=fr",
            "<http://127.0.1.13/dir/other file & more.txt>; rel=duplicate; pri=2; geo=gb",
        ]);
        let urls: Vec<&str> = links.duplicates.iter().map(Url::as_str).collect();
        assert_eq!(
            urls,
            [
                "http://127.0.1.12/dir/other%20file%20&%20more.txt",
                "http://127.0.1.13/dir/other%20file%20&%20more.txt"
            ]
        );
        assert_eq!(links.metalink, None);
    }

    #[test]
    fn what_is_malformed_is_skipped_with_the_rest_of_its_line() {
        for line in [
            "",
            "http://a/; rel=duplicate",
            "<http://a/; rel=duplicate",
            "<http://a/>; rel=\"duplicate",
            "<http://a/> rel=duplicate",
            "<http://a/>; rel=\"duplicate\" x",
            "<mailto:a>; rel=duplicate",
            "<http://a/>; rel=duplicates",
            "<http://a/>; rel=duplicate; anchor=\"/other\"",
        ] {
            let good = "<http://b/>; rel=duplicate";
            let links = links(&[line, good]);
            let urls: Vec<&str> = links.duplicates.iter().map(Url::as_str).collect();
            assert_eq!(urls, ["http://b/"], "{line}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(line in "[ -~]{0,60}") {
            let _ = links(&[&line, &format!("<http://a/>;{line}")]);
        }
    }
}
