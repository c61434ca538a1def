/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * /dev/vpmu_kvm, for VMMs and operators: decides which VMs have a PMU that vpmu_kvm.ko
 * serves, and which one, and saves and loads its state. The caller needs the VM's file. See
 * docs/KVM-HOST.md, "Who has a PMU" and "Live migration".
 */
#ifndef VPMU_KVM_MODULE_H
#define VPMU_KVM_MODULE_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define VPMU_KVM_DEVICE "/dev/vpmu_kvm"

struct vpmu_kvm_state {
	__u32 size;      /* sizeof(struct vpmu_kvm_state) */
	/*
	 * The VM's file, from KVM_CREATE_VM. The members below belong to SAVE and LOAD;
	 * the other calls ignore data and bytes.
	 */
	__s32 vm;
	__u64 data;      /* address of a buffer */
	/*
	 * SAVE: size of the buffer, and on return of the state, also with ENOSPC. LOAD:
	 * size of the state, at most VPMU_KVM_STATE_MAX
	 */
	__u64 bytes;
	__u64 asked;     /* amount that was asked for, if a limit was reached */
	__u64 available; /* amount that is available */
	char why[88];    /* with an error: the part that is missing or does not fit; or empty */
};

#define VPMU_KVM_STATE_MAX (16u << 20)

/*
 * Save the state while no vCPU of the VM is in KVM_RUN or in another ioctl (EBUSY). The
 * guest's state does not change.
 *
 * Returns 0; ENOSPC: the buffer is too small; ENOENT: the guest has never used its PMU;
 * EBADF, EINVAL: not a VM's file, or not this struct; ESRCH: the VM's process is exiting.
 */
#define VPMU_KVM_SAVE _IOWR('V', 0x50, struct vpmu_kvm_state)

/*
 * Load a state, likewise while no vCPU runs. The VM has the same vCPUs, created in the
 * same order, and guest memory and the vCPUs' registers are as they were.
 *
 * Returns 0, and events that cannot be created here are lost, which the guest is told;
 * EINVAL, ENOSYS: the state is damaged, too new, or does not fit; ENOSPC, ENOMEM: a
 * limit; then nothing has changed. EFAULT: addresses that are not RAM here; the PMU is as
 * after RESET.
 */
#define VPMU_KVM_LOAD _IOWR('V', 0x51, struct vpmu_kvm_state)

/*
 * Decide whether the VM's guest has a PMU, before its first hypercall: ALLOW, even if the
 * module was loaded with opt_in=1 or the VMM has taken KVM's own PMU away
 * (KVM_CAP_PMU_CAPABILITY); REFUSE, as long as the VM lives.
 *
 * Returns 0, also if the same was decided before. EBUSY: the contrary was, or the guest
 * has used its PMU; ENOSPC, ENOMEM: a limit; EBADF, EINVAL: as above. Nothing has changed
 * then.
 */
#define VPMU_KVM_ALLOW  _IOWR('V', 0x52, struct vpmu_kvm_state)
#define VPMU_KVM_REFUSE _IOWR('V', 0x53, struct vpmu_kvm_state)

struct vpmu_kvm_arch {
	__u32 size;         /* sizeof(struct vpmu_kvm_arch) */
	__s32 vm;           /* the VM's file, from KVM_CREATE_VM */
	/*
	 * What is wanted, and on return what is given. 0: the most that there is.
	 * capabilities: VPMU_CAP_* of vpmu/msr.h.
	 */
	__u32 version;      /* AMD: 2 is PerfMonV2 */
	__u32 n_gp;
	__u32 n_fixed;
	__u32 reserved;     /* 0 */
	__u64 capabilities;
	__u64 asked;        /* amount that was asked for, if a limit was reached */
	__u64 available;    /* amount that is available */
	char why[88];       /* with an error: the reason; or empty */
};

/*
 * Give the VM an architectural PMU in place of KVM's own, before its first vCPU runs and
 * while none is in another ioctl. It has it as long as it lives, has no paravirtual one,
 * and keeps the module loaded.
 *
 * Returns 0, also if the VM has the same already; EOPNOTSUPP: this host cannot give that;
 * EBUSY: the guest has run, has another PMU, or has been refused one; ENOSPC, ENOMEM: a
 * limit; EBADF, EINVAL: as above. Nothing has changed then.
 */
#define VPMU_KVM_ARCH _IOWR('V', 0x54, struct vpmu_kvm_arch)

#define VPMU_KVM_LEND_MAX 9u

struct vpmu_kvm_lend {
	__u32 size;      /* sizeof(struct vpmu_kvm_lend) */
	__s32 vm;        /* the VM's file, from KVM_CREATE_VM */
	__u32 vcpu;      /* the vCPU's id, of KVM_CREATE_VCPU */
	/*
	 * Those of the CPU: 5, or 9 with the classes of level 2. Perf opens the latter as other
	 * raw events where the CPU has none; the call then fails, and `available` is 5.
	 */
	__u32 n_events;
	/*
	 * Files of perf_event_open(): a group on the vCPU's thread. The leader counts slots
	 * (raw 400H) and is disabled; the others are the classes (raw 8000H, 8100H, ...).
	 * All with exclude_host, without sample_period and inherit, and with the same
	 * exclude_user and exclude_kernel.
	 */
	__s32 event[VPMU_KVM_LEND_MAX];
	__u32 reserved;  /* 0 */
	__u64 asked;     /* with an error: number of an event, or of all */
	__u64 available; /* number of events that the CPU has */
	char why[88];    /* with an error: the reason; or empty */
};

/*
 * Lend a vCPU a group of events, before it first runs: with one that counts in all rings the
 * guest of VPMU_KVM_ARCH with n_fixed of 4 has fixed counter 3 and PERF_METRICS, as the kernel
 * makes no groups for its modules. A guest that counts the slots of one ring alone needs
 * another group with exclude_user or exclude_kernel, else it is told a loss. The files may be
 * closed afterwards.
 *
 * Returns 0; EEXIST: there is such a group already; EBUSY: the vCPU runs, or has run; ENOENT:
 * no such vCPU, or its guest has no such counter; EBADF, EINVAL: other files than these, or
 * not this struct; EOPNOTSUPP: kprobes are locked; ENOMEM. Nothing has changed then.
 */
#define VPMU_KVM_LEND _IOWR('V', 0x55, struct vpmu_kvm_lend)

#endif /* VPMU_KVM_MODULE_H */
