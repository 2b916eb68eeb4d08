//! What links must not say that are paths side by side, or are none.

use crate::scenario::check::{RATE, within};
use crate::scenario::paths::MAX_PATHS;
use crate::scenario::{Departures, LinkSpec, Scenario};

/// Longest name of a path, bytes: it is that of its devices (`IFNAMSIZ`, less the zero at its end).
const LONGEST_NAME: usize = 15;

impl Scenario {
    /// Whether its links can be a row, or paths.
    pub(super) fn check_paths(&self) -> Result<(), String> {
        if !self.is_parallel() {
            if self.link.is_empty() || self.link.len() > 2 {
                return Err("there must be one [[link]], or two".to_owned());
            }
            return match self.link.iter().position(LinkSpec::is_like_a_path) {
                Some(link) => Err(format!(
                    "link {}: cost, limit_mbit and departures are for paths: give each [[link]] a path",
                    link + 1
                )),
                None => Ok(()),
            };
        }
        if !(2..=MAX_PATHS).contains(&self.link.len()) {
            return Err(format!(
                "there must be 2 to {MAX_PATHS} [[link]]s side by side, each with a path"
            ));
        }
        let mut names = Vec::new();
        for (link, number) in self.link.iter().zip(1..) {
            let wrong = |what: &str| Err(format!("link {number}: {what}"));
            let Some(name) = link.path.as_deref() else {
                return wrong("path: links are side by side, each with a path, or in a row");
            };
            if !is_device_name(name) {
                return wrong(
                    "path: must be the name of a device: 1 to 15 lower-case letters, digits and \
                     dashes, and not lo",
                );
            }
            if names.contains(&name) {
                return wrong(&format!("path: there is a path {name} before it"));
            }
            names.push(name);
            if let Some(limit) = link.limit_mbit {
                within("limit_mbit", limit, RATE)
                    .map_err(|error| format!("link {number}: {error}"))?;
            }
            if let Some(departures) = link.departures {
                self.check_departures(departures)
                    .map_err(|error| format!("link {number}: departures: {error}"))?;
            }
        }
        if self.background.ipv6 {
            return Err("background: ipv6: paths side by side are those of IPv4".to_owned());
        }
        if self.background.stalls.is_some() {
            return Err("background: stalls: they are for links in a row".to_owned());
        }
        Ok(())
    }

    fn check_departures(&self, departures: Departures) -> Result<(), String> {
        within("times", f64::from(departures.times), 1.0..=1000.0)?;
        let period = (self.duration_s - self.background.start_s) / f64::from(departures.times);
        within("least_s", departures.least_s, 0.01..=departures.most_s)?;
        if departures.most_s > period {
            return Err(format!(
                "most_s must be at most {period:.2}: so long is a part of the time from \
                 background.start_s on if it has {} of them",
                departures.times
            ));
        }
        Ok(())
    }
}

/// Whether the devices of a path may be called this.
fn is_device_name(name: &str) -> bool {
    let is_of_names = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let starts_well = name.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
    starts_well && name.len() <= LONGEST_NAME && name != "lo" && name.bytes().all(is_of_names)
}
