//! The lines of a manifest: reading and writing.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fairbat::settings::Checksum;
use serde::{Deserialize, Serialize};

use super::{
    ItemContent, LineProblem, ManifestHeader, ManifestItem, ManifestKind, ManifestLine,
    ManifestReadError, VERSION,
};
use crate::entry::{Attributes, Moment, TreePath};
use crate::percent;

/// Largest file, bytes: off_t of Linux.
const MAX_FILE: u64 = i64::MAX as u64;

/// Nanoseconds in a second.
const SECOND: u32 = 1_000_000_000;

#[derive(Serialize, Deserialize)]
struct HeaderLine<'a> {
    fairbat_manifest: u32,
    kind: ManifestKind,
    sequence: u64,
    #[serde(borrow)]
    created: Cow<'a, str>,
}

/// Any other line. One type for all kinds, so that contradictory lines are refused.
#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    path: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<bool>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<Type>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    mode: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    mtime: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    sha256: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    target: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<EndLine>,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Type {
    File,
    Dir,
    Link,
}

#[derive(Serialize, Deserialize)]
struct EndLine {
    entries: u64,
    sha256: String,
}

/// A parsed line after the header.
pub(super) enum ParsedLine {
    Line(ManifestLine),
    End(EndMark),
}

/// The last line.
#[derive(Clone, Copy)]
pub(super) struct EndMark {
    pub(super) entries: u64,
    /// SHA-256 of all lines before it.
    pub(super) sha256: [u8; 32],
}

pub(super) fn write_header(header: &ManifestHeader) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&HeaderLine {
        fairbat_manifest: VERSION,
        kind: header.kind,
        sequence: header.sequence,
        created: header.created.to_string().into(),
    })
}

pub(super) fn read_header(line: &[u8]) -> Result<ManifestHeader, ManifestReadError> {
    /// Read first, because another version may have another header.
    #[derive(Deserialize)]
    struct VersionLine {
        fairbat_manifest: u32,
    }
    let refused = |problem| ManifestReadError::Line { line: 1, problem };
    let json = |error| refused(LineProblem::Json(error));
    match object::<VersionLine>(line).map_err(json)?.fairbat_manifest {
        VERSION => {}
        other => return Err(ManifestReadError::Version(other)),
    }
    let line: HeaderLine<'_> = object(line).map_err(json)?;
    let created = line.created.parse();
    Ok(ManifestHeader {
        kind: line.kind,
        sequence: line.sequence,
        created: created.map_err(|_| refused(LineProblem::Member("created")))?,
    })
}

/// Writes only lines that can be read.
pub(super) fn write_record(record: &ManifestLine) -> Result<Vec<u8>, LineProblem> {
    let mut line = Line {
        path: Some(path_text(record.path()).into()),
        ..Line::default()
    };
    match record {
        ManifestLine::Removed(_) => line.removed = Some(true),
        ManifestLine::Item(item) => {
            let attributes = &item.attributes;
            let is_mode = attributes.mode <= 0o7777;
            let is_moment = attributes.modified.nanoseconds < SECOND;
            member("mode", is_mode.then_some(()))?;
            member("mtime", is_moment.then_some(()))?;
            line.mode = Some(format!("{:04o}", attributes.mode).into());
            line.uid = Some(attributes.uid);
            line.gid = Some(attributes.gid);
            line.mtime = Some(moment_text(attributes.modified).into());
            line.kind = Some(match &item.content {
                ItemContent::File { size, sha256 } => {
                    member("size", (*size <= MAX_FILE).then_some(()))?;
                    line.size = Some(*size);
                    line.sha256 = Some(Checksum::Sha256(*sha256).hex().into());
                    Type::File
                }
                ItemContent::Directory => Type::Dir,
                ItemContent::Symlink(target) => {
                    let is_target = !target.is_empty() && !target.as_bytes().contains(&0);
                    member("target", is_target.then_some(()))?;
                    line.target = Some(text(target.as_bytes()).into());
                    Type::Link
                }
            });
        }
    }
    serde_json::to_vec(&line).map_err(LineProblem::Json)
}

pub(super) fn write_end(end: &EndMark) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Line {
        end: Some(EndLine {
            entries: end.entries,
            sha256: Checksum::Sha256(end.sha256).hex(),
        }),
        ..Line::default()
    })
}

pub(super) fn read(line: &[u8]) -> Result<ParsedLine, LineProblem> {
    let line: Line<'_> = object(line).map_err(LineProblem::Json)?;
    let path = match (&line.path, &line.end) {
        (Some(path), None) => path_of(path)?,
        (None, Some(end)) => {
            let entries = end.entries;
            let sha256 = digest_of(&end.sha256)?;
            return Ok(ParsedLine::End(EndMark { entries, sha256 }));
        }
        _ => return Err(LineProblem::Member("path")),
    };
    match (line.removed, line.kind) {
        (Some(true), None) => return Ok(ParsedLine::Line(ManifestLine::Removed(path))),
        (None, _) => {}
        (Some(_), _) => return Err(LineProblem::Member("removed")),
    }
    let attributes = Attributes {
        mode: member("mode", line.mode.as_deref().and_then(mode_of))?,
        uid: member("uid", line.uid)?,
        gid: member("gid", line.gid)?,
        modified: member("mtime", line.mtime.as_deref().and_then(moment_of))?,
    };
    let content = match member("type", line.kind)? {
        Type::File => ItemContent::File {
            size: member("size", line.size.filter(|size| *size <= MAX_FILE))?,
            sha256: digest_of(&member("sha256", line.sha256)?)?,
        },
        Type::Dir => ItemContent::Directory,
        Type::Link => ItemContent::Symlink(target_of(&member("target", line.target)?)?),
    };
    Ok(ParsedLine::Line(ManifestLine::Item(ManifestItem {
        path,
        attributes,
        content,
    })))
}

/// Parses an object. Serde would also accept an array of its values.
fn object<'a, T: Deserialize<'a>>(line: &'a [u8]) -> serde_json::Result<T> {
    match line.first() {
        Some(b'{') => serde_json::from_slice(line),
        Some(_) | None => Err(serde::de::Error::custom("the line is no object")),
    }
}

fn member<T>(name: &'static str, value: Option<T>) -> Result<T, LineProblem> {
    value.ok_or(LineProblem::Member(name))
}

/// Bytes as text. JSON escapes what it has to.
fn text(bytes: &[u8]) -> String {
    percent::encode(bytes, |_, _| true)
}

/// The bytes of a text in canonical form.
fn bytes_of(encoded: &str) -> Option<Vec<u8>> {
    percent::decode(encoded).filter(|bytes| text(bytes) == encoded)
}

fn path_text(path: &TreePath) -> String {
    let names = path.names().map(|name| text(name.as_bytes()));
    names.collect::<Vec<_>>().join("/")
}

fn path_of(encoded: &str) -> Result<TreePath, LineProblem> {
    let mut bytes = bytes_of(encoded).ok_or(LineProblem::Path)?;
    // NUL joins the names of a path.
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(LineProblem::Path);
    }
    for byte in &mut bytes {
        if *byte == b'/' {
            *byte = 0;
        }
    }
    TreePath::from_bytes(&bytes).map_err(|_| LineProblem::Path)
}

fn target_of(encoded: &str) -> Result<Box<OsStr>, LineProblem> {
    let bytes = bytes_of(encoded).filter(|bytes| !bytes.is_empty() && !bytes.contains(&0));
    Ok(OsString::from_vec(member("target", bytes)?).into_boxed_os_str())
}

fn digest_of(hex: &str) -> Result<[u8; 32], LineProblem> {
    match format!("sha-256={hex}").parse() {
        Ok(Checksum::Sha256(digest)) => Ok(digest),
        Ok(_) | Err(_) => Err(LineProblem::Member("sha256")),
    }
}

/// Four octal digits.
fn mode_of(text: &str) -> Option<u32> {
    let is_octal = text.len() == 4 && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    is_octal.then(|| u32::from_str_radix(text, 8).ok())?
}

/// Seconds since 1970 with nine decimals. Half a second before 1970 is
/// `-0.500000000`.
fn moment_text(moment: Moment) -> String {
    let Moment {
        seconds,
        nanoseconds,
    } = moment;
    if seconds >= 0 || nanoseconds == 0 {
        return format!("{seconds}.{nanoseconds:09}");
    }
    let whole = (seconds + 1).unsigned_abs();
    format!("-{whole}.{:09}", SECOND - nanoseconds)
}

fn moment_of(text: &str) -> Option<Moment> {
    let (whole, fraction) = text.split_once('.')?;
    let (is_before, whole) = match whole.strip_prefix('-') {
        Some(whole) => (true, whole),
        None => (false, whole),
    };
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if fraction.len() != 9 || !is_number(fraction) || !is_number(whole) {
        return None;
    }
    let sign = if is_before { -1 } else { 1 };
    // A wider type: the smallest i64 has no positive counterpart.
    let whole = i64::try_from(whole.parse::<i128>().ok()? * sign).ok()?;
    let nanoseconds: u32 = fraction.parse().ok()?;
    let moment = match (is_before, nanoseconds) {
        (false, _) | (true, 0) => Moment {
            seconds: whole,
            nanoseconds,
        },
        (true, _) => Moment {
            seconds: whole.checked_sub(1)?,
            nanoseconds: SECOND - nanoseconds,
        },
    };
    (moment_text(moment) == text).then_some(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_numbers_before_1970_too() {
        for (seconds, nanoseconds, expected) in [
            (0, 0, "0.000000000"),
            (1, 5, "1.000000005"),
            (-1, 0, "-1.000000000"),
            (-1, 500_000_000, "-0.500000000"),
            (-2, 999_999_999, "-1.000000001"),
            (i64::MAX, 999_999_999, "9223372036854775807.999999999"),
            (i64::MIN, 0, "-9223372036854775808.000000000"),
            (i64::MIN, 1, "-9223372036854775807.999999999"),
        ] {
            let moment = Moment {
                seconds,
                nanoseconds,
            };
            assert_eq!(moment_text(moment), expected);
            assert_eq!(moment_of(expected), Some(moment), "{expected}");
        }
        for broken in [
            "",
            "1",
            "1.",
            ".000000000",
            "1.5",
            "1.0000000000",
            "+1.000000000",
            "-0.000000000",
            "01.000000000",
            "9223372036854775808.000000000",
            "-9223372036854775808.000000001",
            "1.00000000a",
            "--1.000000000",
        ] {
            assert_eq!(moment_of(broken), None, "{broken}");
        }
    }

    #[test]
    fn modes_are_four_octal_digits() {
        assert_eq!(mode_of("0644"), Some(0o644));
        assert_eq!(mode_of("7777"), Some(0o7777));
        for broken in ["", "644", "00644", "+644", "0648"] {
            assert_eq!(mode_of(broken), None, "{broken}");
        }
    }
}
