/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The architectural PMU of one vCPU, as a guest sees it: CPUID, MSRs, RDPMC, PMI.
 *
 * Three index spaces: `msr` is ECX of RDMSR and WRMSR, `rdpmc_idx` is ECX of
 * RDPMC, `pmc` numbers this PMU's counters (GP from 0, then fixed).
 *
 * Every function is called on the vCPU's own CPU or while it is stopped; none
 * blocks except where it may create or release a provider's event (WRMSR, reset,
 * load, and RDMSR of branch records: see provider.h). The instruction being
 * emulated has not retired when a function is called: the embedder retires it
 * afterwards, so an enabling WRMSR is counted and a disabling one is not.
 */
#ifndef VPMU_ARCH_H
#define VPMU_ARCH_H

#include <vpmu/filter.h>
#include <vpmu/loss.h>
#include <vpmu/model.h>
#include <vpmu/msr.h>
#include <vpmu/ops.h>
#include <vpmu/provider.h>
#include <vpmu/result.h>

struct vpmu_arch;

struct vpmu_arch_config {
	uint32_t size;                  /* sizeof(struct vpmu_arch_config) */
	const struct vpmu_model *model;
	uint8_t version;                /* 1 .. the model's, or its version_most; 0: the
					   model's. AMD: 2 is PerfMonV2, which needs
					   EXT_CORE */
	uint8_t n_gp;                   /* 1 .. the model's; 0: the model's. AMD: only
					   PerfMonV2 can tell the guest a number; else
					   it is 4, with EXT_CORE the model's */
	int8_t n_fixed;                 /* 0 .. the model's; -1: the model's (version
					   1 has none; the slots counter, number 3, only
					   where the provider counts slots) */
	uint64_t capabilities;          /* IA32_PERF_CAPABILITIES, within the
					   model's; used as it is, and PERF_METRICS added
					   where there are any and there is the slots
					   counter. AMD: VPMU_CAP_AMD_* */
	struct vpmu_provider *provider; /* this vCPU's */
	const struct vpmu_ops *ops;     /* kick and raise_pmi at least */
	void *ctx;                      /* passed to each hook */
	uint32_t cpuid_base;            /* vpmu's own leaves (loss.h), 40000000H +
					   n * 100H, n from 1 to 255: the guest is told
					   of losses (the provider needs a clock); 0: no
					   leaves, no loss block, no times */
	const struct vpmu_filter *filter; /* see vpmu_arch_filter() */
	uint8_t linear_bits;            /* width of linear addresses, with 5-level paging 57:
					   wider ones fault in DS_AREA; 0: 48 */
	bool regain;                    /* vpmu_arch_slice() tries lost counters again; false:
					   only what the guest does, as with KVM's own PMU */
	uint8_t physical_bits;          /* width of physical addresses, 32 to 52: wider ones
					   fault in PEBS_BASE; 0: 52 */
	bool lbr_elsewhere;             /* the embedder has the branch records of the legacy
					   format in capabilities and is told by
					   ops->set_debugctl when to record; see
					   vpmu_arch_lbr_elsewhere() */
};

struct vpmu_cpuid {
	uint32_t eax, ebx, ecx, edx;
};

/* A selector that the guest has enabled and the provider does not count. */
struct vpmu_uncounted {
	uint64_t select;   /* event select (AMD: with bits 35:32), unit mask, edge,
			      inv, cmask */
	uint64_t times;    /* how often it was enabled */
	const char *name;  /* from the model's table, or NULL */
	const char *needs; /* option that would count it, or NULL */
};
#define VPMU_UNCOUNTED_MAX 16

/**
 * Bytes of memory that a vCPU's PMU needs, or why the configuration is refused.
 *
 * @size: bytes, a multiple of 8; the memory must be aligned to 8
 * @err:  filled on failure
 *
 * Pure. Returns 0; -VPMU_EINVAL on a bad config; -VPMU_EOPNOTSUPP when the model
 * or the provider has less than was asked for.
 */
int vpmu_arch_size(const struct vpmu_arch_config *cfg, size_t *size,
		   struct vpmu_error *err);

/**
 * Set up a vCPU's PMU in memory of vpmu_arch_size() bytes, in the state after
 * power-on. Returns and fails like vpmu_arch_size().
 */
int vpmu_arch_init(struct vpmu_arch *v, const struct vpmu_arch_config *cfg,
		   struct vpmu_error *err);

/**
 * RESET: every register to its power-on value, every event released.
 * INIT (@init true) leaves the counters and selectors as they are and clears
 * IA32_DEBUGCTL. Source: SDM vol. 3, "Processor State After Reset".
 */
void vpmu_arch_reset(struct vpmu_arch *v, bool init);

/**
 * Fill in the PMU's part of a CPUID leaf: leaves 0AH, 1CH and 23H whole; PDCM (leaf
 * 1 ECX[15]), architectural LBR (leaf 7.0 EDX[19]) and ArchPerfmonExt (leaf 7.1
 * EAX[8]) set or cleared; every other bit of @regs stays as the caller has filled
 * it. The caller sees to it that leaf 0 admits 1CH with architectural LBR and 23H
 * with version 6, and leaf 7 its sub-leaf 1.
 * AMD: also leaf 80000022H whole; PerfCtrExtCore (leaf 80000001H ECX[23]) set or
 * cleared, IBS (ECX[10]), the northbridge's and the L3's counters (ECX[24], [28])
 * and branch sampling (leaf 80000008H EBX[31]) cleared. The caller sees to it that
 * leaf 80000000H admits 80000022H where that is not all zeros.
 * Pure. Returns true when something in the leaf is the PMU's.
 */
bool vpmu_arch_cpuid(const struct vpmu_arch *v, uint32_t leaf, uint32_t subleaf,
		     struct vpmu_cpuid *regs);

/**
 * IA32_MISC_ENABLE's PMU bits: the value of bits 7, 11, 12; others are 0. AMD has
 * none: 0. Pure.
 */
uint64_t vpmu_arch_misc_enable(const struct vpmu_arch *v);

/**
 * A guest's RDMSR. @value is written only when VPMU_HANDLED. Changes nothing that
 * a guest can see; of the loss block it first makes what is to be read true, and
 * may then call ops->kick. Of branch records it claims the facility, and may create
 * an event.
 */
enum vpmu_result vpmu_arch_rdmsr(struct vpmu_arch *v, uint32_t msr, uint64_t *value);

/**
 * A guest's WRMSR.
 *
 * @value: EDX:EAX; a set reserved bit is a fault, never masked silently, but
 *         by AMD's own registers, which ignore it
 *
 * May call every hook of ops.h, and every one of the provider.
 * Returns VPMU_NOT_MINE when @msr is no PMU register of any model; VPMU_FAULT also
 * for PMU registers that this configuration does not have.
 */
enum vpmu_result vpmu_arch_wrmsr(struct vpmu_arch *v, uint32_t msr, uint64_t value);

/**
 * The global status as a VMM restores it: exactly the bits of @value, without a PMI, also
 * where the guest itself can set none (Intel's versions 2 and 3).
 *
 * @value: 64 bits, laid out as this vendor's GLOBAL_STATUS; a PMU without one takes 0
 *
 * Called as vpmu_arch_wrmsr() is, and may call the same. Returns VPMU_HANDLED; or VPMU_FAULT,
 * with nothing changed, for a bit that the status does not have.
 * Source: SDM vol. 3, "IA32_PERF_GLOBAL_STATUS MSR"; APM vol. 2, "PerfCntrGlobalStatus".
 */
enum vpmu_result vpmu_arch_restore_status(struct vpmu_arch *v, uint64_t value);

/**
 * Whether @msr is a PMU register of this vendor: vpmu_arch_rdmsr() and vpmu_arch_wrmsr()
 * then handle it or fault, and never return VPMU_NOT_MINE. Pure; from anywhere.
 */
bool vpmu_arch_knows(const struct vpmu_arch *v, uint32_t msr);

/**
 * A guest's RDPMC whose privilege the embedder has checked (CPL, CR4.PCE).
 *
 * @rdpmc_idx: ECX
 * @user:      CPL is not 0; a counter may be hidden from it, and then reads 0
 * @value:     EDX:EAX, zero-extended from the counter's width
 *
 * Returns VPMU_HANDLED or VPMU_FAULT.
 * Source: SDM vol. 2, "RDPMC".
 */
enum vpmu_result vpmu_arch_rdpmc(struct vpmu_arch *v, uint32_t rdpmc_idx, bool user,
				 uint64_t *value);

/**
 * Second half of overflows and of losses: to be called on the vCPU before it
 * enters the guest, after ops->kick. Reloads counters, sets status bits, freezes,
 * finds out what was lost, raises the PMI (ops->raise_pmi, once). A counter that another
 * one's overflow reloads (version 6) is exact where this comes at the overflow.
 */
void vpmu_arch_service(struct vpmu_arch *v);

/**
 * A branch was recorded, and no instruction has retired since: its record gets what the counters
 * have counted that it logs. To be called on the vCPU while ops->watch_lbr has asked for it,
 * before vpmu_silicon_expire(); after other branches, or twice, it does nothing. Cannot fail.
 * Source: Linux, arch/x86/events/intel/lbr.c, "branch counters logging".
 */
void vpmu_arch_branched(struct vpmu_arch *v);

/**
 * The guest linear addresses that the PEBS record which is awaited will be written to, for
 * an embedder whose guest's memory may not be there: a record that meets a fault is lost.
 *
 * @linear: first and last byte of the DS save area's part that is read and written, and of
 *          the record, as far as that is known; each pair is within two pages
 *
 * Reads guest memory by ops->gva_to_gpa and ops->gpa_read; changes nothing. On the vCPU.
 * Returns how many of them are set: 0 while the next occurrence of no event is recorded, 2
 * if the DS save area cannot be read or the record has no room, else 4. With architectural
 * PEBS, whose buffer has a physical address, always 0.
 */
unsigned int vpmu_arch_record_places(struct vpmu_arch *v, uint64_t linear[4]);

/**
 * The vCPU entered (@entered) or left system management mode: with
 * IA32_DEBUGCTL.FREEZE_WHILE_SMM its GLOBAL_CTRL is 0 in between, so that nothing
 * counts unless the handler sets it. Branches are not recorded in between.
 */
void vpmu_arch_smm(struct vpmu_arch *v, bool entered);

/**
 * A debug exception (#DB) is about to be delivered: IA32_DEBUGCTL.LBR is cleared.
 */
void vpmu_arch_debug_exception(struct vpmu_arch *v);

/**
 * The vCPU's EFER.SVME is now @on: to be called after each change of it, and after
 * a load. GuestOnly and HostOnly (AMD) tell the nested banks from the others while
 * it is set; while it is clear a counter with either does not count. RESET and INIT
 * clear it. Nothing happens where it does not change, or without VPMU_CAP_AMD_SVM.
 *
 * May create and release events.
 * Source: AMD64 APM vol. 2, "Core Performance Event-Select Registers".
 */
void vpmu_arch_svme(struct vpmu_arch *v, bool on);

/**
 * Put an event filter in force, or NULL for none. @f: unchanged until another one
 * is in force; all vCPUs of a VM have the same. What it denies counts nothing, from
 * now on.
 *
 * May create and release events. Returns 0, or what vpmu_filter_check() returns;
 * also -VPMU_EINVAL for a masked entry with event select bits 35:32 where the
 * model's vendor, Intel, has none; then the old one stays.
 */
int vpmu_arch_filter(struct vpmu_arch *v, const struct vpmu_filter *f);

/**
 * A slice of time has passed: gives events back that are disabled and whose
 * counter and selector the guest has not written for a whole slice (reads are
 * served without an event). To be called on the vCPU about every
 * VPMU_SLICE_CYCLES while it returns true, or when its thread is scheduled in.
 *
 * With vpmu_arch_config.regain counters that are lost, and branch records, are also tried
 * again, up to 32 slices apart. Their events are replaced by new ones, so that no pinned
 * event of the host loses its counter by it.
 *
 * May create and release events. Returns false when no disabled event is left, and with
 * regain none that is enabled.
 */
bool vpmu_arch_slice(struct vpmu_arch *v);
#define VPMU_SLICE_CYCLES 2000000u

/** Number @i of the enabled selectors that are not counted; false after the last. */
bool vpmu_arch_uncounted(const struct vpmu_arch *v, size_t i, struct vpmu_uncounted *row);

/**
 * The state of a counter, for queries by the host.
 */
struct vpmu_pmc_info {
	uint64_t select;  /* PERFEVTSEL, or FIXED_CTR_CTRL's four bits of it */
	uint64_t value;   /* as the guest would read it */
	uint8_t enabled;  /* counts by its own and the global enable bits */
	uint8_t state;    /* enum vpmu_event_state of the provider's event */
	uint8_t quality;  /* enum vpmu_quality */
	uint8_t loss;     /* enum vpmu_loss: why it does not count, as of the last
			     service; asking changes nothing for the guest */
	uint32_t generation; /* how often that has changed */
	uint64_t time_enabled, time_running; /* as in the loss block (loss.h) */
};
bool vpmu_arch_pmc_info(struct vpmu_arch *v, unsigned int pmc, struct vpmu_pmc_info *info);

/** Likewise of its branch records; returns false when it has none. */
struct vpmu_lbr_info {
	uint8_t owned;       /* they are the guest's now */
	uint8_t loss;        /* enum vpmu_loss: none, or lost */
	uint32_t generation; /* how often that has changed */
};
bool vpmu_arch_lbr_info(struct vpmu_arch *v, struct vpmu_lbr_info *info);

/**
 * Say whether the embedder has the branch records for the guest
 * (vpmu_arch_config.lbr_elsewhere), which this PMU assumes at first. While it has, accesses to
 * their registers are its own. While it has not, it passes them to vpmu_arch_rdmsr() and
 * vpmu_arch_wrmsr(), which have a copy for what the guest writes: empty at a loss, but for
 * LBR_SELECT, which the embedder writes then. The guest is told of the loss by the loss block.
 * When @owned is true again, the embedder reads the copy into the registers.
 *
 * On the vCPU's thread, not from a hook of ops. Cannot fail; without lbr_elsewhere it does
 * nothing.
 */
void vpmu_arch_lbr_elsewhere(struct vpmu_arch *v, bool owned);

/**
 * Save everything that the guest can see and everything needed to go on.
 *
 * @buf:  at least @size bytes; NULL: only measure
 * @used: bytes written or needed
 *
 * Returns 0, or -VPMU_E2BIG. Changes nothing that a guest can see.
 */
int vpmu_arch_save(struct vpmu_arch *v, void *buf, size_t size, size_t *used);

/**
 * Load what vpmu_arch_save() wrote, into a PMU of the same vendor and version and
 * the same or a larger configuration. Every field is checked first; on failure nothing has changed.
 * Returns 0; -VPMU_EINVAL for malformed data or a register value that this
 * configuration does not allow; -VPMU_ENOSYS for a newer version.
 */
int vpmu_arch_load(struct vpmu_arch *v, const void *buf, size_t size);

/**
 * The reason why the last vpmu_arch_load() failed: a name of what the saved PMU had
 * and this one has not, or that the state is damaged. Never NULL.
 */
const struct vpmu_error *vpmu_arch_refused(const struct vpmu_arch *v);

#endif /* VPMU_ARCH_H */
