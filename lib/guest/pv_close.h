/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The end of events. In a batch. */
#ifndef VPMU_PV_CLOSE_H
#define VPMU_PV_CLOSE_H

#include "pv_vm.h"

/**
 * Close an event wherever it is enabled. *@at, if not NULL, is to be unmapped (*@bytes) when
 * the lock is released. Under the lock. Returns 0; -VPMU_PV_EBUSY for the leader of members
 * that are enabled on another vCPU: then nothing has changed.
 */
int vpmu_pv_close(struct vpmu_pv *v, struct pv_event *ev, void **at, uint32_t *bytes);

/** Forget all pages and close all events; nothing is written. Not under the lock. */
void vpmu_pv_close_all(struct vpmu_pv *v);

#endif /* VPMU_PV_CLOSE_H */
