//! Many runs beside each other: tables for people, and pictures that show what each
//! contender takes from others. Knows summaries only, no samples.

mod bottlenecks;
mod deadlines;
mod fairbat;
mod general;
mod overview;
mod places;
mod select;
mod senders;
mod words;
mod yielding;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::report::select::Draw;
use crate::results::MatrixRecord;
use crate::{programs, sender_cost};

/// Makes the page and the picture of each matrix of a directory, and returns
/// where they are; likewise the pages of [`sender_cost`] and [`programs`], if they were measured.
/// Other files are left alone.
///
/// # Errors
/// When one cannot be read or written.
pub fn write_all(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut written = Vec::new();
    let all = MatrixRecord::read_all(directory)?;
    let apart = |matrix: &&MatrixRecord| {
        yielding::is_of(matrix) || fairbat::is_of(matrix) || bottlenecks::is_of(matrix)
    };
    for matrix in all.iter().filter(|matrix| !apart(matrix)) {
        let path = directory.join(format!("{}.md", matrix.name));
        let (text, draw) = page(matrix);
        fs::write(&path, text)?;
        if let Some(draw) = draw {
            let picture = path.with_extension("svg");
            draw(matrix, &picture)?;
            written.push(picture);
        }
        written.push(path);
    }
    written.extend(yielding::write(&all, directory)?);
    written.extend(fairbat::write(&all, directory)?);
    written.extend(bottlenecks::write(&all, directory)?);
    written.extend(sender_cost::write_page(directory)?);
    written.extend(programs::write_pages(directory)?);
    // Some matrices are on the page of another one, which may be elsewhere.
    if written.is_empty() && all.is_empty() {
        return Err(format!(
            "there are no results of matrices in {}",
            directory.display()
        )
        .into());
    }
    written.sort();
    Ok(written)
}

/// The page of a matrix that has one of its own, and what draws its picture.
fn page(matrix: &MatrixRecord) -> (String, Option<Draw>) {
    if let Some(page) = senders::page(matrix, words::variants) {
        page
    } else if deadlines::is_about_deadlines(matrix) {
        deadlines::page(matrix)
    } else if senders::is_about_weights(matrix) {
        (senders::weights_page(matrix), None)
    } else {
        general::page(matrix)
    }
}

#[cfg(test)]
pub(crate) mod tests;
