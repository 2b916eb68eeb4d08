//! One program of others: its servers, what it moves, and whether that is right afterwards.

use crate::programs::directories::Directories;

/// What stands before a command that is held back, in recipes and here.
pub(crate) const PREFIX: &str = "fairbat run -- ";

/// A server at the other end of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// nginx, for what is below `/srv/web`.
    Web,
    /// fcgiwrap, by which nginx asks git.
    Git,
    /// sshd.
    Ssh,
    /// The S3 server of the tests, for buckets below `/srv/store`.
    Store,
    /// What answers as the Hugging Face Hub does.
    Hub,
}

/// A program, as it is run.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its name, for people and for `--only`.
    pub(crate) name: &'static str,
    /// What it moves, for people.
    pub(crate) moves: &'static str,
    /// The servers that it needs.
    pub(crate) services: &'static [Service],
    /// Programs that must be there, each with what installs it.
    pub(crate) needs: &'static [(&'static str, &'static str)],
    /// A script of which the first line is the version.
    pub(crate) version: &'static str,
    /// Settings, as a script, before everything that runs at the client.
    pub(crate) settings: &'static str,
    /// A script that makes what is to be moved, in `/srv`, once.
    pub(crate) served: &'static str,
    /// A script in the client's empty directory, before each run, outside of the time.
    pub(crate) before: &'static str,
    /// The command, a script with [`PREFIX`] in it, as its recipe has it.
    pub(crate) command: &'static str,
    /// A script that succeeds if what was moved is right.
    pub(crate) check: &'static str,
    /// Whether it moves data at all.
    pub(crate) connects: bool,
    /// The protocols by which it knows proxies from `http_proxy`.
    pub(crate) proxies: &'static [&'static str],
}

impl Program {
    /// What most of them have in common: a file from a web server.
    pub(crate) const DOWNLOAD: Self = Self {
        name: "",
        moves: "a file of 40 MB, by HTTP",
        services: &[Service::Web],
        needs: &[],
        version: "",
        settings: "",
        served: "mkdir web; head -c 40000000 /dev/urandom >web/image.iso",
        before: "",
        command: "",
        check: "cmp image.iso /srv/web/image.iso",
        connects: true,
        proxies: &[],
    };

    /// The command alone, or under `fairbat run` with its events in a file of this name.
    pub(crate) fn script(&self, events: Option<&str>) -> String {
        let prefix = events.map_or(String::new(), |events| {
            format!("fairbat run --quiet --events {events} -- ")
        });
        self.command.replace(PREFIX, &prefix)
    }

    /// What is missing on this machine, for people.
    pub(crate) fn missing(&self, directories: &Directories) -> Option<String> {
        let mut missing = self.needs.iter();
        let (program, package) =
            missing.find(|(program, _)| directories.find(program).is_none())?;
        Some(format!(
            "{program} is not there: install {package}, or run `make bench`, which does it"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_plain_and_held_back() {
        let program = Program {
            command: "export A=1\nfairbat run -- curl -O URL",
            ..Program::DOWNLOAD
        };
        assert_eq!(program.script(None), "export A=1\ncurl -O URL");
        let held = "export A=1\nfairbat run --quiet --events e -- curl -O URL";
        assert_eq!(program.script(Some("e")), held);
    }
}
