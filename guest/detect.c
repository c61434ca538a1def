// SPDX-License-Identifier: GPL-2.0-only
/*
 * Detection of the host. No hypercall is tried unless CPUID names a hypervisor that is
 * known to answer unknown ones. Source: docs/PV-ABI.md.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>

#include "compat.h"
#include "vpmu_guest.h"

#define VG_FIRST	0x40000000u
#define VG_LAST		0x4000ff00u
#define VG_STEP		0x100u

#define VG_KVM_EBX	0x4b4d564bu /* "KVMK" */
#define VG_KVM_ECX	0x564b4d56u /* "VMKV" */
#define VG_KVM_EDX	0x0000004du /* "M" */

/* an id under which no event is ever opened */
#define VG_NO_ID	0x7fffffff
/* number of ids used with version 1, which does not report its limit */
#define VG_V1_IDS	1024

u32 vg_find(u32 ebx, u32 ecx, u32 edx, u32 *last)
{
	u32 base, b, c, d;

	for (base = VG_FIRST; base <= VG_LAST; base += VG_STEP) {
		cpuid(base, last, &b, &c, &d);
		if (b == ebx && c == ecx && d == edx)
			return base;
	}
	return 0;
}

/* @eax, @ebx, @ecx: leaf VPMU_CPUID_PV. */
static bool vg_describe(u32 eax, u32 ebx, u32 ecx)
{
	u32 hint = eax >> 16 & 0xff;

	if ((eax & 0xff) < VPMU_PV_VERSION) /* later versions extend this one */
		return false;
	vg.abi = &vg_abi_2;
	vg.features = ebx;
	vg.n_ids = ecx;
	vg.n_slots = min(eax >> 8 & 0xff, (u32)VPMU_PV_SLOTS);
	vg.n_counters = hint ? min(hint, vg.n_slots) : vg.n_slots;
	return vg.n_slots && vg.n_ids;
}

static bool vg_by_cpuid(void)
{
	u32 eax, ebx, ecx, edx, last, base;

	base = vg_find(VPMU_CPUID_SIGNATURE_EBX, VPMU_CPUID_SIGNATURE_ECX,
		       VPMU_CPUID_SIGNATURE_EDX, &last);
	if (!base || last < base + VPMU_CPUID_PV)
		return false;
	if (!(cpuid_eax(base + VPMU_CPUID_FEATURES) & VPMU_CPUID_FEATURE_PV))
		return false;
	cpuid(base + VPMU_CPUID_LOSS, &eax, &ebx, &ecx, &edx);
	vg.hz = (u64)edx << 32 | ecx;
	cpuid(base + VPMU_CPUID_PV, &eax, &ebx, &ecx, &edx);
	vg.hypercall = edx;
	if (!edx && !(ebx & VPMU_PV_HAS_DOORBELL))
		return false;
	return vg_describe(eax, ebx, ecx);
}

static long vg_version(unsigned long word)
{
	return vg_hypercall(VPMU_PV_HYPERCALL, VPMU_PV_OP_VERSION, word, 0);
}

static bool vg_by_hypercall(void)
{
	if (vg_version(0) != VPMU_PV_MAGIC)
		return false;
	vg.hypercall = VPMU_PV_HYPERCALL;
	vg.hz = (u64)vg_version(5) << 31 | vg_version(4);
	return vg_describe(vg_version(1), vg_version(2), vg_version(3));
}

static bool vg_by_bit(u32 base)
{
	if (!(cpuid_eax(base + 1) & 1u << VPMU_PV1_FEATURE))
		return false;
	if (vg_hypercall(VPMU_PV1_HYPERCALL, VPMU_PV1_CLOSE, VG_NO_ID, 0) == -VPMU_PV_ENOSYS)
		return false;
	vg.abi = &vg_abi_1;
	vg.hypercall = VPMU_PV1_HYPERCALL;
	vg.n_ids = VG_V1_IDS;
	vg.n_slots = VPMU_PV_SLOTS;
	vg.n_counters = 4; /* it does not report how many there are */
	return true;
}

int vg_detect(unsigned int counters)
{
	u32 kvm, last;

	vg.vmmcall = boot_cpu_data.x86_vendor == X86_VENDOR_AMD ||
		     boot_cpu_data.x86_vendor == X86_VENDOR_HYGON;
	kvm = vg_find(VG_KVM_EBX, VG_KVM_ECX, VG_KVM_EDX, &last);
	/* If both the VMM and the host's kernel serve the PMU, a hypercall is cheaper. */
	if (!(vg_by_cpuid() && vg.hypercall) && !(kvm && vg_by_hypercall()) && !vg.abi &&
	    !(kvm && vg_by_bit(kvm)))
		return -ENODEV;
	if (counters)
		vg.n_counters = min(counters, vg.n_slots);
	return 0;
}
