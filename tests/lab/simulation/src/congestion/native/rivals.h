/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What takes the place of the loader, and names that flow.c has as well.
 */
#pragma once

#define PARAMETER(TYPE, NAME, VALUE) _Thread_local TYPE NAME = VALUE

/* Every kernel field that is asked for is here. */
#define bpf_core_field_exists(FIELD) 1

#define tcp_slow_start rival_slow_start
#define tcp_cong_avoid_ai rival_avoid_additively
