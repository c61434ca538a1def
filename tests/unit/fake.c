// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The scriptable provider; fake.h describes it. */
#include "fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define ROW(sel, um, text, fix, sig, req) \
	{ .name = text, .select = sel, .umask = um, .fixed = fix, .gp_mask = 0xff, \
	  .signals = sig, .quality = sig ? VPMU_QUALITY_EXACT : VPMU_QUALITY_NONE, \
	  .needs = req }
#define INS	VPMU_SIGNAL_BIT(VPMU_SIGNAL_INSTRUCTIONS)
#define BRA	VPMU_SIGNAL_BIT(VPMU_SIGNAL_BRANCHES)

static const struct vpmu_event_def fake_table[] = {
	ROW(0x00, 0x03, "REF_TSC", 2, INS, NULL),
	ROW(0x2e, 0x41, "LLC_MISS", -1, 0, "--uarch on"),
	ROW(0x3c, 0x00, "CYCLES", 1, INS, NULL),
	ROW(0x3c, 0x01, "REF_XCLK", -1, INS, NULL),
	ROW(0xc0, 0x00, "INSTRUCTIONS", 0, INS, NULL),
	ROW(0xc4, 0x00, "BRANCHES", -1, BRA, NULL),
	ROW(0xc5, 0x00, "MISPREDICTS", -1, 0, "--uarch on"),
};

static const uint8_t fake_models[] = { 106 };

const struct vpmu_model fake_model = {
	.name = "fake",
	.title = "for tests",
	.vendor = VPMU_VENDOR_INTEL,
	.family = 6,
	.models = fake_models,
	.n_models = 1,
	.version = 5,
	.n_gp = 8,
	.n_fixed = 3,
	.width_bits = 48,
	.n_arch_events = 8,
	.capabilities = FAKE_CAPS,
	.events = fake_table,
	.n_events = ARRAY_SIZE(fake_table),
};

static struct fake *fake_of(struct vpmu_provider *p)
{
	return (struct fake *)p;
}

static struct fake_event *fake_event(struct vpmu_event *ev)
{
	return (struct fake_event *)ev;
}

static enum vpmu_quality fake_quality(struct vpmu_provider *p,
				      const struct vpmu_event_attr *attr)
{
	const struct vpmu_event_def *def;

	if (attr->fixed >= 0 && fake_of(p)->no_fixed)
		return VPMU_QUALITY_NONE;
	def = vpmu_event_find(&fake_model, attr->select, attr->fixed);
	return def ? def->quality : VPMU_QUALITY_NONE;
}

static int fake_create(struct vpmu_provider *p, struct vpmu_event *ev,
		       const struct vpmu_event_attr *attr)
{
	struct fake *f = fake_of(p);
	struct fake_event *e = fake_event(ev);

	assert_true(f->batch);
	assert_true(attr->banks);
	assert_true(attr->slot >= 0 && attr->slot < FAKE_EVENTS);
	assert_int_equal(attr->slot, ev->index);
	assert_null(f->event[attr->slot]);
	assert_int_equal(attr->period, (uint64_t)1 << 48);
	f->n_create++;
	if (fake_quality(p, attr) == VPMU_QUALITY_NONE)
		return -VPMU_ENOENT;
	if (f->fail_create && !--f->fail_create)
		return f->fail_code;
	memset((char *)e + sizeof(e->head), 0, sizeof(*e) - sizeof(e->head));
	e->select = attr->select;
	e->fixed = attr->fixed;
	e->banks = attr->banks;
	e->period = attr->period;
	e->head.provider = p;
	e->head.quality = VPMU_QUALITY_EXACT;
	f->event[attr->slot] = e;
	return 0;
}

/* The fake of an event that must exist, in a batch. */
static struct fake *live(struct vpmu_event *ev)
{
	struct fake *f = fake_of(ev->provider);

	assert_true(f->batch);
	assert_ptr_equal(f->event[ev->index], ev);
	return f;
}

static void fake_release(struct vpmu_event *ev)
{
	struct fake *f = live(ev);

	f->n_release++;
	f->event[ev->index] = NULL;
	memset(ev, 0xa5, sizeof(*ev));
}

static int fake_enable(struct vpmu_event *ev)
{
	struct fake *f = live(ev);

	f->n_enable++;
	fake_event(ev)->lost = 0;
	if (f->fail_enable || f->taken >> ev->index & 1)
		fake_event(ev)->lost = VPMU_EVENT_ERROR;
	fake_event(ev)->enabled = !fake_event(ev)->lost;
	if (fake_event(ev)->enabled)
		return 0;
	f->unplaced = f->by_commit;
	if (f->by_change)
		ev->changed(ev);
	return f->by_commit || f->by_change ? 0 : -VPMU_EBUSY;
}

static void fake_disable(struct vpmu_event *ev)
{
	live(ev)->n_disable++;
	fake_event(ev)->enabled = false;
}

static uint64_t fake_read(struct vpmu_event *ev)
{
	assert_ptr_equal(fake_of(ev->provider)->event[ev->index], ev);
	return fake_event(ev)->count;
}

static void fake_arm(struct vpmu_event *ev, uint64_t left)
{
	assert_true(left >= 1);
	live(ev)->n_arm++;
	fake_event(ev)->left = left;
}

static enum vpmu_event_state fake_state(const struct vpmu_event *ev)
{
	const struct fake_event *e = (const struct fake_event *)ev;

	fake_of(ev->provider)->n_state++;
	if (e->lost == VPMU_EVENT_ERROR)
		return VPMU_EVENT_ERROR;
	if (!e->enabled)
		return VPMU_EVENT_OFF;
	return e->lost ? VPMU_EVENT_INACTIVE : VPMU_EVENT_ACTIVE;
}

static void fake_begin(struct vpmu_provider *p)
{
	fake_of(p)->batch++;
	fake_of(p)->n_begin++;
}

static int fake_commit(struct vpmu_provider *p)
{
	struct fake *f = fake_of(p);
	bool unplaced = f->unplaced;

	assert_true(f->batch);
	if (--f->batch)
		return 0;
	f->unplaced = false;
	return unplaced ? -VPMU_EBUSY : 0;
}

static uint64_t fake_clock(struct vpmu_provider *p, bool hold)
{
	struct fake *f = fake_of(p);

	f->n_clock++;
	if (hold && !f->held)
		f->time += 1000003; /* the clock may be anywhere after it stood still */
	f->held = hold;
	return f->time;
}

static uint64_t fake_running(struct vpmu_event *ev)
{
	assert_ptr_equal(fake_of(ev->provider)->event[ev->index], ev);
	return fake_event(ev)->ran;
}

static int fake_save(struct vpmu_provider *p, void *buf, size_t size, size_t *used)
{
	*used = sizeof(uint64_t);
	if (!buf)
		return 0;
	if (size < *used)
		return -VPMU_E2BIG;
	memcpy(buf, &fake_of(p)->tag, *used);
	return 0;
}

static int fake_load(struct vpmu_provider *p, const void *buf, size_t size)
{
	uint64_t tag;

	assert_int_equal(fake_events(fake_of(p)), 0);
	assert_false(fake_of(p)->held);
	if (size != sizeof(tag))
		return -VPMU_EINVAL;
	memcpy(&tag, buf, size);
	if (tag >> 32)
		return -VPMU_EINVAL;
	fake_of(p)->tag = tag;
	return 0;
}

static const struct vpmu_provider_ops fake_ops = {
	.size = sizeof(fake_ops),
	.event_size = sizeof(struct fake_event),
	.name = "fake",
	.quality = fake_quality,
	.create = fake_create,
	.release = fake_release,
	.enable = fake_enable,
	.disable = fake_disable,
	.read = fake_read,
	.arm = fake_arm,
	.state = fake_state,
	.begin = fake_begin,
	.commit = fake_commit,
	.save = fake_save,
	.load = fake_load,
};

static void fake_kick(void *ctx)
{
	struct fake *f = ctx;

	f->n_kick++;
	f->kicked = true;
}

static void fake_raise_pmi(void *ctx, bool mask)
{
	struct fake *f = ctx;

	f->n_pmi++;
	f->pmi_mask = mask;
}

void fake_config(struct fake *f, struct vpmu_arch_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->size = sizeof(*cfg);
	cfg->model = &fake_model;
	cfg->n_fixed = -1;
	cfg->provider = &f->provider;
	cfg->ops = &f->ops;
	cfg->ctx = f;
}

static void fake_record(void *ctx, const struct vpmu_trace_record *r)
{
	struct fake *f = ctx;

	if (!f->tracing)
		return;
	assert_true(f->n_trace < FAKE_TRACE);
	f->trace[f->n_trace++] = *r;
}

static struct fake *fake_make(int version, int n_gp, int n_fixed, uint64_t capabilities,
			      uint32_t cpuid_base, bool running)
{
	struct fake *f = test_calloc(1, sizeof(*f));
	struct vpmu_arch_config cfg;
	struct vpmu_error err;
	size_t size;

	f->provider_ops = fake_ops;
	if (cpuid_base)
		f->provider_ops.clock = fake_clock;
	if (running)
		f->provider_ops.running = fake_running;
	f->provider.ops = &f->provider_ops;
	f->provider.model = &fake_model;
	f->provider.n_gp = 8;
	f->provider.n_fixed = 3;
	f->ops.size = sizeof(f->ops);
	f->ops.kick = fake_kick;
	f->ops.raise_pmi = fake_raise_pmi;
	f->ops.trace = fake_record;
	fake_config(f, &cfg);
	cfg.version = version;
	cfg.n_gp = n_gp;
	cfg.n_fixed = n_fixed;
	cfg.capabilities = capabilities;
	cfg.cpuid_base = cpuid_base;
	assert_int_equal(vpmu_arch_size(&cfg, &size, &err), 0);
	assert_int_equal(size % 8, 0);
	f->v = test_malloc(size);
	memset(f->v, 0xa5, size);
	assert_int_equal(vpmu_arch_init(f->v, &cfg, &err), 0);
	return f;
}

struct fake *fake_new(int version, int n_gp, int n_fixed, uint64_t capabilities)
{
	return fake_make(version, n_gp, n_fixed, capabilities, 0, false);
}

struct fake *fake_new_loss(int version, int n_gp, int n_fixed, bool running)
{
	return fake_make(version, n_gp, n_fixed, FAKE_CAPS, FAKE_BASE, running);
}

void fake_trace(struct fake *f)
{
	f->tracing = true;
}

void fake_free(struct fake *f)
{
	f->tracing = false;
	vpmu_arch_reset(f->v, false);
	assert_false(f->held);
	assert_int_equal(fake_events(f), 0);
	assert_int_equal(f->batch, 0);
	test_free(f->v);
	test_free(f);
}

void fake_each_config(void (*test)(struct fake *f, int version, int n_gp,
					  int n_fixed, uint64_t caps))
{
	static const uint8_t gp[] = { 1, 2, 4, 7, 8 };
	static const uint64_t caps[] = { 0, BIT(12), BIT(13), BIT(12) | BIT(13) };
	int version, n_fixed;
	unsigned int g, c;

	for (version = 1; version <= 5; version++)
		for (g = 0; g < ARRAY_SIZE(gp); g++)
			for (n_fixed = 0; n_fixed <= (version > 1 ? 3 : 0); n_fixed++)
				for (c = 0; c < ARRAY_SIZE(caps); c++) {
					struct fake *f = fake_new(version, gp[g],
								  n_fixed, caps[c]);

					test(f, version, gp[g], n_fixed, caps[c]);
					fake_free(f);
				}
}

void fake_service(struct fake *f)
{
	while (f->kicked) {
		f->kicked = false;
		vpmu_arch_service(f->v);
	}
}

static void fake_count(struct fake_event *e, uint64_t n)
{
	e->count += n;
	while (e->left && n >= e->left) {
		n -= e->left;
		e->left = e->period;
		e->head.overflowed(&e->head);
	}
	if (e->left)
		e->left -= n;
}

void fake_tick(struct fake *f, enum vpmu_bank bank, uint64_t n)
{
	unsigned int i;

	f->time += f->held ? n : n / 2;
	for (i = 0; i < FAKE_EVENTS; i++) {
		struct fake_event *e = f->event[i];

		if (!e || !e->enabled || e->lost)
			continue;
		e->ran += n;
		if (e->banks & VPMU_BANK_BIT(bank))
			fake_count(e, n);
	}
	fake_service(f);
}

void fake_lose(struct fake *f, unsigned int pmc, enum vpmu_event_state state)
{
	struct fake_event *e = f->event[pmc];

	e->lost = state == VPMU_EVENT_ACTIVE ? 0 : (uint8_t)state;
	e->head.changed(&e->head);
}

unsigned int fake_events(const struct fake *f)
{
	unsigned int i, n = 0;

	for (i = 0; i < FAKE_EVENTS; i++)
		n += f->event[i] != NULL;
	return n;
}

void fake_wr(struct fake *f, uint32_t msr, uint64_t value)
{
	assert_int_equal(vpmu_arch_wrmsr(f->v, msr, value), VPMU_HANDLED);
	assert_int_equal(f->batch, 0);
}

uint64_t fake_rd(struct fake *f, uint32_t msr)
{
	uint64_t value = 0;

	assert_int_equal(vpmu_arch_rdmsr(f->v, msr, &value), VPMU_HANDLED);
	return value;
}

void fake_snap(struct vpmu_arch *v, struct fake_snap *snap)
{
	static const struct {
		uint32_t first, n;
	} range[] = {
		{ PMC, 8 }, { EVTSEL, 8 }, { DEBUGCTL, 1 }, { FIXED, 3 },
		{ CAPS, 1 }, { FIXED_CTRL, 6 }, { A_PMC, 8 },
	};
	uint32_t i, k;

	memset(snap, 0, sizeof(*snap));
	for (i = 0; i < ARRAY_SIZE(range); i++)
		for (k = 0; k < range[i].n; k++) {
			uint64_t value = 0;

			if (vpmu_arch_rdmsr(v, range[i].first + k, &value))
				value = 0xdead;
			assert_true(snap->n < FAKE_SNAP);
			snap->word[snap->n++] = value;
		}
}
