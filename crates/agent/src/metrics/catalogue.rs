//! What there is to be told: names, kinds and what they mean.
//!
//! The label is `task` and not `job`: Prometheus itself labels everything with the
//! job of its configuration that it comes from.

/// A metric with all its labels.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

/// How its values are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Grows, and starts over with the agent.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Defines each family, and the lists of all of them.
macro_rules! families {
    ($($constant:ident: $kind:ident $name:literal, $help:literal;)*) => {
        $(pub(super) static $constant: Family = Family {
            name: $name,
            kind: Kind::$kind,
            help: $help,
        };)*

        pub(super) static ALL: &[&Family] = &[$(&$constant),*];

        /// The names of all metrics.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

families! {
    BUILD_INFO: Gauge "fairbat_build_info", "The version of the agent, as a label; always 1.";
    START: Gauge "fairbat_start_timestamp_seconds", "When the agent was started, s since 1970.";

    BYTES: Counter "fairbat_bytes_total", "Bytes of files moved, those that had to be moved again included.";
    CHUNKS: Counter "fairbat_chunks_total", "Chunks moved: requests that carried data.";
    FILES: Counter "fairbat_files_total", "Files by what became of them: same, moved, deleted, changed (while read, each time), failed.";
    RETRIES: Counter "fairbat_retries_total", "Tries that failed and were followed by another, by reason: network, server, busy, integrity.";
    RUNS: Counter "fairbat_runs_total", "Runs that ended, by outcome: succeeded, failed.";
    LATE_RUNS: Counter "fairbat_late_runs_total", "Runs that ended after their deadline, whatever their outcome; not those that were stopped.";

    TASK_RUNNING: Gauge "fairbat_task_running", "Whether a run is under way: 1 while it scans, moves something, or waits for another try.";
    TASK_REMAINING: Gauge "fairbat_task_remaining_bytes", "Bytes that are left to move in this run, as far as is known.";
    TASK_DEADLINE: Gauge "fairbat_task_deadline_timestamp_seconds", "By when the run that is under way, or was last, is to be through, s since 1970.";
    TASK_PREDICTED: Gauge "fairbat_task_predicted_finish_timestamp_seconds", "When the run will probably be through, after what goes before it in its lane, s since 1970; absent when nothing moves.";
    TASK_LATE: Gauge "fairbat_task_late_seconds", "By how much the run will be late, or the last one was; 0 when it is not, or will not be by more than 5 % of the time left.";
    TASK_SUCCESS: Gauge "fairbat_task_last_success_timestamp_seconds", "When the last run ended that went well, s since 1970.";

    LANE_BYTES: Counter "fairbat_lane_bytes_total", "Bytes of files moved, those that had to be moved again included: the sum over the tasks of the direction.";
    LANE_RATE: Gauge "fairbat_lane_rate_bytes_per_second", "Mean rate over the last second.";
    LANE_DEMANDED: Gauge "fairbat_lane_demanded_rate_bytes_per_second", "The lowest rate that still meets the deadlines (zeta); absent without any.";
    LANE_WEIGHT: Gauge "fairbat_lane_weight", "Weight of each connection (w), 0.02 to 1; 1 is one best-effort flow.";
    LANE_INACTIVE: Gauge "fairbat_lane_inactive_chunks", "Chunks that are due and wait for a connection (n).";
    LANE_LIMIT: Gauge "fairbat_lane_connection_limit", "Connections that may be active (m); fractions are realised by turns.";
    LANE_ACTIVE: Gauge "fairbat_lane_active_connections", "Connections in use.";
    LANE_RTT: Gauge "fairbat_lane_rtt_seconds", "Round-trip time.";
    LANE_QUEUE: Gauge "fairbat_lane_queue_seconds", "What of the round-trip time is queues: by how much it is more than the least of the last 600 seconds in which it was measured.";
    LANE_WINDOW: Gauge "fairbat_lane_window_bytes", "Mean window of the connections in use: the congestion window of what is sent, the receive window of what comes.";
    LANE_FORESEEN: Gauge "fairbat_lane_foreseen_rate_bytes_per_second", "The rate that ends are foretold by; absent when nothing has moved for a minute.";
    LANE_YIELDED: Counter "fairbat_lane_yielded_seconds_total", "For how long the connections were below their full weight while something moved or waited for its turn.";
    LANE_LEVER: Gauge "fairbat_lane_lever_info", "What holds the connections back, as a label; always 1.";
    LANE_CAN_YIELD: Gauge "fairbat_lane_can_yield", "Whether that makes them yield at all.";
}
