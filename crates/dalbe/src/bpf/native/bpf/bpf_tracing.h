/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * In place of libbpf's: a program of the kernel is a function.
 */
#pragma once

#define BPF_PROG(name, ...) name(__VA_ARGS__)
