// SPDX-License-Identifier: GPL-2.0-only
/*
 * The whole core in one translation unit, as a kernel module has it: whatever
 * two of its files call alike, or take from another world than platform.h's,
 * shows here.
 */
#include "core-list.h"
