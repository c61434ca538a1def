/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The bracket of one instant. On the vCPU, or while it is stopped; not under the lock. */
#ifndef VPMU_PV_BATCH_H
#define VPMU_PV_BATCH_H

#include "pv_vm.h"

/** Bracket changes, which happen at one instant; results are written at the end. */
void vpmu_pv_batch_begin(struct vpmu_pv *v);
void vpmu_pv_batch_end(struct vpmu_pv *v);

#endif /* VPMU_PV_BATCH_H */
