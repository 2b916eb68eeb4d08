//! What is required of a download that yields, as data, and what each figure of it is
//! taken from.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::report::select::{Figure, Place, Runs};
use crate::report::yielding::{Column, Found, Line, Subject};
use crate::results::ALONE;
use crate::verdict::Bound;
use lab_run::record::Summary;
use lab_run::statistics::Spread;
use lab_run::yielding::YieldFigures;

/// On paths on which nothing was tuned, a bound is to hold within this part of it.
const UNTUNED: f64 = 0.1;

/// Round-trip times at which weights are measured, ms.
const TIMES_MS: [u32; 3] = [20, 50, 100];

/// Weights that are measured.
const WEIGHTS: [f64; 6] = [0.02, 0.1, 0.25, 0.5, 0.75, 1.0];

/// From this weight on the share is to be that of the model.
const MODEL_FROM: f64 = 0.25;

/// How far it may be from it, in parts of it.
const MAX_OFF: f64 = 0.25;

/// All that is written down.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    subject: Vec<WrittenSubject>,
}

/// Claims on one subject.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSubject {
    title: String,
    /// What its scenario is called among other paths; `None` if it is not run there.
    elsewhere: Option<String>,
    /// That of claims that name none.
    #[serde(default)]
    scenario: String,
    claims: Vec<Claim>,
}

/// A figure, and what it must be.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    what: String,
    #[serde(default)]
    scenario: String,
    variant: Option<String>,
    pub(crate) measure: Measure,
    digits: Option<usize>,
    pub(crate) bound: Option<Bound>,
    /// What Vulture's report says, as it stands there.
    #[serde(default)]
    pub(crate) paper: String,
}

static WRITTEN: LazyLock<Written> = LazyLock::new(Written::read);

impl Written {
    fn read() -> Self {
        let text = include_str!("../../text/yielding-claims.toml");
        let mut written: Self = toml::from_str(text).expect("the claims are part of the lab");
        for subject in &mut written.subject {
            for claim in &mut subject.claims {
                if claim.scenario.is_empty() {
                    claim.scenario.clone_from(&subject.scenario);
                }
            }
        }
        written
    }
}

/// All claims as they are written.
pub(crate) fn written() -> Vec<Claim> {
    let subjects = WRITTEN.subject.iter();
    subjects
        .flat_map(|subject| subject.claims.clone())
        .collect()
}

/// All subjects in the order of the page, those on other paths for the variants that
/// there are.
pub(crate) fn subjects<'a>(runs: &Runs<'a>, variants: &[&str]) -> Vec<Subject<'a>> {
    let elsewhere = variants.iter().flat_map(|variant| {
        let subjects = WRITTEN.subject.iter().cloned();
        subjects.flat_map(move |subject| subject.at(variant))
    });
    let elsewhere: Vec<_> = elsewhere.collect();
    let subject = |title: &str, claims: &[Claim]| Subject::of(title, claims, runs);
    let own = WRITTEN.subject.iter();
    let mut all: Vec<_> = own.map(|it| subject(&it.title, &it.claims)).collect();
    all.extend([
        subject("On other paths, within 10 % of the bounds", &elsewhere),
        weights(runs),
    ]);
    all.retain(|subject| !subject.lines.is_empty());
    all
}

impl WrittenSubject {
    /// The same claims on another path.
    fn at(self, variant: &str) -> Vec<Claim> {
        let Some(name) = self.elsewhere else {
            return Vec::new();
        };
        let mut claims = self.claims;
        claims.retain(|claim| claim.scenario == self.scenario);
        for claim in &mut claims {
            claim.what = format!("{variant}: {name}{}", claim.what);
            claim.variant = Some(variant.to_owned());
            claim.bound = claim.bound.map(|bound| bound.relaxed(UNTUNED));
            claim.paper.clear();
        }
        claims
    }
}

impl Claim {
    pub(crate) fn place(&self) -> Place {
        Place {
            scenario: self.scenario.clone(),
            variant: self.variant.clone(),
        }
    }

    /// The first words, which say what of several it is on.
    pub(crate) fn label(&self) -> &str {
        self.what.split(':').next().unwrap_or_default()
    }

    pub(crate) fn line(&self, cells: Vec<Option<Found>>) -> Line {
        Line {
            what: self.what.clone(),
            bound: self.bound,
            paper: self.paper.clone(),
            digits: self.digits.unwrap_or(1),
            cells,
        }
    }
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measure {
    /// Goodput of the foreground, % of alone.
    Kept,
    /// How much longer its round trips are, %.
    RttLonger,
    /// What is used of what others leave, %.
    Spare,
    /// The same from the start on, %.
    SpareWhole,
    /// Until the full rate, s.
    FullRate,
    /// The standing queue, ms.
    Queue,
    /// Until a link that becomes free is taken, s.
    Taken,
    /// What is used of pauses, %.
    OffUse,
    /// The share in the turns, %.
    OnShare,
    /// What the background gets of the payload of both, %.
    Share,
    /// Jain's index of several.
    Jain,
    /// The share of one that came later, %.
    Latecomer,
    /// How much longer fetches take in the mean, %.
    FetchLonger,
    /// How much longer 95 % of the fetches take, %.
    FetchP95Longer,
    /// 100 for a run that finished.
    Finished,
    /// The longest gap, s.
    LongestGap,
    /// Until it recovered, s.
    Recovery,
    /// Processor time, % of a core.
    Cores,
    /// How much more that is than without a lever, % of a core.
    CoresMore,
}

impl Measure {
    pub(crate) fn figure(self) -> Figure {
        match self {
            Self::Kept => Figure::Beside(ALONE, |it, alone| {
                let whole = alone.foreground_together_mbit;
                (whole > 0.0).then(|| 100.0 * it.foreground_together_mbit / whole)
            }),
            Self::RttLonger => {
                beside_alone(|it, alone| longer(it.rtt_mean_ms?, alone.rtt_mean_ms?))
            }
            Self::Spare => Figure::Own(|it| Some(100.0 * of(it)?.spare_used)),
            Self::SpareWhole => Figure::Own(|it| Some(100.0 * of(it)?.spare_used_whole)),
            Self::FullRate => Figure::Own(|it| Some(of(it)?.full_rate_s)),
            Self::Queue => Figure::Own(|it| Some(of(it)?.queue_median_ms)),
            Self::Taken => Figure::Own(|it| of(it)?.reaped_s),
            Self::OffUse => Figure::Own(|it| Some(100.0 * of(it)?.turns?.off_use)),
            Self::OnShare => Figure::Own(|it| Some(100.0 * of(it)?.turns?.on_share)),
            Self::Share => Figure::Own(|it| {
                let both = it.background_mbit + it.foreground_together_mbit;
                (both > 0.0).then(|| 100.0 * it.background_mbit / both)
            }),
            Self::Jain => Figure::Own(|it| it.background_jain),
            Self::Latecomer => Figure::Own(|it| Some(100.0 * of(it)?.latecomer_share?)),
            Self::FetchLonger => {
                beside_alone(|it, alone| longer(it.fetch_mean_s?, alone.fetch_mean_s?))
            }
            Self::FetchP95Longer => {
                beside_alone(|it, alone| longer(it.fetch_p95_s?, alone.fetch_p95_s?))
            }
            Self::Finished => Figure::Own(|it| Some(of(it)?.done_s.map_or(0.0, |_| 100.0))),
            Self::LongestGap => Figure::Own(|it| Some(of(it)?.longest_gap_s)),
            Self::Recovery => Figure::Own(|it| of(it)?.recovery_s),
            Self::Cores => Figure::Own(|it| Some(100.0 * of(it)?.cores?)),
            Self::CoresMore => Figure::Varied("w 1", |on, off| {
                Some(100.0 * (of(on)?.cores? - of(off)?.cores?))
            }),
        }
    }
}

fn beside_alone(figure: fn(&Summary, &Summary) -> Option<f64>) -> Figure {
    Figure::Beside(ALONE, figure)
}

fn of(summary: &Summary) -> Option<&YieldFigures> {
    summary.yielding.as_ref()
}

/// By how many per cent one time is longer than another.
fn longer(time: f64, alone: f64) -> Option<f64> {
    (alone > 0.0).then(|| 100.0 * (time / alone - 1.0))
}

/// What each weight is to get at a round-trip time.
pub(crate) fn weight_claims(time_ms: u32) -> impl Iterator<Item = (f64, Claim)> {
    WEIGHTS.into_iter().map(move |weight| {
        let share = 100.0 * weight / (1.0 + weight);
        let range = Bound::Within(share * (1.0 - MAX_OFF), share * (1.0 + MAX_OFF));
        let claim = Claim {
            what: format!("RTT {time_ms} ms, w = {weight}: share, %"),
            scenario: format!("lever-{time_ms:03}ms"),
            variant: Some(format!("w {weight}")),
            measure: Measure::Share,
            digits: None,
            bound: (weight >= MODEL_FROM).then_some(range),
            paper: String::new(),
        };
        (weight, claim)
    })
}

fn weights<'a>(runs: &Runs<'a>) -> Subject<'a> {
    let claims = TIMES_MS.into_iter().flat_map(weight_claims);
    let claims: Vec<_> = claims.map(|(_, claim)| claim).collect();
    let title = "Of a weight w beside one greedy CUBIC flow: w/(1 + w)";
    let mut subject = Subject::of(title, &claims, runs);
    let falls = TIMES_MS.map(|time| Line {
        what: format!("RTT {time} ms: a higher weight takes less, by at most, %"),
        bound: Some(Bound::AtMost(0.0)),
        paper: String::new(),
        digits: 1,
        cells: subject
            .columns
            .iter()
            .map(|it| fall(runs, time, *it))
            .collect(),
    });
    subject.extend(falls);
    subject
}

/// The most by which the share falls from one weight to the next, in the median;
/// 0 if it never does.
fn fall(runs: &Runs<'_>, time_ms: u32, column: Column<'_>) -> Option<Found> {
    let found = weight_claims(time_ms).map(|(_, claim)| column.found(&claim, runs));
    let found: Vec<Found> = found.collect::<Option<_>>()?;
    let medians: Vec<f64> = found.iter().map(|one| one.spread.median).collect();
    let falls = medians.iter().zip(medians.iter().skip(1));
    let most = falls.map(|(one, next)| one - next).fold(0.0, f64::max);
    Some(Found {
        spread: Spread::of(&[most])?,
        seeds: found.iter().map(|one| one.seeds).min()?,
    })
}
