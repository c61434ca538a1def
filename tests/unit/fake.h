/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A provider under the test's control, and an embedder around it: occurrences
 * come from fake_tick(), creation fails when the test says so, and each call that
 * provider.h wants in a batch is checked to be in one.
 */
#ifndef FAKE_H
#define FAKE_H

#include <vpmu/arch.h>

#define FAKE_EVENTS	16

/*
 * Register numbers and bits as the manual prints them, not as msr.h has them: a
 * wrong constant there must not hide itself.
 */
#define BIT(n)		((uint64_t)1 << (n))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MASK48		(BIT(48) - 1)

#define PMC		0x0c1
#define EVTSEL		0x186
#define DEBUGCTL	0x1d9
#define FIXED		0x309
#define CAPS		0x345
#define FIXED_CTRL	0x38d
#define STATUS		0x38e
#define GLOBAL		0x38f
#define OVF_CTRL	0x390
#define STATUS_SET	0x391
#define INUSE		0x392
#define A_PMC		0x4c1

/* EN, and USR or OS or both */
#define EN_USR		(BIT(22) | BIT(16))
#define EN_OS		(BIT(22) | BIT(17))
#define EN_ALL		(BIT(22) | BIT(16) | BIT(17))
#define INT		BIT(20)
#define INSTRUCTIONS	0xc0
#define BRANCHES	0xc4
#define LLC_MISS	0x412e

struct fake_event {
	struct vpmu_event head;
	uint64_t select;
	uint64_t count, left, period; /* left 0: not armed */
	uint64_t ran;      /* time that it has counted */
	int32_t fixed;
	uint8_t banks;
	bool enabled;
	uint8_t lost;      /* VPMU_EVENT_INACTIVE or _ERROR, or 0 */
	uint8_t pad;
};

#define FAKE_TRACE	64
#define FAKE_BASE	0x40000300u /* base of the leaves of fake_new_loss() */


struct fake {
	struct vpmu_provider provider;
	struct vpmu_provider_ops provider_ops;
	struct vpmu_ops ops;
	struct vpmu_arch *v;
	struct fake_event *event[FAKE_EVENTS]; /* those that exist */

	uint32_t fail_create;  /* number of the create, from now on, that fails; 0: none */
	int fail_code;
	bool fail_enable;
	bool no_fixed;         /* no counter counts the fixed counters' events */
	uint32_t taken;        /* slots that cannot be enabled, by pmc */
	bool by_commit;        /* ... and only commit and state tell of it */
	bool by_change;        /* ... only the first half and state */
	bool unplaced;

	uint32_t n_create, n_release, n_enable, n_disable, n_arm, n_begin;
	uint32_t batch;
	uint32_t n_kick, n_pmi;
	bool kicked, pmi_mask;
	uint64_t tag;          /* the provider's state */
	uint64_t time;         /* anything, unless held */
	bool held;
	uint32_t n_clock, n_state;
	bool tracing;
	uint32_t n_trace;
	struct vpmu_trace_record trace[FAKE_TRACE];
};

/* Like an Icelake, with seven events. */
extern const struct vpmu_model fake_model;

#define FAKE_CAPS (VPMU_CAP_FULL_WIDTH | VPMU_CAP_SMM_FREEZE)

/* Makes a PMU; version, n_gp and n_fixed as in struct vpmu_arch_config. */
struct fake *fake_new(int version, int n_gp, int n_fixed, uint64_t capabilities);
void fake_free(struct fake *f);

/* One of which the guest is told losses; @running: the provider knows how long. */
struct fake *fake_new_loss(int version, int n_gp, int n_fixed, bool running);

/* Keep a trace from now on. */
void fake_trace(struct fake *f);

/* @pmc's event stops counting (@state), or counts again (ACTIVE), and says so. */
void fake_lose(struct fake *f, unsigned int pmc, enum vpmu_event_state state);
void fake_config(struct fake *f, struct vpmu_arch_config *cfg);

/* Run @test for a PMU of every version, with all that can vary. */
void fake_each_config(void (*test)(struct fake *f, int version, int n_gp,
				   int n_fixed, uint64_t caps));

/* @n occurrences of everything in @bank, one a tick; then the second half. */
void fake_tick(struct fake *f, enum vpmu_bank bank, uint64_t n);
void fake_service(struct fake *f);
unsigned int fake_events(const struct fake *f);

/* Accesses that must be handled. */
void fake_wr(struct fake *f, uint32_t msr, uint64_t value);
uint64_t fake_rd(struct fake *f, uint32_t msr);

/* Every register that can be read, by number, for comparisons. */
#define FAKE_SNAP	64
struct fake_snap {
	uint32_t n;
	uint64_t word[FAKE_SNAP];
};
void fake_snap(struct vpmu_arch *v, struct fake_snap *snap);

#endif /* FAKE_H */
