// SPDX-License-Identifier: GPL-2.0-only
/* The code that differs between kernel versions; compat.h declares it. */
#include <linux/fs.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/syscore_ops.h>
#include <linux/version.h>

#include "compat.h"

#ifdef VG_HAVE_SYSCORE

static int (*vg_suspend)(void);
static void (*vg_resume)(void);

static int vg_syscore_suspend(void *unused)
{
	return vg_suspend();
}

static void vg_syscore_resume(void *unused)
{
	vg_resume();
}

static const struct syscore_ops vg_syscore_ops = {
	.suspend = vg_syscore_suspend,
	.resume = vg_syscore_resume,
};

static struct syscore vg_syscore = { .ops = &vg_syscore_ops };

void vg_compat_syscore_register(int (*suspend)(void), void (*resume)(void))
{
	vg_suspend = suspend;
	vg_resume = resume;
	register_syscore(&vg_syscore);
}

void vg_compat_syscore_unregister(void)
{
	unregister_syscore(&vg_syscore);
}

#else

static struct syscore_ops vg_syscore;

void vg_compat_syscore_register(int (*suspend)(void), void (*resume)(void))
{
	vg_syscore.suspend = suspend;
	vg_syscore.resume = resume;
	register_syscore_ops(&vg_syscore);
}

void vg_compat_syscore_unregister(void)
{
	unregister_syscore_ops(&vg_syscore);
}

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)

/*
 * The context of a task that once had an event of ours points to the PMU as long as the
 * task lives, and perf disables and enables that PMU when the task gets an event after a
 * later load. So the struct stays, with functions that do nothing and are outside this
 * module: noop_fsync() ignores its arguments and returns 0.
 */
void vg_compat_pmu_gone(struct pmu *pmu)
{
	pmu->pmu_disable_count = alloc_percpu(int);
	pmu->pmu_enable = (void *)noop_fsync;
	pmu->pmu_disable = (void *)noop_fsync;
	pmu->start_txn = (void *)noop_fsync;
	pmu->commit_txn = (void *)noop_fsync;
	pmu->cancel_txn = (void *)noop_fsync;
	pmu->event_init = NULL;
	pmu->add = NULL;
	pmu->del = NULL;
	pmu->start = NULL;
	pmu->stop = NULL;
	pmu->read = NULL;
	pmu->attr_groups = NULL;
	pmu->module = NULL;
	pmu->name = NULL;
}

#else

void vg_compat_pmu_gone(struct pmu *pmu)
{
	kfree(pmu);
}

#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)

void vg_compat_brstack(struct perf_sample_data *data, struct perf_event *event,
		       struct perf_branch_stack *stack)
{
	data->br_stack = stack;
	data->sample_flags |= PERF_SAMPLE_BRANCH_STACK;
}

#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)

void vg_compat_brstack(struct perf_sample_data *data, struct perf_event *event,
		       struct perf_branch_stack *stack)
{
	perf_sample_save_brstack(data, event, stack);
}

#else

void vg_compat_brstack(struct perf_sample_data *data, struct perf_event *event,
		       struct perf_branch_stack *stack)
{
	perf_sample_save_brstack(data, event, stack, NULL);
}

#endif
