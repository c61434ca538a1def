/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Headers, and names in them, that are others before QEMU 10.1
 */

#ifndef X86_TCG_RELEASE_H
#define X86_TCG_RELEASE_H

#if __has_include("exec/exec-all.h")

#include "exec/address-spaces.h"
#include "exec/cpu_ldst.h"
#include "exec/exec-all.h"
#include "exec/memory.h"
#include "exec/ram_addr.h"
#include "qapi/qapi-commands-misc-target.h"
#include "qapi/qapi-types-misc-target.h"

#define physical_memory_range_includes_clean \
    cpu_physical_memory_range_includes_clean
#define physical_memory_set_dirty_range cpu_physical_memory_set_dirty_range
#define tb_invalidate_phys_range(cpu, start, last) \
    tb_invalidate_phys_range(start, last)

#else

#include "accel/tcg/cpu-ldst.h"
#include "accel/tcg/probe.h"
#include "exec/cputlb.h"
#include "exec/icount.h"
#include "exec/target_page.h"
#include "exec/tlb-flags.h"
#include "exec/translation-block.h"
#include "qapi/qapi-commands-misc-i386.h"
#include "qapi/qapi-types-misc-i386.h"
#include "system/address-spaces.h"
#include "system/memory.h"
#include "system/physmem.h"

#endif

#endif
