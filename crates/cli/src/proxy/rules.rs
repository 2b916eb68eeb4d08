//! The file of rules of `fairbat proxy`.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use dalbe::weight::MIN_WEIGHT;
use fairbat::proxy::{OTHERS, ProxyRule};
use fairbat::units::parse_size;
use serde::Deserialize;

use crate::settings::UsageError;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    #[serde(default)]
    rule: Vec<RuleTable>,
}

/// `[[rule]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    name: Option<String>,
    #[serde(default)]
    host: Several<String>,
    #[serde(default)]
    port: Several<u16>,
    #[serde(default)]
    client: Several<String>,
    #[serde(default)]
    hours: Several<String>,
    weight: Option<f64>,
    deadline: Option<String>,
    bytes: Option<String>,
}

/// One, or a list.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "write one value of the right kind, or a list of some"
)]
enum Several<T> {
    One(T),
    List(Vec<T>),
}

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl<T> Several<T> {
    fn into_list(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::List(list) => list,
        }
    }
}

/// The rules of a file.
///
/// # Errors
/// It cannot be read, or something in it is wrong.
pub(super) fn read(file: &Path) -> Result<Vec<ProxyRule>, UsageError> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string());
    text.and_then(|text| parse(&text))
        .map_err(|error| UsageError::new(format!("--rules {}: {error}", file.display())))
}

fn parse(text: &str) -> Result<Vec<ProxyRule>, String> {
    let file: RulesFile = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut names = BTreeSet::new();
    let mut rules = Vec::new();
    for (index, table) in file.rule.into_iter().enumerate() {
        let name = table.name.clone();
        let name = name.unwrap_or_else(|| format!("rule-{}", index + 1));
        if name == OTHERS {
            return Err(format!(
                "rule {name}: this is the name of what no rule is for"
            ));
        }
        let rule = rule(name.clone(), table).map_err(|error| format!("rule {name}: {error}"))?;
        if !names.insert(name.clone()) {
            return Err(format!(
                "there are two rules {name}; give each a name of its own"
            ));
        }
        rules.push(rule);
    }
    Ok(rules)
}

fn rule(name: String, table: RuleTable) -> Result<ProxyRule, String> {
    let weight = table.weight;
    if weight.is_some_and(|weight| !(MIN_WEIGHT..=1.0).contains(&weight)) {
        return Err(
            "weight: write a number from 0.02 (yields to all) to 1 (never yields)".to_owned(),
        );
    }
    let ports = table.port.into_list();
    if ports.contains(&0) {
        return Err("port: there is no port 0".to_owned());
    }
    if table.bytes.is_some() && table.deadline.is_none() {
        return Err(
            "bytes: without a deadline they mean nothing; add one, or take them out".to_owned(),
        );
    }
    if weight.is_none() && table.deadline.is_none() {
        return Err("it changes nothing; add weight or deadline".to_owned());
    }
    Ok(ProxyRule {
        name,
        hosts: parsed("host", table.host)?,
        ports,
        clients: parsed("client", table.client)?,
        hours: parsed("hours", table.hours)?,
        weight,
        deadline: one("deadline", table.deadline, str::parse)?,
        bytes: one("bytes", table.bytes, parse_size)?,
    })
}

/// The values of a key.
fn parsed<T: FromStr<Err: Display>>(key: &str, texts: Several<String>) -> Result<Vec<T>, String> {
    let parse = |text: String| {
        text.parse()
            .map_err(|error| format!("{key} {text:?}: {error}"))
    };
    texts.into_list().into_iter().map(parse).collect()
}

/// The value of a key, if it is there.
fn one<T, E: Display>(
    key: &str,
    text: Option<String>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, String> {
    let parse = |text: String| parse(&text).map_err(|error| format!("{key} {text:?}: {error}"));
    text.map(parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_one_of_each_or_a_list() {
        let rules = parse(
            "[[rule]]\nname = \"debian\"\nhost = [\"*.debian.org\", \"deb.example\"]\nport = 443\n\
             client = \"192.168.0.0/16\"\nhours = \"Mon..Fri 08:00-18:00\"\nweight = 0.5\n\
             [[rule]]\ndeadline = \"06:00\"\nbytes = \"40G\"\n",
        );
        let [debian, rest] = &rules.unwrap()[..] else {
            panic!("two rules");
        };
        assert_eq!((debian.hosts.len(), &debian.ports[..]), (2, &[443][..]));
        assert_eq!((debian.clients.len(), debian.hours.len()), (1, 1));
        assert_eq!(debian.weight, Some(0.5));
        assert_eq!((rest.name.as_str(), rest.bytes), ("rule-2", Some(40 << 30)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_rule_and_key() {
        for (text, parts) in [
            ("rule = 1", &["invalid type"][..]),
            ("[[rule]]\nhots = \"a\"", &["hots", "line 2"]),
            ("[[rule]]\nhost = \"a\"", &["rule-1", "changes nothing"]),
            (
                "[[rule]]\nweight = 1\nport = \"80\"",
                &["line 3", "right kind"],
            ),
            ("[[rule]]\nweight = 1\nport = 0", &["port 0"]),
            (
                "[[rule]]\nweight = 1\nname = \"(others)\"",
                &["no rule is for"],
            ),
            ("[[rule]]\nweight = 2", &["weight", "0.02"]),
            (
                "[[rule]]\nweight = 1\nhost = \"a/b\"",
                &["host \"a/b\"", "host name"],
            ),
            (
                "[[rule]]\nweight = 1\nclient = \"x\"",
                &["client \"x\"", "network"],
            ),
            (
                "[[rule]]\nweight = 1\nhours = \"8\"",
                &["hours", "08:00-18:00"],
            ),
            (
                "[[rule]]\nweight = 1\nbytes = \"1G\"",
                &["bytes", "deadline"],
            ),
            ("[[rule]]\ndeadline = \"soon\"", &["deadline", "06:00"]),
            (
                "[[rule]]\nname = \"a\"\nweight = 1\n[[rule]]\nname = \"a\"\nweight = 1",
                &["two rules a"],
            ),
        ] {
            let error = parse(text).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{part:?} is not in {error}");
            }
        }
    }
}
