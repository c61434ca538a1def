// SPDX-License-Identifier: GPL-2.0-only
/* The calls to the host, by a hypercall or the doorbell. Source: docs/PV-ABI.md. */
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <asm/msr.h>

#include "vpmu_guest.h"

long vg_hypercall(u32 nr, unsigned long a0, unsigned long a1, unsigned long a2)
{
	long ret;

	if (vg.vmmcall)
		asm volatile("vmmcall"
			     : "=a" (ret)
			     : "a" ((unsigned long)nr), "b" (a0), "c" (a1), "d" (a2), "S" (0)
			     : "memory");
	else
		asm volatile("vmcall"
			     : "=a" (ret)
			     : "a" ((unsigned long)nr), "b" (a0), "c" (a1), "d" (a2), "S" (0)
			     : "memory");
	return ret;
}

long vg_hypercall_at(u32 nr, unsigned long op, const void *at)
{
	phys_addr_t pa = virt_to_phys((void *)at);

	return vg_hypercall(nr, op, lower_32_bits(pa), upper_32_bits(pa));
}

long vg_call(u32 op, u64 address)
{
	struct vpmu_pv_call *call = this_cpu_ptr(vg_cpus)->call + vg_context();
	u64 pa;

	if (vg.hypercall)
		return vg_hypercall(vg.hypercall, op, lower_32_bits(address),
				    upper_32_bits(address));
	call->size = sizeof(*call);
	call->op = op;
	call->a1 = lower_32_bits(address);
	call->a2 = upper_32_bits(address);
	call->zero = 0;
	pa = virt_to_phys(call);
	barrier(); /* the host reads it now, and writes */
	if (wrmsr_safe(VPMU_PV_MSR_DOORBELL, lower_32_bits(pa), upper_32_bits(pa)))
		return -VPMU_PV_EFAULT;
	barrier();
	return call->result;
}
