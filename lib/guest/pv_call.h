/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Operations of both versions. In a batch; not under the lock. They return the call's result. */
#ifndef VPMU_PV_CALL_H
#define VPMU_PV_CALL_H

#include "pv_vm.h"

int64_t vpmu_pv1_call(struct vpmu_pv *v, const struct vpmu_hypercall *call);
int64_t vpmu_pv2_call(struct vpmu_pv *v, const struct vpmu_hypercall *call);

#endif /* VPMU_PV_CALL_H */
