// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The cost of the perf scheduler as work grows. One CPU, no engine: only lib/ runs.
 *
 *   events   N flexible events on a CPU, of which 8 count at a time: opened,
 *            disabled and enabled again in another order, rotated, closed
 *   vCPUs    N with 8 counters each, switched in and out in turn
 *
 * Prints nanoseconds of CPU time per operation, the best of several runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vpmu/model.h>
#include <vpmu/vcpu.h>

#define RUNS		5
#define SUPPLIED	(VPMU_SIGNALS_ALL & ~VPMU_SIGNALS_UARCH)
#define COUNTERS	8
#define STRIDE		7919 /* prime: visits every event once, in another order */

enum operation { OPEN, TOGGLE, ROTATE, CLOSE, OPERATIONS };

static struct vpmu_signal_words now;

static void read_totals(void *ctx, uint64_t signals, struct vpmu_signal_words *totals)
{
	(void)ctx;
	for (int i = 0; i < VPMU_SIGNAL_COUNT; i++)
		if (signals & VPMU_SIGNAL_BIT(i))
			memcpy(totals->word[i], now.word[i], sizeof(now.word[i]));
}

static void set_deadlines(void *ctx, const struct vpmu_signal_words *left)
{
	(void)ctx;
	(void)left;
}

static const struct vpmu_ops ops = {
	.size = sizeof(ops),
	.read_totals = read_totals,
	.set_deadlines = set_deadlines,
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *memory(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		fprintf(stderr, "sched: %zu times %zu bytes are not to be had\n", n, size);
		exit(1);
	}
	return p;
}

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "sched: %s: %s\n", what, strerror(-err));
	exit(1);
}

static struct vpmu_event_attr branches(bool pinned)
{
	return (struct vpmu_event_attr) {
		.size = sizeof(struct vpmu_event_attr),
		.banks = VPMU_BANKS_KERNEL | VPMU_BANKS_USER,
		.pinned = pinned,
		.fixed = -1,
		.slot = -1,
		.select = 0xc4,
	};
}

/* Passes on the clock until the multiplexing timer goes off. */
static void tick(struct vpmu_perf_cpu *cpu)
{
	now.word[VPMU_SIGNAL_INSTRUCTIONS][VPMU_BANK_USER] += cpu->system->mux_cycles;
	vpmu_silicon_expire(&cpu->silicon);
	vpmu_perf_service(cpu);
}

static void measure_events(struct vpmu_perf_cpu *cpu, size_t n, double *cost)
{
	struct vpmu_perf_event *ev = memory(n, sizeof(*ev));
	struct vpmu_perf_attr attr = { .size = sizeof(attr), .event = branches(false), .cpu = -1 };
	size_t i, at;
	double t = seconds();

	for (i = 0; i < n; i++)
		check(vpmu_perf_open(&ev[i], &attr, cpu, NULL), "open");
	cost[OPEN] = seconds() - t, t = seconds();
	for (i = 0, at = 0; i < n; i++, at = (at + STRIDE) % n)
		vpmu_perf_disable(&ev[at]);
	for (i = 0, at = n - 1; i < n; i++, at = (at + STRIDE) % n)
		check(vpmu_perf_enable(&ev[at]), "enable");
	cost[TOGGLE] = seconds() - t, t = seconds();
	for (i = 0; i < n; i++)
		tick(cpu);
	cost[ROTATE] = seconds() - t, t = seconds();
	for (i = 0, at = 0; i < n; i++, at = (at + STRIDE) % n)
		vpmu_perf_close(&ev[at]);
	cost[CLOSE] = seconds() - t;
	free(ev);
}

/* Seconds for @rounds turns of @n vCPUs, each a switch in, a guest, a switch out. */
static double measure_vcpus(struct vpmu_perf_cpu *cpu, size_t n, size_t rounds)
{
	struct vpmu_vcpu *v = memory(n, sizeof(*v));
	struct vpmu_perf_event *ev = memory(n * COUNTERS, sizeof(*ev));
	struct vpmu_event_attr attr = branches(true);
	double t;

	for (size_t i = 0; i < n; i++) {
		check(vpmu_vcpu_init(&v[i], cpu->system, VPMU_POLICY_SHARED), "vCPU");
		for (size_t k = i * COUNTERS; k < (i + 1) * COUNTERS; k++) {
			check(vpmu_vcpu_ops.create(&v[i].provider, &ev[k].head, &attr), "create");
			vpmu_vcpu_ops.enable(&ev[k].head);
		}
	}
	t = seconds();
	for (size_t r = 0; r < rounds; r++)
		for (size_t i = 0; i < n; i++) {
			vpmu_vcpu_load(&v[i], cpu);
			vpmu_vcpu_enter(&v[i]);
			now.word[VPMU_SIGNAL_INSTRUCTIONS][VPMU_BANK_USER] += 1000;
			vpmu_vcpu_exit(&v[i]);
			vpmu_vcpu_put(&v[i]);
		}
	t = seconds() - t;
	for (size_t k = 0; k < n * COUNTERS; k++)
		vpmu_vcpu_ops.release(&ev[k].head);
	free(ev);
	free(v);
	return t;
}

static void fresh_cpu(struct vpmu_perf_cpu *cpu, struct vpmu_perf_system *sys)
{
	/* Intel Icelake-SP: eight GP counters */
	vpmu_perf_system_init(sys, vpmu_model_find(VPMU_VENDOR_INTEL, 6, 0x6a), SUPPLIED,
			      400000000, 1600000);
	check(vpmu_perf_cpu_init(cpu, sys, 0, &ops, NULL), "CPU");
}

static void events_table(struct vpmu_perf_cpu *cpu, struct vpmu_perf_system *sys)
{
	double best[OPERATIONS], total[5], cost[OPERATIONS];
	int row = 0;

	printf("ns per event            open   toggle   rotate    close      sum\n");
	for (size_t n = 1; n <= 10000; n *= 10, row++) {
		size_t repeat = 10000 / n;

		for (int i = 0; i < OPERATIONS; i++)
			best[i] = 1e9;
		for (int r = 0; r < RUNS; r++) {
			double sum[OPERATIONS] = { 0 };

			fresh_cpu(cpu, sys);
			for (size_t k = 0; k < repeat; k++) {
				measure_events(cpu, n, cost);
				for (int i = 0; i < OPERATIONS; i++)
					sum[i] += cost[i];
			}
			for (int i = 0; i < OPERATIONS; i++)
				if (sum[i] < best[i])
					best[i] = sum[i];
		}
		printf("%6zu events     ", n);
		total[row] = 0;
		for (int i = 0; i < OPERATIONS; i++) {
			best[i] *= 1e9 / (double)(n * repeat);
			total[row] += best[i];
			printf(" %8.0f", best[i]);
		}
		printf(" %8.0f\n", total[row]);
	}
	printf("from 100 to 10000 events one costs %.2f times as much (n log n: 2.00)\n\n",
	       total[4] / total[2]);
}

static void vcpus_table(struct vpmu_perf_cpu *cpu, struct vpmu_perf_system *sys)
{
	double first = 0, cost = 0;

	printf("ns per turn of a vCPU with %d counters: in, a guest, out\n", COUNTERS);
	for (size_t n = 1; n <= 1000; n *= 10) {
		size_t rounds = 10000 / n;

		cost = 1e9;
		for (int r = 0; r < RUNS; r++) {
			double t;

			fresh_cpu(cpu, sys);
			t = measure_vcpus(cpu, n, rounds);
			if (t < cost)
				cost = t;
		}
		cost *= 1e9 / (double)(n * rounds);
		first = n == 1 ? cost : first;
		printf("%6zu vCPUs       %8.0f\n", n, cost);
	}
	printf("from 1 to 1000 vCPUs a turn costs %.2f times as much\n", cost / first);
}

int main(void)
{
	static struct vpmu_perf_system sys;
	static struct vpmu_perf_cpu cpu;

	events_table(&cpu, &sys);
	vcpus_table(&cpu, &sys);
	return 0;
}
