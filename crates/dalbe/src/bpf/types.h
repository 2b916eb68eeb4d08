/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The types and numbers that every program needs. So a build needs neither the
 * headers of a kernel nor a description of its types.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u16 __sum16;

#ifndef true
typedef _Bool bool;
#define true 1
#define false 0
#endif

/* The numbers of the kernel's interface that the programs use (linux/bpf.h). */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_NOEXIST = 1,
};

/* The kernel refuses to freeze a map whose values contain a lock (Linux 6.2).
 * Without one, any process with the right to write could freeze the map. */
struct bpf_spin_lock {
	__u32 val;
};
