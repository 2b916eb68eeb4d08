//! One rendering: values go in, text comes out.
//!
//! The recorder is no global one, and lives no longer than its text: one that is
//! kept would go on telling of tasks and deadlines that are gone.

use metrics::{Key, Label, Level, Metadata, Recorder as _};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

use super::catalogue::{ALL, Family, Kind};

/// Needed by the recorder's interface, and of no effect.
const METADATA: Metadata<'static> = Metadata::new("fairbat", Level::INFO, None);

/// See the module.
pub(super) struct Sheet {
    recorder: PrometheusRecorder,
}

impl Sheet {
    pub(super) fn new() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        for family in ALL {
            let (name, help) = (family.name.into(), family.help.into());
            match family.kind {
                Kind::Counter => recorder.describe_counter(name, None, help),
                Kind::Gauge => recorder.describe_gauge(name, None, help),
            }
        }
        Self { recorder }
    }

    /// Says how far a counter has come.
    pub(super) fn count(&self, family: &Family, labels: &[(&'static str, &str)], value: u64) {
        debug_assert_eq!(family.kind, Kind::Counter, "{}", family.name);
        let counter = self
            .recorder
            .register_counter(&key(family, labels), &METADATA);
        counter.absolute(value);
    }

    /// Says a value; what is no number is not known.
    pub(super) fn gauge(&self, family: &Family, labels: &[(&'static str, &str)], value: f64) {
        debug_assert_eq!(family.kind, Kind::Gauge, "{}", family.name);
        if value.is_finite() {
            let gauge = self
                .recorder
                .register_gauge(&key(family, labels), &METADATA);
            gauge.set(value);
        }
    }

    pub(super) fn render(&self) -> String {
        self.recorder.handle().render()
    }
}

fn key(family: &Family, labels: &[(&'static str, &str)]) -> Key {
    let label = |&(name, value): &(&'static str, &str)| Label::new(name, value.to_owned());
    Key::from_parts(family.name, labels.iter().map(label).collect::<Vec<_>>())
}
