//! Manifests of any lines, with the digests that make a reader look at the lines.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// The line between two manifests.
const NEXT: &str = "--";

/// The content of every file in the store of the input.
pub(crate) const CONTENT: &[u8] = b"content\n";

/// Makes manifests of text: the header and the entries are its lines, a line `--` begins
/// the next manifest. Each gets the end that fits. `"@"` stands for the SHA-256 of
/// [`CONTENT`].
pub(crate) fn manifests(data: &[u8]) -> Vec<Vec<u8>> {
    let Ok(text) = std::str::from_utf8(data) else {
        return Vec::new();
    };
    let text = text.replace("\"@\"", &format!("{:?}", hex(CONTENT)));
    let lines: Vec<&str> = text.lines().collect();
    lines.split(|line| *line == NEXT).map(seal).collect()
}

fn seal(lines: &[&str]) -> Vec<u8> {
    let mut text = lines
        .iter()
        .fold(String::new(), |text, line| text + line + "\n");
    let entries = lines.len().saturating_sub(1);
    let end = format!(
        "{{\"end\":{{\"entries\":{entries},\"sha256\":\"{}\"}}}}\n",
        hex(text.as_bytes())
    );
    text.push_str(&end);
    let mut output = GzEncoder::new(Vec::new(), Compression::none());
    output
        .write_all(text.as_bytes())
        .expect("written into memory");
    output.finish().expect("written into memory")
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
