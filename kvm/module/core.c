// SPDX-License-Identifier: GPL-2.0-only
/*
 * All of lib/ as one translation unit of the module, so that the compiler inlines across
 * its files, and Kbuild needs no list of them. ./build writes core-list.h. The module
 * calls only the public functions of include/vpmu.
 */
#include <linux/types.h>
#undef READ /* the events' models have one of their own */

#include "core-list.h"
