/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The whole contract with an embedder: the hooks that the core calls.
 *
 *	role           hooks                                    needed by
 *	-------------  ---------------------------------------  -------------------------
 *	engine         read_totals, set_deadlines               silicon
 *	               set_demand                               silicon, if not all signals
 *	                                                        are always counted
 *	vCPU           kick                                     both PMUs
 *	               raise_pmi                                the architectural PMU
 *	               inject                                   the paravirtual PMU
 *	               counter_restarted                        an engine with phases
 *	guest memory   gpa_read, gpa_write                      the paravirtual PMU, PEBS
 *	               gpa_map, gpa_unmap, gpa_dirty            the paravirtual PMU
 *	               gva_to_gpa                               PEBS
 *	lock           lock, unlock                             the paravirtual PMU of several
 *	                                                        vCPUs
 *	records        set_lbr                                  branch records
 *	               finish_lbr                               their predictions and cycles
 *	               watch_lbr                                counters that they log
 *	               set_debugctl                             branch records that are elsewhere
 *	               set_sampling, get_sample                 PEBS
 *	               set_load_latency                         PEBS' load latency
 *	trace          trace, traced                            a trace
 *
 * A hook that is not needed may be NULL; then the core goes without, as said
 * with each hook, or refuses a configuration that needs it. Every hook returns:
 * none may longjmp or raise a guest exception. `ctx` is the pointer that was
 * given together with the ops: one per vCPU. Unless a hook says otherwise it is
 * called on the vCPU's own CPU, with the vCPU outside of guest code, and must
 * not call back into the core.
 *
 * The core copies the struct when it is set up; later changes have no effect.
 * After version 0.1.0 hooks are only ever appended: an embedder that was
 * compiled earlier has a smaller `size`, and the hooks beyond it are NULL.
 */
#ifndef VPMU_OPS_H
#define VPMU_OPS_H

#include <vpmu/lbr.h>
#include <vpmu/pebs.h>
#include <vpmu/signal.h>
#include <vpmu/trace.h>

struct vpmu_ops {
	/* sizeof(struct vpmu_ops) as the embedder compiled it */
	uint32_t size;

	/* ---- engine: what retires and what is counted of it ---- */

	/*
	 * Supply the totals as of the last retired instruction: fill the words
	 * of all signals in @signals, each bank; other words need not be touched,
	 * and nothing relies on what is in them afterwards.
	 * An instruction in progress (a WRMSR being emulated) has not retired.
	 * Called by silicon whenever it needs to know; may not block. Not NULL
	 * for users of silicon.
	 */
	void (*read_totals)(void *ctx, uint64_t signals, struct vpmu_signal_words *totals);

	/*
	 * New deadlines: for each signal and bank the number of further
	 * occurrences, counted from the totals at the time of this call (which
	 * are those that were read last; a later read does not move them), at
	 * which the engine must call vpmu_silicon_expire(); VPMU_NEVER for none,
	 * 0 never occurs. Replaces all earlier deadlines. An engine may call
	 * early (the core then sends new ones) but must not call late. Called
	 * at the end of every operation that changed one, not of a read; may
	 * not block. Not NULL for users of silicon.
	 */
	void (*set_deadlines)(void *ctx, const struct vpmu_signal_words *left);

	/*
	 * The signals that must be counted from now on (VPMU_SIGNAL_BIT); totals
	 * of all others may stand still. Called when the set changes, before the
	 * deadlines are sent; may not block. NULL: the engine always counts all.
	 */
	void (*set_demand)(void *ctx, uint64_t signals);

	/* ---- vCPU ---- */

	/*
	 * Make the vCPU call vpmu_arch_service() before it enters the guest
	 * again (and vpmu_perf_service(), vpmu_pv_service(), where they are). Called
	 * from the first half of an overflow, of a loss or of a timer: from anywhere,
	 * NMI and other threads included; and from a guest's access that leaves
	 * something to do. May not block or take a lock. Not NULL.
	 */
	void (*kick)(void *ctx);

	/*
	 * Raise a performance monitoring interrupt: deliver the local APIC's
	 * LVTPC entry. @mask: set LVTPC's mask bit after a delivery, as Intel's
	 * APIC does; a masked entry delivers nothing and nothing is latched.
	 * Called by vpmu_arch_service(); may not block. Not NULL for users of
	 * the architectural PMU.
	 */
	void (*raise_pmi)(void *ctx, bool mask);

	/*
	 * Inject an interrupt into this vCPU: an NMI (@vector 0), or that vector
	 * of its local APIC. Called from service; may not block.
	 */
	void (*inject)(void *ctx, uint8_t vector);

	/*
	 * The guest has written another value than it found to a disabled
	 * counter: a new measurement begins. A guest that only resumes one
	 * writes the value that it found. Called within that MSR write, on the
	 * vCPU. May not block. NULL: not needed.
	 */
	void (*counter_restarted)(void *ctx);

	/* ---- guest memory ---- */

	/*
	 * Read and write guest memory by guest-physical address: copy @size
	 * bytes and return 0, or -VPMU_EFAULT if not all of it is RAM (for
	 * write: writable RAM); a write may then have been done in part. May be
	 * called from service; may block.
	 */
	int (*gpa_read)(void *ctx, uint64_t gpa, void *buf, uint32_t size);
	int (*gpa_write)(void *ctx, uint64_t gpa, const void *buf, uint32_t size);

	/*
	 * Map at most a page of writable RAM, within one page, for atomics. It
	 * stays mapped, even if the guest changes its memory map, until
	 * gpa_unmap, which also marks it dirty. gpa_dirty does so while it
	 * stays mapped, and may not block; NULL: no need. Another vCPU of the
	 * VM may unmap. Returns NULL if it is not RAM.
	 */
	void *(*gpa_map)(void *ctx, uint64_t gpa, uint32_t size);
	void (*gpa_unmap)(void *ctx, void *at, uint32_t size);
	void (*gpa_dirty)(void *ctx, void *at, uint32_t size);

	/*
	 * Translate a guest linear address to a guest-physical one, by the
	 * paging in force and with supervisor rights (@write: for a write).
	 * Returns 0, or -VPMU_EFAULT if that access is not allowed: the guest
	 * gets no fault, and nothing changes but accessed and dirty bits.
	 * Called by service.
	 */
	int (*gva_to_gpa)(void *ctx, uint64_t address, bool write, uint64_t *gpa);

	/* ---- lock ---- */

	/*
	 * A lock for the state that the vCPUs of a VM share, taken for bounded
	 * work by hypercalls and service; it need not nest. NULL if only one
	 * vCPU runs at a time.
	 */
	void (*lock)(void *ctx);
	void (*unlock)(void *ctx);

	/* ---- records: branches, and samples of instructions ---- */

	/*
	 * Set whether branches are recorded, and return the memory of this
	 * CPU's branch records, always the same. @record: from now on the engine
	 * has to look at each branch and do what lbr.h's acts say; false: it
	 * need not look (all acts are DROP). Called when that changes, and once
	 * at init with false; may not block. NULL: no branch records.
	 */
	struct vpmu_lbr *(*set_lbr)(void *ctx, bool record);

	/*
	 * @on: from the next instruction on, keep the data that get_sample()
	 *      reports of each, until called with false. Called when that
	 *      changes, outside of guest code; may not block. The cost lasts
	 *      from a wrap to the next occurrence.
	 *
	 * PEBS needs set_sampling, get_sample, gva_to_gpa, gpa_read and
	 * gpa_write; it has all of them or none.
	 */
	void (*set_sampling)(void *ctx, bool on);

	/* Report the last retired instruction; called by service while sampling is set. */
	void (*get_sample)(void *ctx, struct vpmu_sample *s);

	/*
	 * From now on a load of more than @cycles counts as
	 * VPMU_UARCH_LOAD_SLOW; at first 0. Called when that changes, after the
	 * totals have been read; may not block. NULL: that signal is not
	 * supplied.
	 */
	void (*set_load_latency)(void *ctx, uint32_t cycles);

	/*
	 * Write predictions and cycles of branches into @entries, the newest @n, as
	 * vpmu_lbr_at() has them, the newest first, VPMU_LBR_ENTRIES at most:
	 * VPMU_LBR_MISPREDICTED, VPMU_LBR_TIMED and VPMU_LBR_CYCLES of info. Called before the
	 * acts change and before entries are read, outside of guest code; may not block. NULL:
	 * the engine knows neither.
	 */
	void (*finish_lbr)(void *ctx, struct vpmu_lbr_entry *const *entries, unsigned int n);

	/*
	 * The embedder has the vCPU's branch records (vpmu_arch_config.lbr_elsewhere). @bits:
	 * VPMU_DEBUGCTL_LBR if branches are to be recorded from now on, and
	 * VPMU_DEBUGCTL_FREEZE_LBRS if an overflow is to end that; at first 0. Called when that
	 * changes, on any thread that loads or resets the PMU; and, while the embedder has lost
	 * the records, again with the same bits: it may try to get them. May sleep if the caller
	 * of the core may. NULL: lbr_elsewhere is refused. Source: SDM vol. 3, "Freezing LBR and
	 * Performance Counters on PMI".
	 */
	void (*set_debugctl)(void *ctx, uint64_t bits);

	/* ---- trace ---- */

	/*
	 * An event worth tracing; @r is valid during the call only, its `time`
	 * and `cpu` are 0, for the embedder to fill in. Called from anywhere
	 * but NMI, on the vCPU's CPU, also with the lock above held; may not
	 * block. NULL: no trace.
	 */
	void (*trace)(void *ctx, const struct vpmu_trace_record *r);
	/* The records that @trace wants: a bit for each enum vpmu_trace_type; 0: all. */
	uint64_t traced;

	/*
	 * @on: until called with false, call vpmu_arch_branched() after each branch that is
	 * recorded, before another instruction retires. Called when that changes, outside of
	 * guest code; may not block. NULL: branch records log no counters.
	 */
	void (*watch_lbr)(void *ctx, bool on);
};

/*
 * Copy the embedder's @ops to @to: hooks that lie behind @ops->size (in bytes) become
 * NULL. A size that ends within a hook does not cover it. It may be called in any
 * context and does not fail.
 */
static inline void vpmu_ops_copy(struct vpmu_ops *to, const struct vpmu_ops *ops)
{
	size_t size = ops->size < sizeof(*to) ? ops->size : sizeof(*to);

	memset(to, 0, sizeof(*to));
	memcpy(to, ops, size / sizeof(void *) * sizeof(void *));
	to->size = sizeof(*to);
}

/* Write a trace record, if there is a trace; @ops is the core's copy. */
static inline void vpmu_trace(const struct vpmu_ops *ops, void *ctx, unsigned int type,
			      unsigned int pmc, unsigned int what, uint64_t a, uint64_t b)
{
	struct vpmu_trace_record r;

	if (!ops->trace || (ops->traced && !(ops->traced >> type & 1)))
		return;
	memset(&r, 0, sizeof(r));
	r.type = (uint16_t)type;
	r.pmc = (uint16_t)pmc;
	r.what = (uint16_t)what;
	r.a = a;
	r.b = b;
	ops->trace(ctx, &r);
}

#endif /* VPMU_OPS_H */
