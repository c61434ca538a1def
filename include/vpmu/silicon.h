/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One physical PMU of one physical CPU: counter slots over signal totals.
 *
 * A counter is a difference: value = stored + (total now - total at start), so
 * any number of running counters costs the engine nothing. An overflow is a
 * deadline that the engine keeps to the exact occurrence.
 *
 * Slots are numbered from 0: first the GP counters, then the fixed ones.
 */
#ifndef VPMU_SILICON_H
#define VPMU_SILICON_H

#include <vpmu/event.h>
#include <vpmu/model.h>
#include <vpmu/ops.h>

#define VPMU_SLOTS_MAX 16 /* GP and fixed together; slot masks are 32 bits */
#define VPMU_SLOT_CLOCK VPMU_SLOTS_MAX /* the clock's slot, after all counters */

struct vpmu_silicon_config {
	uint32_t size;                 /* sizeof(struct vpmu_silicon_config) */
	const struct vpmu_model *model;
	/*
	 * Signals that the engine can supply; without CYCLES a cycle is counted
	 * per retired instruction. Leave out a signal that would slow the
	 * engine down.
	 */
	uint64_t supplied;
	const struct vpmu_ops *ops;    /* read_totals and set_deadlines at least */
	void *ctx;                     /* passed to each hook */
	/*
	 * First half of an overflow: slot @slot reached its deadline, or the
	 * timer went off (VPMU_SLOT_CLOCK). Called only by
	 * vpmu_silicon_expire() and vpmu_silicon_commit(), after the slot was
	 * re-armed with its period. Must not call silicon.
	 */
	void (*overflow)(void *owner, unsigned int slot);
	void *owner;
};

struct vpmu_slot {
	struct vpmu_recipe recipe; /* the slot's event */
	bool used;                 /* configured: its signals are demanded */
	bool running;
	/*
	 * When stopped: occurrences since configured; when running: that minus
	 * the scaled total at start.
	 */
	uint64_t count;
	uint64_t next;             /* count at which it overflows, VPMU_NEVER: it does not */
	uint64_t period;           /* added to next after an overflow; 0: none */
	uint64_t topdown[VPMU_TOPDOWN]; /* like `count`, if the recipe is topdown */
};

/* The caller owns the memory; fields are private to lib/silicon. */
struct vpmu_silicon {
	struct vpmu_silicon_config cfg;
	struct vpmu_ops ops;
	struct vpmu_signal_words now;    /* totals that were read last, rebased */
	struct vpmu_signal_words offset; /* difference to the totals that the engine supplies */
	struct vpmu_signal_words left;   /* deadlines last sent */
	uint64_t armed;                  /* signals that have a deadline */
	uint64_t demand;                 /* signals last demanded */
	uint64_t fresh;                  /* signals whose totals this batch has read */
	uint32_t wrapped;                /* slots whose overflow is to be reported */
	uint32_t batch;                  /* depth of begin/commit */
	bool changed;                    /* deadlines or demand to be sent */
	struct vpmu_slot slot[VPMU_SLOTS_MAX + 1]; /* the last one is the clock */
};

/**
 * Set up a PMU with all slots free.
 *
 * Does not call a hook. Returns 0, or -VPMU_EINVAL when a pointer is missing, the
 * size is smaller than this library's first version, or the model has more than
 * VPMU_SLOTS_MAX counters; @s is then unchanged.
 */
int vpmu_silicon_init(struct vpmu_silicon *s, const struct vpmu_silicon_config *cfg);

/**
 * Open and close a batch of operations; they nest. The outermost begin reads the
 * totals, so all operations of a batch happen at one instant; the outermost
 * commit sends demand and deadlines if they changed (a read changes neither). A
 * batch must not outlive the emulation of one instruction. Every function below
 * may be called inside a batch, and opens one of its own otherwise. vCPU's CPU
 * only; they do not block.
 */
void vpmu_silicon_begin(struct vpmu_silicon *s);
void vpmu_silicon_commit(struct vpmu_silicon *s);

/**
 * Give a slot its event; the slot is stopped, at count 0 and without a
 * deadline.
 *
 * @slot:   0 .. n_gp + n_fixed - 1
 * @recipe: what to count, from vpmu_event_resolve(); copied
 */
void vpmu_silicon_configure(struct vpmu_silicon *s, unsigned int slot,
			    const struct vpmu_recipe *recipe);

/** Free a slot: stops it; its signals are no longer demanded. */
void vpmu_silicon_free(struct vpmu_silicon *s, unsigned int slot);

/** Let a configured slot count, or stop it. Repeating either changes nothing. */
void vpmu_silicon_start(struct vpmu_silicon *s, unsigned int slot);
void vpmu_silicon_stop(struct vpmu_silicon *s, unsigned int slot);

/** Occurrences since the slot was configured, 64 bits, monotone. */
uint64_t vpmu_silicon_read(struct vpmu_silicon *s, unsigned int slot);

/**
 * Split a counter's issue slots since it was configured by topdown class
 * (VPMU_TOPDOWN words); zeros if its recipe is not topdown.
 */
void vpmu_silicon_topdown(struct vpmu_silicon *s, unsigned int slot, uint64_t *classes);

/**
 * Set when a slot overflows next: after @left more occurrences (1 or more;
 * VPMU_NEVER: not), and every @period after that (0: once).
 */
void vpmu_silicon_arm(struct vpmu_silicon *s, unsigned int slot, uint64_t left,
		      uint64_t period);

/** Occurrences until a slot overflows next, 1 or more; VPMU_NEVER: it does not. */
uint64_t vpmu_silicon_left(struct vpmu_silicon *s, unsigned int slot);

/**
 * Modelled time: cycles of the engine, all banks; if it supplies none, retired
 * instructions. It may stand still while the clock is not held.
 */
uint64_t vpmu_silicon_clock(struct vpmu_silicon *s);

/**
 * Keep the clock running whatever else is demanded, or stop doing so, which
 * stops the timer too.
 */
void vpmu_silicon_hold_clock(struct vpmu_silicon *s, bool hold);

/**
 * Call cfg.overflow with VPMU_SLOT_CLOCK once, when @left cycles from now have
 * passed (1 or more; VPMU_NEVER: not). The clock must be held.
 */
void vpmu_silicon_timer(struct vpmu_silicon *s, uint64_t left);

/**
 * Signals that counters count at this moment; a subset of those demanded. Pure.
 */
uint64_t vpmu_silicon_counting(const struct vpmu_silicon *s);

/**
 * The engine reached a deadline, or might have: finds the slots that wrapped,
 * re-arms them, calls cfg.overflow for each, and sends new deadlines. Calling
 * it early or without need is harmless. vCPU's CPU, outside of a batch.
 */
void vpmu_silicon_expire(struct vpmu_silicon *s);

/**
 * An absolute total, for saving and loading, so that scaled events (shift) keep
 * their phase. Rebase makes the next pull continue from @total; all slots must
 * be free. See state.h for the encoded form.
 */
uint64_t vpmu_silicon_total(struct vpmu_silicon *s, enum vpmu_signal signal,
			    enum vpmu_bank bank);
void vpmu_silicon_rebase(struct vpmu_silicon *s, enum vpmu_signal signal,
			 enum vpmu_bank bank, uint64_t total);

#endif /* VPMU_SILICON_H */
