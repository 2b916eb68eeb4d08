//! How a program is held back.

use lab_run::contender::others::PROXY;

/// How a program is held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Way {
    /// By `fairbat run` before its command.
    #[default]
    Run,
    /// By `fairbat proxy`, to which its settings send it.
    Proxy,
}

impl Way {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Run, Self::Proxy];

    /// Name of the record and of the page.
    #[must_use]
    pub(crate) fn record(self) -> &'static str {
        match self {
            Self::Run => "programs",
            Self::Proxy => "programs-proxy",
        }
    }

    /// What is in the way, for people.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Run => "under `fairbat run`",
            Self::Proxy => "through `fairbat proxy`",
        }
    }

    /// The head of the page.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::Run => include_str!("../text/programs-head.md"),
            Self::Proxy => include_str!("../text/programs-proxy-head.md"),
        }
    }
}

/// Settings that send a program to the proxy by this protocol.
pub(crate) fn settings(protocol: &str) -> String {
    let set = |name: &str| format!("{name}={protocol}://{PROXY}");
    format!(
        "export {} {} no_proxy= NO_PROXY=",
        set("http_proxy"),
        set("HTTP_PROXY")
    )
}
