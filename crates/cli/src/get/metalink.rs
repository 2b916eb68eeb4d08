//! `--metalink`: reads a Metalink, and turns its files into transfers.

use std::path::Path;

use fairbat::metalink::{self, MetalinkFile};
use fairbat::settings::{KnownFile, Mirror, Target, TransferRequest};

use crate::args::GetArgs;
use crate::console::Console;
use crate::exit::ExitCode;
use crate::session::ask;
use crate::settings::{UsageError, http, urls};

/// The files of the Metalink that the arguments name; none without one. Reports what is wrong.
///
/// # Errors
/// The exit code, if it cannot be read.
pub(super) fn read(args: &GetArgs) -> Result<Vec<MetalinkFile>, ExitCode> {
    let Some(named) = &args.files.metalink else {
        return Ok(Vec::new());
    };
    let console = Console::plain();
    let files = files_of(named, args, &console)?;
    let checksum = args.files.checksum.as_ref();
    for file in files.iter().filter(|_| checksum.is_none()) {
        if !file.unknown_hashes.is_empty() {
            console.line(&format!(
                "warning: --metalink: {} will not be compared with its hash: only sha-256 and sha-512 \
                 identify a file, and it has {}",
                file.name,
                file.unknown_hashes.join(", ")
            ));
        }
    }
    Ok(files)
}

fn files_of(named: &str, args: &GetArgs, console: &Console) -> Result<Vec<MetalinkFile>, ExitCode> {
    let wrong = |error: String| {
        console.line(&format!("error: --metalink: {error}"));
        ExitCode::Usage
    };
    if !named.contains("://") {
        let document = std::fs::read(named);
        let document = document.map_err(|error| wrong(format!("cannot read {named}: {error}")))?;
        return metalink::parse(&document).map_err(|error| wrong(format!("{named}: {error}")));
    }
    let url = urls::one(named).map_err(|error| wrong(error.to_string()))?;
    let variable = |name: &str| std::env::var_os(name);
    let http = http(&args.requests, &args.timeouts, &variable);
    let http = http.map_err(|error: UsageError| wrong(error.to_string()))?;
    ask(console, &url, metalink::fetch(&http, &url))
}

/// The transfer of a file of a Metalink. Its first URL names it, where the Metalink's own name is
/// not used.
pub(super) fn request(file: MetalinkFile, target: &Target) -> TransferRequest {
    let mut urls = file.urls.into_iter();
    let url = urls.next().expect("a file of a Metalink has a URL");
    let mirror = |url| Mirror {
        url,
        is_named: false,
    };
    let (target, name) = match target {
        Target::Directory(directory) => {
            let (below, name) = match file.name.rsplit_once('/') {
                Some((below, name)) => (Path::new(below), name),
                None => (Path::new(""), file.name.as_str()),
            };
            let target = Target::Directory(directory.join(below));
            (target, Some(name.to_owned()))
        }
        named => (named.clone(), None),
    };
    TransferRequest {
        url,
        mirrors: urls.map(mirror).collect(),
        target,
        deadline: None,
        checksum: file.checksum,
        known: KnownFile {
            name,
            is_found: true,
            size: file.size,
            pieces: file.pieces,
        },
    }
}
