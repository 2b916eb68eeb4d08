//! What `fairbat` says about its run (see docs/json.md), as a
//! record of the lab.

use serde_json::Value;

use crate::record::{BackgroundRecord, ControlSample, Forecast, TransferRecord};

/// The lines that `fairbat get --json` wrote. One that was cut off in the
/// middle by the end of the process is left out.
pub(super) fn parse(lines: &str) -> impl Iterator<Item = Value> {
    lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
}

/// What the events of a run tell. `started` is when the run began on the lab's
/// clock, s. With several transfers it is done when the last of them is; each
/// is listed when it is, with what is known of it from here.
pub(super) fn record(events: impl IntoIterator<Item = Value>, started: f64) -> BackgroundRecord {
    let mut record = BackgroundRecord::default();
    for event in events {
        match event["event"].as_str() {
            Some("control") => {
                record.bytes = event["bytes_done"].as_u64().or(record.bytes);
                if let Ok(mut sample) = serde_json::from_value::<ControlSample>(event) {
                    sample.t += started;
                    record.control.push(sample);
                }
            }
            Some("done") => {
                let url = event["url"].as_str().unwrap_or_default();
                record.done = event["t"].as_f64().map(|t| t + started);
                record.transfers.push(TransferRecord {
                    name: url.rsplit('/').next().unwrap_or_default().to_owned(),
                    bytes: event["bytes"].as_u64().unwrap_or_default(),
                    done: record.done,
                    ..TransferRecord::default()
                });
                // The last sample of the loop may be older.
                let all = record.transfers.iter().map(|one| one.bytes).sum();
                record.bytes = record.bytes.max(Some(all));
            }
            Some("forecast") if record.forecast.is_none() => {
                record.forecast =
                    serde_json::from_value(event)
                        .ok()
                        .map(|said: Forecast| Forecast {
                            t: said.t + started,
                            ..said
                        });
            }
            // The end of the lab's run is not a failure.
            Some("error") if event["kind"] != "interrupted" => {
                record.failure = event["message"].as_str().map(str::to_owned);
            }
            _ => {}
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: &str = r#"{"t":12.0,"event":"control","n":0.5,"m":1.25,"active":1,"w":1.0,"zeta":null,"rate":5242880.0,"rtt_ms":34.8,"bytes_done":167772160,"bytes_total":734003200}"#;

    #[test]
    fn moments_are_on_the_clock_of_the_lab() {
        let lines = format!(
            "{CONTROL}\n{}",
            r#"{"t":14.5,"event":"done","bytes":167772200}"#
        );
        let record = record(parse(&lines), 2.0);
        assert_eq!(
            record.control,
            [ControlSample {
                t: 14.0,
                n: 0.5,
                m: 1.25,
                active: 1,
                w: 1.0,
                zeta: None,
                rate: 5_242_880.0,
            }]
        );
        assert_eq!(record.done, Some(16.5));
        assert_eq!(record.bytes, Some(167_772_200));
        assert_eq!(record.failure, None);
    }

    #[test]
    fn a_failure_is_told_and_an_interruption_is_none() {
        let said = |kind: &str| {
            let line = format!(r#"{{"t":1.0,"event":"error","kind":"{kind}","message":"why"}}"#);
            record(parse(&line), 0.0).failure
        };
        assert_eq!(said("network"), Some("why".to_owned()));
        assert_eq!(said("interrupted"), None);
    }

    #[test]
    fn every_transfer_is_listed_when_it_is_done() {
        let done = |t: f64, name: &str, bytes: u64| {
            format!(
                r#"{{"t":{t:?},"event":"done","url":"http://10.78.0.2:8080/{name}","bytes":{bytes}}}"#
            )
        };
        let lines = [done(3.0, "file-2", 10), done(8.0, "file-1", 30)].join("\n");
        let record = record(parse(&lines), 2.0);
        let told: Vec<_> = record
            .transfers
            .iter()
            .map(|it| (&*it.name, it.done))
            .collect();
        assert_eq!(told, [("file-2", Some(5.0)), ("file-1", Some(10.0))]);
        assert_eq!((record.done, record.bytes), (Some(10.0), Some(40)));
    }

    #[test]
    fn the_first_forecast_counts_if_there_is_any() {
        let said = |t: f64, late_s: f64| {
            format!(r#"{{"t":{t:?},"event":"forecast","late_s":{late_s:?},"more":1}}"#)
        };
        let lines = [said(1.5, 12.0), said(9.0, 14.0)].join("\n");
        let forecast = record(parse(&lines), 2.0).forecast;
        assert_eq!(
            forecast,
            Some(Forecast {
                t: 3.5,
                late_s: 12.0
            })
        );
        assert_eq!(record(parse(CONTROL), 2.0).forecast, None);
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out() {
        let lines = format!("{CONTROL}\n{}", &CONTROL[..50]);
        assert_eq!(record(parse(&lines), 0.0).control.len(), 1);
    }
}
