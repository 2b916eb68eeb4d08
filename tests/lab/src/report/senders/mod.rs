//! Pages of the matrices about senders: each has figures of its own, by the
//! matrix's name.

mod awaited;
mod cells;
mod figures;
mod load;
mod required;
mod scales;
mod table1;
mod table1_picture;

use std::path::Path;

use fairbat_tests::chart::ChartResult;

pub(super) use self::required::section as required;
use super::rows::rows;
use super::words::{failures, head, how, seeds};
use super::{MatrixRecord, paths};
use crate::matrix::Variant;

/// What a matrix about senders is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// CDG's back-off scale, beside its paper.
    Scales,
    /// Senders that are alone.
    Alone,
    /// A link that becomes free.
    Released,
    /// A live stream.
    Constant,
    /// Weights that change.
    Steps,
    /// DA-LBE's Table I.
    Table1,
    /// DA-LBE's fig. 10.
    Load,
}

impl Kind {
    /// Of this matrix; `None` if it is about something else.
    pub(super) fn of(matrix: &MatrixRecord) -> Option<Self> {
        Some(match matrix.name.as_str() {
            "cdg" => Self::Scales,
            "sender-alone" => Self::Alone,
            "sender-released" => Self::Released,
            "sender-constant" => Self::Constant,
            "sender-steps" => Self::Steps,
            "dalbe" | "dalbe-beyond" => Self::Table1,
            "dalbe-load" => Self::Load,
            _ => return None,
        })
    }
}

/// The page, with what the variants of the matrix are.
pub(super) fn page(kind: Kind, matrix: &MatrixRecord, variants: &[Variant]) -> String {
    let mut text = head(matrix);
    // Transfers are counted over all seeds.
    if seeds(matrix).len() > 1 && kind != Kind::Load {
        text.push_str(&format!(
            "A figure is the median over {} seeds (least\u{2013}most). ",
            seeds(matrix).len()
        ));
    }
    text.push_str(&match kind {
        Kind::Scales => scales::section(matrix),
        Kind::Table1 => table1::section(matrix),
        Kind::Load => load::section(matrix),
        Kind::Alone | Kind::Released | Kind::Constant | Kind::Steps => {
            figures::section(kind, matrix)
        }
    });
    text.push_str(&required(matrix));
    text.push_str("\n## Scenarios\n\n");
    text.push_str(&paths::lines(matrix, variants));
    for name in matrix.scenarios.keys() {
        text.push_str(&failures(&rows(matrix, name)));
    }
    text.push_str(&how(matrix));
    text
}

/// Whether there is a picture beside the page.
pub(super) fn has_picture(kind: Kind) -> bool {
    matches!(kind, Kind::Scales | Kind::Table1 | Kind::Load)
}

/// Draws it into an SVG file; of the others nothing.
///
/// # Errors
/// What plotters says.
pub(super) fn draw(kind: Kind, matrix: &MatrixRecord, path: &Path) -> ChartResult<()> {
    match kind {
        Kind::Scales => scales::draw(matrix, path),
        Kind::Table1 => table1_picture::draw(matrix, path),
        Kind::Load => load::draw(matrix, path),
        Kind::Alone | Kind::Released | Kind::Constant | Kind::Steps => Ok(()),
    }
}
