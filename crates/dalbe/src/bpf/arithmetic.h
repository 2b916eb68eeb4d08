/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Arithmetic without floating point and without division of signed numbers.
 * eBPF has no instructions for either.
 */
#pragma once

#include "types.h"

/* A function that the verifier checks once, on its own, and not again for each
 * path that leads to it. The verifier assumes that its pointers may be null. The
 * function must return a number. */
#define APART __attribute__((noinline))

/* A long time, us, as far as it counts. */
static __always_inline __u32 capped(__u64 us, __u32 max)
{
	return us < max ? us : max;
}

static __always_inline __u32 min_of(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 max_of(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

/* a minus b, but not below 0. */
static __always_inline __u32 minus(__u32 a, __u32 b)
{
	return a > b ? a - b : 0;
}

/* a * b / c; 0 if c is 0. */
static __always_inline __u32 scaled(__u32 a, __u32 b, __u32 c)
{
	__u64 result = c ? (__u64)a * b / c : 0;

	return result > 0xffffffff ? 0xffffffff : result;
}

static __always_inline __u32 times_q16(__u32 value, __u32 factor_q16)
{
	return scaled(value, factor_q16, 65536);
}

/* Square root, rounded down (digit by digit in base 2). */
APART __u32 square_root(__u32 value)
{
	__u32 root = 0;

	for (int bit = 15; bit >= 0; bit--) {
		__u32 next = root | 1U << bit;

		if (next * next <= value)
			root = next;
	}
	return root;
}

/* Cube root, rounded down, of at most 2^63 (digit by digit in base 2). */
APART __u32 cube_root(__u64 value)
{
	__u64 root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		__u64 next = root | 1ULL << bit;

		if (next * next * next <= value)
			root = next;
	}
	return root;
}

/* exp(-x/16) in 1/65536, for x = 0 to 128. */
static const __u32 EXPONENTIALS[129] = {
	65536, 61565, 57835, 54331, 51039, 47947, 45042, 42313,
	39750, 37341, 35079, 32954, 30957, 29081, 27319, 25664,
	24109, 22649, 21276, 19987, 18776, 17639, 16570, 15566,
	14623, 13737, 12905, 12123, 11388, 10698, 10050, 9441,
	8869, 8332, 7827, 7353, 6907, 6489, 6096, 5726,
	5380, 5054, 4747, 4460, 4190, 3936, 3697, 3473,
	3263, 3065, 2879, 2705, 2541, 2387, 2243, 2107,
	1979, 1859, 1746, 1641, 1541, 1448, 1360, 1278,
	1200, 1128, 1059, 995, 935, 878, 825, 775,
	728, 684, 642, 604, 567, 533, 500, 470,
	442, 415, 390, 366, 344, 323, 303, 285,
	268, 252, 236, 222, 209, 196, 184, 173,
	162, 153, 143, 135, 127, 119, 112, 105,
	99, 93, 87, 82, 77, 72, 68, 64,
	60, 56, 53, 50, 47, 44, 41, 39,
	36, 34, 32, 30, 28, 27, 25, 23,
	22,
};

/* 65536 * exp(-ratio/65536), linear within steps of 1/16; 0 above 8. */
APART __u32 exponential_q16(__u64 ratio_q16)
{
	__u32 step = ratio_q16 >> 12, part = ratio_q16 & 0xfff;
	__u32 above, below;

	if (ratio_q16 >= 8 * 65536)
		return 0;
	/* The verifier needs the bound, also where the compiler has removed it. */
	step &= 127;
	above = EXPONENTIALS[step];
	below = EXPONENTIALS[step + 1];
	return above - ((above - below) * part >> 12);
}
