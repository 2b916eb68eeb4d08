//! No import cycle between the files of a crate.
//!
//! A file depends on another when its code names something that is defined
//! there, see [`crate::module_graph`]. There are two rules: files beside each other
//! must not form a circle; and in the product, a file must not form one with its
//! parent module either.

use std::collections::BTreeSet;

use crate::module_graph::{FileId, Graph, cycles};
use crate::{CRATES, PRODUCT, graphs, judge, relative, written};

impl Graph {
    /// The dependencies, without those between a file and the files of modules
    /// below it.
    fn sideways(&self) -> Vec<BTreeSet<FileId>> {
        let mut found = self.dependencies();
        for module in &self.modules {
            let mut above = module.parent;
            while let Some(id) = above {
                found[module.file].remove(&self.modules[id].file);
                found[self.modules[id].file].remove(&module.file);
                above = self.modules[id].parent;
            }
        }
        found
    }

    /// The cycles in words: each dependency within a cycle on its own line.
    fn report(&self, dependencies: &[BTreeSet<FileId>]) -> Vec<String> {
        let name = |file: FileId| relative(&self.files[file]);
        cycles(dependencies)
            .iter()
            .map(|cycle| {
                let mut lines = vec![format!("a cycle of {} files:", cycle.len())];
                for file in cycle {
                    let others: Vec<_> = cycle
                        .iter()
                        .filter(|other| dependencies[*file].contains(other))
                        .map(|other| name(*other))
                        .collect();
                    lines.push(format!("    {} -> {}", name(*file), others.join(", ")));
                }
                lines.join("\n")
            })
            .collect()
    }
}

#[test]
fn files_beside_each_other_do_not_import_in_a_circle() {
    for folder in CRATES {
        let cycles: Vec<_> = graphs(folder)
            .iter()
            .flat_map(|graph| graph.report(&graph.sideways()))
            .collect();
        judge(&format!("cycles {folder}"), &cycles);
    }
}

#[test]
fn a_room_does_not_import_from_its_parent_what_imports_the_room() {
    for folder in PRODUCT {
        let cycles: Vec<_> = graphs(folder)
            .iter()
            .flat_map(|graph| graph.report(&graph.dependencies()))
            .collect();
        judge(&format!("cycles-with-parents {folder}"), &cycles);
    }
}

/// The files of the cycles of a crate of these files.
fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let (folder, graph) = written(files);
    cycles(&graph.dependencies())
        .iter()
        .map(|cycle| {
            cycle
                .iter()
                .map(|file| {
                    let path = &graph.files[*file];
                    let path = path.strip_prefix(folder.path()).expect("a file of it");
                    path.display().to_string()
                })
                .collect()
        })
        .collect()
}

#[test]
fn a_cycle_is_seen_whatever_the_path_to_it() {
    for back in [
        "use crate::a::A; pub struct B(A);",
        "pub struct B(super::a::A);",
        "use super::*; pub struct B(A);",
        "use crate::A as Other; pub struct B(Other);",
        "pub struct B; fn f() { println!(\"{:?}\", crate::a::A::new()) }",
        "use crate::a; pub struct B(a::A);",
    ] {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            (
                "a.rs",
                "use crate::b::B; pub struct A; impl A { fn f(_: B) {} }",
            ),
            ("b.rs", back),
        ];
        assert_eq!(cycles_of(&files), [["a.rs", "b.rs"]], "{back}");
    }
}

#[test]
fn a_parent_that_only_declares_and_re_exports_is_no_part_of_a_cycle() {
    let files = [
        ("lib.rs", "mod room;"),
        ("room/mod.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("room/a.rs", "use super::B; pub struct A(B);"),
        (
            "room/b.rs",
            "pub struct B; #[cfg(test)] mod tests { use super::super::A; }",
        ),
    ];
    assert!(cycles_of(&files).is_empty());
}

#[test]
fn a_parent_that_uses_its_child_is_part_of_one() {
    let files = [
        ("lib.rs", "mod room;"),
        (
            "room/mod.rs",
            "mod a; pub use a::A; pub struct Shared; fn f(_: A) {}",
        ),
        ("room/a.rs", "pub struct A(super::Shared);"),
    ];
    assert_eq!(cycles_of(&files), [["room/mod.rs", "room/a.rs"]]);
}
