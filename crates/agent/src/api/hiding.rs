//! Keeps the user name and the password in the URL of an order out of what is said
//! about it, whoever says it. Pure.

use fairbat::http::without_credentials;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::daemon::handle::{CommandError, TaskCommand};

/// See the module.
#[derive(Debug)]
pub(super) struct Hiding(Option<Url>);

impl Hiding {
    /// What has to be hidden of this order.
    pub(super) fn of(command: &TaskCommand) -> Self {
        match command {
            TaskCommand::Add { url, .. }
                if !url.username().is_empty() || url.password().is_some() =>
            {
                Self(Some(url.clone()))
            }
            TaskCommand::Add { .. }
            | TaskCommand::Run { .. }
            | TaskCommand::Pause { .. }
            | TaskCommand::Resume { .. }
            | TaskCommand::Cancel { .. }
            | TaskCommand::Restore { .. } => Self(None),
        }
    }

    /// The refusal without it.
    pub(super) fn of_refused(&self, refused: CommandError) -> CommandError {
        match refused {
            CommandError::NotNow(why) => CommandError::NotNow(self.of_text(why)),
            CommandError::Impossible(why) => CommandError::Impossible(self.of_text(why)),
            CommandError::UnknownTask { .. } | CommandError::Stopping => refused,
        }
    }

    fn of_text(&self, text: String) -> String {
        let Some(url) = &self.0 else { return text };
        let text = text.replace(url.as_str(), without_credentials(url).as_str());
        let secret = url.password().unwrap_or(url.username());
        let decoded = percent_decode_str(secret).decode_utf8_lossy();
        if text.contains(secret) || text.contains(&*decoded) {
            "the download cannot be added".to_owned()
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(url: &str, why: &str) -> String {
        let command = TaskCommand::Add {
            url: url.parse().unwrap(),
            to: "/srv".into(),
            deadline: None,
        };
        let hiding = Hiding::of(&command);
        hiding
            .of_refused(CommandError::Impossible(why.to_owned()))
            .to_string()
    }

    #[test]
    fn a_password_is_taken_out_or_nothing_is_said() {
        let url = "https://me:p%40ss@h/f";
        assert_eq!(
            said(url, "https://me:p%40ss@h/f: no room"),
            "https://h/f: no room"
        );
        for why in ["p@ss is wrong", "me:p%40ss@h says no"] {
            assert_eq!(said(url, why), "the download cannot be added");
        }
        assert_eq!(
            said("https://token@h/f", "https://token@h/f"),
            "https://h/f"
        );
        assert_eq!(said("https://h/f", "no room"), "no room");
    }
}
