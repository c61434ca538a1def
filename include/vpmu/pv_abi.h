/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The paravirtual PMU as guest and host see it, both versions of it. Specified in
 * docs/PV-ABI.md; this file is for both sides.
 *
 * Everything is little-endian; addresses are guest-physical.
 */
#ifndef VPMU_PV_ABI_H
#define VPMU_PV_ABI_H

#include <vpmu/loss.h>

/*
 * A hypercall: VMCALL or VMMCALL (whichever is the CPU's; both are accepted), number
 * in RAX, arguments in RBX, RCX, RDX, RSI, result in RAX; 32 bits each outside of
 * 64-bit mode. Results below 0 are these, negative.
 */
#define VPMU_PV_EPERM		1    /* not from ring 0 */
#define VPMU_PV_ENOENT		2    /* no counter counts this event; unknown id */
#define VPMU_PV_ENXIO		6    /* version 1: attr_addr */
#define VPMU_PV_E2BIG		7    /* too many operations in a batch, or none */
#define VPMU_PV_EACCES		13   /* the VM's event filter denies this event */
#define VPMU_PV_EFAULT		14   /* the address in the registers: alignment, not RAM */
#define VPMU_PV_EBUSY		16   /* enabled on another vCPU; the slot has another event */
#define VPMU_PV_EEXIST		17   /* the id is open already */
#define VPMU_PV_EINVAL		22   /* another argument is out of range */
#define VPMU_PV_ENOSPC		28   /* the VM's or the vCPU's limit of events */
#define VPMU_PV_ERANGE		34   /* SETUP: the vector */
#define VPMU_PV_EOPNOTSUPP	95   /* defined, and not offered here */
/* The page, or version 1's guest_event_addr: alignment, not writable RAM. */
#define VPMU_PV_EADDRNOTAVAIL	99
#define VPMU_PV_ENOSYS		1000 /* no such hypercall, no such operation */

/* ---- version 1, of 2010 ---- */

#define VPMU_PV1_FEATURE	4 /* bit of CPUID 40000001H EAX under "KVMKVMKVM" */
#define VPMU_PV1_HYPERCALL	3
#define VPMU_PV1_OPEN		1 /* a1, a2: low and high half of the address of params */
#define VPMU_PV1_CLOSE		2 /* a1: id */
#define VPMU_PV1_ENABLE		3 /* a1: id */
#define VPMU_PV1_DISABLE	4 /* a1: id */
#define VPMU_PV1_READ		5 /* a1: id */

/*
 * Layout in a 64-bit guest. A 32-bit one has its u64 at multiples of 4: see
 * PV-ABI.md.
 */
struct vpmu_pv1_attr {
	uint32_t type;        /* VPMU_PV_TYPE_... */
	uint32_t hole1;
	uint64_t config;      /* config of perf_event_attr */
	uint64_t sample_period; /* occurrences between overflows; 0: none */
	uint64_t sample_type; /* ignored by the host, as the next */
	uint64_t read_format;
	uint64_t flags;       /* VPMU_PV1_FLAG_... */
	uint32_t bp_type;     /* for breakpoints, which are not supported: ignored */
	uint32_t hole2;
	uint64_t bp_addr;
	uint64_t bp_len;
};
#define VPMU_PV1_ATTR_BYTES	72
#define VPMU_PV1_ATTR_BYTES_32	64

/* Bits of perf_event_attr's flag word that the host interprets. */
#define VPMU_PV1_FLAG_PINNED		(1ull << 2)
#define VPMU_PV1_FLAG_EXCLUDE_USER	(1ull << 4)
#define VPMU_PV1_FLAG_EXCLUDE_KERNEL	(1ull << 5)
#define VPMU_PV1_FLAG_FREQ		(1ull << 10) /* refused: the guest adapts */
#define VPMU_PV1_FLAG_PRECISE		(3ull << 15) /* refused */
#define VPMU_PV1_FLAG_EXCLUDE_HOST	(1ull << 19) /* like version 2's */
#define VPMU_PV1_FLAG_EXCLUDE_GUEST	(1ull << 20)
#define VPMU_PV1_FLAGS_KNOWN		((1ull << 21) - 1) /* others must be 0 */

struct vpmu_pv1_event { /* 16 bytes; 12 in a 32-bit guest */
	uint64_t count;
	int32_t overflows;
	int32_t hole;
};
#define VPMU_PV1_EVENT_BYTES	16
#define VPMU_PV1_EVENT_BYTES_32	12

struct vpmu_pv1_params { /* 24 bytes; 20 in a 32-bit guest */
	uint64_t attr;
	uint64_t event;
	int32_t id;
	int32_t hole;
};
#define VPMU_PV1_PARAMS_BYTES	20 /* bytes that the host reads of it in any guest */

/* Types of events, in both versions: perf_event_attr's. No others. */
#define VPMU_PV_TYPE_HARDWARE	0u
#define VPMU_PV_TYPE_HW_CACHE	3u
#define VPMU_PV_TYPE_RAW	4u

/* ---- version 2 ---- */

/*
 * Found by vpmu's CPUID block (loss.h), or, where the KVM signature is present, by
 * the operation VERSION.
 */
#define VPMU_CPUID_FEATURE_PV	2u /* in EAX of leaf VPMU_CPUID_FEATURES, bit 1 */
#define VPMU_CPUID_PV		3u /* leaf: EAX[7:0] version, [15:8] slots of a page,
				      [23:16] counters that the CPU model has, a hint
				      (0: unknown); EBX features below; ECX limit of
				      ids; EDX hypercall number. The unit of times is
				      EDX:ECX of leaf VPMU_CPUID_LOSS, Hz. */
#define VPMU_PV_VERSION		2u
#define VPMU_PV_HYPERCALL	0x56504d55u /* "UMPV": far from KVM's, which are small */

/* Operations: a0. Addresses are split: a1 low half, a2 high half, in any mode. */
/*
 * a1: word of the answer: 0 the magic below, 1 EAX, 2 EBX, 3 ECX of leaf
 * VPMU_CPUID_PV; 4 bits 30:0, 5 bits 61:31 of the unit of times in Hz.
 */
#define VPMU_PV_OP_VERSION	0u
#define VPMU_PV_OP_SETUP	1u /* for this vCPU's page: struct vpmu_pv_setup */
#define VPMU_PV_OP_BATCH	2u /* struct vpmu_pv_batch; returns the number of operations done */
#define VPMU_PV_OP_RESET	3u /* closes every event of the VM and forgets all pages,
				      as a reset does: for kexec */
#define VPMU_PV_MAGIC		0x76504d32u /* "vPM2" */

/* Features: EBX of the leaf. */
#define VPMU_PV_HAS_GROUPS	1u
#define VPMU_PV_HAS_VECTOR	2u /* overflows by an ordinary interrupt */
#define VPMU_PV_HAS_NESTED	4u /* distinguishes this guest from its nested guests */
#define VPMU_PV_HAS_DOORBELL	8u /* calls by WRMSR, too; without a hypercall EDX of the
				      leaf is 0 */
#define VPMU_PV_HAS_BRANCHES	16u /* branch records, with events that ask for them */
#define VPMU_PV_HAS_TOPDOWN	32u /* raw events VPMU_PV_RAW_SLOTS and _CLASS(0 to 3) */

/*
 * Linux's encodings of slots and of the topdown classes, by field of PERF_METRICS: retiring, bad
 * speculation, frontend bound, backend bound.
 */
#define VPMU_PV_RAW_SLOTS	0x0400u
#define VPMU_PV_RAW_CLASS(n)	(0x8000u + 0x100u * (n))

/*
 * The doorbell: WRMSR of the address of this struct, aligned to its size, has
 * the effect of the hypercall. #GP: the address is not writable RAM.
 */
#define VPMU_PV_MSR_DOORBELL	(VPMU_MSR_LOSS + 8)
struct vpmu_pv_call {
	uint32_t size;      /* sizeof(struct vpmu_pv_call) */
	uint32_t op;        /* a0 */
	uint32_t a1, a2;
	int64_t result;     /* written by the host */
	uint64_t zero;
};

struct vpmu_pv_setup {
	uint32_t size;      /* sizeof(struct vpmu_pv_setup) */
	uint32_t vector;    /* 32 to 255 with VPMU_PV_HAS_VECTOR; 0: NMI */
	/*
	 * 4 KiB-aligned RAM, for the host to write; 0: forget it. In any case
	 * this vCPU's events are disabled first.
	 */
	uint64_t page;
};

/* SETUP's argument with VPMU_PV_HAS_BRANCHES. */
struct vpmu_pv_setup_branches {
	struct vpmu_pv_setup setup; /* its size is that of the whole struct */
	uint64_t branches;  /* another such page, for struct vpmu_pv_branches; 0: none */
};

#define VPMU_PV_SLOTS 63

/*
 * The host's report on one event of this vCPU. It is consistent while seq is
 * even and the same before and after; the host makes it odd while it writes.
 */
struct vpmu_pv_slot {
	uint32_t seq;
	uint32_t id;        /* id of the event; 0: no event yet */
	uint64_t count;     /* count of the event since it was opened, on all vCPUs */
	uint64_t enabled;   /* time enabled and running, likewise; they stand still */
	uint64_t running;   /*   while the vCPU does not run; as of this write */
	uint32_t overflows; /* likewise, modulo 2^32: only ever incremented */
	uint32_t flags;     /* VPMU_PV_SLOT_... */
	uint64_t zero[3];
};
#define VPMU_PV_SLOT_ENABLED	1u
#define VPMU_PV_SLOT_LOST	2u /* enabled and not counting; see REASON */
#define VPMU_PV_SLOT_THROTTLED	4u /* overflowed too often: stands still for the rest of
				      a slice of time, or until it is enabled again */
#define VPMU_PV_SLOT_REASON	0xff00u /* enum vpmu_loss, in bits 15:8 */
#define VPMU_PV_SLOT_REASON_SHIFT 8
/* Number of changes of LOST, THROTTLED or REASON, modulo 2^16. */
#define VPMU_PV_SLOT_GENERATION	0xffff0000u
#define VPMU_PV_SLOT_GENERATION_SHIFT 16

/* Bitmaps of slots: slot n is bit n % 32 of word n / 32. */
struct vpmu_pv_page {
	uint32_t version;       /* VPMU_PV_VERSION, written at SETUP */
	uint32_t n_slots;
	uint32_t overflowed[2]; /* set by the host before it interrupts; the guest takes
				   a word by an atomic exchange with 0 */
	uint32_t changed[2];    /* slots whose GENERATION has changed: as above, without
				   an interrupt */
	uint64_t zero[5];
	struct vpmu_pv_slot slot[VPMU_PV_SLOTS];
};
#define VPMU_PV_PAGE_BYTES 4096

/*
 * The branches that were taken before an overflow, the newest first, as
 * filtered by the event's BRANCHES. They are written before the event's bit of
 * `overflowed`, and consistent as a slot is.
 */
#define VPMU_PV_BRANCH_ENTRIES	32u
struct vpmu_pv_branches {
	uint32_t seq;
	uint32_t n;         /* entries in use */
	uint32_t flags;     /* VPMU_PV_BRANCHES_... */
	uint32_t zero[13];
	struct {
		uint64_t from, to; /* instruction pointers: the branch, its target */
		uint64_t info;     /* bits 59:56 VPMU_PV_BRANCH_TYPE */
	} entry[VPMU_PV_BRANCH_ENTRIES];
};
#define VPMU_PV_BRANCHES_FROZEN	1u /* nothing is recorded until RESUME or an ENABLE */
#define VPMU_PV_BRANCH_TYPE_SHIFT 56 /* BR_TYPE of architectural LBR: 0 conditional, 1
					indirect and 2 direct jump, 3 indirect and 4
					direct call, 5 return, 8 far transfer, interrupt
					or exception */

enum vpmu_pv_op_code {
	VPMU_PV_OPEN = 1,    /* id, open.* */
	/*
	 * id, from any vCPU: on return the host no longer writes to any page
	 * for it.
	 */
	VPMU_PV_CLOSE = 2,
	VPMU_PV_ENABLE = 3,  /* id, slot, enable.*: counts on this vCPU from now on */
	VPMU_PV_DISABLE = 4, /* id: the slot is written a last time */
	VPMU_PV_READ = 5,    /* id, enabled on this vCPU: the slot is written */
	VPMU_PV_PERIOD = 6,  /* id, enabled on this vCPU, enable.*: another distance,
				another period */
	VPMU_PV_RESUME = 7,  /* this vCPU records branches again, if it is frozen */
};

struct vpmu_pv_op {
	uint16_t op;        /* enum vpmu_pv_op_code */
	/*
	 * Written by the host: with a negative result the offset in this struct
	 * of the invalid field; 0: none is.
	 */
	uint16_t wrong;
	int32_t result;     /* written by the host: 0, or negative */
	uint32_t id;        /* 1 .. the limit; the guest chooses, per VM */
	uint32_t slot;      /* slot in this vCPU's page */
	union {
		struct {
			uint32_t type;    /* VPMU_PV_TYPE_... */
			uint32_t flags;   /* VPMU_PV_EVENT_... */
			/*
			 * like perf_event_attr's; of a raw event: select 7:0,
			 * umask 15:8, edge 18, inv 23, cmask 31:24.
			 */
			uint64_t config;
			uint64_t config1; /* 0 */
			uint32_t leader;  /* id of an open leader, or 0 */
			uint32_t suppress; /* with VPMU_PV_EVENT_BRANCHES, else 0:
					      VPMU_PV_SUPPRESS_... */
			uint32_t zero[4];
		} open;
		struct {
			uint64_t left;   /* occurrences until the next overflow, 1 to
					    VPMU_PV_LEFT_MAX; 0: no overflow */
			/*
			 * Distance of each further overflow, at most
			 * VPMU_PV_LEFT_MAX; 0: none.
			 */
			uint64_t period;
			uint64_t zero[4];
		} enable;
	} u;
};
#define VPMU_PV_LEFT_MAX ((uint64_t)1 << 47)

#define VPMU_PV_EVENT_PINNED		1u
#define VPMU_PV_EVENT_EXCLUDE_USER	2u
#define VPMU_PV_EVENT_EXCLUDE_KERNEL	4u
#define VPMU_PV_EVENT_EXCLUDE_HOST	8u  /* counts only nested guests */
#define VPMU_PV_EVENT_EXCLUDE_GUEST	16u /* does not count nested guests */
#define VPMU_PV_EVENT_BRANCHES		32u /* its overflows come with branch records */

/* Branches that are not recorded: bits of Intel's and AMD's MSR LBR_SELECT. */
#define VPMU_PV_SUPPRESS_KERNEL		(1u << 0) /* those that end in ring 0 */
#define VPMU_PV_SUPPRESS_USER		(1u << 1) /* those that end in another ring */
#define VPMU_PV_SUPPRESS_COND		(1u << 2)
#define VPMU_PV_SUPPRESS_CALL		(1u << 3) /* near and direct */
#define VPMU_PV_SUPPRESS_IND_CALL	(1u << 4)
#define VPMU_PV_SUPPRESS_RET		(1u << 5)
#define VPMU_PV_SUPPRESS_IND_JMP	(1u << 6)
#define VPMU_PV_SUPPRESS_JMP		(1u << 7)
#define VPMU_PV_SUPPRESS_FAR		(1u << 8)
#define VPMU_PV_CALL_STACK		(1u << 9) /* a near return removes the newest record */
#define VPMU_PV_SUPPRESS_ALL		0x3ffu

#define VPMU_PV_BATCH_MAX 63

struct vpmu_pv_batch {
	uint32_t size;      /* bytes of the whole, operations included; in one 4 KiB page */
	uint32_t n_ops;     /* 1 .. VPMU_PV_BATCH_MAX */
	uint64_t zero[7];
	/*
	 * n_ops times struct vpmu_pv_op; done in order, a failure does not end
	 * the batch
	 */
};

#endif /* VPMU_PV_ABI_H */
