//! What root could do about what is missing.

use serde::Serialize;

use crate::ebpf::EbpfUnavailable;

/// Something that root could add to this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RootAddition {
    /// The command, to be run by root.
    pub command: &'static str,
    /// What every user has of it, in plain words.
    pub gain: String,
}

const OBSERVER: &str = "The kernel then tells every user, of their own downloads, when each packet \
                        was sent and when it arrived: a queue on the path shows sooner, and apart \
                        from delays on the way back.";

const OURS: &str = "Every user's uploads, and what fairbat serve sends, can then have a congestion \
                    control that yields by itself and has a weight for each connection (Linux 6.4 \
                    or newer).";

const LASTS: &str = "It takes nothing from other connections, and lasts until the machine restarts \
                     or fairbat setup --remove.";

/// What root could add, this being in the way of the observer and of our
/// congestion controls.
pub(super) fn root_could(
    observer: Option<&EbpfUnavailable>,
    ours: Option<&EbpfUnavailable>,
) -> Option<RootAddition> {
    let parts = [(observer, OBSERVER), (ours, OURS)];
    let mut gains: Vec<&str> = parts
        .into_iter()
        .filter_map(|(reason, gain)| is_for_root(reason?).then_some(gain))
        .collect();
    if gains.is_empty() {
        return None;
    }
    gains.push(LASTS);
    Some(RootAddition {
        command: "fairbat setup",
        gain: gains.join(" "),
    })
}

fn is_for_root(reason: &EbpfUnavailable) -> bool {
    match reason {
        EbpfUnavailable::NotSetUp | EbpfUnavailable::OtherVersion { .. } => true,
        EbpfUnavailable::NotBuilt
        | EbpfUnavailable::NotPermitted(_)
        | EbpfUnavailable::Kernel(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_told_what_only_root_can_do() {
        assert_eq!(root_could(None, None), None);
        let not_built = Some(&EbpfUnavailable::NotBuilt);
        assert_eq!(root_could(not_built, not_built), None);
        let other = EbpfUnavailable::OtherVersion {
            found: 2,
            needed: 1,
        };
        let gain = |observer, ours| {
            let addition = root_could(observer, ours).expect("something");
            assert_eq!(addition.command, "fairbat setup");
            let gain = addition.gain;
            assert!(gain.ends_with(LASTS), "{gain}");
            (gain.contains(OBSERVER), gain.contains(OURS))
        };
        assert_eq!(gain(Some(&EbpfUnavailable::NotSetUp), None), (true, false));
        assert_eq!(gain(None, Some(&other)), (false, true));
        assert_eq!(
            gain(Some(&other), Some(&EbpfUnavailable::NotSetUp)),
            (true, true)
        );
    }
}
