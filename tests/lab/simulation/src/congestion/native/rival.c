/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A rival's congestion control (SOURCE) as a simulation calls it. Each is compiled with a
 * RIVAL of its own, which its names begin with. rivals.c has the kernel's side.
 */
#include "rivals.h"

#define PASTED(a, b) a##_program_##b
#define NAMED(a, b) PASTED(a, b)

#define begin NAMED(RIVAL, begin)
#define acknowledged NAMED(RIVAL, acknowledged)
#define avoid NAMED(RIVAL, avoid)
#define lost NAMED(RIVAL, lost)
#define changed NAMED(RIVAL, changed)
#define undo NAMED(RIVAL, undo)
#define control NAMED(RIVAL, control)
#define LICENSE NAMED(RIVAL, license)

#include SOURCE
