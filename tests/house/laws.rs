//! The law of a flow that yields exists twice: in Rust for a receiver, in C for a sender.
//! Both have the same constants, but for those that `laws.toml` beside this file lists with
//! a reason. A new constant needs a place there.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;

use crate::{
    constants::{Constants, Key},
    judge, read, root, source,
};

/// Values that differ by less than this share are the same: a sender counts in whole numbers.
const ROUNDING: f64 = 0.001;

/// The table. A formula is of the constants of one end, and in seconds, segments and shares.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// In words, the receiver's formula, the sender's.
    same: Vec<[String; 3]>,
    differs: Vec<Difference>,
    receiver_only: Vec<OneSided>,
    sender_only: Vec<OneSided>,
}

/// What is not the same.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    what: String,
    receiver: String,
    sender: String,
    /// The receiver's and the sender's.
    values: [f64; 2],
    why: String,
}

/// What one end alone has: constants, or all those of a module or of a C file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneSided {
    why: String,
    names: Vec<String>,
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= ROUNDING * one.abs().max(other.abs())
}

impl Table {
    fn of(text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| panic!("laws.toml: {error}"))
    }

    /// Where the constants are not as it says.
    fn contradictions(&self, receiver: &Constants, sender: &Constants) -> Vec<String> {
        let values = |ours: &str, theirs: &str| -> Result<[f64; 2], String> {
            Ok([receiver.formula(ours)?, sender.formula(theirs)?])
        };
        let of_same = self.same.iter().filter_map(|[what, ours, theirs]| {
            let problem = match values(ours, theirs) {
                Ok([one, other]) if is_same(one, other) => return None,
                Ok([one, other]) => format!("{ours} is {one}, and {theirs} is {other}"),
                Err(problem) => problem,
            };
            Some(format!("{what}: {problem}"))
        });
        let of_different = self.differs.iter().filter_map(|listed| {
            let [ours, theirs] = listed.values;
            let problem = match values(&listed.receiver, &listed.sender) {
                Ok([one, other]) if is_same(one, other) => "is no difference any more".into(),
                Ok([one, other]) if !is_same(one, ours) || !is_same(other, theirs) => {
                    format!("is {one} and {other} now, and not {ours} and {theirs}")
                }
                Ok(_) if listed.why.is_empty() => "differs without a reason".into(),
                Ok(_) => return None,
                Err(problem) => problem,
            };
            Some(format!("{}: {problem}", listed.what))
        });
        of_same.chain(of_different).collect()
    }

    /// The formulas of the receiver and those of the sender.
    fn formulas(&self) -> [Vec<&str>; 2] {
        let same = self.same.iter().map(|[_, ours, theirs]| [ours, theirs]);
        let differs = self.differs.iter();
        let differs = differs.map(|listed| [&listed.receiver, &listed.sender]);
        let both = same.chain(differs);
        let (ours, theirs) = both
            .map(|[one, other]| (one.as_str(), other.as_str()))
            .unzip();
        [ours, theirs]
    }
}

/// Constants of one end that have no place in the table, or two, and names in it of which
/// there is no constant.
fn misplaced(all: &Constants, formulas: &[&str], alone: &[OneSided]) -> Vec<String> {
    let mut placed: BTreeSet<&Key> = formulas.iter().flat_map(|text| all.named(text)).collect();
    let mut wrong = Vec::new();
    for OneSided { why, names } in alone {
        if why.is_empty() {
            wrong.push(format!("{names:?}: there is no reason"));
        }
        for name in names {
            let whole: Vec<_> = all.keys().filter(|(place, _)| place == name).collect();
            if !whole.is_empty() {
                placed.extend(whole);
                continue;
            }
            match all.find("", name) {
                Ok(key) if placed.insert(key) => {}
                Ok(_) => wrong.push(format!("{name} has two places")),
                Err(problem) => wrong.push(problem),
            }
        }
    }
    let left = all.keys().filter(|key| !placed.contains(key));
    wrong.extend(left.map(|(place, name)| format!("{place}: {name} has no place")));
    wrong
}

/// The module of a Rust file, as the table names it.
fn module(path: &Path) -> String {
    let is_folder = path.ends_with("mod.rs");
    let path = path.parent().filter(|_| is_folder).unwrap_or(path);
    let name = path.file_stem().expect("a file has a name");
    name.to_string_lossy().into_owned()
}

fn receiver() -> Constants {
    let sources = root().join("crates/dalbe/src");
    let mut files = source::files(&sources.join("receive_window"), &["rs"]);
    files.push(sources.join("weight/mod.rs"));
    let mut all = Constants::default();
    for path in files.iter().filter(|path| !source::is_test(path)) {
        all.add_rust(&module(path), &read(path));
    }
    all
}

fn sender() -> Constants {
    let folder = root().join("crates/dalbe/src/bpf");
    let mut all = Constants::default();
    for path in source::files(&folder, &["h", "c"]) {
        // What is below makes the kernel's programs run elsewhere.
        if path.parent() == Some(folder.as_path()) {
            let name = path.file_name().expect("a file has a name");
            all.add_c(&name.to_string_lossy(), &read(&path));
        }
    }
    all
}

fn table() -> Table {
    Table::of(&read(&root().join("tests/house/laws.toml")))
}

#[test]
fn receiver_and_sender_have_the_same_constants_but_for_those_with_a_reason() {
    judge("laws", &table().contradictions(&receiver(), &sender()));
}

#[test]
fn every_constant_of_the_law_has_a_place_in_the_table() {
    let table = table();
    let [ours, theirs] = table.formulas();
    let mut wrong = misplaced(&receiver(), &ours, &table.receiver_only);
    wrong.extend(misplaced(&sender(), &theirs, &table.sender_only));
    judge("law-constants", &wrong);
}

#[cfg(test)]
mod table_tests {
    use super::*;

    const TABLE: &str = r#"
        same = [["length, s", "levels::LENGTH", "LENGTH_US / 1e6"]]
        sender_only = [{ why = "a receiver has whole windows", names = ["PACKET_Q8"] }]
        [[differs]]
        what = "share"
        receiver = "levels::SHARE"
        sender = "SHARE_Q16 / ONE_Q16"
        values = [0.93, 0.95]
        why = "tuned apart"
        [[receiver_only]]
        why = "it has a clock"
        names = ["clock"]
    "#;

    /// What the table says against these sources.
    fn wrong(rust: &str, c: &str) -> Vec<String> {
        let table = Table::of(TABLE);
        let (mut receiver, mut sender) = (Constants::default(), Constants::default());
        receiver.add_rust("levels", rust);
        receiver.add_rust("clock", "const TICK: f64 = 0.001;");
        sender.add_c(
            "levels.h",
            &format!("#define ONE_Q16 65536\n#define PACKET_Q8 256\n{c}"),
        );
        let mut wrong = table.contradictions(&receiver, &sender);
        let [ours, theirs] = table.formulas();
        wrong.extend(misplaced(&receiver, &ours, &table.receiver_only));
        wrong.extend(misplaced(&sender, &theirs, &table.sender_only));
        wrong
    }

    const RUST: &str = "const LENGTH: f64 = 0.25; const SHARE: f64 = 0.93;";
    const C: &str = "#define LENGTH_US 250000\n#define SHARE_Q16 62259\n";

    #[test]
    fn sources_that_are_as_the_table_says_are_right() {
        assert_eq!(wrong(RUST, C), Vec::<String>::new());
    }

    #[test]
    fn whatever_is_not_as_the_table_says_is_told() {
        let c = |from, to| C.replace(from, to);
        for (rust, c, told) in [
            (RUST.into(), c("250000", "240000"), "LENGTH is 0.25, and"),
            (RUST.into(), c("62259", "60948"), "no difference any more"),
            (RUST.into(), c("62259", "63000"), "and not 0.93 and 0.95"),
            (RUST.replace("0.93", "0.9"), C.into(), "is 0.9 and"),
            (RUST.into(), c("LENGTH_US", "LONG_US"), "no constant LENGTH"),
            (RUST.replace("SHARE", "PART"), C.into(), "PART has no place"),
            (RUST.into(), format!("{C}enum {{ NEW = 3 }};"), "NEW has no"),
        ] {
            let wrong = wrong(&rust, &c).join("\n");
            assert!(wrong.contains(told), "{told}: {wrong}");
        }
    }
}
