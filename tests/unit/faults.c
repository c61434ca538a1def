// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Fault injection into hooks and providers; faults.h describes it. */
#include <stdlib.h>
#include <string.h>

#include "faults.h"

#define EVENTS_MAX	64

struct faults faults;

static struct vpmu_ops real_ops;
static struct vpmu_provider_ops real;
static struct vpmu_provider_ops wrapped;

/* Events that there are; and whether they are in ERROR, until they can be enabled. */
static struct {
	struct vpmu_event *ev;
	bool failed;
} events[EVENTS_MAX];

static bool fails(const char *what)
{
	unsigned int i;

	faults.n++;
	if (!faults.at || (faults.on ? faults.n < faults.at : faults.n != faults.at))
		return false;
	for (i = 0; faults.hit[i] && strcmp(faults.hit[i], what); i++)
		;
	faults.hit[i] = what;
	return true;
}

bool faults_hit(const char *name)
{
	unsigned int i;

	for (i = 0; faults.hit[i]; i++)
		if (!strcmp(faults.hit[i], name))
			return true;
	return false;
}

bool faults_hit_other(const char *name)
{
	return faults.hit[0] && (faults.hit[1] || strcmp(faults.hit[0], name));
}

/* Hooks */

static int fault_read(void *ctx, uint64_t gpa, void *buf, uint32_t size)
{
	return fails("gpa_read") ? -VPMU_EFAULT : real_ops.gpa_read(ctx, gpa, buf, size);
}

/* Half of it is written. */
static int fault_write(void *ctx, uint64_t gpa, const void *buf, uint32_t size)
{
	if (!fails("gpa_write"))
		return real_ops.gpa_write(ctx, gpa, buf, size);
	if (size > 1)
		(void)real_ops.gpa_write(ctx, gpa, buf, size / 2);
	return -VPMU_EFAULT;
}

static void *fault_map(void *ctx, uint64_t gpa, uint32_t size)
{
	return fails("gpa_map") ? NULL : real_ops.gpa_map(ctx, gpa, size);
}

static int fault_gva_to_gpa(void *ctx, uint64_t address, bool write, uint64_t *gpa)
{
	return fails("gva_to_gpa") ? -VPMU_EFAULT : real_ops.gva_to_gpa(ctx, address, write, gpa);
}

void faults_ops(struct vpmu_ops *ops)
{
	if (ops->gpa_read == fault_read)
		return;
	real_ops = *ops;
	ops->gpa_read = fault_read;
	ops->gpa_write = fault_write;
	if (ops->gpa_map)
		ops->gpa_map = fault_map;
	if (ops->gva_to_gpa)
		ops->gva_to_gpa = fault_gva_to_gpa;
}

/* The provider */

/* The place of @ev, or (NULL) a free one. */
static unsigned int place(const struct vpmu_event *ev)
{
	unsigned int i;

	for (i = 0; i < EVENTS_MAX && events[i].ev != ev; i++)
		;
	if (i == EVENTS_MAX)
		abort();
	return i;
}

static enum vpmu_quality fault_quality(struct vpmu_provider *p, const struct vpmu_event_attr *attr)
{
	return fails("quality") ? VPMU_QUALITY_NONE : real.quality(p, attr);
}

static int fault_create(struct vpmu_provider *p, struct vpmu_event *ev,
			const struct vpmu_event_attr *attr)
{
	int ret = fails("create") ? faults.code : real.create(p, ev, attr);
	unsigned int i;

	if (ret)
		return ret;
	i = place(NULL);
	events[i].ev = ev;
	events[i].failed = false;
	return 0;
}

static void fault_release(struct vpmu_event *ev)
{
	events[place(ev)].ev = NULL;
	real.release(ev);
}

static int fault_enable(struct vpmu_event *ev)
{
	events[place(ev)].failed = fails("enable");
	if (!events[place(ev)].failed)
		return real.enable(ev);
	real.disable(ev);
	return -VPMU_EBUSY;
}

static enum vpmu_event_state fault_state(const struct vpmu_event *ev)
{
	return events[place(ev)].failed ? VPMU_EVENT_ERROR : real.state(ev);
}

void faults_die(void)
{
	unsigned int i;

	for (i = 0; i < EVENTS_MAX; i++) {
		if (!events[i].ev)
			continue;
		real.disable(events[i].ev);
		events[i].failed = true;
		events[i].ev->changed(events[i].ev);
	}
}

/* Commit reports that some event has no place, although all have. */
static int fault_commit(struct vpmu_provider *p)
{
	int ret = real.commit(p);

	return fails("commit") ? -VPMU_EBUSY : ret;
}

static int fault_save(struct vpmu_provider *p, void *buf, size_t size, size_t *used)
{
	return fails("save") ? -VPMU_E2BIG : real.save(p, buf, size, used);
}

static int fault_load(struct vpmu_provider *p, const void *buf, size_t size)
{
	return fails("load") ? -VPMU_EINVAL : real.load(p, buf, size);
}

void faults_provider(struct vpmu_provider *p)
{
	if (p->ops == &wrapped)
		return;
	real = *p->ops;
	wrapped = real;
	wrapped.quality = fault_quality;
	wrapped.create = fault_create;
	wrapped.release = fault_release;
	wrapped.enable = fault_enable;
	wrapped.state = fault_state;
	if (real.commit)
		wrapped.commit = fault_commit;
	if (real.save)
		wrapped.save = fault_save;
	if (real.load)
		wrapped.load = fault_load;
	p->ops = &wrapped;
}
