//! A bottleneck of the page: what kind it is, and what is required of downloads
//! that yield there.

use crate::matrix::Variant;
use lab_run::scenario::{Discipline, Path};

/// Bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;

/// What stands in the way of packets, as people call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Drop-tail, less than one bandwidth-delay product.
    Short,
    /// Drop-tail of one or more.
    Long,
    /// `CoDel`.
    Codel,
    /// PIE.
    Pie,
    /// Fair queueing alone.
    Fair,
    /// Fair queueing with `CoDel`.
    FqCodel,
    /// A token bucket.
    Policer,
    /// An AQM that marks.
    Ecn,
    /// A rate that varies.
    Radio,
    /// Packets that arrive together.
    Aggregation,
    /// Acknowledgements that queue.
    Asymmetric,
}

impl Kind {
    /// All of them, in the order of the page.
    pub(crate) const ALL: [Self; 11] = [
        Self::Long,
        Self::Short,
        Self::Codel,
        Self::Pie,
        Self::Fair,
        Self::FqCodel,
        Self::Policer,
        Self::Ecn,
        Self::Radio,
        Self::Aggregation,
        Self::Asymmetric,
    ];

    /// For people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Short => "short queue, drop-tail",
            Self::Long => "long queue, drop-tail",
            Self::Codel => "CoDel",
            Self::Pie => "PIE",
            Self::Fair => "fair queueing",
            Self::FqCodel => "fq_codel",
            Self::Policer => "policer",
            Self::Ecn => "AQM that marks (ECN)",
            Self::Radio => "radio",
            Self::Aggregation => "bursts (Wi-Fi)",
            Self::Asymmetric => "asymmetric",
        }
    }

    fn of(path: &Path) -> Self {
        if path.radio.is_some() {
            return Self::Radio;
        }
        if path.aggregate_ms.is_some() {
            return Self::Aggregation;
        }
        if path.backward_mbit.is_some() {
            return Self::Asymmetric;
        }
        if path.ecn == Some(true) {
            return Self::Ecn;
        }
        match path.discipline.unwrap_or_default() {
            Discipline::DropTail if path.queue_bdp < 1.0 => Self::Short,
            Discipline::DropTail => Self::Long,
            Discipline::Codel { .. } => Self::Codel,
            Discipline::Pie { .. } => Self::Pie,
            Discipline::Fair => Self::Fair,
            Discipline::FqCodel { .. } => Self::FqCodel,
            Discipline::Policer => Self::Policer,
        }
    }
}

/// One bottleneck.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    /// What its variant is called.
    pub(crate) name: String,
    /// Why it is there, for people.
    pub(crate) why: String,
    pub(crate) kind: Kind,
    path: Path,
}

impl Cell {
    /// Of a variant with a path of its own.
    pub(crate) fn of(variant: &Variant) -> Option<Self> {
        let path = variant.path?;
        Some(Self {
            name: variant.name.clone(),
            why: variant.why.clone().unwrap_or_default(),
            kind: Kind::of(&path),
            path,
        })
    }

    /// Goodput that a greedy CUBIC flow keeps at least, %.
    pub(crate) fn greedy(&self) -> f64 {
        match self.kind {
            Kind::Long => 97.0,
            _ => 90.0,
        }
    }

    /// What is used at least of what a live stream leaves, %.
    pub(crate) fn beside_stream(&self) -> f64 {
        if self.kind == Kind::Long {
            return 95.0;
        }
        // An AQM that marks is an AQM.
        match self.path.discipline.unwrap_or_default() {
            Discipline::Codel { .. } | Discipline::Pie { .. } | Discipline::Policer => 60.0,
            Discipline::DropTail | Discipline::Fair | Discipline::FqCodel { .. } => 80.0,
        }
    }

    /// What a download carries alone at least, % of what curl carries.
    pub(crate) fn alone(&self) -> f64 {
        match self.kind {
            Kind::Long => 99.0,
            Kind::Radio => 93.0,
            _ => 97.0,
        }
    }

    /// The queue that it may leave standing alone, as a share of curl's.
    pub(crate) fn queue(&self) -> f64 {
        match self.kind {
            Kind::Radio => 0.5,
            _ => 1.0 / 3.0,
        }
    }

    /// How much longer web fetches take in the mean at most, %.
    pub(crate) fn web(&self) -> f64 {
        if self.path.rtt_ms < 50.0 { 15.0 } else { 6.0 }
    }

    /// What is used at least of what web fetches leave, %.
    pub(crate) fn beside_web(&self) -> f64 {
        match self.kind {
            Kind::Radio => 50.0,
            _ => 60.0,
        }
    }

    /// How long two full packets take, ms.
    pub(crate) fn two_packets_ms(&self) -> f64 {
        2.0 * PACKET_BITS / (self.path.rate_mbit * 1e3)
    }

    /// Whether a flow sees no queue but its own.
    pub(crate) fn hides_others(&self) -> bool {
        matches!(
            self.path.discipline,
            Some(Discipline::Fair | Discipline::FqCodel { .. })
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(path: &str) -> Cell {
        let variant = Variant {
            name: path.to_owned(),
            path: Some(path.parse().unwrap()),
            ..Variant::default()
        };
        Cell::of(&variant).unwrap()
    }

    #[test]
    fn what_is_required_follows_from_the_bottleneck() {
        let long = cell("10,100,1");
        assert_eq!(
            (long.kind, long.greedy(), long.alone()),
            (Kind::Long, 97.0, 99.0)
        );
        assert_eq!((long.beside_stream(), long.web()), (95.0, 6.0));
        assert!((long.two_packets_ms() - 2.4).abs() < 1e-9);
        let short = cell("40,10,0.9,drop_tail");
        assert_eq!(
            (short.kind, short.greedy(), short.web()),
            (Kind::Short, 90.0, 15.0)
        );
        for (path, kind, rest) in [
            ("10,100,4,codel", Kind::Codel, 60.0),
            ("10,100,4,pie,ecn", Kind::Ecn, 60.0),
            ("10,100,4,fq_codel", Kind::FqCodel, 80.0),
            ("10,100,1,policer", Kind::Policer, 60.0),
            ("10,100,1,aggregate=4", Kind::Aggregation, 80.0),
            ("10,100,1,backward=0.2", Kind::Asymmetric, 80.0),
        ] {
            let cell = cell(path);
            assert_eq!((cell.kind, cell.beside_stream()), (kind, rest), "{path}");
        }
        let radio = cell("10,100,4,fq_codel,radio=200:0.4");
        assert_eq!(
            (radio.kind, radio.alone(), radio.queue()),
            (Kind::Radio, 93.0, 0.5)
        );
        assert_eq!(radio.beside_web(), 50.0);
        assert!(radio.hides_others() && !long.hides_others());
    }
}
