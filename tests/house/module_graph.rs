//! The modules of a crate, and which file names what others define.
//!
//! Names are resolved as the compiler does, through modules and re-exports: `use
//! super::Thing` where the parent only re-exports `Thing` leads to the file that
//! defines it. Declaring a module, re-exporting from it, and naming a module
//! without anything in it are no dependencies. Code under `#[cfg(test)]` does not
//! count. If the build chooses the file of a module (`cfg_attr`, `path`), the code of
//! each counts, but names lead to the one at the usual place.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, Expr, Item, Lit, Meta, Token, UseTree, Visibility,
    punctuated::Punctuated,
    visit::{self, Visit},
};

/// An index into [`Graph::modules`].
pub(crate) type ModuleId = usize;
/// An index into [`Graph::files`].
pub(crate) type FileId = usize;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(ModuleId),
    /// Something that this file defines.
    Item(FileId),
    /// Something of another crate that this file re-exports.
    HandedOn(FileId),
}

/// A `use`: the path, and whether it names all that is public there.
#[derive(Debug, Clone)]
struct Import {
    path: Vec<String>,
    glob: bool,
    /// `pub use`, at whatever visibility: a re-export.
    public: bool,
}

/// A module, and the names in it.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Empty for the root.
    pub(crate) name: String,
    pub(crate) file: FileId,
    pub(crate) parent: Option<ModuleId>,
    children: BTreeMap<String, ModuleId>,
    items: BTreeSet<String>,
    /// By the name that they have here: several if the build chooses one.
    imports: BTreeMap<String, Vec<Import>>,
    globs: Vec<Import>,
    /// All paths in its code, without those of `use`.
    paths: Vec<Vec<String>>,
}

/// The modules of one crate, and which file depends on which.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) modules: Vec<Module>,
    /// Imports that are being looked up, against circles of re-exports.
    open: RefCell<BTreeSet<(ModuleId, String)>>,
}

/// Whether an item is only there for tests.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| {
                let condition = list.tokens.to_string();
                condition == "test" || condition.starts_with("all (test")
            })
    })
}

/// The attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The files that a module is read from in other builds: `cfg_attr(condition, path = "file")`.
fn other_paths(attributes: &[Attribute]) -> Vec<String> {
    let mut found = Vec::new();
    for attribute in attributes {
        if !attribute.path().is_ident("cfg_attr") {
            continue;
        }
        let parts = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
        for part in parts.expect("a condition and attributes") {
            if let Meta::NameValue(part) = part
                && part.path.is_ident("path")
                && let Expr::Lit(literal) = part.value
                && let Lit::Str(path) = literal.lit
            {
                found.push(path.value());
            }
        }
    }
    found
}

/// The name that an item has in its module, if it has one.
fn name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}

/// The paths of one `use` with the names they get.
fn flatten(tree: &UseTree, prefix: &[String], public: bool, found: &mut Vec<(String, Import)>) {
    let with = |name: String| {
        let mut path = prefix.to_vec();
        path.push(name);
        path
    };
    match tree {
        UseTree::Path(path) => {
            flatten(&path.tree, &with(path.ident.to_string()), public, found);
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, prefix, public, found);
            }
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            let path = if name == "self" {
                prefix.to_vec()
            } else {
                with(name)
            };
            let name = path.last().cloned().unwrap_or_default();
            found.push((
                name,
                Import {
                    path,
                    glob: false,
                    public,
                },
            ));
        }
        UseTree::Rename(rename) => found.push((
            rename.rename.to_string(),
            Import {
                path: with(rename.ident.to_string()),
                glob: false,
                public,
            },
        )),
        UseTree::Glob(_) => found.push((
            String::new(),
            Import {
                path: prefix.to_vec(),
                glob: true,
                public,
            },
        )),
    }
}

/// Collects the paths in code, those in the arguments of macros included.
#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
    imports: Vec<(String, Import)>,
}

impl Paths {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        // Colons since the last name.
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.found.push(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.found.push(std::mem::take(&mut path));
                    colons = 0;
                    self.tokens(group.stream());
                }
                _ => {
                    self.found.push(std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        self.found.push(path);
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.found.push(
                path.segments
                    .iter()
                    .map(|segment| segment.ident.to_string())
                    .collect(),
            );
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    // Inside a function: it stands for its paths there.
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        flatten(&item.tree, &[], false, &mut self.imports);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

impl Graph {
    /// Reads a crate from its root file.
    pub(crate) fn of(root_file: &Path) -> Graph {
        let mut graph = Graph::default();
        let folder = root_file.parent().expect("src");
        graph.read(root_file, folder, None);
        graph
    }

    /// Reads a file as a module; modules that it declares are in `folder`.
    fn read(&mut self, path: &Path, folder: &Path, parent: Option<ModuleId>) -> ModuleId {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = self.files.len();
        self.files.push(path.to_owned());
        self.module(&parsed.items, file, folder, parent)
    }

    fn module(
        &mut self,
        items: &[Item],
        file: FileId,
        folder: &Path,
        parent: Option<ModuleId>,
    ) -> ModuleId {
        let id = self.modules.len();
        self.modules.push(Module {
            file,
            parent,
            ..Module::default()
        });
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            match item {
                Item::Mod(declared) => {
                    let name = declared.ident.to_string();
                    let inner = folder.join(&name);
                    let child = match &declared.content {
                        Some((_, items)) => self.module(items, file, &inner, Some(id)),
                        None => {
                            let flat = folder.join(format!("{name}.rs"));
                            let nested = inner.join("mod.rs");
                            let path = if flat.exists() { flat } else { nested };
                            if !path.exists() {
                                // Made by a build script.
                                continue;
                            }
                            let beside = self.files[file].parent().expect("a folder").to_owned();
                            for path in other_paths(&declared.attrs) {
                                let other = self.read(&beside.join(path), &beside, Some(id));
                                self.modules[other].name = name.clone();
                            }
                            self.read(&path, &inner, Some(id))
                        }
                    };
                    self.modules[child].name = name.clone();
                    self.modules[id].children.insert(name, child);
                }
                Item::Use(item) => {
                    let public = !matches!(item.vis, Visibility::Inherited);
                    let mut found = Vec::new();
                    flatten(&item.tree, &[], public, &mut found);
                    self.import(id, found);
                }
                item => {
                    self.modules[id].items.extend(name(item));
                    let mut paths = Paths::default();
                    paths.visit_item(item);
                    self.modules[id].paths.append(&mut paths.found);
                    for (_, import) in paths.imports {
                        self.modules[id].paths.push(import.path);
                    }
                }
            }
        }
        id
    }

    fn import(&mut self, id: ModuleId, found: Vec<(String, Import)>) {
        for (name, import) in found {
            if import.glob {
                self.modules[id].globs.push(import);
            } else {
                let imports = self.modules[id].imports.entry(name);
                imports.or_default().push(import);
            }
        }
    }

    /// What `name` stands for in a module.
    fn look_up(&self, id: ModuleId, name: &str) -> Option<Target> {
        let module = &self.modules[id];
        if let Some(child) = module.children.get(name) {
            return Some(Target::Module(*child));
        }
        if module.items.contains(name) {
            return Some(Target::Item(module.file));
        }
        let key = (id, name.to_owned());
        if !self.open.borrow_mut().insert(key.clone()) {
            return None;
        }
        let found = match module.imports.get(name) {
            Some(imports) => {
                let of_crate = imports
                    .iter()
                    .find_map(|import| self.resolve(id, &import.path));
                let is_public = imports.iter().any(|import| import.public);
                of_crate.or(is_public.then_some(Target::HandedOn(module.file)))
            }
            None => module
                .globs
                .iter()
                .find_map(|import| match self.resolve(id, &import.path) {
                    Some(Target::Module(from)) if from != id => self.look_up(from, name),
                    _ => None,
                }),
        };
        self.open.borrow_mut().remove(&key);
        found
    }

    /// Where a path leads that stands in module `id`; `None` for other crates.
    fn resolve(&self, id: ModuleId, path: &[String]) -> Option<Target> {
        let mut at = Target::Module(id);
        for (index, segment) in path.iter().enumerate() {
            let Target::Module(module) = at else {
                // An associated item, or a variant.
                return Some(at);
            };
            at = match segment.as_str() {
                "crate" if index == 0 => Target::Module(0),
                "self" if index == 0 => Target::Module(id),
                "super" => Target::Module(self.modules[module].parent?),
                name => self.look_up(module, name)?,
            };
        }
        Some(at)
    }

    /// What the code of each file names, without re-exports.
    fn named(&self) -> impl Iterator<Item = (FileId, Target)> {
        let modules = self.modules.iter().enumerate();
        modules.flat_map(move |(id, module)| {
            let imports = module.imports.values().flatten();
            let private = imports.filter(|import| !import.public);
            let paths = private.map(|import| &import.path).chain(&module.paths);
            paths
                .filter(|path| !path.is_empty())
                .filter_map(move |path| Some((module.file, self.resolve(id, path)?)))
        })
    }

    /// What each file re-exports.
    fn re_exported(&self) -> impl Iterator<Item = (FileId, Target)> {
        let modules = self.modules.iter().enumerate();
        modules.flat_map(move |(id, module)| {
            let imports = module.imports.values().flatten().chain(&module.globs);
            imports
                .filter(|import| import.public)
                .filter_map(move |import| Some((module.file, self.resolve(id, &import.path)?)))
        })
    }

    /// Which file names what others define.
    pub(crate) fn dependencies(&self) -> Vec<BTreeSet<FileId>> {
        let mut found = vec![BTreeSet::new(); self.files.len()];
        for (from, target) in self.named() {
            if let Target::Item(to) = target
                && from != to
            {
                found[from].insert(to);
            }
        }
        found
    }

    /// The same, with re-exports: which file re-exports what others define, and which one names
    /// what another crate defines as others re-export it. A module that is re-exported, or all
    /// that is in it, counts as defined in its file.
    pub(crate) fn dependencies_with_re_exports(&self) -> Vec<BTreeSet<FileId>> {
        let mut found = self.dependencies();
        for (from, target) in self.named() {
            if let Target::HandedOn(to) = target {
                found[from].insert(to);
            }
        }
        for (from, target) in self.re_exported() {
            let to = match target {
                Target::Item(to) | Target::HandedOn(to) => to,
                Target::Module(module) => self.modules[module].file,
            };
            found[from].insert(to);
        }
        for (file, others) in found.iter_mut().enumerate() {
            others.remove(&file);
        }
        found
    }
}

/// Groups of nodes of which each depends on all others, at least indirectly. Nodes are the
/// indices of `dependencies`.
pub(crate) fn cycles(dependencies: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..dependencies.len())
        .map(|from| {
            let mut reached = BTreeSet::new();
            let mut open = vec![from];
            while let Some(node) = open.pop() {
                for next in &dependencies[node] {
                    if reached.insert(*next) {
                        open.push(*next);
                    }
                }
            }
            reached
        })
        .collect();
    let mut cycles: Vec<Vec<usize>> = Vec::new();
    for node in 0..dependencies.len() {
        if !reached[node].contains(&node) || cycles.iter().any(|cycle| cycle.contains(&node)) {
            continue;
        }
        cycles.push(
            (0..dependencies.len())
                .filter(|other| reached[node].contains(other) && reached[*other].contains(&node))
                .collect(),
        );
    }
    cycles
}
