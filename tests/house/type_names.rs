//! A type name exists once in the product.
//!
//! Structs, enums, unions, traits and type aliases count, whatever their visibility, those
//! inside of functions too. Associated types and what is only there for tests do not.
//!
//! The names that may exist more than once are in `twice.txt` beside this file, one per
//! line with the reason: `Name: reason`. A line for a name that exists once has to go, so the
//! list only shrinks.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use syn::{
    Ident, Item,
    visit::{self, Visit},
};

use crate::module_graph::{attributes, is_test};
use crate::{PRODUCT, graphs, judge, read, relative, root};

/// Most names that may exist more than once.
const MAX_TWICE: usize = 3;

/// Collects the names of types.
#[derive(Default)]
struct TypeNames(Vec<String>);

impl TypeNames {
    fn of(text: &str) -> Vec<String> {
        let file = syn::parse_file(text).expect("Rust");
        let mut names = Self::default();
        names.visit_file(&file);
        names.0
    }

    fn add(&mut self, name: &Ident) {
        self.0.push(name.to_string());
    }
}

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Enum(item) => self.add(&item.ident),
            Item::Struct(item) => self.add(&item.ident),
            Item::Trait(item) => self.add(&item.ident),
            Item::Type(item) => self.add(&item.ident),
            Item::Union(item) => self.add(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

/// The type names of the product, with the file of each definition.
fn definitions() -> BTreeMap<String, Vec<String>> {
    let files: BTreeSet<PathBuf> = PRODUCT
        .iter()
        .flat_map(|folder| graphs(folder))
        .flat_map(|graph| graph.files)
        .collect();
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for file in files {
        for name in TypeNames::of(&read(&file)) {
            found.entry(name).or_default().push(relative(&file));
        }
    }
    found
}

/// The lines of `twice.txt`: names and reasons.
fn excused(list: &str) -> Vec<(&str, &str)> {
    list.lines()
        .map(|line| line.split_once(':').unwrap_or((line, "")))
        .map(|(name, reason)| (name.trim(), reason.trim()))
        .collect()
}

/// Names that exist more than once without an excuse, and excuses that excuse nothing.
fn violations(definitions: &BTreeMap<String, Vec<String>>, list: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, files) in definitions {
        let is_excused = list.iter().any(|(excused, _)| excused == name);
        if files.len() > 1 && !is_excused {
            found.push(format!("{name}: {}", files.join(", ")));
        }
    }
    for (index, (name, reason)) in list.iter().enumerate() {
        if definitions.get(*name).is_none_or(|files| files.len() < 2) {
            found.push(format!("twice.txt: {name} does not exist twice"));
        }
        if reason.is_empty() {
            found.push(format!("twice.txt: {name} has no reason"));
        }
        if list[..index].iter().any(|(before, _)| before == name) {
            found.push(format!("twice.txt: {name} has two lines"));
        }
    }
    found
}

#[test]
fn a_type_name_exists_once_in_the_product() {
    let list = read(&root().join("tests/house/twice.txt"));
    let list = excused(&list);
    judge("type-names", &violations(&definitions(), &list));
    let long = if list.len() > MAX_TWICE {
        vec![format!("{} names, at most {MAX_TWICE}", list.len())]
    } else {
        Vec::new()
    };
    judge("short-twice", &long);
}

#[test]
fn there_is_one_lane_and_one_admission() {
    let definitions = definitions();
    for name in ["Lane", "Admission"] {
        let found = definitions.get(name).cloned().unwrap_or_default();
        let wrong = match found.len() {
            1 => Vec::new(),
            0 => vec!["there is none".into()],
            _ => found,
        };
        judge(&format!("one {name}"), &wrong);
    }
}

#[test]
fn what_counts_as_a_type_name() {
    let text = "
        // struct Comment;
        pub struct Struct<T>(T);
        pub(crate) enum Enum { Variant }
        union Union { field: u8 }
        trait Trait { type Associated; }
        type Alias = u8;
        impl Trait for Enum { type Associated = u8; }
        mod inner { struct Inner; }
        fn function<Parameter>() { struct Local; let _ = \"struct Text;\"; }
        #[cfg(test)] struct OfTest;
        #[cfg(all(test, unix))] mod tests { struct Inside; }
        #[cfg(not(unix))] struct Elsewhere;
        use other::Used;
    ";
    assert_eq!(
        TypeNames::of(text),
        [
            "Struct",
            "Enum",
            "Union",
            "Trait",
            "Alias",
            "Inner",
            "Local",
            "Elsewhere"
        ]
    );
}

#[test]
fn a_name_is_excused_only_while_it_exists_twice() {
    let files = |count: usize| vec!["a.rs".to_owned(); count];
    let definitions = BTreeMap::from([
        ("Excused".to_owned(), files(2)),
        ("Once".to_owned(), files(1)),
        ("Twice".to_owned(), files(2)),
    ]);
    let list = excused("Excused: one for each build\nOnce: no more\nGone: renamed\nTwice\n");
    assert_eq!(
        violations(&definitions, &list),
        [
            "twice.txt: Once does not exist twice",
            "twice.txt: Gone does not exist twice",
            "twice.txt: Twice has no reason",
        ]
    );
    let list = excused("Excused: one for each build\nExcused: again");
    assert_eq!(
        violations(&definitions, &list),
        ["Twice: a.rs, a.rs", "twice.txt: Excused has two lines"]
    );
}
