//! What the people on the phone had of a call.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::samples::{FlowRecord, Probe, ratio};
use crate::scenario::{Scenario, Traffic};
use crate::statistics::{median, percentile};

/// One direction of a call over the measured part of a run, by when its packets
/// were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CallFigures {
    /// Median one-way delay of the packets that came, ms; `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_median_ms: Option<f64>,
    /// 99th percentile of the same, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_p99_ms: Option<f64>,
    /// Packets that did not come, 0 to 1.
    pub loss: f64,
}

impl CallFigures {
    /// Of each call of a scenario, in its order.
    pub(crate) fn all(setup: &Scenario, flows: &[FlowRecord]) -> Vec<Self> {
        let kinds = setup.flows().map(|flow| flow.traffic);
        let calls = kinds
            .zip(flows)
            .filter(|(traffic, _)| *traffic == Traffic::Call {});
        calls
            .map(|(_, flow)| Self::of(&flow.packets, &setup.measured()))
            .collect()
    }

    fn of(packets: &[Probe], window: &Range<f64>) -> Self {
        let sent = packets.iter().filter(|packet| window.contains(&packet.t));
        let all: Vec<Option<f64>> = sent.map(|packet| packet.ms).collect();
        let came: Vec<f64> = all.iter().flatten().copied().collect();
        Self {
            delay_median_ms: median(&came),
            delay_p99_ms: percentile(&came, 0.99),
            loss: ratio((all.len() - came.len()) as f64, all.len() as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_count_while_it_is_measured() {
        let text = "description = \"test\"\nduration_s = 20.0\nmeasure_from_s = 5.0\n\
                    measure_until_s = 15.0\n[[link]]\nrate_mbit = 10.0\ndelay_ms = 10.0\n\
                    queue = { packets = 10 }\n[[foreground]]\ntraffic = { greedy = {} }\n\
                    [[foreground]]\ntraffic = { call = {} }\n";
        let setup: Scenario = toml::from_str(text).unwrap();
        // 50 a second: 500 while it is measured, of which each hundredth is lost,
        // and the last five that are not lost are late.
        let packets = (0..1000u32).map(|number| Probe {
            t: f64::from(number) / 50.0,
            ms: match number {
                lost if lost % 100 == 0 => None,
                late if (744..749).contains(&late) => Some(90.0),
                measured if (250..750).contains(&measured) => Some(12.0),
                _ => Some(1000.0),
            },
        });
        let flow = |packets| FlowRecord {
            name: "flow".to_owned(),
            backward: false,
            received: Vec::new(),
            packets,
        };
        let flows = [flow(Vec::new()), flow(packets.collect())];
        let all = CallFigures::all(&setup, &flows);
        assert_eq!(all.len(), 1);
        assert!((all[0].loss - 0.01).abs() < 1e-9, "{all:?}");
        assert_eq!(all[0].delay_median_ms, Some(12.0));
        // Five of 495 are more than one in a hundred.
        let p99 = all[0].delay_p99_ms.unwrap();
        assert!(p99 > 12.0 && p99 < 90.0, "{p99}");
    }

    #[test]
    fn a_call_of_which_nothing_came_has_no_delay() {
        let packets = [Probe { t: 1.0, ms: None }];
        let figures = CallFigures::of(&packets, &(0.0..2.0));
        assert_eq!((figures.delay_p99_ms, figures.loss), (None, 1.0));
        assert_eq!(CallFigures::of(&[], &(0.0..2.0)).loss, 0.0);
    }
}
