// SPDX-License-Identifier: GPL-2.0-only
/*
 * The core, all of lib/, compiled into the module as one translation unit: so the compiler
 * inlines across its files, and Kbuild needs no list of them. ./build writes core-list.h.
 * The module calls nothing of it but the public functions of include/vpmu.
 */
#include "core-list.h"
