//! `fairbat proxy`: turns its flags into settings, prints its address, and serves until a signal.

mod rules;

use std::io::{self, Write as _};

use dalbe::weight::ControllerPolicy;
use fairbat::error::TransferError;
use fairbat::hold::HoldSettings;
use fairbat::proxy::{Proxy, ProxySettings};
use serde_json::json;
use tokio::runtime::Builder;

use crate::args::ProxyArgs;
use crate::console::{Console, log_filter, start_log, written};
use crate::exit::ExitCode;
use crate::progress::failed_to_start;
use crate::session::{self, Signals, TerminationSignal, runtime};
use crate::settings::UsageError;

/// Runs the command.
pub(crate) fn run(args: &ProxyArgs) -> ExitCode {
    let asked = log_filter(&args.log).and_then(|filter| Ok((filter, settings(args)?)));
    session::with_valid(asked, |(filter, settings)| {
        let console = Console::plain();
        start_log(filter, &args.log, &console);
        match serve(args, settings, &console) {
            Ok(TerminationSignal::Terminate) => ExitCode::Done,
            Ok(TerminationSignal::Interrupt) => ExitCode::Interrupted,
            Err(error) => {
                console.line(&failed_to_start(&error));
                ExitCode::of_kind(error.kind)
            }
        }
    })
}

/// # Errors
/// The file of rules is wrong.
fn settings(args: &ProxyArgs) -> Result<ProxySettings, UsageError> {
    Ok(ProxySettings {
        listen: args.listen,
        hold: HoldSettings {
            receiver: args.receiver.into(),
            sender: args.sender.into(),
            controller: ControllerPolicy::Share,
            include_local: args.include_local,
        },
        weight: args.weight,
        rules: match &args.rules {
            Some(file) => rules::read(file)?,
            None => Vec::new(),
        },
        token: args.token_file.clone(),
        allowed: args.allow.clone(),
        max_connections: args.max_connections,
        connect_timeout: args.connect_timeout,
    })
}

/// Serves until a signal comes. Connections are then cut off.
fn serve(
    args: &ProxyArgs,
    settings: ProxySettings,
    console: &Console,
) -> Result<TerminationSignal, TransferError> {
    let runtime = runtime(&mut Builder::new_multi_thread())?;
    let stopped = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let proxy = Proxy::bind(settings).await?;
        announce(args, &proxy, console);
        tokio::select! {
            never = proxy.run() => match never {},
            signal = signals.next() => Ok(signal),
        }
    });
    runtime.shutdown_background();
    stopped
}

/// Prints the address.
fn announce(args: &ProxyArgs, proxy: &Proxy, console: &Console) {
    let (lever, sender) = proxy.levers();
    let address = proxy.address();
    if !args.log.quiet {
        console.line(&format!(
            "proxy on {address} (HTTP and SOCKS5): what it receives {}; what it sends {}",
            lever.brief(),
            sender.brief()
        ));
    }
    if args.json {
        let event = json!({
            "event": "listening",
            "address": address,
            "lever": lever,
            "sender": sender,
        });
        let mut out = io::stdout().lock();
        written(writeln!(out, "{event}").and_then(|()| out.flush()));
    }
}
