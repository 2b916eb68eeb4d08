//! No import cycle between the rooms of a crate.
//!
//! A room is a module of the crate's root, with all files below it. It depends on another
//! one when a file of it names something that is defined there, or hands it on by `pub use`. It
//! also does when it names something of another crate that is handed on there.
//! The root itself is no room: what it re-exports makes no dependency.

use std::collections::{BTreeMap, BTreeSet};

use crate::module_graph::{FileId, Graph, cycles};
use crate::{PRODUCT, graphs, judge, relative, written};

/// For each room the rooms that it depends on, and the files by which it does.
type RoomDependencies = BTreeMap<String, BTreeMap<String, BTreeSet<FileId>>>;

impl Graph {
    /// The room of a file; none for the root.
    fn room(&self, file: FileId) -> Option<&str> {
        let mut module = self.modules.iter().find(|module| module.file == file)?;
        while module.parent? != 0 {
            module = &self.modules[module.parent?];
        }
        Some(&module.name)
    }

    fn room_dependencies(&self) -> RoomDependencies {
        let mut found = RoomDependencies::new();
        let dependencies = self.dependencies_with_re_exports();
        for (file, others) in dependencies.iter().enumerate() {
            for &other in others {
                if let (Some(from), Some(to)) = (self.room(file), self.room(other))
                    && from != to
                {
                    let of_room = found.entry(from.to_owned()).or_default();
                    of_room.entry(to.to_owned()).or_default().insert(file);
                }
            }
        }
        found
    }

    /// The cycles in words: each dependency within a cycle on its own line, with the files
    /// that have it.
    fn report_rooms(&self) -> Vec<String> {
        let dependencies = self.room_dependencies();
        room_cycles(&dependencies)
            .iter()
            .map(|cycle| {
                let mut lines = vec![format!("a cycle of {} rooms:", cycle.len())];
                for room in cycle {
                    let within = dependencies[room]
                        .iter()
                        .filter(|(other, _)| cycle.contains(other));
                    for (other, files) in within {
                        let files: Vec<_> = files
                            .iter()
                            .map(|file| relative(&self.files[*file]))
                            .collect();
                        lines.push(format!("    {room} -> {other}: {}", files.join(", ")));
                    }
                }
                lines.join("\n")
            })
            .collect()
    }
}

/// Groups of rooms of which each depends on all others, at least indirectly.
fn room_cycles(dependencies: &RoomDependencies) -> Vec<Vec<String>> {
    // A room that depends on no other is in no cycle.
    let names: Vec<_> = dependencies.keys().collect();
    let by_index: Vec<BTreeSet<usize>> = dependencies
        .values()
        .map(|others| {
            (0..names.len())
                .filter(|index| others.contains_key(names[*index]))
                .collect()
        })
        .collect();
    cycles(&by_index)
        .iter()
        .map(|cycle| cycle.iter().map(|index| names[*index].clone()).collect())
        .collect()
}

#[test]
fn rooms_of_a_crate_do_not_import_in_a_circle() {
    for folder in PRODUCT {
        let cycles: Vec<_> = graphs(folder)
            .iter()
            .flat_map(Graph::report_rooms)
            .collect();
        judge(&format!("room-cycles {folder}"), &cycles);
    }
}

/// The cycles of rooms in a crate of these files.
fn room_cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let (_folder, graph) = written(files);
    room_cycles(&graph.room_dependencies())
}

#[test]
fn a_cycle_of_rooms_is_seen_though_no_files_form_one() {
    let files = [
        ("lib.rs", "pub mod a; pub mod b;"),
        ("a/mod.rs", "pub mod one; pub mod two;"),
        ("a/one.rs", "use crate::b::B; pub struct One(B);"),
        ("a/two.rs", "pub struct Two;"),
        ("b.rs", "pub struct B(crate::a::two::Two);"),
    ];
    let (_folder, graph) = written(&files);
    assert!(cycles(&graph.dependencies()).is_empty());
    assert_eq!(room_cycles_of(&files), [["a", "b"]]);
}

#[test]
fn a_room_depends_on_what_it_hands_on() {
    for hands_on in [
        "pub use crate::b::B; pub struct A;",
        "pub(crate) use crate::b; pub struct A;",
        "pub use crate::b::*; pub struct A;",
    ] {
        let files = [
            ("lib.rs", "pub mod a; pub mod b;"),
            ("a.rs", hands_on),
            ("b.rs", "pub struct B(crate::a::A);"),
        ];
        assert_eq!(room_cycles_of(&files), [["a", "b"]], "{hands_on}");
    }
}

#[test]
fn a_room_depends_on_where_it_finds_what_another_crate_defines() {
    for named in [
        "use crate::b::It; pub struct A(It);",
        "pub struct A(crate::b::It);",
        "pub use crate::b::It; pub struct A;",
    ] {
        let files = [
            ("lib.rs", "pub mod a; pub mod b;"),
            ("a.rs", named),
            ("b.rs", "pub use other::It; pub struct B(crate::a::A);"),
        ];
        let (_folder, graph) = written(&files);
        assert!(cycles(&graph.dependencies()).is_empty());
        assert_eq!(room_cycles_of(&files), [["a", "b"]], "{named}");
    }
}

#[test]
fn the_root_and_tests_make_no_cycle_of_rooms() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
        (
            "a/mod.rs",
            "mod one; pub use one::A; #[cfg(test)] mod tests { use crate::b::B; }",
        ),
        ("a/one.rs", "pub struct A; fn f(_: super::A) {}"),
        ("b.rs", "use crate::A; pub struct B(A);"),
    ];
    assert!(room_cycles_of(&files).is_empty());
}

#[test]
fn the_file_of_another_build_counts() {
    let files = [
        (
            "lib.rs",
            "pub mod a; #[cfg_attr(not(unix), path = \"without_b.rs\")] pub mod b;",
        ),
        ("a.rs", "pub struct A(crate::b::B);"),
        ("b.rs", "pub struct B;"),
        ("without_b.rs", "pub struct B(crate::a::A);"),
    ];
    let (_folder, graph) = written(&files);
    assert_eq!(graph.files.len(), 4);
    assert_eq!(room_cycles_of(&files), [["a", "b"]]);
}

#[test]
fn each_import_of_a_name_that_the_build_chooses_counts() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        (
            "a.rs",
            "#[cfg(unix)] use crate::b::It; #[cfg(not(unix))] use crate::c::It; pub struct A(It);",
        ),
        ("b.rs", "pub struct It(crate::a::A);"),
        ("c.rs", "pub struct It(crate::a::A);"),
    ];
    assert_eq!(room_cycles_of(&files), [["a", "b", "c"]]);
}
