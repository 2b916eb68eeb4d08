//! What the service manager is told, in systemd's protocol: that all is ready, how
//! it stands in a line, and once a second that the loop goes round. Without
//! `NOTIFY_SOCKET` nobody is told anything.
//!
//! It must not know what is told: only when.

use sd_notify::NotifyState::{self, MonotonicUsec, Ready, Reloading, Status, Stopping, Watchdog};

/// See the module.
#[derive(Debug)]
pub(super) struct Manager {
    /// Whether it wants to hear that the loop goes round.
    is_waited_for: bool,
    /// The line that it was told last.
    told: String,
}

impl Manager {
    /// Whoever started this process.
    pub(super) fn of_environment() -> Self {
        Self {
            is_waited_for: sd_notify::watchdog_enabled().is_some(),
            told: String::new(),
        }
    }

    /// Everything is ready, at first or again.
    pub(super) fn ready(&mut self, line: String) {
        self.told = line;
        tell(&[Ready, Status(&self.told)]);
    }

    /// The configuration is being read again; [`Manager::ready`] ends that.
    pub(super) fn reloading(&mut self) {
        let now = NotifyState::monotonic_usec_now().unwrap_or(MonotonicUsec(0));
        tell(&[Reloading, now]);
    }

    /// The end has begun.
    pub(super) fn stopping(&mut self) {
        self.told = "stopping".to_owned();
        tell(&[Stopping, Status(&self.told)]);
    }

    /// The loop has gone round; this is how it stands.
    pub(super) fn tick(&mut self, line: String) {
        let is_news = line != self.told;
        self.told = line;
        let line = is_news.then(|| Status(&self.told));
        let round = self.is_waited_for.then_some(Watchdog);
        let told: Vec<_> = round.into_iter().chain(line).collect();
        if !told.is_empty() {
            tell(&told);
        }
    }
}

fn tell(what: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(what) {
        // It ends us if it misses something, and says so.
        tracing::debug!(%error, "the service manager cannot be told anything");
    }
}
