//! The metrics: their names, kinds and help texts.
//!
//! The label of a task is `task`, because Prometheus itself labels every series with
//! the `job` of its configuration.

use fairbat::metric_families;

metric_families! {
    BUILD_INFO: Gauge "fairbat_build_info", "The version of the agent, as a label; always 1.";
    START: Gauge "fairbat_start_timestamp_seconds", "Start of the agent, s since 1970.";

    BYTES: Counter "fairbat_bytes_total", "Bytes of files moved, repeated transfers included.";
    CHUNKS: Counter "fairbat_chunks_total", "Chunks moved: requests that carried data.";
    FILES: Counter "fairbat_files_total", "Files by outcome: same, moved, deleted, changed (during every try to read them), failed.";
    RETRIES: Counter "fairbat_retries_total", "Failed tries that were repeated, by reason: network, server, busy, integrity.";
    RUNS: Counter "fairbat_runs_total", "Runs that ended, by outcome: succeeded, failed.";
    LATE_RUNS: Counter "fairbat_late_runs_total", "Runs that ended after their deadline, whatever their outcome. Stopped runs do not count.";

    TASK_RUNNING: Gauge "fairbat_task_running", "Whether a run is under way: 1 while it scans, moves data or waits for another try.";
    TASK_REMAINING: Gauge "fairbat_task_remaining_bytes", "Bytes left to move in this run, as far as known.";
    TASK_DEADLINE: Gauge "fairbat_task_deadline_timestamp_seconds", "Deadline of the run under way, or of the last run, s since 1970.";
    TASK_PREDICTED: Gauge "fairbat_task_predicted_finish_timestamp_seconds", "Predicted end of the run, after the tasks before it in its lane, s since 1970. Absent when nothing moves.";
    TASK_LATE: Gauge "fairbat_task_late_seconds", "How late the run is predicted to be, or the last run was. 0 when in time, or late by at most 5 % of the time left.";
    TASK_SUCCESS: Gauge "fairbat_task_last_success_timestamp_seconds", "End of the last successful run, s since 1970.";

    CHECK_DAMAGED: Gauge "fairbat_check_damaged_files", "Files that the store lacks or has damaged, and that no run could send again yet.";
    CHECK_COMPLETED: Gauge "fairbat_check_completed_timestamp_seconds", "Beginning of the last check of the store that came to its end, whatever it found, s since 1970.";

    LANE_BYTES: Counter "fairbat_lane_bytes_total", "Bytes of files moved by all tasks of the direction, repeated transfers included.";
    LANE_RATE: Gauge "fairbat_lane_rate_bytes_per_second", "Mean rate over the last second.";
    LANE_DEMANDED: Gauge "fairbat_lane_demanded_rate_bytes_per_second", "Lowest rate that still meets the deadlines (zeta). Absent without deadlines.";
    LANE_WEIGHT: Gauge "fairbat_lane_weight", "Weight of each connection (w), 0.02 to 1; 1 is one best-effort flow; without the stream.";
    LANE_INACTIVE: Gauge "fairbat_lane_inactive_chunks", "Chunks that are due and wait for a connection (n); without the stream.";
    LANE_LIMIT: Gauge "fairbat_lane_connection_limit", "Limit on the active connections (m), without those of the stream. Fractions alternate between two whole numbers.";
    LANE_STREAM_WAITING: Gauge "fairbat_lane_stream_waiting_transfers", "Transfers of the stream that wait for an ordinary connection (n), as a mean over the last period.";
    LANE_STREAM_TARGET: Gauge "fairbat_lane_stream_target_transfers", "So many of them wait in the mean while others want the path (tau).";
    LANE_STREAM_LIMIT: Gauge "fairbat_lane_stream_connection_limit", "Limit on the active connections of the stream (m). Fractions alternate between two whole numbers.";
    LANE_STREAM_ACTIVE: Gauge "fairbat_lane_stream_active_connections", "Connections of the stream in use.";
    LANE_STREAM_WEIGHT: Gauge "fairbat_lane_stream_weight", "Weight of each connection of the stream (w): 1, or the least weight while m allows none.";
    LANE_ACTIVE: Gauge "fairbat_lane_active_connections", "Connections in use.";
    LANE_RTT: Gauge "fairbat_lane_rtt_seconds", "Round-trip time.";
    LANE_QUEUE: Gauge "fairbat_lane_queue_seconds", "Queueing delay: the round-trip time less its minimum over the last 600 samples.";
    LANE_WINDOW: Gauge "fairbat_lane_window_bytes", "Mean window of the connections in use: the congestion window for push, the receive window for pull.";
    LANE_SCALE: Gauge "fairbat_lane_cdg_backoff_scale_seconds", "CDG's back-off scale (G), mean of the connections that back off by the gradient of the delay. Absent without one.";
    LANE_FORESEEN: Gauge "fairbat_lane_foreseen_rate_bytes_per_second", "The rate that predictions use. Absent when nothing has moved for a minute.";
    LANE_YIELDED: Counter "fairbat_lane_yielded_seconds_total", "How long the connections have had less than full weight while data moved or waited.";
    LANE_GUESTS: Gauge "fairbat_lane_guests", "Other processes of this machine that share the lane: fairbat get, put and run.";
    LANE_LEVER: Gauge "fairbat_lane_lever_info", "The lever that makes the connections yield, as a label; always 1.";
    LANE_CAN_YIELD: Gauge "fairbat_lane_can_yield", "Whether the lever makes the connections yield at all.";

    HOLD_BYTES: Counter "fairbat_hold_bytes_total", "Bytes that the connections of other programs have moved while they were held, by direction: push, pull.";
    HOLD_YIELDED: Counter "fairbat_hold_yielded_seconds_total", "How long they have yielded to other traffic.";
    HOLD_LATE_RUNS: Counter "fairbat_hold_late_runs_total", "Runs that ended after their deadline.";
    HOLD_HOLDING: Gauge "fairbat_hold_holding", "Whether connections are held: 0 if there are no processes, out of the hours, or without the service.";
    HOLD_ON: Gauge "fairbat_hold_service_up", "Whether the service that holds them runs.";
    HOLD_CONNECTIONS: Gauge "fairbat_hold_connections", "Connections that are held now.";
    HOLD_WEIGHT: Gauge "fairbat_hold_weight", "Weight of all of them together (w), 0.02 to 1; 1 is one best-effort flow.";
    HOLD_RATE: Gauge "fairbat_hold_rate_bytes_per_second", "Mean rate over the last second, both ways.";
    HOLD_DEMANDED: Gauge "fairbat_hold_demanded_rate_bytes_per_second", "Lowest rate that still meets the deadline (zeta). Absent without one.";
    HOLD_DEADLINE: Gauge "fairbat_hold_deadline_timestamp_seconds", "Deadline of the run under way, s since 1970.";
    HOLD_LATE: Gauge "fairbat_hold_late_seconds", "How late the run will probably be. 0 when in time.";

    FLEET_CONNECTED: Gauge "fairbat_fleet_connected", "Whether NATS is within reach.";
    FLEET_MEMBER: Gauge "fairbat_fleet_member", "Whether the agent shares the lane of the site; otherwise it is on its own.";
    FLEET_COORDINATOR: Gauge "fairbat_fleet_coordinator", "Whether the agent coordinates the site. Only that one has the metrics of the site.";
    FLEET_TERM: Gauge "fairbat_fleet_term", "Number of the coordinator's office in the last grant. Absent before the first.";
    SITE_HOSTS: Gauge "fairbat_site_hosts", "Hosts that take part.";
    SITE_HELD: Gauge "fairbat_site_hosts_held", "Hosts that get no connections until they are released.";
    SITE_LATE: Gauge "fairbat_site_hosts_late", "Hosts that are predicted to be late, by more than 5 % of the time left.";
    SITE_ACTIVE: Gauge "fairbat_site_active_connections", "Connections of all hosts in use.";
    SITE_WAITING: Gauge "fairbat_site_waiting_requests", "Connections that hosts wait for.";
    SITE_INACTIVE: Gauge "fairbat_site_inactive_chunks", "Chunks of all hosts that are due and wait for a connection (n).";
    SITE_LIMIT: Gauge "fairbat_site_connection_limit", "Limit on the connections of all hosts together (m).";
    SITE_WEIGHT: Gauge "fairbat_site_weight", "Weight of the connections that carry it (w), 0.02 to 1; 1 is one best-effort flow.";
    SITE_RATE: Gauge "fairbat_site_rate_bytes_per_second", "Mean rate of all hosts over the last second.";
    SITE_DEMANDED: Gauge "fairbat_site_demanded_rate_bytes_per_second", "Lowest rate that still meets the deadlines of all hosts (zeta). Absent without deadlines.";
    SITE_REMAINING: Gauge "fairbat_site_remaining_bytes", "Bytes that the hosts have left to move.";
}
