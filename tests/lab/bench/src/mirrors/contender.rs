//! Who fetches the file, and by which command.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::draw::{Draw, Kind};
use super::fetch::NAME;
use super::servers::Mirror;
use fairbat_tests::bin::fairbat_binary;
use fairbat_tests::content::{Content, sha256_hex};

/// What all runs of aria2c have. Connections are counted by host, and each mirror has its own.
const ARIA2: &str =
    "aria2c --no-conf -q --split=5 --max-connection-per-server=1 --min-split-size=1M";

/// The Metalink, which the name of the file may not be.
const METALINK: &str = "five.meta4";

/// What this `fairbat` can do.
pub(super) struct Abilities {
    /// `get --metalink`.
    pub(super) metalink: bool,
}

impl Abilities {
    /// Asks it.
    pub(super) fn of_this_fairbat() -> Self {
        let help = Command::new(fairbat_binary())
            .args(["get", "--help"])
            .output()
            .expect("start fairbat");
        let help = String::from_utf8_lossy(&help.stdout);
        Self {
            metalink: help.contains("--metalink"),
        }
    }
}

/// A way to fetch the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    Checksum,
    Metalink,
    /// The two good mirrors alone: what is to be had without the others.
    GoodTwo,
    Aria2Checksum,
    Aria2Metalink,
    /// Without a hash, nothing can be known of the others.
    Aria2Plain,
}

impl Contender {
    /// Those that can be measured.
    pub(super) fn all(abilities: &Abilities) -> Vec<Self> {
        let mut all = vec![
            Self::Checksum,
            Self::Metalink,
            Self::GoodTwo,
            Self::Aria2Checksum,
            Self::Aria2Metalink,
            Self::Aria2Plain,
        ];
        all.retain(|&contender| contender != Self::Metalink || abilities.metalink);
        all
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Checksum => "fairbat, hash of the file",
            Self::Metalink => "fairbat, Metalink",
            Self::GoodTwo => "fairbat, hash of the file, the two good mirrors alone",
            Self::Aria2Checksum => "aria2c, hash of the file",
            Self::Aria2Metalink => "aria2c, Metalink",
            Self::Aria2Plain => "aria2c, no hash",
        }
    }

    pub(super) fn is_ours(self) -> bool {
        matches!(self, Self::Checksum | Self::Metalink | Self::GoodTwo)
    }

    /// Whether it has all five mirrors.
    pub(super) fn has_all(self) -> bool {
        self != Self::GoodTwo
    }

    /// As one would type it. `URLS` are the mirrors, and `MIRRORS` the same, each but the first
    /// one after `--mirror`.
    pub(super) fn typed(self) -> String {
        match self {
            Self::Checksum | Self::GoodTwo => {
                "fairbat get --checksum sha-256=HEX MIRRORS".to_owned()
            }
            Self::Metalink => "fairbat get --metalink METALINK".to_owned(),
            Self::Aria2Checksum => format!("{ARIA2} --checksum=sha-256=HEX URLS"),
            Self::Aria2Metalink => format!("{ARIA2} -M METALINK"),
            Self::Aria2Plain => format!("{ARIA2} URLS"),
        }
    }

    /// Its command line. A Metalink is written into `directory` for it.
    pub(super) fn args(
        self,
        draw: &Draw,
        file: &Content,
        servers: &[Mirror],
        directory: &Path,
    ) -> Vec<String> {
        let urls: Vec<_> = servers
            .iter()
            .filter(|mirror| self.has_all() || mirror.kind == Kind::Good)
            .map(Mirror::url)
            .collect();
        let bytes = file.all();
        let typed = self.typed();
        if typed.contains("METALINK") {
            let text = metalink(&bytes, draw.piece as usize, &urls);
            fs::write(directory.join(METALINK), text).expect("write a Metalink");
        }
        let typed = typed
            .replace("HEX", &sha256_hex(&bytes))
            .replace("MIRRORS", &urls.join(" --mirror "))
            .replace("URLS", &urls.join(" "))
            .replace("METALINK", METALINK);
        let mut args: Vec<_> = typed.split(' ').map(str::to_owned).collect();
        if self.is_ours() {
            let fairbat = fairbat_binary().to_str().expect("a path in UTF-8");
            fairbat.clone_into(&mut args[0]);
        }
        args
    }
}

/// A Metalink (RFC 5854) with the hash of the file and of its pieces. The order of the mirrors is
/// that of their priorities.
fn metalink(bytes: &[u8], piece: usize, urls: &[String]) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\n\
         <file name=\"{NAME}\">\n\
         <size>{}</size>\n\
         <hash type=\"sha-256\">{}</hash>\n\
         <pieces length=\"{piece}\" type=\"sha-256\">\n",
        bytes.len(),
        sha256_hex(bytes)
    );
    for piece in bytes.chunks(piece) {
        text += &format!("<hash>{}</hash>\n", sha256_hex(piece));
    }
    text += "</pieces>\n";
    for (index, url) in urls.iter().enumerate() {
        text += &format!("<url priority=\"{}\">{url}</url>\n", index + 1);
    }
    text + "</file>\n</metalink>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metalink_has_a_hash_for_each_piece() {
        let file = Content::new(1, 1_000_000).all();
        let urls = ["http://127.0.0.1:1/a", "http://127.0.0.2:1/a"].map(str::to_owned);
        let text = metalink(&file, 1 << 18, &urls);
        assert_eq!(text.matches("<hash>").count(), 4, "{text}");
        let last = format!("<hash>{}</hash>", sha256_hex(&file[3 << 18..]));
        assert!(text.contains(&last), "{text}");
        assert!(text.contains("<url priority=\"2\">http://127.0.0.2:1/a</url>"));
    }
}
