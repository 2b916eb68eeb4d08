/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * In place of libbpf's: the kernel's structures are those of kernel.h.
 */
#pragma once

#define BPF_CORE_READ_BITFIELD(from, field) ((from)->field)
