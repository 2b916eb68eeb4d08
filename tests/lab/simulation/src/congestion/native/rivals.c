/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The kernel's side of the rivals' congestion controls in a simulation. rival.rs is the
 * counterpart.
 */
#include <stdlib.h>

#include "rivals.h"

#include "../../../../run/src/rivals/bpf/kernel.h"

#include "additive.h"

extern struct tcp_congestion_ops ledbat_program_control, ledbat_pp_program_control,
	tcp_lp_program_control, tcp_lp_linux_program_control;

/* LEDBAT's. */
extern _Thread_local __u32 target_us, gain_q16, least_window, has_slow_start;

/* As in rival.rs. */
enum program {
	PROGRAM_LEDBAT,
	PROGRAM_LEDBAT_PP,
	PROGRAM_TCP_LP,
	PROGRAM_TCP_LP_LINUX,
};

struct rival_parameters {
	__u32 program;
	__u32 target_us;
	__u32 gain_q16;
	__u32 least_window;
	__u32 has_slow_start;
};

/* What a sender knows, and what it takes back. As in rival.rs. */
struct rival_view {
	__u64 now_us;
	__u32 acknowledged;
	__u32 next;
	__u32 window;
	__u32 threshold;
	__u32 outstanding;
	__u32 max_outstanding;
	__u32 rtt_us;
	/* The receiver's clock less the sender's that it echoes, ms. */
	__u32 delay_ms;
	__u8 is_window_limited;
	__u8 has_hole;
};

struct rival {
	struct tcp_sock tp;
	struct rival_parameters parameters;
	const struct tcp_congestion_ops *control;
};

/* As the kernel has them (net/ipv4/tcp_cong.c). */
__u32 rival_slow_start(struct tcp_sock *tp, __u32 acked)
{
	__u32 window = tp->snd_cwnd + acked;

	if (window > tp->snd_ssthresh)
		window = tp->snd_ssthresh;
	acked -= window - tp->snd_cwnd;
	tp->snd_cwnd = window;
	return acked;
}

void rival_avoid_additively(struct tcp_sock *tp, __u32 w, __u32 acked)
{
	avoid_additively(tp, w, acked);
}

static struct sock *enter(struct rival *rival, const struct rival_view *view)
{
	struct tcp_sock *tp = &rival->tp;

	target_us = rival->parameters.target_us;
	gain_q16 = rival->parameters.gain_q16;
	least_window = rival->parameters.least_window;
	has_slow_start = rival->parameters.has_slow_start;
	tp->tcp_mstamp = view->now_us;
	tp->snd_una = view->acknowledged;
	tp->snd_nxt = view->next;
	tp->snd_cwnd = view->window;
	tp->snd_ssthresh = view->threshold;
	tp->packets_out = view->outstanding;
	tp->max_packets_out = view->max_outstanding;
	tp->srtt_us = view->rtt_us << 3;
	tp->sacked_out = view->has_hole;
	tp->is_cwnd_limited = view->is_window_limited;
	/* The zero of the sender's clock is not 0, which would be no timestamp. */
	tp->rx_opt.rcv_tsecr = 1;
	tp->rx_opt.rcv_tsval = 1 + view->delay_ms;
	return (struct sock *)tp;
}

static void leave(const struct rival *rival, struct rival_view *view)
{
	view->window = rival->tp.snd_cwnd;
	view->threshold = rival->tp.snd_ssthresh;
}

/* None without memory. */
struct rival *rival_new(const struct rival_parameters *parameters)
{
	static const struct tcp_congestion_ops *const CONTROLS[] = {
		[PROGRAM_LEDBAT] = &ledbat_program_control,
		[PROGRAM_LEDBAT_PP] = &ledbat_pp_program_control,
		[PROGRAM_TCP_LP] = &tcp_lp_program_control,
		[PROGRAM_TCP_LP_LINUX] = &tcp_lp_linux_program_control,
	};
	struct rival *rival = calloc(1, sizeof(*rival));

	if (!rival)
		return 0;
	rival->parameters = *parameters;
	rival->control = CONTROLS[parameters->program];
	return rival;
}

void rival_free(struct rival *rival)
{
	free(rival);
}

void rival_begin(struct rival *rival, struct rival_view *view)
{
	rival->control->init(enter(rival, view));
	leave(rival, view);
}

/* A negative round-trip time is unknown. */
void rival_acknowledged(struct rival *rival, struct rival_view *view, __u32 packets, __s32 rtt_us)
{
	struct ack_sample sample = {.pkts_acked = packets, .rtt_us = rtt_us};

	rival->control->pkts_acked(enter(rival, view), &sample);
	leave(rival, view);
}

void rival_avoid(struct rival *rival, struct rival_view *view, __u32 acknowledged)
{
	rival->control->cong_avoid(enter(rival, view), view->acknowledged, acknowledged);
	leave(rival, view);
}

__u32 rival_threshold(struct rival *rival, struct rival_view *view)
{
	return rival->control->ssthresh(enter(rival, view));
}

/* The phase that begins. */
void rival_changed(struct rival *rival, struct rival_view *view, __u8 phase)
{
	if (!rival->control->set_state)
		return;
	rival->control->set_state(enter(rival, view), phase);
	leave(rival, view);
}
