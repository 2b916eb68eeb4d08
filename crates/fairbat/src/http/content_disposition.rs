//! The file name in a `Content-Disposition` header field: RFC 6266, with the
//! extended notation of RFC 8187.
//!
//! Parsed tolerantly, because real servers leave out the disposition type, do
//! not quote names with spaces and send raw UTF-8. The result is only a
//! suggestion: it may hold separators, `..` or control characters.
//! [`crate::file_name`] makes a safe file name of it.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// The file name that the server suggests, as it sent it; `None` if there is no
/// name or an empty one.
///
/// `filename*` wins over `filename` if it can be decoded (RFC 6266, section
/// 4.3). The first of two equal parameters counts. The disposition type does not
/// matter.
#[must_use]
pub fn suggested_name(value: &[u8]) -> Option<String> {
    let mut plain = None;
    let mut extended = None;
    let mut rest = value;
    while !rest.is_empty() {
        let (parameter, after) = next_parameter(rest);
        rest = after;
        let Some((name, value)) = parameter else {
            continue;
        };
        if name.eq_ignore_ascii_case(b"filename") {
            plain = plain.or_else(|| Some(text(&value)));
        } else if name.eq_ignore_ascii_case(b"filename*") {
            extended = extended.or_else(|| extended_value(&value));
        }
    }
    let has_text = |name: &String| !name.is_empty();
    extended.filter(has_text).or(plain.filter(has_text))
}

/// A parameter's name and its value without quotes.
type Parameter<'a> = (&'a [u8], Cow<'a, [u8]>);

/// The parameter at the start of `field`, and the rest after its semicolon. The
/// parameter is `None` where no `=` follows: at the disposition type and at an
/// empty parameter.
fn next_parameter(field: &[u8]) -> (Option<Parameter<'_>>, &[u8]) {
    let name_end = find(field, |byte| matches!(byte, b';' | b'='));
    let name = field[..name_end].trim_ascii();
    if field.get(name_end) != Some(&b'=') {
        return (None, after(field, name_end));
    }
    let value = field[name_end + 1..].trim_ascii_start();
    if let Some(quoted) = value.strip_prefix(b"\"") {
        let (value, tail) = quoted_string(quoted);
        let end = find(tail, |byte| byte == b';');
        (Some((name, Cow::Owned(value))), after(tail, end))
    } else {
        let end = find(value, |byte| byte == b';');
        let token = value[..end].trim_ascii();
        (Some((name, Cow::Borrowed(token))), after(value, end))
    }
}

/// The content of a quoted-string (RFC 9110, section 5.6.4) without its opening
/// quote, and the rest after its closing quote. An unclosed string ends with the
/// field.
fn quoted_string(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut content = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => {
                content.extend(text.get(at));
                at += 1;
            }
            _ => content.push(byte),
        }
    }
    (content, text.get(at..).unwrap_or_default())
}

/// An ext-value, `charset'language'percent-encoded` (RFC 8187, section 3.2);
/// `None` if it has another form, another character set than UTF-8 and
/// ISO-8859-1, or bytes that are not valid in it.
fn extended_value(value: &[u8]) -> Option<String> {
    let mut parts = value.splitn(3, |byte| *byte == b'\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes: Cow<'_, [u8]> = percent_decode(encoded).into();
    if charset.eq_ignore_ascii_case(b"utf-8") {
        String::from_utf8(bytes.into_owned()).ok()
    } else if charset.eq_ignore_ascii_case(b"iso-8859-1") {
        Some(latin1(&bytes))
    } else {
        None
    }
}

/// UTF-8 if it is valid, else ISO-8859-1, which every byte string is.
fn text(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| latin1(bytes), str::to_owned)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Index of the first byte that `matches`, or the length.
fn find(text: &[u8], matches: impl Fn(u8) -> bool) -> usize {
    text.iter()
        .position(|byte| matches(*byte))
        .unwrap_or(text.len())
}

/// The rest after the byte at `end`; empty at the end of the text.
fn after(text: &[u8], end: usize) -> &[u8] {
    text.get(end + 1..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_names(cases: &[(&[u8], Option<&str>)]) {
        for (value, expected) in cases {
            assert_eq!(
                suggested_name(value).as_deref(),
                *expected,
                "{}",
                value.escape_ascii()
            );
        }
    }

    #[test]
    fn reads_the_examples_of_rfc_6266() {
        assert_names(&[
            (b"Attachment; filename=example.html", Some("example.html")),
            (
                b"INLINE; FILENAME= \"an example.html\"",
                Some("an example.html"),
            ),
            (
                b"attachment; filename*= UTF-8''%e2%82%ac%20rates",
                Some("\u{20ac} rates"),
            ),
            (
                b"attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates",
                Some("\u{20ac} rates"),
            ),
        ]);
    }

    #[test]
    fn reads_the_examples_of_rfc_8187() {
        assert_names(&[
            (
                b"attachment; filename*=iso-8859-1'en'%A3%20rates",
                Some("\u{a3} rates"),
            ),
            (
                b"attachment; filename*=UTF-8''%c2%a3%20and%20%e2%82%ac%20rates",
                Some("\u{a3} and \u{20ac} rates"),
            ),
        ]);
    }

    #[test]
    fn the_extended_name_wins_wherever_it_stands_if_it_can_be_decoded() {
        assert_names(&[
            (b"attachment; filename*=UTF-8''a; filename=b", Some("a")),
            (b"attachment; filename=b; filename*=UTF-8''a", Some("a")),
            (b"attachment; filename=b; filename*=UTF-8''%ff", Some("b")),
            (b"attachment; filename=b; filename*=koi8-r''a", Some("b")),
            (b"attachment; filename=b; filename*=UTF-8''", Some("b")),
            (b"attachment; filename=b; filename*=a", Some("b")),
            (b"attachment; filename=b; filename*=UTF-8'a", Some("b")),
            (b"attachment; filename=b; filename*=\"UTF-8''a\"", Some("a")),
            (b"attachment; filename*=UTF-8''it's", Some("it's")),
            (b"attachment; filename*=UTF-8''100%", Some("100%")),
        ]);
    }

    #[test]
    fn quoted_strings_keep_separators_and_lose_escapes() {
        assert_names(&[
            (b"attachment; filename=\"a;b=c.txt\"", Some("a;b=c.txt")),
            (
                br#"attachment; filename="a \"b\" \\ c""#,
                Some(r#"a "b" \ c"#),
            ),
            (
                b"attachment; x=\"; filename=no\"; filename=yes",
                Some("yes"),
            ),
            (b"attachment; filename=\"open", Some("open")),
            (b"attachment; filename=\"open\\", Some("open")),
            (b"attachment; filename=\"a\"junk; x=y", Some("a")),
        ]);
    }

    #[test]
    fn takes_what_real_servers_send() {
        assert_names(&[
            (b"filename=a.txt", Some("a.txt")),
            (b"filename=\"a.txt\"", Some("a.txt")),
            (b"attachment;filename=a.txt;", Some("a.txt")),
            (
                b"attachment; filename=my file (1).txt",
                Some("my file (1).txt"),
            ),
            (b"attachment; filename = a.txt ; size=3", Some("a.txt")),
            (
                "attachment; filename=\"na\u{ef}ve.txt\"".as_bytes(),
                Some("na\u{ef}ve.txt"),
            ),
            (
                b"attachment; filename=\"na\xefve.txt\"",
                Some("na\u{ef}ve.txt"),
            ),
            (b"attachment; filename=na%20me", Some("na%20me")),
            (b"attachment; filename=a; filename=b", Some("a")),
            (b"; ;filename=a", Some("a")),
        ]);
    }

    #[test]
    fn dangerous_names_are_passed_on_unchanged() {
        assert_names(&[
            (b"attachment; filename=\"../../etc/x\"", Some("../../etc/x")),
            (
                b"attachment; filename*=UTF-8''..%2f..%2fetc%2fx%00",
                Some("../../etc/x\0"),
            ),
        ]);
    }

    #[test]
    fn a_field_without_a_name_gives_none() {
        assert_names(&[
            (b"", None),
            (b"attachment", None),
            (b"attachment; filename", None),
            (b"attachment; filename=", None),
            (b"attachment; filename=\"\"", None),
            (b"attachment; xfilename=a", None),
            (b"attachment; filename*=UTF-8''", None),
            (b"=;=;=", None),
        ]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_without_panic(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = suggested_name(&value);
        }

        #[test]
        fn any_name_survives_quoting(name in "\\PC{1,40}") {
            let quoted = name.replace('\\', "\\\\").replace('"', "\\\"");
            let field = format!("attachment; filename=\"{quoted}\"; size=1");
            prop_assert_eq!(suggested_name(field.as_bytes()), Some(name));
        }

        #[test]
        fn any_name_survives_the_extended_notation(name in "\\PC{1,40}") {
            let encoded = percent_encoding::utf8_percent_encode(
                &name,
                percent_encoding::NON_ALPHANUMERIC,
            );
            let field = format!("attachment; filename=x; filename*=UTF-8'en'{encoded}");
            prop_assert_eq!(suggested_name(field.as_bytes()), Some(name));
        }
    }
}
