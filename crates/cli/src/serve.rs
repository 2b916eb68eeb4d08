//! `fairbat serve`: turns its flags into settings, prints its address, and serves until a
//! signal.

use std::io::{self, Write};
use std::time::Duration;

use dalbe::sender::{SenderLeverKind, SenderPolicy};
use fairbat::error::TransferError;
use fairbat::serve::{Patience, ServeEvent, ServeSettings, Server, TlsFiles, Token, UploadLimits};
use tokio::runtime::Builder;

use crate::args::ServeArgs;
use crate::console::{Console, log_filter, start_log};
use crate::exit::ExitCode;
use crate::progress::failed_to_start;
use crate::session::{self, Signals, TerminationSignal, runtime};

/// Time to remove unfinished uploads at the end. The next start removes the rest.
const CLEAN_UP_TIME: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    session::with_valid(log_filter(&args.log), |filter| {
        let console = Console::plain();
        start_log(filter, &args.log, &console);
        match settings(args).and_then(|settings| serve(&settings, args, &console)) {
            Ok(TerminationSignal::Terminate) => ExitCode::Done,
            Ok(TerminationSignal::Interrupt) => ExitCode::Interrupted,
            Err(error) => {
                console.line(&failed_to_start(&error));
                ExitCode::of_kind(error.kind)
            }
        }
    })
}

fn settings(args: &ServeArgs) -> Result<ServeSettings, TransferError> {
    let access = &args.access;
    let files = access.tls_cert.as_ref().zip(access.tls_key.as_ref());
    Ok(ServeSettings {
        directory: args.directory.clone(),
        listen: args.listen,
        background: args.sending.background,
        sender: args
            .sending
            .sender
            .map_or_else(Default::default, Into::into),
        max_connections: args.sending.max_connections,
        max_per_peer: args.sending.max_connections_per_peer,
        allowed_hosts: access.allow_host.clone(),
        token: access.token_file.as_deref().map(Token::read).transpose()?,
        tls: files.map(|(certificate, key)| TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        }),
        http3: access.http3,
        patience: Patience::default(),
        uploads: args.uploads.writable.then_some(UploadLimits {
            max_size: args.uploads.max_upload,
        }),
    })
}

/// Serves until a signal comes. Requests in progress are then cut off.
fn serve(
    settings: &ServeSettings,
    args: &ServeArgs,
    console: &Console,
) -> Result<TerminationSignal, TransferError> {
    let runtime = runtime(&mut Builder::new_multi_thread())?;
    let stopped = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let server = Server::bind(settings).await?;
        announce(settings, args, &server, console);
        tokio::select! {
            never = server.run() => match never {},
            signal = signals.next() => Ok(signal),
        }
    });
    // Do not wait for a disk that hangs.
    match settings.uploads {
        Some(_) => runtime.shutdown_timeout(CLEAN_UP_TIME),
        None => runtime.shutdown_background(),
    }
    stopped
}

/// Prints the address, and warns if others can read the files or the token.
fn announce(settings: &ServeSettings, args: &ServeArgs, server: &Server, console: &Console) {
    if !args.log.quiet {
        let taken = settings.uploads.map_or("", |_| " and accepts uploads");
        let over_http3 = match settings.http3 {
            true => "; over HTTP/3, they are held back by fairbat's congestion control",
            false => "",
        };
        console.line(&format!(
            "{} serves {}{taken}; background responses are {}{over_http3}",
            server.url(),
            settings.directory.display(),
            method(server.lever(), settings.sender)
        ));
    }
    if args.json {
        print(&server.listening());
    }
    if let Some(policy) = args.sending.sender.map(SenderPolicy::from)
        && server.lever() != SenderLeverKind::Congestion
    {
        let over_tcp = match settings.http3 {
            true => " over TCP",
            false => "",
        };
        tracing::warn!(
            "--sender {} has no effect{over_tcp} until root loads the congestion controls: sudo \
             fairbat setup",
            policy.name()
        );
    }
    if !server.address().ip().to_canonical().is_loopback() {
        match (&settings.token, &settings.tls) {
            (None, _) => tracing::warn!(
                "anyone who can reach {} can read all files; --token-file requires a token",
                server.address()
            ),
            (Some(_), None) => tracing::warn!(
                "the token crosses the network in clear text; --tls-cert and --tls-key encrypt it"
            ),
            (Some(_), Some(_)) => {}
        }
    }
}

/// How responses that yield are sent.
fn method(lever: SenderLeverKind, policy: SenderPolicy) -> String {
    match lever {
        SenderLeverKind::Congestion => {
            let policy = policy.name();
            format!("held back by fairbat's congestion control ({policy})")
        }
        SenderLeverKind::Pacing => "held back by their packet rate".to_owned(),
        SenderLeverKind::Stock => "held back by a congestion control of the kernel".to_owned(),
        SenderLeverKind::Mark => "not held back, only marked Lower-Effort (RFC 8622)".to_owned(),
    }
}

/// Writes an event as a JSON line. The server goes on if the reader has gone.
fn print(event: &ServeEvent) {
    let mut out = io::stdout().lock();
    let written = serde_json::to_string(event)
        .map_err(io::Error::from)
        .and_then(|line| writeln!(out, "{line}"))
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            tracing::error!("cannot write JSON lines: {error}");
        }
        _ => {}
    }
}
