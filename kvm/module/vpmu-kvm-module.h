/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * /dev/vpmu_kvm, for VMMs and operators: which VMs have the paravirtual PMU that
 * vpmu_kvm.ko serves, and its state. The caller needs the VM's file. See docs/KVM-HOST.md,
 * "Who has a PMU" and "Live migration".
 */
#ifndef VPMU_KVM_MODULE_H
#define VPMU_KVM_MODULE_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define VPMU_KVM_DEVICE "/dev/vpmu_kvm"

struct vpmu_kvm_state {
	__u32 size;      /* sizeof(struct vpmu_kvm_state) */
	__s32 vm;        /* file of the VM, as KVM_CREATE_VM gave it. The members below are
			    of SAVE and LOAD; the other calls ignore data and bytes */
	__u64 data;      /* address of a buffer */
	__u64 bytes;     /* SAVE: of the buffer, and then of the state, also with ENOSPC.
			    LOAD: of the state, at most VPMU_KVM_STATE_MAX */
	__u64 asked;     /* how much of what is ... */
	__u64 available; /* ... and how much there is */
	char why[88];    /* with an error: what is missing or does not fit; or empty */
};

#define VPMU_KVM_STATE_MAX (16u << 20)

/*
 * While no vCPU of the VM is in KVM_RUN (EBUSY), nor in another ioctl. Nothing of the
 * guest changes.
 *
 * 0; ENOSPC: the buffer is too small; ENOENT: the guest has never used its PMU;
 * EBADF, EINVAL: that is no VM's file, or no such struct; ESRCH: the VM's process ends.
 */
#define VPMU_KVM_SAVE _IOWR('V', 0x50, struct vpmu_kvm_state)

/*
 * Likewise; when the VM's vCPUs are the same, made in the same order, and guest memory and
 * their registers are as they were.
 *
 * 0, and events that cannot be made here are lost, as the guest is told; EINVAL, ENOSYS: a
 * state that is damaged, too new, or does not fit; ENOSPC, ENOMEM: a limit; then nothing
 * has changed. EFAULT: addresses that are no RAM here; the PMU is as after RESET.
 */
#define VPMU_KVM_LOAD _IOWR('V', 0x51, struct vpmu_kvm_state)

/*
 * Decide whether the VM's guest has a PMU, before its first hypercall: ALLOW, even if the
 * module was loaded with opt_in=1 or the VMM has taken KVM's own PMU away
 * (KVM_CAP_PMU_CAPABILITY); REFUSE, as long as the VM lives.
 *
 * 0, also if that has been decided before. EBUSY: the contrary has, or the guest has used
 * its PMU; ENOSPC, ENOMEM: a limit; EBADF, EINVAL: as above. Nothing has changed then.
 */
#define VPMU_KVM_ALLOW  _IOWR('V', 0x52, struct vpmu_kvm_state)
#define VPMU_KVM_REFUSE _IOWR('V', 0x53, struct vpmu_kvm_state)

#endif /* VPMU_KVM_MODULE_H */
