//! The paths of a run, as `--interface` names them.

use std::net::IpAddr;

use fairbat::interfaces::Interfaces;
use fairbat::settings::{LocalEnd, PathSettings};

use super::UsageError;
use crate::args::{PathArgs, rate, weight};

/// Longest name of an interface (`IFNAMSIZ` without the final zero), bytes.
const MAX_NAME: usize = 15;

/// Resolves `--interface`.
///
/// # Errors
/// The first value that is wrong, two that are one path, or the machine has none of the paths.
pub(crate) fn of_flags(flags: &PathArgs) -> Result<Vec<PathSettings>, UsageError> {
    let paths = paths(&flags.interfaces)?;
    check(&paths)?;
    Ok(paths)
}

/// Parses the values of `--interface`.
fn paths(given: &[String]) -> Result<Vec<PathSettings>, UsageError> {
    let mut paths: Vec<PathSettings> = Vec::new();
    for text in given.iter().map(|text| text.trim()) {
        if text.is_empty() {
            continue;
        }
        let path =
            path(text).map_err(|error| UsageError::new(format!("--interface {text}: {error}")))?;
        if paths.iter().any(|other| other.local_end == path.local_end) {
            return Err(UsageError::new(format!(
                "--interface: {} stands there twice; name it once",
                path.local_end
            )));
        }
        paths.push(path);
    }
    if !paths.is_empty() && paths.iter().all(|path| path.is_metered) {
        return Err(UsageError::new(
            "--interface: all paths are metered, and a metered one is only used beside another; \
             leave cost=metered out",
        ));
    }
    let differs = |one: &PathSettings, other: &PathSettings| {
        one.bottleneck.is_some()
            && one.bottleneck == other.bottleneck
            && one.is_metered != other.is_metered
    };
    let mixed = paths
        .iter()
        .find(|one| paths.iter().any(|other| differs(one, other)));
    if let Some(name) = mixed.and_then(|path| path.bottleneck.as_ref()) {
        return Err(UsageError::new(format!(
            "--interface: some of the paths behind bottleneck={name} are metered and some are not; \
             leave the metered ones out, since they bring nothing more"
        )));
    }
    Ok(paths)
}

/// Compares the paths with what the machine has.
///
/// # Errors
/// It has none of them, or two are one.
fn check(paths: &[PathSettings]) -> Result<(), UsageError> {
    let Ok(interfaces) = Interfaces::list() else {
        return Ok(());
    };
    let missing: Vec<&PathSettings> = paths
        .iter()
        .filter(|path| !interfaces.has(&path.local_end))
        .collect();
    if let Some((address, name)) = same(paths, &interfaces) {
        return Err(UsageError::new(format!(
            "--interface: {address} is an address of {name}; name this path once"
        )));
    }
    if missing.len() < paths.len() || paths.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = missing.iter().map(|it| it.local_end.to_string()).collect();
    let there = interfaces.names().join(", ");
    Err(UsageError::new(format!(
        "--interface: none of these is up with an address: {}; the machine has {there}",
        names.join(", ")
    )))
}

/// An address and an interface that are one path.
fn same<'a>(paths: &'a [PathSettings], interfaces: &Interfaces) -> Option<(IpAddr, &'a str)> {
    let ends = || paths.iter().map(|path| &path.local_end);
    ends().find_map(|end| match end {
        LocalEnd::Address(address) => ends().find_map(|other| match other {
            LocalEnd::Interface(name) if interfaces.have(name, address) => {
                Some((*address, name.as_str()))
            }
            _ => None,
        }),
        LocalEnd::Interface(_) => None,
    })
}

/// Parses a name or an address, and the options after it.
fn path(text: &str) -> Result<PathSettings, String> {
    let (end, options) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, options) = rest.split_once(']').ok_or("the ] is missing")?;
            let address = address.parse();
            let address: IpAddr = address.map_err(|_| "there is no address in the brackets")?;
            (LocalEnd::Address(address), options.strip_prefix(':'))
        }
        // An IPv6 address without options has colons as well.
        None => match text.parse() {
            Ok(address) => (LocalEnd::Address(address), None),
            Err(_) => {
                let (name, options) = match text.split_once(':') {
                    Some((name, options)) => (name, Some(options)),
                    None => (text, None),
                };
                (local_end(name)?, options)
            }
        },
    };
    let mut path = PathSettings {
        local_end: end,
        weight: None,
        is_metered: false,
        limit_rate: None,
        bottleneck: None,
    };
    for option in options.into_iter().flat_map(|options| options.split(':')) {
        match option.split_once('=') {
            Some(("weight", value)) => path.weight = Some(weight(value)?),
            Some(("limit", value)) => path.limit_rate = Some(limit(value)?).filter(|&it| it > 0),
            Some(("cost", "metered")) => path.is_metered = true,
            Some(("cost", "free")) => path.is_metered = false,
            Some(("bottleneck", name)) if !name.is_empty() => {
                path.bottleneck = Some(name.to_owned());
            }
            Some(("cost", other)) => {
                return Err(format!("cost={other}: it is metered or free"));
            }
            _ => {
                return Err(format!(
                    "{option:?} is no option of a path; there are weight=W, cost=metered \
                     (or free), limit=RATE and bottleneck=NAME (write an IPv6 address in brackets before \
                     options)"
                ));
            }
        }
    }
    Ok(path)
}

fn limit(text: &str) -> Result<u64, String> {
    rate(text).map_err(|error| error.to_string())
}

fn local_end(name: &str) -> Result<LocalEnd, String> {
    if let Ok(address) = name.parse() {
        return Ok(LocalEnd::Address(address));
    }
    let is_name = (1..=MAX_NAME).contains(&name.len())
        && !name.contains(|c: char| c == '/' || c.is_whitespace());
    if !is_name {
        return Err("that is neither the name of an interface nor an address".to_owned());
    }
    Ok(LocalEnd::Interface(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<PathSettings, UsageError> {
        let mut paths = paths(&[text.to_owned(), "other".to_owned()])?;
        Ok(paths.remove(0))
    }

    #[test]
    fn names_and_addresses_have_options() {
        let path = one("wwan0:cost=metered:limit=500K:weight=0.5").unwrap();
        assert_eq!(path.local_end, LocalEnd::Interface("wwan0".to_owned()));
        assert_eq!((path.is_metered, path.limit_rate), (true, Some(512_000)));
        assert_eq!(path.weight, Some(0.5));
        let path = one("eth0:bottleneck=dsl").unwrap();
        assert_eq!(path.bottleneck.as_deref(), Some("dsl"));
        for (text, address) in [
            ("192.0.2.1:cost=metered", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:cost=metered", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
        ] {
            let end = LocalEnd::Address(address.parse().unwrap());
            assert_eq!(one(text).unwrap().local_end, end, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("a-name-that-is-too-long", "neither the name"),
            ("eth0:fast", "no option"),
            ("eth0:bottleneck=", "no option"),
            ("eth0:cost=much", "metered or free"),
            ("[2001:db8::1", "the ] is missing"),
            ("[eth0]", "no address"),
            ("eth0:weight=3", "weight"),
            ("other", "twice"),
        ] {
            let error = one(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(paths(&["eth0:cost=metered".to_owned()]).is_err());
        let mixed = ["eth0:bottleneck=a:cost=metered", "eth1:bottleneck=a"];
        let error = paths(&mixed.map(str::to_owned)).unwrap_err().to_string();
        assert!(error.contains("bottleneck=a"), "{error}");
        assert!(check(&paths(&["nothing0".to_owned()]).unwrap()).is_err());
        assert!(check(&paths(&["nothing0".to_owned(), "lo".to_owned()]).unwrap()).is_ok());
    }
}
