// SPDX-License-Identifier: GPL-2.0-only
/*
 * Branch records: translates perf's filters for the host and the host's entries for perf.
 */
#include "vpmu_guest.h"

/* Retries: an event of the kernel may overflow while the records are read. */
#define VG_BRANCH_TRIES	8

#define VG_BRANCH_KNOWN	(PERF_SAMPLE_BRANCH_PLM_ALL | PERF_SAMPLE_BRANCH_ANY | \
			 PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_ANY_RETURN | \
			 PERF_SAMPLE_BRANCH_IND_CALL | PERF_SAMPLE_BRANCH_COND | \
			 PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_IND_JUMP | \
			 PERF_SAMPLE_BRANCH_CALL | PERF_SAMPLE_BRANCH_NO_FLAGS | \
			 PERF_SAMPLE_BRANCH_NO_CYCLES | PERF_SAMPLE_BRANCH_TYPE_SAVE | \
			 PERF_SAMPLE_BRANCH_HW_INDEX)

static const struct {
	u64 perf;
	u32 let; /* VPMU_PV_SUPPRESS_..., which this filter must not ask for */
} vg_branch_filters[] = {
	{ PERF_SAMPLE_BRANCH_KERNEL, VPMU_PV_SUPPRESS_KERNEL },
	{ PERF_SAMPLE_BRANCH_USER, VPMU_PV_SUPPRESS_USER },
	{ PERF_SAMPLE_BRANCH_ANY, VPMU_PV_SUPPRESS_ALL & ~VPMU_PV_CALL_STACK &
	  ~(VPMU_PV_SUPPRESS_KERNEL | VPMU_PV_SUPPRESS_USER) },
	{ PERF_SAMPLE_BRANCH_ANY_CALL, VPMU_PV_SUPPRESS_CALL | VPMU_PV_SUPPRESS_IND_CALL |
	  VPMU_PV_SUPPRESS_FAR },
	{ PERF_SAMPLE_BRANCH_ANY_RETURN, VPMU_PV_SUPPRESS_RET | VPMU_PV_SUPPRESS_FAR },
	{ PERF_SAMPLE_BRANCH_CALL, VPMU_PV_SUPPRESS_CALL },
	{ PERF_SAMPLE_BRANCH_IND_CALL, VPMU_PV_SUPPRESS_IND_CALL },
	{ PERF_SAMPLE_BRANCH_IND_JUMP, VPMU_PV_SUPPRESS_IND_JMP },
	{ PERF_SAMPLE_BRANCH_COND, VPMU_PV_SUPPRESS_COND },
	{ PERF_SAMPLE_BRANCH_CALL_STACK, VPMU_PV_SUPPRESS_CALL | VPMU_PV_SUPPRESS_IND_CALL |
	  VPMU_PV_SUPPRESS_RET },
};

/* perf's type, by the type of an entry */
static const u8 vg_branch_types[] = {
	PERF_BR_COND, PERF_BR_IND, PERF_BR_UNCOND, PERF_BR_IND_CALL, PERF_BR_CALL, PERF_BR_RET,
};

#define VG_BRANCH_FAR	8

u32 vg_branch_suppress(const struct perf_event *event)
{
	u64 wanted = event->attr.branch_sample_type;
	u32 suppress = VPMU_PV_SUPPRESS_ALL & ~VPMU_PV_CALL_STACK;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(vg_branch_filters); i++)
		if (wanted & vg_branch_filters[i].perf)
			suppress &= ~vg_branch_filters[i].let;
	return wanted & PERF_SAMPLE_BRANCH_CALL_STACK ? suppress | VPMU_PV_CALL_STACK : suppress;
}

int vg_branch_init(const struct perf_event *event)
{
	if (!has_branch_stack((struct perf_event *)event))
		return 0;
	if (!(vg.features & VPMU_PV_HAS_BRANCHES) ||
	    event->attr.branch_sample_type & ~VG_BRANCH_KNOWN)
		return -EOPNOTSUPP;
	return 0;
}

/*
 * A far transfer is a call or a return. Within the kernel it may be either, so it is
 * kept.
 */
static bool vg_branch_unwanted(u64 wanted, unsigned int type, u64 from, u64 to)
{
	bool into = (s64)to < 0, out_of = (s64)from < 0;

	if (type != VG_BRANCH_FAR || wanted & PERF_SAMPLE_BRANCH_ANY || (into && out_of))
		return false;
	return !(wanted & (into ? PERF_SAMPLE_BRANCH_ANY_CALL : PERF_SAMPLE_BRANCH_ANY_RETURN));
}

static void vg_branch_entries(struct vg_cpu *c, u64 wanted)
{
	const struct vpmu_pv_branches *b = c->branches;
	unsigned int i, type, n = min(READ_ONCE(b->n), VPMU_PV_BRANCH_ENTRIES);

	c->brstack->nr = 0;
	c->brstack->hw_idx = -1ULL;
	for (i = 0; i < n; i++) {
		struct perf_branch_entry *e = &c->brstack->entries[c->brstack->nr];
		u64 from = READ_ONCE(b->entry[i].from), to = READ_ONCE(b->entry[i].to);

		type = READ_ONCE(b->entry[i].info) >> VPMU_PV_BRANCH_TYPE_SHIFT & 0xf;
		if (vg_branch_unwanted(wanted, type, from, to))
			continue;
		memset(e, 0, sizeof(*e));
		e->from = from;
		e->to = to;
		if (wanted & PERF_SAMPLE_BRANCH_TYPE_SAVE && type < ARRAY_SIZE(vg_branch_types))
			e->type = vg_branch_types[type];
		c->brstack->nr++;
	}
}

struct perf_branch_stack *vg_branch_read(struct vg_cpu *c, const struct perf_event *event)
{
	unsigned int i;
	u32 seq;

	for (i = 0; i < VG_BRANCH_TRIES; i++) {
		seq = READ_ONCE(c->branches->seq);
		/*
		 * Pairs with the host's barrier before it stores an even seq: the
		 * records of that seq are visible.
		 */
		smp_rmb();
		vg_branch_entries(c, event->attr.branch_sample_type);
		/*
		 * Pairs with the host's barrier after it stores an odd seq: if newer
		 * records were read, seq has changed.
		 */
		smp_rmb();
		if (!(seq & 1) && READ_ONCE(c->branches->seq) == seq)
			return c->brstack;
	}
	c->brstack->nr = 0;
	return c->brstack;
}

void vg_branch_thaw(struct vg_cpu *c)
{
	u32 seq;

	if (!(vg.features & VPMU_PV_HAS_BRANCHES))
		return;
	seq = READ_ONCE(c->branches->seq);
	if (seq == c->branch_seq)
		return;
	c->branch_seq = seq;
	c->frozen = READ_ONCE(c->branches->flags) & VPMU_PV_BRANCHES_FROZEN;
}
