// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time during which the host did not count is not time running, so that perf scales. Perf
 * and the host use different clocks (the host's stops with the vCPU), hence the ratio.
 * Perf updates its times before it reads an event, and before the end of a bracket that
 * removes one.
 */
#include <linux/math64.h>
#include <linux/perf_event.h>

#include "vpmu_guest.h"

void vg_times_update(struct vg_times *t, struct perf_event *event, u64 enabled, u64 running,
		     bool lost)
{
	u64 perf = event->total_time_running;

	t->more_enabled += enabled - t->enabled;
	t->more_running += running - t->running;
	t->enabled = enabled;
	t->running = running;
	if (lost && !t->more_enabled)
		t->more_enabled = 1;
	if (perf <= t->seen) {
		t->seen = perf;
		return;
	}
	if (t->more_running < t->more_enabled)
		event->total_time_running = t->seen +
			mul_u64_u64_div_u64(perf - t->seen, t->more_running, t->more_enabled);
	t->seen = event->total_time_running;
	t->more_enabled = 0;
	t->more_running = 0;
}
