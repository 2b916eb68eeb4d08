//! The page of FAIRBAT's evaluation: the paper's figures and its Table I with what
//! the lab measured, every point with its intervals, and whether what is required
//! holds. Computed from the runs, all of it.

mod cells;
mod figures;
mod flows;
mod group;
mod incentive;
mod joined;
mod limits;
mod point;
mod points;
mod required;
mod scaling;
mod steps;
mod table1;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use self::group::Group;
use self::point::{Point, Topology, points};
use self::steps::Steps;
use super::MatrixRecord;
use super::rows::rows;
use super::words::{failures, head, how, measured, terms};

/// The matrix, and what its page is called.
const NAME: &str = "fairbat";

/// The matrix of one of its points at another scale.
const SCALING: &str = "fairbat-scaling";

/// The matrix of one of its points for longer.
const LONG: &str = "fairbat-long";

/// What the paper compares with: every chunk its own connection at once.
const BASELINE: &str = "tcp";

/// The paper's own system, with our damping.
const PLAIN: &str = "fairbat-plain";

/// The same with our receiver lever.
const LEVERS: &str = "fairbat-levers";

/// The same as the paper's, with its law as printed.
const UNDAMPED: &str = "fairbat-undamped";

/// LEDBAT.
const LEDBAT: &str = "utp";

/// The same with the target of its first drafts.
const LEDBAT_EARLY: &str = "utp-25";

/// The paper's k in its hard case.
const HARD: Topology = Topology::One { long_lived: 3 };

/// The paper's k in its easy case.
const EASY: Topology = Topology::One { long_lived: 0 };

/// What was measured apart from the matrix and is on its page, as far as it is there.
#[derive(Clone, Copy, Default)]
struct Beside<'a> {
    scaling: Option<&'a MatrixRecord>,
    long: Option<&'a MatrixRecord>,
    steps: Option<&'a Steps>,
}

impl<'a> Beside<'a> {
    /// Where flows over time are shown from: what was measured for longer, if it was.
    fn flows(self, matrix: &'a MatrixRecord) -> &'a MatrixRecord {
        let long = self.long.filter(|long| flows::scene(long).is_some());
        long.unwrap_or(matrix)
    }
}

/// Whether a matrix is on this page.
pub(super) fn is_of(matrix: &MatrixRecord) -> bool {
    [NAME, SCALING, LONG].contains(&matrix.name.as_str())
}

/// Makes the page and its pictures if the matrix is there, and returns where they
/// are.
///
/// # Errors
/// When one cannot be written.
pub(super) fn write(
    all: &[MatrixRecord],
    directory: &Path,
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let named = |name: &str| all.iter().find(|matrix| matrix.name == name);
    let Some(matrix) = named(NAME) else {
        return Ok(Vec::new());
    };
    let page = directory.join(format!("{NAME}.md"));
    let steps = Steps::read(directory)?;
    let beside = Beside {
        scaling: named(SCALING),
        long: named(LONG),
        steps: steps.as_ref(),
    };
    fs::write(&page, self::page(matrix, beside))?;
    let mut written = vec![page];
    for figure in figures::FIGURES.iter().filter(|one| one.is_there(matrix)) {
        let picture = directory.join(figure.file());
        figure.draw(matrix, &picture)?;
        written.push(picture);
    }
    if let Some(scene) = flows::scene(beside.flows(matrix)) {
        let picture = directory.join(flows::FILE);
        flows::draw(&scene, &picture)?;
        written.push(picture);
    }
    Ok(written)
}

fn page(matrix: &MatrixRecord, beside: Beside<'_>) -> String {
    let mut text = head(matrix);
    text.push_str(READING);
    text.push_str(&required::section(matrix, beside));
    text.push_str(&flows::section(beside.flows(matrix)));
    for figure in figures::FIGURES.iter().filter(|one| one.is_there(matrix)) {
        text.push_str(&figure.section(matrix));
    }
    for section in [
        table1::section(matrix),
        points::section(matrix),
        joined::section(matrix),
        incentive::section(matrix),
        beside.long.map_or(String::new(), incentive::for_longer),
        limits::section(matrix),
        beside
            .scaling
            .map_or(String::new(), |other| scaling::section(matrix, other)),
    ] {
        text.push_str(&section);
    }
    text.push_str("\n## Scenarios\n\n");
    for (name, scenario) in &matrix.scenarios {
        text.push_str(&format!("- {name}: {}\n", terms(scenario)));
    }
    for name in matrix.scenarios.keys() {
        text.push_str(&failures(&rows(matrix, name)));
    }
    text.push_str(&how(matrix));
    for other in [beside.scaling, beside.long].into_iter().flatten() {
        text.push_str(&measured(other));
    }
    text
}

/// How it is all to be read.
const READING: &str = "What is measured is section IV of \"FAIRBAT: access control for background \
    flows\": n chunks wait in a queue, at most m are on the network, and every T seconds, by its eq. \
    (2), m grows by gamma (n \u{2212} tau), where tau is how many are meant to wait. The joined system is \
    this with FAIRBAT's receiver lever, which makes a connection yield by its receive window, for \
    the part of the time in which m is below one. LBE is lower-than-best-effort, as LEDBAT and TCP-LP \
    are.\n\n\u{3c1}s is the load of web fetches and \u{3c1}b that of background \
    chunks, in parts of a link; k is the number of long-lived flows. The baseline, with which all \
    is compared, sends every chunk over a TCP connection of its own as soon as it arrives, with \
    CUBIC.\n\n\
    Intervals hold the truth with a probability of 95 %, by Student's t over the seeds, which are \
    independent; with fewer than three seeds there are none. The mean time of a \
    fetch is corrected by what it owes to what happened to arrive, by regression on a control \
    variate whose mean is known (Lavenberg and Welch 1981): with five seeds or more how long the \
    same fetches would take at an ideal link, which all flows share equally at every moment and \
    whose true mean is that of 2000 draws of arrivals (its own error is in the interval), or over two links how much arrived; with \
    fewer seeds how large fetches were. Improvements are \
    seed by seed: all contenders meet the same arrivals. Some contenders have more seeds than others, \
    and two are compared over those that both have. The time of a fetch that was not over at \
    the end counts as long as it had taken.\n\n\
    LEDBAT is libtorrent's uTP, with its target of 100 ms and with the 25 ms of LEDBAT's first drafts. A \
    full queue of 100 packets is one of 120 ms here: the first of them leaves little room below the \
    losses that TCP waits for. There is no LEDBAT~a. A uTP connection takes at least a round trip more \
    to begin than the baseline's, and so does a chunk of FAIRBAT's queue. All FAIRBAT contenders open a \
    connection for each chunk, and all but the one without it have eq. (2) with a damping term and \
    gains that settle (`lab tuning`); the paper's and the joined system differ in the receiver \
    lever only.\n";

/// Contenders that ran, in the order of their first run, without the baseline.
fn contenders(matrix: &MatrixRecord) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for run in &matrix.runs {
        let name = run.contender.as_str();
        if name != BASELINE && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The points of a topology, by their load.
fn points_of(matrix: &MatrixRecord, topology: Topology) -> Vec<Point<'_>> {
    let mut all = points(matrix);
    all.retain(|point| point.topology == topology);
    all
}

/// All that was measured, point by point, the baseline first.
fn groups(matrix: &MatrixRecord) -> impl Iterator<Item = (Point<'_>, &str, Group<'_>)> {
    let names: Vec<_> = [BASELINE].into_iter().chain(contenders(matrix)).collect();
    let all = points(matrix).into_iter().flat_map(move |point| {
        let of = move |name| (point, name, Group::of(matrix, point, name));
        names.clone().into_iter().map(of)
    });
    all.filter(|(_, _, group)| !group.is_empty())
}

/// Each point with the runs of a contender and of the baseline, where there are any
/// of the contender.
fn beside_baseline<'a>(
    matrix: &'a MatrixRecord,
    points: &[Point<'a>],
    contender: &str,
) -> Vec<(Point<'a>, Group<'a>, Group<'a>)> {
    let groups = points.iter().map(|&point| {
        let of = |name| Group::of(matrix, point, name);
        (point, of(contender), of(BASELINE))
    });
    groups.filter(|(_, group, _)| !group.is_empty()).collect()
}

#[cfg(test)]
mod synthetic;

#[cfg(test)]
mod tests;
