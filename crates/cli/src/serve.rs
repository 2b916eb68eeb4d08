//! `fairbat serve`: resolve, listen, say where, and serve until a signal.

use std::io::{self, Write};
use std::time::Duration;

use dalbe::sender::{SenderLeverKind, SenderPolicy};
use fairbat::error::{ErrorKind, TransferError};
use fairbat::serve::{Patience, ServeEvent, ServeSettings, Server, TlsFiles, Token, UploadTerms};

use crate::args::ServeArgs;
use crate::console::Console;
use crate::exit::ExitCode;
use crate::log;
use crate::progress::failed_to_start;
use crate::signals::{Asked, Signals};

/// How long uploads that are broken off may take to be removed. What is not, the
/// next start removes.
const END: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(args: &ServeArgs) -> ExitCode {
    let console = Console::plain();
    match log::filter(&args.log) {
        Ok(filter) => log::begin(filter, &args.log, &console),
        Err(error) => {
            console.line(&format!("error: {error}"));
            return ExitCode::Usage;
        }
    }
    let ended = settings(args).and_then(|settings| serve(&settings, args, &console));
    match ended {
        Ok(Asked::Terminate) => ExitCode::Done,
        Ok(Asked::Interrupt) => ExitCode::Interrupted,
        Err(error) => {
            console.line(&failed_to_start(&error));
            ExitCode::of_kind(error.kind)
        }
    }
}

fn settings(args: &ServeArgs) -> Result<ServeSettings, TransferError> {
    let access = &args.access;
    let files = access.tls_cert.as_ref().zip(access.tls_key.as_ref());
    Ok(ServeSettings {
        directory: args.directory.clone(),
        listen: args.listen,
        background: args.pace.background,
        sender: args.pace.sender.map_or_else(Default::default, Into::into),
        max_connections: args.pace.max_connections,
        max_per_peer: args.pace.max_connections_per_peer,
        token: access.token_file.as_deref().map(Token::read).transpose()?,
        tls: files.map(|(certificate, key)| TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        }),
        patience: Patience::default(),
        uploads: args.uploads.writable.then_some(UploadTerms {
            max_size: args.uploads.max_upload,
        }),
    })
}

/// Serves until a signal says that it is enough; what is under way then is
/// broken off.
fn serve(
    settings: &ServeSettings,
    args: &ServeArgs,
    console: &Console,
) -> Result<Asked, TransferError> {
    let other = |what: &str, error: &io::Error| {
        TransferError::new(ErrorKind::Other, format!("{what}: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| other("cannot start threads", &error))?;
    let asked = runtime.block_on(async {
        let mut signals =
            Signals::listen().map_err(|error| other("cannot catch signals", &error))?;
        let server = Server::bind(settings).await?;
        announce(settings, args, &server, console);
        tokio::select! {
            never = server.run() => match never {},
            asked = signals.which() => Ok(asked),
        }
    });
    // A disk that hangs is not waited for.
    match settings.uploads {
        Some(_) => runtime.shutdown_timeout(END),
        None => runtime.shutdown_background(),
    }
    asked
}

/// Says where the files are, and who can get at them.
fn announce(settings: &ServeSettings, args: &ServeArgs, server: &Server, console: &Console) {
    if !args.log.quiet {
        let taken = settings.uploads.map_or("", |_| " and takes uploads");
        console.line(&format!(
            "{} serves {}{taken}; background responses are {}",
            server.url(),
            settings.directory.display(),
            held_back(server.lever(), settings.sender)
        ));
    }
    if args.messages.json {
        tell(&server.listening());
    }
    if let Some(policy) = args.pace.sender.map(SenderPolicy::from)
        && server.lever() != SenderLeverKind::Congestion
    {
        tracing::warn!(
            "--sender {} has no effect here until root has set up the congestion controls: sudo \
             fairbat setup",
            policy.name()
        );
    }
    if !server.address().ip().to_canonical().is_loopback() {
        match (&settings.token, &settings.tls) {
            (None, _) => tracing::warn!(
                "whoever reaches {} can read all files there; --token-file asks for a token",
                server.address()
            ),
            (Some(_), None) => tracing::warn!(
                "the token crosses the network in clear text; --tls-cert and --tls-key hide it"
            ),
            (Some(_), Some(_)) => {}
        }
    }
}

/// How what yields is sent.
fn held_back(rung: SenderLeverKind, policy: SenderPolicy) -> String {
    match rung {
        SenderLeverKind::Congestion => {
            let policy = policy.name();
            format!("held back by fairbat's congestion control ({policy})")
        }
        SenderLeverKind::Pacing => "held back by the rate of their packets".to_owned(),
        SenderLeverKind::Stock => "held back by a congestion control of the kernel's".to_owned(),
        SenderLeverKind::Mark => "not held back, only marked Lower-Effort (RFC 8622)".to_owned(),
    }
}

/// Writes an event; a reader that goes away ends the lines, not the server.
fn tell(event: &ServeEvent) {
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
