//! `fairbat-agent run`, `hold` and `gc`: the daemon, what is held of others, and the clean-up of
//! stores.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairbat::hold::allow_descriptors;
use fairbat::printable::{LogWriter, printable};
use fairbat_agent::api::{self, Restorers, SocketAccess};
use fairbat_agent::config::Config;
use fairbat_agent::confine::Confinement;
use fairbat_agent::daemon::{self, DaemonEnvironment, StartError, handle};
use fairbat_agent::fleet;
use fairbat_agent::hold::Holding;
use fairbat_agent::web;
use jiff::tz::TimeZone;
use nix::unistd::Group;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tracing_subscriber::EnvFilter;

use super::args::ConfigArgs;
use super::process::{AgentExitCode, now, with_config};

/// Longest time for the end: to stop runs, to answer requests and to write the state.
/// Below the 5 s that callers wait. If a disk hangs, the end is like that of a killed
/// process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

/// Runs the jobs until a signal stops the agent.
pub(crate) fn run(args: &ConfigArgs) -> AgentExitCode {
    in_runtime(
        args,
        Confinement::enter,
        async |config, confinement| match serve(config, confinement, args.config.clone()).await {
            Ok(()) => AgentExitCode::Done,
            Err(error) => match error.downcast::<StartError>() {
                Ok(error) => cannot_start(&error),
                Err(error) => {
                    eprintln!("error: {error}");
                    AgentExitCode::Other
                }
            },
        },
    )
}

/// Says why the daemon cannot start.
pub(super) fn cannot_start(error: &StartError) -> AgentExitCode {
    eprintln!("error: {error}");
    if !error.hint().is_empty() {
        eprintln!("hint: {}", error.hint());
    }
    match error {
        StartError::DamagedState { .. } => AgentExitCode::DamagedState,
        StartError::Other(_) => AgentExitCode::Other,
    }
}

/// Runs the daemon with its API, its metrics and its page. `config` was read from `file`.
async fn serve(
    config: Config,
    confinement: Confinement,
    file: PathBuf,
) -> Result<(), Box<dyn Error>> {
    let stopped = stop_by_signal()?;
    let socket = api::listen(&config.agent.socket, SocketAccess::Group)?;
    let lane_socket = config.agent.lane_socket();
    let lane_socket = lane_socket
        .map(|path| api::listen(&path, SocketAccess::Everybody))
        .transpose()?;
    let (site, port_of_site) = config.fleet.as_ref().map(fleet::channel).unzip();
    let environment = DaemonEnvironment {
        confinement,
        stop: stopped.clone(),
        reload: reload_by_signal()?,
        load: Arc::new(move || Config::load(&file, |name| std::env::var_os(name))),
        lane_socket,
        site: port_of_site,
    };
    let until_stopped = || {
        let mut stopped = stopped.clone();
        async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        }
    };
    let (handle, port) = handle::channel(daemon::starting_status(now().timestamp()));
    let handle = handle.with_site(site);
    let restorers = restorers(config.agent.restore_group.as_deref())?;
    let mut serving = JoinSet::new();
    if let Some(address) = config.agent.listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| {
            // Else it would look like an agent that does not answer.
            let _ = std::fs::remove_file(&config.agent.socket);
            format!(
                "cannot listen at {address}: {error}; choose another address for `listen` in \
                 [agent], or write listen = false, which turns off metrics and page"
            )
        })?;
        tracing::info!("page at http://{address}/, metrics at http://{address}/metrics");
        serving.spawn(web::serve(
            listener,
            handle.clone(),
            TimeZone::system(),
            until_stopped(),
        ));
    }
    serving.spawn(api::serve(socket, handle, restorers, until_stopped()));
    let all = async {
        daemon::run(config, port, environment, identity()).await?;
        serving.join_all().await;
        Ok(())
    };
    let timeout = async {
        until_stopped().await;
        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
    };
    tokio::select! {
        done = all => done,
        () = timeout => {
            tracing::warn!("the agent ends now, but a task has not stopped in time");
            Ok(())
        }
    }
}

/// Who may restore.
fn restorers(group: Option<&str>) -> Result<Restorers, Box<dyn Error>> {
    let Some(name) = group else {
        return Ok(Restorers::Everybody);
    };
    match Group::from_name(name)? {
        Some(group) => Ok(Restorers::Group {
            id: group.gid.as_raw(),
            name: name.to_owned(),
        }),
        None => Err(format!(
            "restore_group: there is no group {name}; make it with `groupadd --system {name}`"
        )
        .into()),
    }
}

/// A value that becomes true after SIGTERM or SIGINT.
fn stop_by_signal() -> Result<watch::Receiver<bool>, io::Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let _ = stop.send(true);
    });
    Ok(stopped)
}

/// A notification after each SIGHUP.
fn reload_by_signal() -> Result<Arc<Notify>, io::Error> {
    let mut hangup = signal(SignalKind::hangup())?;
    let reload = Arc::new(Notify::new());
    let notified = Arc::clone(&reload);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            notified.notify_one();
        }
    });
    Ok(reload)
}

/// Holds the connections of other services until a signal comes.
pub(crate) fn hold(args: &ConfigArgs) -> AgentExitCode {
    in_runtime(
        args,
        |_| (),
        async |config, ()| match keep_holding(&config).await {
            Ok(()) => AgentExitCode::Done,
            Err(error) => {
                eprintln!("error: {error}");
                AgentExitCode::Other
            }
        },
    )
}

async fn keep_holding(config: &Config) -> io::Result<()> {
    let mut stopped = stop_by_signal()?;
    if config.holds.is_empty() {
        tracing::warn!("there is nothing to hold; add [[hold]] to the configuration");
    }
    allow_descriptors();
    // `state` of the configuration is the agent's, which this service may not write to.
    let state = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    let state = state.unwrap_or_else(|| config.agent.state.join("holds"));
    let mut holding = Holding::new(config, &state);
    loop {
        let next = holding.step(&now());
        tokio::select! {
            () = tokio::time::sleep(next) => {}
            _ = stopped.wait_for(|stop| *stop) => break,
        }
    }
    holding.release(&now());
    Ok(())
}

/// Removes unfinished uploads from the stores.
pub(crate) fn collect(args: &ConfigArgs) -> AgentExitCode {
    in_runtime(
        args,
        |_| (),
        async |config, ()| {
            let collected = match daemon::collect(config, identity()).await {
                Ok(collected) => collected,
                Err(error) => {
                    let code = cannot_start(&error);
                    if code == AgentExitCode::Other {
                        eprintln!(
                            "hint: stop the agent first; each run of a job also cleans up after itself"
                        );
                    }
                    return code;
                }
            };
            let mut code = AgentExitCode::Done;
            for (job, given_up) in collected {
                match given_up {
                    Ok(count) => println!("{job}: {count} unfinished uploads given up"),
                    Err(problem) => {
                        eprintln!("error: {job}: {}", printable(&problem.to_string()));
                        if !problem.hint().is_empty() {
                            eprintln!("hint: {}", printable(problem.hint()));
                        }
                        code = AgentExitCode::Other;
                    }
                }
            }
            code
        },
    )
}

/// Does the work with a log and threads, if the configuration is right. `prepare` acts
/// before there are other threads.
pub(crate) fn in_runtime<T>(
    args: &ConfigArgs,
    prepare: impl FnOnce(&Config) -> T,
    work: impl AsyncFnOnce(Config, T) -> AgentExitCode,
) -> AgentExitCode {
    with_config(&args.config, |config| {
        start_log();
        let prepared = prepare(&config);
        match Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => {
                let code = runtime.block_on(work(config, prepared));
                // Do not wait for a thread that reads from a hanging disk.
                runtime.shutdown_background();
                code
            }
            Err(error) => {
                eprintln!("error: cannot start threads: {error}");
                AgentExitCode::Other
            }
        }
    })
}

/// What is logged unless the environment says otherwise. The agent itself tells what becomes of
/// its connection to NATS.
const LOG: &str = "info,async_nats=off";

fn start_log() {
    let filter = EnvFilter::try_from_env("FAIRBAT_LOG").unwrap_or_else(|_| EnvFilter::new(LOG));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| LogWriter(io::stderr()))
        .with_target(false)
        .init();
}

#[allow(
    clippy::disallowed_methods,
    reason = "a unique name for this agent, made once and then stored"
)]
pub(crate) fn identity() -> u64 {
    rand::random()
}
