//! The constants of Rust and C sources, and formulas of them.
//!
//! An expression of C's numbers has the syntax of Rust, so one evaluator does for both.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use syn::{
    BinOp, Expr, Item, Lit, Type, UnOp,
    visit::{self, Visit},
};

use crate::module_graph::{attributes, is_test};

/// Where a constant is defined, a module or a C file, and its name.
pub(crate) type Key = (String, String);

/// The constants of some sources.
#[derive(Default)]
pub(crate) struct Constants(BTreeMap<Key, Expr>);

/// Finds the constants of a module and of its types.
struct Finder<'a> {
    place: &'a str,
    found: &'a mut Constants,
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if item.ident != "_" {
            let name = item.ident.to_string();
            self.found.add(self.place, &name, (*item.expr).clone());
        }
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        // A value of the type itself is none to compare.
        let is_own = matches!(&item.ty, Type::Path(own) if own.path.is_ident("Self"));
        if !is_own {
            let name = item.ident.to_string();
            self.found.add(self.place, &name, item.expr.clone());
        }
    }
}

impl Constants {
    fn add(&mut self, place: &str, name: &str, value: Expr) {
        let before = self.0.insert((place.to_owned(), name.to_owned()), value);
        assert!(before.is_none(), "{place} has two constants named {name}");
    }

    /// Adds those of a Rust file, apart from tests.
    pub(crate) fn add_rust(&mut self, place: &str, text: &str) {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{place}: {error}"));
        Finder { place, found: self }.visit_file(&file);
    }

    /// Adds those of a C file: macros without arguments, `static const`s, and enumerators
    /// with a value. What is no expression of numbers has a name only.
    pub(crate) fn add_c(&mut self, place: &str, text: &str) {
        let code = without_comments(text).replace("\\\n", " ");
        let mut add = |name: &str, value: &str| {
            let list = value.replace('{', "[").replace('}', "]");
            let value = syn::parse_str(&list).unwrap_or(Expr::Verbatim(TokenStream::new()));
            self.add(place, name.trim(), value);
        };
        for line in code
            .lines()
            .filter_map(|line| line.strip_prefix("#define "))
        {
            if let Some((name, value)) = line.split_once(char::is_whitespace)
                && !name.contains('(')
            {
                add(name, value);
            }
        }
        for part in code.split("static const ").skip(1) {
            let definition = part.split(';').next().and_then(|part| part.split_once('='));
            if let Some((left, value)) = definition
                && !left.contains('(')
            {
                let name = left.split('[').next().unwrap_or(left);
                add(name.split_whitespace().last().unwrap_or(name), value);
            }
        }
        for part in code.split("enum ").skip(1) {
            let (name, rest) = part.split_once('{').unwrap_or_default();
            // Otherwise it is an argument of a function.
            if name.split_whitespace().count() <= 1 {
                let members = rest.split('}').next().unwrap_or_default().split(',');
                for (name, value) in members.filter_map(|member| member.split_once('=')) {
                    add(name, value);
                }
            }
        }
    }

    /// All of them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.keys()
    }

    /// The constant of this name, which may have its place before it. Without one, `home` goes
    /// before other places.
    ///
    /// # Errors
    ///
    /// If there is none, or there are several.
    pub(crate) fn find(&self, home: &str, path: &str) -> Result<&Key, String> {
        let (place, name) = path.split_once("::").unwrap_or((home, path));
        let own = self.0.get_key_value(&(place.to_owned(), name.to_owned()));
        let mut others = self.keys().filter(|(_, other)| other == path);
        match (own, others.next(), others.next()) {
            (Some((key, _)), _, _) | (None, Some(key), None) => Ok(key),
            (None, None, _) => Err(format!("there is no constant {path}")),
            (None, Some(_), Some(_)) => Err(format!("there are several constants {path}")),
        }
    }

    /// The constants that a formula names, as far as they exist.
    pub(crate) fn named(&self, formula: &str) -> Vec<&Key> {
        let words = formula.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        words.filter_map(|word| self.find("", word).ok()).collect()
    }

    /// The value of a formula of real numbers.
    ///
    /// # Errors
    ///
    /// If it names a constant that does not exist, or is no expression of numbers.
    pub(crate) fn formula(&self, text: &str) -> Result<f64, String> {
        let expr = syn::parse_str(text).map_err(|error| error.to_string());
        let value = expr.and_then(|expr: Expr| self.value("", &expr));
        value.map_err(|error| format!("{text}: {error}"))
    }

    /// The value of an expression in this place, or of a formula in none. Times are in seconds
    /// in Rust.
    fn value(&self, place: &str, expr: &Expr) -> Result<f64, String> {
        let refused = || String::from("this is no expression of numbers");
        let inner = |expr: &Expr| self.value(place, expr);
        let argument = |args: &syn::punctuated::Punctuated<Expr, _>| {
            args.first().ok_or_else(refused).and_then(inner)
        };
        Ok(match expr {
            Expr::Lit(literal) => match &literal.lit {
                // With a suffix of Rust or of C.
                Lit::Int(int) => int.base10_parse().map_err(|_| refused())?,
                Lit::Float(float) => float.base10_parse().map_err(|_| refused())?,
                _ => return Err(refused()),
            },
            Expr::Paren(inside) => inner(&inside.expr)?,
            Expr::Path(_) => self.constant(place, expr, None)?,
            Expr::Index(index) => {
                let at = inner(&index.index)? as usize;
                self.constant(place, &index.expr, Some(at))?
            }
            Expr::Unary(one) if matches!(one.op, UnOp::Neg(_)) => -inner(&one.expr)?,
            Expr::Binary(two) => {
                let (left, right) = (inner(&two.left)?, inner(&two.right)?);
                match two.op {
                    BinOp::Add(_) => left + right,
                    BinOp::Sub(_) => left - right,
                    BinOp::Mul(_) => left * right,
                    // C has whole numbers only.
                    BinOp::Div(_) if place.contains('.') => (left / right).trunc(),
                    BinOp::Div(_) => left / right,
                    BinOp::Shl(_) => left * right.exp2(),
                    _ => return Err(refused()),
                }
            }
            Expr::Call(call) => {
                let per_second = match path_of(&call.func).as_str() {
                    "Duration::from_secs" | "Duration::from_secs_f64" => 1.0,
                    "Duration::from_millis" => 1e3,
                    "Duration::from_micros" => 1e6,
                    _ => return Err(refused()),
                };
                argument(&call.args)? / per_second
            }
            Expr::MethodCall(call) if call.method == "saturating_mul" => {
                inner(&call.receiver)? * argument(&call.args)?
            }
            Expr::MethodCall(call) if call.method == "exp2" => inner(&call.receiver)?.exp2(),
            _ => return Err(refused()),
        })
    }

    /// The value of a constant, or of this element of it.
    fn constant(&self, home: &str, path: &Expr, at: Option<usize>) -> Result<f64, String> {
        let key = self.find(home, &path_of(path))?;
        let value = match (&self.0[key], at) {
            (Expr::Array(array), Some(at)) => array.elems.iter().nth(at),
            (_, Some(_)) => None,
            (single, None) => Some(single),
        };
        let value = value.ok_or_else(|| String::from("there is no such element"));
        let value = value.and_then(|value| self.value(&key.0, value));
        value.map_err(|error| format!("{}: {error}", key.1))
    }
}

/// `NAME`, or `place::NAME`; nothing if it is no path.
fn path_of(expr: &Expr) -> String {
    let Expr::Path(path) = expr else {
        return String::new();
    };
    let names = path.path.segments.iter().map(|part| part.ident.to_string());
    names.collect::<Vec<_>>().join("::")
}

/// C code without comments.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut code = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        code += part.split_once("*/").map_or("", |(_, after)| after);
    }
    let lines = code.lines().filter_map(|line| line.split("//").next());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn constants_of_rust_are_read_with_times_in_seconds() {
    let mut all = Constants::default();
    all.add_rust(
        "rounds",
        "const TICK: Duration = Duration::from_micros(1_500);
         pub(crate) const LONG: Duration = TICK.saturating_mul(4);
         const SHARE: f64 = 1.0 - KEPT;
         const SHIFTED: u32 = (1 + 2) << 2;
         #[cfg(test)]
         mod tests { const IGNORED: f64 = 1.0; }
         impl Watch { const TICKS: usize = 240; const NONE: Self = Self; }",
    );
    all.add_rust("window", "const KEPT: f64 = 0.7; const SHARE: f64 = 1e-3;");
    assert_eq!(all.formula("rounds::LONG"), Ok(0.006));
    assert!((all.formula("rounds::SHARE").unwrap() - 0.3).abs() < 1e-9);
    assert_eq!(all.formula("SHIFTED / rounds::TICKS * 2"), Ok(0.1));
    assert_eq!(all.formula("(SHIFTED / 4).exp2()"), Ok(8.0));
    assert!(all.formula("SHARE").unwrap_err().contains("several"));
    assert!(
        all.formula("window::TICK")
            .unwrap_err()
            .contains("no constant")
    );
    assert_eq!(all.keys().count(), 7);
}

#[test]
fn constants_of_c_are_read_as_integers() {
    let mut all = Constants::default();
    all.add_c(
        "levels.h",
        "#pragma once
         /* Of a packet. #define NOT_THIS 1 */\n#define PACKET_Q8 256 /* Q8 */
#define FLOOR_Q8 (5 * PACKET_Q8 / 3)\n#define LARGE_US \\\n 14ULL\n#define MOST (1U << 24) - 0xff
#define APART __attribute__((noinline))\n#define SQUARE(x) ((x) * (x))
static const __u32 STEPS[2] = { 128, FLOOR_Q8, };
enum phase { OPENING = 0, /* Then: */ LAST = 3, };
static const struct group NOBODY;
static const char *name(enum phase phase) { return 0; }",
    );
    for (formula, value) in [
        ("FLOOR_Q8", 426.0),
        ("LARGE_US / 1e3", 0.014),
        ("MOST", 16_776_961.0),
        ("STEPS[1] / STEPS[0]", 3.328_125),
        ("1 / LAST", 1.0 / 3.0),
        ("OPENING", 0.0),
    ] {
        assert_eq!(all.formula(formula), Ok(value), "{formula}");
    }
    for wrong in ["APART", "SQUARE", "STEPS", "STEPS[2]", "NOBODY", "NOT_THIS"] {
        assert!(all.formula(wrong).is_err(), "{wrong}");
    }
    assert_eq!(all.keys().count(), 8);
}
