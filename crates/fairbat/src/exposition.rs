//! The text format of Prometheus (version 0.0.4), and the definition of metrics.
//!
//! Each rendering starts empty. So an unknown value is absent, and never an old value or a 0.

use metrics::{Key, Label, Level, Metadata, Recorder as _};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

/// Media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric with all its labels.
#[derive(Debug)]
pub struct MetricFamily {
    /// Its name.
    pub name: &'static str,
    /// How its values change.
    pub kind: MetricKind,
    /// What it is, with its unit.
    pub help: &'static str,
}

/// How the values of a metric change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows, and starts again at 0 with the process.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// Defines metric families, and `ALL` and `NAMES`, the lists of them.
#[macro_export]
macro_rules! metric_families {
    ($($constant:ident: $kind:ident $name:literal, $help:literal;)*) => {
        $(pub(crate) static $constant: $crate::exposition::MetricFamily =
            $crate::exposition::MetricFamily {
                name: $name,
                kind: $crate::exposition::MetricKind::$kind,
                help: $help,
            };)*

        pub(crate) static ALL: &[&$crate::exposition::MetricFamily] = &[$(&$constant),*];

        /// The names of all metrics.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

/// The interface of the recorder needs it. It has no effect.
const METADATA: Metadata<'static> = Metadata::new("fairbat", Level::INFO, None);

/// One rendering: values go in, and the text comes out. Each rendering has a recorder of
/// its own, because a recorder keeps the series of what is gone.
pub struct Exposition {
    recorder: PrometheusRecorder,
}

impl Exposition {
    /// Of these families.
    #[must_use]
    pub fn new(families: &[&MetricFamily]) -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        for family in families {
            let (name, help) = (family.name.into(), family.help.into());
            match family.kind {
                MetricKind::Counter => recorder.describe_counter(name, None, help),
                MetricKind::Gauge => recorder.describe_gauge(name, None, help),
            }
        }
        Self { recorder }
    }

    /// Sets a counter.
    pub fn count(&self, family: &MetricFamily, labels: &[(&'static str, &str)], value: u64) {
        debug_assert_eq!(family.kind, MetricKind::Counter, "{}", family.name);
        let counter = self
            .recorder
            .register_counter(&key(family, labels), &METADATA);
        counter.absolute(value);
    }

    /// Sets a gauge. A value that is not finite counts as unknown and is left out.
    pub fn gauge(&self, family: &MetricFamily, labels: &[(&'static str, &str)], value: f64) {
        debug_assert_eq!(family.kind, MetricKind::Gauge, "{}", family.name);
        if value.is_finite() {
            let gauge = self
                .recorder
                .register_gauge(&key(family, labels), &METADATA);
            gauge.set(value);
        }
    }

    /// The text.
    #[must_use]
    pub fn render(&self) -> String {
        self.recorder.handle().render()
    }
}

fn key(family: &MetricFamily, labels: &[(&'static str, &str)]) -> Key {
    let label = |&(name, value): &(&'static str, &str)| Label::new(name, value.to_owned());
    Key::from_parts(family.name, labels.iter().map(label).collect::<Vec<_>>())
}
