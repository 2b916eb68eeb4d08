//! Tables of Markdown, column by column, and the figures in their cells.

use std::fmt;

use crate::statistics::Spread;

/// What a cell without a figure says.
pub const NOTHING: &str = "\u{2013}";

/// A table with a line for each of its rows. A closure makes the cells of a column.
pub struct Table<R> {
    rows: Vec<R>,
    head: Vec<String>,
    lines: Vec<String>,
}

impl<R> Table<R> {
    /// Without columns yet.
    pub fn over(rows: impl IntoIterator<Item = R>) -> Self {
        let rows: Vec<R> = rows.into_iter().collect();
        Self {
            head: Vec::new(),
            lines: vec!["|".to_owned(); rows.len()],
            rows,
        }
    }

    /// With one more column.
    pub fn column(mut self, name: impl Into<String>, cell: impl Fn(&R) -> String) -> Self {
        self.head.push(escaped(&name.into()));
        for (row, line) in self.rows.iter().zip(&mut self.lines) {
            line.push_str(&format!(" {} |", escaped(&cell(row))));
        }
        self
    }

    /// With one more column where there is something to show.
    pub fn column_if(
        self,
        is_there: bool,
        name: impl Into<String>,
        cell: impl Fn(&R) -> String,
    ) -> Self {
        if is_there {
            self.column(name, cell)
        } else {
            self
        }
    }

    /// With a column for each of these.
    pub fn columns<C>(
        self,
        all: impl IntoIterator<Item = C>,
        name: impl Fn(&C) -> String,
        cell: impl Fn(&R, &C) -> String,
    ) -> Self {
        let all = all.into_iter();
        all.fold(self, |table, one| {
            table.column(name(&one), |row| cell(row, &one))
        })
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl<R> fmt::Display for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "|")?;
        for name in &self.head {
            let space = if name.is_empty() { "" } else { " " };
            write!(f, " {name}{space}|")?;
        }
        writeln!(f, "\n|{}", "---|".repeat(self.head.len()))?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Text that does not end a cell.
fn escaped(words: &str) -> String {
    words.replace('|', "\\|")
}

/// A number to so many digits.
pub fn number(figure: Option<f64>, digits: usize) -> String {
    or_nothing(figure.map(|value| format!("{value:.digits$}")))
}

/// A share in per cent.
pub fn percent(share: Option<f64>, digits: usize) -> String {
    number(share.map(|share| 100.0 * share), digits)
}

/// What there is, in words.
pub fn or_nothing(words: Option<impl ToString>) -> String {
    words.map_or(NOTHING.to_owned(), |words| words.to_string())
}

/// The median and, unless all are the same to these digits, least and most in
/// parentheses.
pub fn shown(spread: Option<Spread>, digits: usize) -> String {
    or_nothing(spread.map(|spread| range(spread, |value| format!("{value:.digits$}"))))
}

/// The same of figures that have words of their own.
pub fn range(spread: Spread, figure: impl Fn(f64) -> String) -> String {
    let (least, most) = (figure(spread.least), figure(spread.most));
    in_words(figure(spread.median), &least, &most)
}

/// A median and, unless they read the same, least and most in parentheses.
pub fn in_words(median: String, least: &str, most: &str) -> String {
    if least == most {
        return median;
    }
    format!("{median} ({least}\u{2013}{most})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let table = Table::over([1.0, 2.5])
            .column("", |row| format!("a|{row}"))
            .column_if(false, "left out", |_| String::new())
            .columns(
                [1, 2],
                |digits| format!("to {digits}"),
                |row, digits| number(Some(*row), *digits),
            );
        let expected = "| | to 1 | to 2 |\n|---|---|---|\n\
                        | a\\|1 | 1.0 | 1.00 |\n| a\\|2.5 | 2.5 | 2.50 |\n";
        assert_eq!(table.to_string(), expected);
        assert!(!table.is_empty());
    }

    #[test]
    fn a_range_is_shown_where_it_is_wider_than_its_digits() {
        let spread = Spread::of(&[1.01, 1.02, 1.04]);
        assert_eq!(shown(spread, 1), "1.0");
        assert_eq!(shown(spread, 2), "1.02 (1.01\u{2013}1.04)");
        assert_eq!(shown(None, 2), NOTHING);
        assert_eq!(percent(Some(0.5), 0), "50");
    }
}
