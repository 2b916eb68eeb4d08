//! Paths that come and go with the interfaces of the machine.

use std::sync::Arc;

use super::run::Run;
use super::worker::RunContext;
use crate::event::Event;
use crate::interfaces::Interfaces;

impl Run {
    /// The machine's interfaces may have changed: a path without its own is not used, and what was
    /// under way there is asked for over the others.
    pub(crate) fn look_at_interfaces(&mut self) {
        let interfaces = match Interfaces::list() {
            Ok(interfaces) => interfaces,
            Err(error) => {
                tracing::warn!(%error, "the network interfaces cannot be listed");
                return;
            }
        };
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            let Some(settings) = &path.settings else {
                continue;
            };
            let is_up = interfaces.has(&settings.local_end);
            if is_up == path.is_up {
                continue;
            }
            path.is_up = is_up;
            let (interface, others) = (settings.local_end.to_string(), self.paths.len() - 1);
            self.emit(Event::Path {
                interface,
                up: is_up,
            });
            tracing::debug!(index, is_up, others, "a path has changed");
            if is_up {
                self.renew_ways(index);
            } else {
                self.leave_path(index);
            }
        }
    }

    /// The ways over a path begin as if nothing had failed.
    fn renew_ways(&mut self, path: usize) {
        let retry = self.retry;
        for transfer in &mut self.transfers {
            transfer.renew_ways(path, retry);
        }
    }

    /// The connections over a path have lost their local end.
    fn leave_path(&mut self, index: usize) {
        for worker in self.workers.values() {
            if worker.way.path == index {
                worker.cut.send_replace(true);
            }
        }
        let path = &mut self.paths[index];
        (path.request, path.granted, path.relieved) = (None, None, None);
        match path.context.client.without_connections() {
            Ok(client) => {
                let context = RunContext {
                    client,
                    ..RunContext::clone(&path.context)
                };
                path.context = Arc::new(context);
            }
            Err(error) => tracing::warn!(%error, "old connections may be used again"),
        }
    }
}
