/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * In place of libbpf's: what the congestion controls take of the kernel's helpers, for a
 * program of this machine. flow.c defines the functions.
 */
#pragma once

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define SEC(name) __attribute__((visibility("hidden")))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) __typeof__(value) *name

void *bpf_sk_storage_get(void *map, void *sk, void *value, unsigned long long flags);
unsigned long long bpf_ktime_get_ns(void);
unsigned int bpf_get_prandom_u32(void);

/* libbpf has functions of these names, for processes. */
#define bpf_map_lookup_elem native_map_lookup_elem
#define bpf_map_update_elem native_map_update_elem
#define bpf_map_delete_elem native_map_delete_elem
void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_delete_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, unsigned long long flags);
