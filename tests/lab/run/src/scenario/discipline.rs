//! How a bottleneck treats the packets that wait for it: its discipline, and
//! how its rate varies.

use std::fmt;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// CoDel's TARGET, ms (RFC 8289, section 5.3).
const CODEL_TARGET_MS: f64 = 5.0;

/// CoDel's INTERVAL, ms (RFC 8289, section 5.3).
const CODEL_INTERVAL_MS: f64 = 100.0;

/// PIE's `QDELAY_REF`, ms (RFC 8033, section 4.2).
const PIE_TARGET_MS: f64 = 15.0;

/// What decides which packet leaves next, and which one is dropped or marked. In a
/// file it is the name, as `"codel"`, or the name with keys, as
/// `{ codel = { target_ms = 20, interval_ms = 400 } }`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields, remote = "Self")]
pub enum Discipline {
    /// First come, first served; a packet that finds the queue full is dropped.
    #[default]
    DropTail,
    /// Controlled delay (RFC 8289).
    Codel {
        /// Standing delay that is tolerated, ms.
        #[serde(default = "codel_target")]
        target_ms: f64,
        /// For how long, before the first drop, ms.
        #[serde(default = "codel_interval")]
        interval_ms: f64,
    },
    /// Proportional integral controller enhanced (RFC 8033).
    Pie {
        /// Delay that it aims at, ms.
        #[serde(default = "pie_target")]
        target_ms: f64,
    },
    /// Deficit round robin by flows, without any control of delay. A full queue
    /// drops of the longest.
    Fair,
    /// Fair queueing with controlled delay (RFC 8290).
    FqCodel {
        /// CoDel's target in each queue, ms.
        #[serde(default = "codel_target")]
        target_ms: f64,
        /// CoDel's interval in each queue, ms.
        #[serde(default = "codel_interval")]
        interval_ms: f64,
    },
    /// A token bucket of the link's rate and the size of its queue. A packet that
    /// finds too few tokens is dropped; none waits.
    Policer,
}

fn codel_target() -> f64 {
    CODEL_TARGET_MS
}

fn codel_interval() -> f64 {
    CODEL_INTERVAL_MS
}

fn pie_target() -> f64 {
    PIE_TARGET_MS
}

impl Discipline {
    /// Whether it is the ordinary one.
    pub(crate) fn is_drop_tail(&self) -> bool {
        *self == Self::DropTail
    }

    /// Whether it can mark packets.
    #[must_use]
    pub fn can_mark(self) -> bool {
        matches!(
            self,
            Self::Codel { .. } | Self::Pie { .. } | Self::FqCodel { .. }
        )
    }
}

impl FromStr for Discipline {
    type Err = String;

    /// As it is shown: the name, and the values of its keys after colons.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let numbers: Result<Vec<f64>, _> = words.map(str::parse).collect();
        let codel = |target_ms, interval_ms| Self::Codel {
            target_ms,
            interval_ms,
        };
        let fq_codel = |target_ms, interval_ms| Self::FqCodel {
            target_ms,
            interval_ms,
        };
        let discipline = match (name, numbers.as_deref()) {
            ("drop_tail", Ok([])) => Self::DropTail,
            ("codel", Ok([])) => codel(CODEL_TARGET_MS, CODEL_INTERVAL_MS),
            ("codel", Ok(&[target, interval])) => codel(target, interval),
            ("pie", Ok([])) => Self::Pie {
                target_ms: PIE_TARGET_MS,
            },
            ("pie", Ok(&[target_ms])) => Self::Pie { target_ms },
            ("fair", Ok([])) => Self::Fair,
            ("fq_codel", Ok([])) => fq_codel(CODEL_TARGET_MS, CODEL_INTERVAL_MS),
            ("fq_codel", Ok(&[target, interval])) => fq_codel(target, interval),
            ("policer", Ok([])) => Self::Policer,
            _ => {
                return Err(format!(
                    "{text:?} is no discipline; those are drop_tail, codel, pie, fair, fq_codel \
                     and policer"
                ));
            }
        };
        Ok(discipline)
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |f: &mut fmt::Formatter<'_>, name: &str, target_ms: f64, interval_ms: f64| {
            if (target_ms, interval_ms) == (CODEL_TARGET_MS, CODEL_INTERVAL_MS) {
                f.write_str(name)
            } else {
                write!(f, "{name}:{target_ms}:{interval_ms}")
            }
        };
        match *self {
            Self::DropTail => f.write_str("drop_tail"),
            Self::Codel {
                target_ms,
                interval_ms,
            } => with(f, "codel", target_ms, interval_ms),
            Self::Pie { target_ms } if target_ms == PIE_TARGET_MS => f.write_str("pie"),
            Self::Pie { target_ms } => write!(f, "pie:{target_ms}"),
            Self::Fair => f.write_str("fair"),
            Self::FqCodel {
                target_ms,
                interval_ms,
            } => with(f, "fq_codel", target_ms, interval_ms),
            Self::Policer => f.write_str("policer"),
        }
    }
}

impl Serialize for Discipline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

/// Derived code takes a discipline with keys as a table only.
impl<'de> Deserialize<'de> for Discipline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Discipline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a discipline, or a table with its name and keys")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Discipline, E> {
        name.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Discipline, A::Error> {
        Discipline::deserialize(MapAccessDeserializer::new(map)).map_err(A::Error::custom)
    }
}

/// A rate that varies as that of radio does, within shares of the link's rate
/// up to all of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Radio {
    /// How often the share is drawn, ms.
    pub every_ms: f64,
    /// The least share, more than 0 and at most 1.
    pub least: f64,
    /// Each share is at most so far from the one before it: a random walk. If it is
    /// not given, shares are independent of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<f64>,
}

impl Radio {
    /// The mean share: both kinds are uniform between the least and 1.
    #[must_use]
    pub fn mean(self) -> f64 {
        f64::midpoint(self.least, 1.0)
    }
}

impl FromStr for Radio {
    type Err = String;

    /// As it is shown: its keys with colons between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Result<Vec<f64>, _> = text.split(':').map(str::parse).collect();
        let (every_ms, least, walk) = match numbers.as_deref() {
            Ok(&[every_ms, least]) => (every_ms, least, None),
            Ok(&[every_ms, least, walk]) => (every_ms, least, Some(walk)),
            _ => return Err("must be ms and the least share, as 200:0.4".to_owned()),
        };
        Ok(Self {
            every_ms,
            least,
            walk,
        })
    }
}

impl fmt::Display for Radio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.every_ms, self.least)?;
        self.walk.map_or(Ok(()), |walk| write!(f, ":{walk}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        discipline: Discipline,
    }

    fn read(text: &str) -> Result<Discipline, String> {
        let read: Result<Holder, _> = toml::from_str(&format!("discipline = {text}"));
        read.map(|it| it.discipline).map_err(|e| e.to_string())
    }

    #[test]
    fn a_name_is_enough_and_keys_may_be_given() {
        let usual = Discipline::Codel {
            target_ms: 5.0,
            interval_ms: 100.0,
        };
        assert_eq!(read("\"codel\""), Ok(usual));
        assert_eq!(read("{ codel = {} }"), Ok(usual));
        let slow = Discipline::FqCodel {
            target_ms: 20.0,
            interval_ms: 100.0,
        };
        assert_eq!(read("{ fq_codel = { target_ms = 20 } }"), Ok(slow));
        assert_eq!(read("\"policer\""), Ok(Discipline::Policer));
    }

    #[test]
    fn a_typo_is_named() {
        for (bad, named) in [
            ("\"codle\"", "codle"),
            ("{ codle = {} }", "codle"),
            ("{ codel = { traget_ms = 1 } }", "traget_ms"),
            ("\"codel:5\"", "codel:5"),
            ("1", "name of a discipline"),
        ] {
            let error = read(bad).expect_err(bad);
            assert!(error.contains(named), "{bad}: {error}");
        }
    }

    #[test]
    fn every_discipline_is_read_as_it_is_shown_and_as_it_is_written() {
        for text in [
            "drop_tail",
            "codel",
            "codel:20:400",
            "pie",
            "pie:5",
            "fair",
            "fq_codel",
            "fq_codel:2:30",
            "policer",
        ] {
            let discipline: Discipline = text.parse().unwrap();
            assert_eq!(discipline.to_string(), text);
            let json = serde_json::to_string(&Holder { discipline }).unwrap();
            let back: Holder = serde_json::from_str(&json).unwrap();
            assert_eq!(back.discipline, discipline, "{json}");
        }
        for text in ["200:0.4", "50:0.4:0.1"] {
            assert_eq!(text.parse::<Radio>().unwrap().to_string(), text);
        }
    }
}
