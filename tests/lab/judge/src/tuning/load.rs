//! The loads that laws are compared under: links, traffic of the web and of the
//! background, long-lived flows, and steps from one load to another.

use std::fmt;

use serde::Serialize;

/// Mean size of a web flow, bytes.
const WEB_BYTES: f64 = 30_000.0;

/// The interactive traffic beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Web {
    /// Flows arrive as a Poisson process, however the last ones fare, and are
    /// this share of the link.
    Open(f64),
    /// Readers who look at a page for a while and then load the next one over
    /// several flows at once: slower pages are fewer pages. The share of the
    /// link that they would have were pages loaded in no time.
    Readers(f64),
}

/// A load, steady.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Load {
    /// Interactive traffic.
    pub(crate) web: Web,
    /// Background: share of the link that the chunks are which arrive.
    pub(crate) background: f64,
    /// Long-lived flows.
    pub(crate) long: u32,
}

/// One link, its load, and what the load becomes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Scenario {
    /// Rate of the link, bit/s.
    pub(crate) rate: f64,
    /// Mean size of a chunk, bytes.
    pub(crate) chunk: f64,
    /// From the beginning.
    pub(crate) load: Load,
    /// From a moment on, s.
    pub(crate) step: Option<(f64, Load)>,
}

impl Load {
    /// What m tends to where every flow has the same share of the link and the
    /// web takes what it needs (the fluid model), connections.
    pub(crate) fn limit(&self) -> f64 {
        let rest = 1.0 - self.web.share() - self.background;
        let m = self.background * f64::from(self.long) / rest;
        m.max(1.0)
    }

    /// Mean time of a web flow beside a constant m of that limit, in times that
    /// it takes alone: all flows that do not end count (processor sharing
    /// with permanent customers). `None` if it reacts.
    pub(crate) fn web_time(&self) -> Option<f64> {
        match self.web {
            Web::Open(share) => Some((1.0 + f64::from(self.long) + self.limit()) / (1.0 - share)),
            Web::Readers(_) => None,
        }
    }
}

impl Web {
    fn share(self) -> f64 {
        match self {
            Self::Open(share) | Self::Readers(share) => share,
        }
    }
}

impl Scenario {
    /// Rate of the link, byte/s.
    pub(crate) fn byte_rate(&self) -> f64 {
        self.rate / 8.0
    }

    /// Mean size of a web flow, bytes: a hundredth of a chunk's at 3 MB.
    pub(crate) fn web_bytes(&self) -> f64 {
        WEB_BYTES.min(self.chunk / 10.0)
    }

    /// Mean time of a chunk on its connection, s, once m is at its limit:
    /// Little's law.
    pub(crate) fn chunk_time(&self, load: &Load) -> f64 {
        load.limit() * self.chunk / (load.background * self.byte_rate())
    }
}

/// The link that most are of: 10 Mbit/s, chunks of 3 MB.
const LINK: (f64, f64) = (10e6, 3e6);

/// Loads of the web and of the background, and long-lived flows.
type Of = (f64, f64, u32);

/// All that are steady.
const LOADS: [Of; 9] = [
    (0.2, 0.25, 1),
    (0.2, 0.45, 1),
    (0.2, 0.35, 2),
    (0.45, 0.35, 2),
    (0.2, 0.25, 5),
    (0.2, 0.45, 5),
    (0.45, 0.25, 5),
    (0.45, 0.35, 5),
    (0.45, 0.45, 5),
];

/// Other links and other chunks, bit/s and bytes, each with one load.
const OTHER_LINKS: [(f64, f64); 3] = [(10e6, 0.3e6), (100e6, 3e6), (1e9, 3e6)];

/// Loads before and after a step.
const STEPS: [(Of, Of); 8] = [
    ((0.2, 0.25, 2), (0.2, 0.45, 2)),
    ((0.2, 0.25, 5), (0.2, 0.45, 5)),
    ((0.2, 0.35, 5), (0.45, 0.35, 5)),
    ((0.2, 0.45, 1), (0.2, 0.45, 5)),
    ((0.2, 0.45, 2), (0.2, 0.25, 2)),
    ((0.2, 0.45, 5), (0.2, 0.25, 5)),
    ((0.45, 0.35, 5), (0.2, 0.35, 5)),
    ((0.2, 0.45, 5), (0.2, 0.45, 1)),
];

fn load((web, background, long): Of) -> Load {
    Load {
        web: Web::Open(web),
        background,
        long,
    }
}

/// One link with a steady load.
pub(crate) fn steady((rate, chunk): (f64, f64), load: Load) -> Scenario {
    Scenario {
        rate,
        chunk,
        load,
        step: None,
    }
}

/// All steady ones.
pub(crate) fn all() -> Vec<Scenario> {
    let mut all = LOADS.map(|of| steady(LINK, load(of))).to_vec();
    all.extend(OTHER_LINKS.map(|link| steady(link, load((0.45, 0.35, 5)))));
    all.extend([(0.2, 0.45, 5), (0.45, 0.35, 5)].map(|of| {
        let load = load(of);
        let web = Web::Readers(load.web.share());
        steady(LINK, Load { web, ..load })
    }));
    all
}

/// All steps in load: from what, and to what. The first half goes up.
pub(crate) fn steps() -> Vec<(Scenario, Load)> {
    let step = |(before, after)| (steady(LINK, load(before)), load(after));
    STEPS.map(step).to_vec()
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readers = match self.web {
            Web::Open(_) => "",
            Web::Readers(_) => " of readers",
        };
        let (web, background, long) = (self.web.share(), self.background, self.long);
        write!(
            f,
            "web {web}{readers}, background {background}, {long} long-lived"
        )
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rate, chunk, load, ..
        } = self;
        if (*rate, *chunk) != LINK {
            write!(f, "{} Mbit/s, {} MB: ", rate / 1e6, chunk / 1e6)?;
        }
        write!(f, "{load}")
    }
}
