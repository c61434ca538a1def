// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Branch records: the layouts of the registers that select branches, and the
 * stack, for engines whose translated code does not fill it.
 */
#include <vpmu/lbr.h>

const struct vpmu_lbr_filter vpmu_lbr_select = {
	.suppress = 0x1ff, .stack = 1u << 9,
	.ring = { 0, 1 }, .type = { 2, 6, 7, 4, 3, 5, 8 },
};

const struct vpmu_lbr_filter vpmu_lbr_ctl = {
	.suppress = 0, .stack = 1u << 3,
	.ring = { 1, 2 }, .type = { 16, 18, 17, 20, 19, 21, 22 },
};

static uint8_t lbr_act(const struct vpmu_lbr_filter *f, uint64_t value, bool user,
		       unsigned int type)
{
	uint64_t captured = value ^ f->suppress;

	if (!(captured >> f->ring[user] & 1) || !(captured >> f->type[type] & 1))
		return VPMU_BRANCH_DROP;
	if (type == VPMU_BRANCH_RET && value & f->stack)
		return VPMU_BRANCH_POP;
	return VPMU_BRANCH_PUSH;
}

void vpmu_lbr_start(struct vpmu_lbr *l, enum vpmu_lbr_user user,
		    const struct vpmu_lbr_filter *f, uint64_t value)
{
	unsigned int ring, type;

	vpmu_assert(user != VPMU_LBR_NOBODY);
	l->user = user;
	l->on = true;
	for (ring = 0; ring < 2; ring++)
		for (type = 0; type <= VPMU_BRANCH_FAR; type++)
			l->act[ring][type] = lbr_act(f, value, ring, type);
}

void vpmu_lbr_stop(struct vpmu_lbr *l, enum vpmu_lbr_user user)
{
	if (l->user != user && l->user != VPMU_LBR_NOBODY)
		return;
	l->user = VPMU_LBR_NOBODY;
	l->on = false;
	memset(l->act, VPMU_BRANCH_DROP, sizeof(l->act));
}

struct vpmu_lbr_entry *vpmu_lbr_at(struct vpmu_lbr *l, unsigned int age)
{
	unsigned int at = (unsigned int)l->next / VPMU_BRANCH_PUSH - 1 - age;
	struct vpmu_lbr_entry *e = &l->entry[at % VPMU_LBR_RING];
	uint64_t type = e->info >> VPMU_LBR_ENGINE_SHIFT & 15;

	vpmu_assert(age < VPMU_LBR_RING);
	if (e->info & VPMU_LBR_NEAR_MARK) {
		uint64_t sign = e->info >> 63 ? UINT64_MAX << VPMU_LBR_NEAR_BITS : 0;

		e->to = e->from + (sign | (e->info >> 21 & 0x7ff) << 16 | (e->info & 0xffff));
		e->info = 0;
	}
	e->info &= ~(15ull << VPMU_LBR_ENGINE_SHIFT);
	e->info |= type << VPMU_LBR_TYPE_SHIFT;
	return e;
}

void vpmu_lbr_record(struct vpmu_lbr *l, enum vpmu_branch_type type, bool user,
		     uint64_t from, uint64_t to)
{
	struct vpmu_lbr_entry *e;

	vpmu_assert(type <= VPMU_BRANCH_FAR);
	switch (l->act[user][type]) {
	case VPMU_BRANCH_PUSH:
		l->next += VPMU_BRANCH_PUSH;
		e = vpmu_lbr_at(l, 0);
		e->from = from;
		e->to = to;
		e->info = VPMU_LBR_INFO(type);
		break;
	case VPMU_BRANCH_POP:
		l->next -= VPMU_BRANCH_PUSH;
		l->more += VPMU_BRANCH_PUSH;
		memset(vpmu_lbr_at(l, VPMU_LBR_ENTRIES - 1), 0, sizeof(*e));
		break;
	default:
		break;
	}
}

void vpmu_lbr_interrupt(struct vpmu_lbr *l, bool user, uint64_t from, uint64_t to)
{
	const struct vpmu_lbr_entry *e = vpmu_lbr_at(l, 0);

	if (!l->on)
		return;
	l->ler_from = e->from;
	l->ler_to = e->to;
	l->ler_info = e->info;
	vpmu_lbr_record(l, VPMU_BRANCH_FAR, user, from, to);
}

void vpmu_lbr_clear(struct vpmu_lbr *l)
{
	memset(l->entry, 0, sizeof(l->entry));
}

void vpmu_lbr_restart(struct vpmu_lbr *l, uint64_t tos)
{
	uint64_t pushed = l->next + l->more;

	vpmu_lbr_clear(l);
	l->next = tos * VPMU_BRANCH_PUSH;
	l->more = pushed - l->next;
}

void vpmu_lbr_copy(struct vpmu_lbr *to, const struct vpmu_lbr *from)
{
	uint64_t pushed = to->next + to->more;

	memcpy(to, from, offsetof(struct vpmu_lbr, act));
	to->more = pushed - to->next;
}
