/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* As sample.S, but long enough that a guest moves in the middle of it. */
#define N 10000007
#include "sample.S"
