//! Rules for the documents: how long the first page is, and that what they
//! point at exists.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{judge, read, root};

/// Most words of README.md, as `wc -w` counts them.
const MAX_README_WORDS: usize = 1400;

/// The documents that people start from, and those in docs/.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "tests/lab/README.md",
    ]
    .iter()
    .map(|name| root().join(name))
    .filter(|path| path.exists())
    .collect();
    let docs = fs::read_dir(root().join("docs")).expect("docs/");
    found.extend(
        docs.map(|entry| entry.expect("an entry of docs/").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "md")),
    );
    found.sort();
    found
}

/// Targets of the links in `text`, Markdown, that lead to files of the
/// checkout, without what follows `#`.
fn links(text: &str) -> Vec<String> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn the_first_page_is_short() {
    let words = read(&root().join("README.md")).split_whitespace().count();
    let long = if words > MAX_README_WORDS {
        vec![format!("{words} words, at most {MAX_README_WORDS}")]
    } else {
        Vec::new()
    };
    judge("short-readme", &long);
}

#[test]
fn links_lead_to_files() {
    let mut dead = Vec::new();
    for document in documents() {
        let folder = document.parent().expect("a folder");
        for link in links(&read(&document)) {
            if !folder.join(&link).exists() {
                dead.push(format!("{}: {link}", document.display()));
            }
        }
    }
    judge("links", &dead);
}

/// A step of a walk in ARCHITECTURE.md is a line of a numbered list that names a
/// file and a function in it: ``1. `crates/cli/src/main.rs`: `main` ...``.
fn step(line: &str) -> Option<(&str, &str)> {
    let (number, rest) = line.split_once(". `")?;
    number.parse::<u32>().ok()?;
    let (path, rest) = rest.split_once("`: `")?;
    let (function, _) = rest.split_once('`')?;
    Some((path, function))
}

/// Whether `text` has the function (`name`, `Type::name`) or type (`Type`).
fn defines(text: &str, item: &str) -> bool {
    item.split("::").all(|name| {
        ["fn ", "struct ", "enum ", "trait ", "impl ", "for "]
            .iter()
            .any(|keyword| {
                text.match_indices(&format!("{keyword}{name}"))
                    .any(|(at, found)| {
                        !text[at + found.len()..]
                            .starts_with(|next: char| next.is_alphanumeric() || next == '_')
                    })
            })
            // impl<'a> Type<'a>
            || text.contains(&format!("> {name}"))
    })
}

#[test]
fn the_walks_name_files_and_functions_that_exist() {
    let path = root().join("ARCHITECTURE.md");
    if !path.exists() {
        judge("walks", &["ARCHITECTURE.md is missing".into()]);
        return;
    }
    let text = read(&path);
    let steps: Vec<_> = text.lines().filter_map(step).collect();
    let mut wrong = Vec::new();
    if steps.is_empty() {
        wrong.push("no walk".into());
    }
    for (file, function) in steps {
        let full = root().join(Path::new(file));
        if !full.exists() {
            wrong.push(format!("{file}: no such file"));
        } else if !defines(&read(&full), function) {
            wrong.push(format!("{file}: no {function}"));
        }
    }
    judge("walks", &wrong);
}

#[test]
fn what_these_checks_read() {
    assert_eq!(
        links("[a](x.md#there) [b](https://example.org) [c](#here) ![d](p.svg)"),
        ["x.md", "p.svg"]
    );
    assert_eq!(
        step("3. `crates/cli/src/main.rs`: `main` reads arguments"),
        Some(("crates/cli/src/main.rs", "main"))
    );
    assert_eq!(step("3. It has no file"), None);
    assert!(defines("impl Lane {\n pub fn admit(&self)", "Lane::admit"));
    assert!(!defines("fn admitted()", "admit"));
    assert!(!defines("pub mod admit;", "admit"));
}
