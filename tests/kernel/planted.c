// SPDX-License-Identifier: GPL-2.0-only
/*
 * One fault for each checker of a debug kernel, to see that it is found:
 * insmod planted.ko fault=NAME. The module itself always loads.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

static char *fault;
module_param(fault, charp, 0400);

static void use_after_free(void)
{
	char *p = kmalloc(100, GFP_KERNEL);

	kfree(p);
	OPTIMIZER_HIDE_VAR(p);
	if (p)
		WRITE_ONCE(p[50], 1);
}

static void sleep_in_atomic(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	kfree(kmalloc(100, GFP_KERNEL));
	spin_unlock(&lock);
}

static void lock_order(void)
{
	static DEFINE_MUTEX(a);
	static DEFINE_MUTEX(b);

	mutex_lock(&a);
	mutex_lock(&b);
	mutex_unlock(&b);
	mutex_unlock(&a);
	mutex_lock(&b);
	mutex_lock(&a);
	mutex_unlock(&a);
	mutex_unlock(&b);
}

static void rcu_unlocked(void)
{
	static int __rcu *shared;

	if (rcu_dereference(shared))
		pr_info("there is something\n");
}

static void shift(void)
{
	int n = 40;

	OPTIMIZER_HIDE_VAR(n);
	pr_info("%d\n", 1 << n);
}

static void bounds(void)
{
	/* Inside of the object, which is all that KASAN knows. */
	static struct {
		int four[4], more[4];
	} object;
	int n = 4;

	OPTIMIZER_HIDE_VAR(n);
	pr_info("%d\n", object.four[n]);
}

static void timer_over(struct timer_list *timer)
{
}

static void free_timer(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, timer_over, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer); /* whereupon debugobjects deletes it */
}

static void list_twice(void)
{
	static LIST_HEAD(list);
	static struct list_head entry;

	list_add(&entry, &list);
	list_del(&entry);
	list_del(&entry);
}

static void leak(void)
{
	void *p;
	int i;

	for (i = 0; i < 64; i++) {
		p = kmalloc(4000, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(p);
	}
}

static long shared;

static int add(void *unused)
{
	unsigned long end = jiffies + 4 * HZ;

	while (time_before(jiffies, end) && !kthread_should_stop()) {
		shared++;
		barrier();
		cond_resched();
	}
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

static void race(void)
{
	struct task_struct *thread[2];
	int i;

	for (i = 0; i < 2; i++)
		thread[i] = kthread_run(add, NULL, "planted/%d", i);
	msleep(4000);
	for (i = 0; i < 2; i++)
		if (!IS_ERR(thread[i]))
			kthread_stop(thread[i]);
}

static const struct {
	const char *name;
	void (*make)(void);
} faults[] = {
	{ "use-after-free", use_after_free },
	{ "sleep", sleep_in_atomic },
	{ "lock-order", lock_order },
	{ "rcu", rcu_unlocked },
	{ "shift", shift },
	{ "bounds", bounds },
	{ "timer", free_timer },
	{ "list", list_twice },
	{ "leak", leak },
	{ "race", race },
};

static int __init planted_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (!fault || strcmp(fault, faults[i].name))
			continue;
		faults[i].make();
		return 0;
	}
	return -EINVAL;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("Faults that a debug kernel has to find");
MODULE_LICENSE("GPL");
