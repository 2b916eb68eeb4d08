//! What fig. 3's factor k + 1 follows from, and what of ours that explains: a link that all
//! flows share equally (processor sharing), with k of them there for good.

use crate::report::fairbat::group::{Cell, Estimate, estimate};
use crate::report::fairbat::points::{LEVERS, PLAIN, Point, Topology};
use crate::report::words::title;
use crate::results::MatrixRecord;
use lab_run::table::{NOTHING, Table};

/// What is compared with it.
const OURS: [&str; 2] = [PLAIN, LEVERS];

/// A point in theory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Theory {
    /// Flows that never end.
    k: f64,
    web: f64,
    chunks: f64,
}

impl Theory {
    /// `None` over two links, and of more load than a link carries.
    pub(crate) fn of(point: &Point<'_>) -> Option<Self> {
        let Topology::One { long_lived } = point.topology else {
            return None;
        };
        (point.web + point.chunks < 1.0).then_some(Self {
            k: f64::from(long_lived),
            web: point.web,
            chunks: point.chunks,
        })
    }

    /// Mean time of a fetch with TCP for all, in times of what it takes alone: k flows for
    /// good, and who happens to be there.
    fn baseline(self) -> f64 {
        (self.k + 1.0) / (1.0 - self.web - self.chunks)
    }

    /// The same beside so many connections that are always at work.
    fn beside(self, m: f64) -> f64 {
        (self.k + m + 1.0) / (1.0 - self.web)
    }

    /// What so many connections carry, in parts of the link, of what fetches leave.
    fn carried(self, m: f64) -> f64 {
        let shares = m + self.k;
        if shares > 0.0 {
            m / shares * (1.0 - self.web)
        } else {
            0.0
        }
    }

    /// m at convergence, k ρb / (1 − ρ): what it carries is the load.
    fn m(self) -> f64 {
        self.k * self.chunks / (1.0 - self.web - self.chunks)
    }

    /// The mean of m where it is a whole number at every moment: of the one below and the
    /// one above that m, so that both together carry the load.
    fn whole_m(self) -> f64 {
        let below = self.m().floor();
        let (least, most) = (self.carried(below), self.carried(below + 1.0));
        below + (self.chunks - least) / (most - least)
    }

    fn improvement_beside(self, m: f64) -> f64 {
        100.0 * (1.0 - self.beside(m) / self.baseline())
    }

    /// Improvement of the mean fetch, %: 100 ρb / ((k + 1) (1 − ρs)).
    pub(crate) fn improvement(self) -> f64 {
        self.improvement_beside(self.m())
    }

    /// The same where connections are whole, and a part of one is one for a part of the
    /// time.
    pub(crate) fn improvement_whole(self) -> f64 {
        self.improvement_beside(self.whole_m())
    }

    /// That of one of ours: over plain TCP connections are whole, and with the lever one
    /// yields as much as is asked for.
    pub(crate) fn improvement_with(self, contender: &str) -> f64 {
        match contender {
            PLAIN => self.improvement_whole(),
            _ => self.improvement(),
        }
    }

    /// Active chunks in parts of the baseline's, (k + 1) ρb / (1 − ρ), with whole connections;
    /// with any number it is k / (k + 1).
    fn active_whole(self) -> f64 {
        let baseline = (self.k + 1.0) * self.chunks / (1.0 - self.web - self.chunks);
        self.whole_m() / baseline
    }
}

/// Whether a figure agrees; `None` where its exactness is not known.
fn is_within(found: Estimate, expected: f64) -> Option<bool> {
    let interval = found.interval()?;
    Some((interval.low()..=interval.high()).contains(&expected))
}

/// A point with what theory says there.
struct Line<'a> {
    point: Point<'a>,
    theory: Theory,
    /// [`OURS`], where they were measured.
    cells: [Option<Cell<'a>>; 2],
}

impl Line<'_> {
    fn expected(&self, which: usize) -> f64 {
        self.theory.improvement_with(OURS[which])
    }

    fn improvement(&self, which: usize) -> Option<Estimate> {
        let cell = self.cells[which].as_ref()?;
        cell.group.improvement(&cell.baseline)
    }

    /// Bold where theory is outside of the interval.
    fn words(&self, which: usize) -> String {
        let Some(found) = self.improvement(which) else {
            return NOTHING.to_owned();
        };
        let words = estimate(Some(found), 1);
        match is_within(found, self.expected(which)) {
            Some(false) => format!("**{words}**"),
            _ => words,
        }
    }

    fn active(&self) -> String {
        let cell = self.cells[0].as_ref();
        estimate(cell.and_then(|it| it.group.active_against(&it.baseline)), 2)
    }
}

/// The derivation, every point beside it, and at how many it explains what was measured.
pub(crate) fn section(matrix: &MatrixRecord) -> String {
    let lines = Point::all(matrix).into_iter().filter_map(|point| {
        let theory = Theory::of(&point)?;
        let cells = OURS.map(|name| Cell::of(matrix, point, name));
        let is_measured = cells.iter().any(Option::is_some);
        is_measured.then_some(Line {
            point,
            theory,
            cells,
        })
    });
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return String::new();
    }
    let explained = [0, 1].map(|which| {
        let judged = lines
            .iter()
            .filter_map(|line| is_within(line.improvement(which)?, line.expected(which)));
        let judged: Vec<_> = judged.collect();
        let within = judged.iter().filter(|it| **it).count();
        format!("{within} of {} points", judged.len())
    });
    let table = Table::over(&lines)
        .column("", |it| it.point.words())
        .column("in theory, %", |it| {
            format!("{:.1}", it.theory.improvement())
        })
        .column("with whole connections, %", |it| {
            format!("{:.1}", it.theory.improvement_whole())
        })
        .columns(
            OURS.into_iter().enumerate(),
            |(_, name)| format!("{}, %", title(name)),
            |line, (which, _)| line.words(*which),
        )
        .column("active, whole connections", |it| {
            format!("{:.2}", it.theory.active_whole())
        })
        .column("active, plain TCP", |it| it.active());
    let [plain, levers] = explained;
    let text = format!(
        include_str!("../../text/fairbat-theory.md"),
        plain = plain,
        levers = levers
    );
    format!("\n{text}\n{table}")
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;
    use crate::report::tests::fairbat::evaluation;
    use crate::report::tests::synthetic::line;

    const WEB: f64 = 0.3;

    /// A link that all share equally, packet by packet of nothing: web fetches and chunks
    /// arrive at random with sizes of exponential distribution, of which only how many there
    /// are matters. Mean time of a fetch, in times of what it takes alone (by Little's law),
    /// and what `permanent` connections of the background carry.
    fn simulated(web: f64, chunks: f64, long_lived: f64, permanent: f64) -> (f64, f64) {
        let mut random = StdRng::seed_from_u64(7);
        let (mut fetches, mut waiting) = (0.0_f64, 0.0_f64);
        let (mut time, mut present, mut carried) = (0.0, 0.0, 0.0);
        for _ in 0..2_000_000 {
            let all = fetches + waiting + long_lived + permanent;
            let share = |of: f64| if of > 0.0 { of / all } else { 0.0 };
            let rates = [web, chunks, share(fetches), share(waiting)];
            let sum: f64 = rates.iter().sum();
            let lasts = 1.0 / sum;
            time += lasts;
            present += lasts * fetches;
            carried += lasts * share(permanent);
            let mut at = random.random_range(0.0..sum);
            let which = rates.iter().position(|rate| {
                at -= rate;
                at < 0.0
            });
            match which {
                Some(0) => fetches += 1.0,
                Some(1) => waiting += 1.0,
                Some(2) => fetches -= 1.0,
                Some(3) => waiting -= 1.0,
                // Rounding has left a little after the last.
                _ => {}
            }
        }
        (present / time / web, carried / time)
    }

    fn theory(k: u32, chunks: f64) -> Theory {
        Theory {
            k: f64::from(k),
            web: WEB,
            chunks,
        }
    }

    #[test]
    fn it_is_what_a_link_does_that_all_share_equally() {
        for (k, chunks) in [(0, 0.4), (1, 0.2), (1, 0.4), (3, 0.2), (3, 0.4)] {
            let it = theory(k, chunks);
            let (baseline, _) = simulated(WEB, chunks, it.k, 0.0);
            let (beside, carried) = simulated(WEB, 0.0, it.k, it.m());
            assert!(
                (carried - if k > 0 { chunks } else { 0.0 }).abs() < 0.01,
                "{carried}"
            );
            let improvement = 100.0 * (1.0 - beside / baseline);
            let expected = it.improvement();
            assert!(
                (improvement - expected).abs() < 2.0,
                "k = {k}, {chunks}: {improvement} for {expected}"
            );
        }
    }

    #[test]
    fn it_falls_with_the_factor_and_grows_with_the_load() {
        for chunks in [0.2, 0.4, 0.6] {
            let first = theory(0, chunks).improvement();
            assert!(
                (first - 100.0 * chunks / (1.0 - WEB)).abs() < 1e-9,
                "{first}"
            );
            for k in 1..=3 {
                let it = theory(k, chunks).improvement();
                assert!((it * f64::from(k + 1) - first).abs() < 1e-9, "{k}: {it}");
            }
        }
    }

    #[test]
    fn whole_connections_gain_less_and_as_much_where_m_is_whole() {
        for k in 0..=3 {
            for chunks in [0.2, 0.3, 0.4, 0.5, 0.6] {
                let it = theory(k, chunks);
                let (whole, any) = (it.improvement_whole(), it.improvement());
                assert!(
                    whole <= any + 1e-9 && whole > 0.0,
                    "{k}, {chunks}: {whole}, {any}"
                );
            }
        }
        // Of the time that fetches leave, one connection takes its part alone.
        let part: f64 = 0.2 / 0.7;
        let whole = theory(0, 0.2).improvement_whole();
        assert!((whole - 100.0 * part * part).abs() < 1e-9, "{whole}");
        // m = 3 * 0.4 / 0.3.
        let four = theory(3, 0.4);
        assert!((four.m() - 4.0).abs() < 1e-9);
        assert!((four.active_whole() - 0.75).abs() < 1e-6);
        assert!((four.improvement_whole() - four.improvement()).abs() < 1e-6);
    }

    #[test]
    fn the_page_says_where_it_does_not_explain_ours() {
        let matrix = evaluation();
        let text = section(&matrix);
        // 20 and 40 % at every point, with little spread.
        let row = line(&text, "| k = 3, \u{3c1}b = 0.2");
        assert!(row.contains("| 7.1 | 6.5 | **20.0"), "{row}");
        assert!(row.ends_with("| 0.77 | 1.00 \u{b1} 0.00 |"), "{row}");
        assert!(text.contains("0 of 4 points"), "{text}");
        assert!(!text.contains("two links"), "{text}");
    }
}
