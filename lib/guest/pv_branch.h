/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Branch records with overflows. On the vCPU, or while it is stopped. */
#ifndef VPMU_PV_BRANCH_H
#define VPMU_PV_BRANCH_H

#include "pv_vm.h"

/** Write the records of an overflow for the guest, if one is due. Under the lock. */
void vpmu_pv_branch_write(struct vpmu_pv *v);

/** Record what the events that count here want. Under the lock. */
void vpmu_pv_branch_apply(struct vpmu_pv *v);

/** RESUME. Under the lock. */
void vpmu_pv_branch_resume(struct vpmu_pv *v);

/** The state of the records; the layout is in pv_state.c. */
void vpmu_pv_branch_put(const struct vpmu_pv *v, struct vpmu_state_cursor *c);
bool vpmu_pv_branch_check(struct vpmu_state_cursor *c);

/** Load it after the events have been attached. Under the lock. */
void vpmu_pv_branch_load(struct vpmu_pv *v, struct vpmu_state_cursor *c);

#endif /* VPMU_PV_BRANCH_H */
