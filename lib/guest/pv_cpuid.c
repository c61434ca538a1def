// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The CPUID leaves of the paravirtual PMU. */
#include "pv_vm.h"

/* Leaf VPMU_CPUID_PV; see also the operation VERSION. */
static void pv_leaf(const struct vpmu_pv *v, struct vpmu_cpuid *regs)
{
	const struct vpmu_pv_vm *vm = v->vm;

	regs->eax = VPMU_PV_VERSION | vm->n_slots << 8 |
		    (uint32_t)(vm->model->n_gp + vm->model->n_fixed) << 16;
	regs->ebx = vm->features;
	regs->ecx = vm->n_events;
	regs->edx = vm->no_hypercall ? 0 : VPMU_PV_HYPERCALL;
}

bool vpmu_pv_cpuid(const struct vpmu_pv *v, uint32_t base, uint32_t leaf,
		   struct vpmu_cpuid *regs)
{
	if (!(v->vm->abi & VPMU_PV_ABI_2) || leaf < base || leaf - base > VPMU_CPUID_PV)
		return false;
	switch (leaf - base) {
	case 0:
		regs->eax = base + VPMU_CPUID_PV;
		regs->ebx = VPMU_CPUID_SIGNATURE_EBX;
		regs->ecx = VPMU_CPUID_SIGNATURE_ECX;
		regs->edx = VPMU_CPUID_SIGNATURE_EDX;
		break;
	case VPMU_CPUID_FEATURES:
		regs->eax |= VPMU_CPUID_FEATURE_PV;
		break;
	case VPMU_CPUID_LOSS:
		regs->ecx = (uint32_t)v->provider->time_hz;
		regs->edx = (uint32_t)(v->provider->time_hz >> 32);
		break;
	default:
		pv_leaf(v, regs);
		break;
	}
	return true;
}
