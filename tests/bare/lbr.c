// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Branch records without an operating system. branches.S says which branches there
 * are; for many filters, and with recording frozen by an overflow after each of
 * them in turn, the records must be the last ones of those that the filter lets
 * through; likewise with the records counted instead of the branches. And what
 * interrupts, faulting accesses and resets do to them. Where records log counters, two do: each
 * record must have the number of branches since the one before it, and of those not taken.
 */
#include "bare.h"

#define N		32
#define BRANCHES	0xc4
#define INSERTS		0x20cc /* MISC_RETIRED.LBR_INSERTS */
#define NOT_TAKENS	0x04c4 /* Clearwater Forest's */
#define LOG		(1ull << 35) /* in a selector */
#define EVTSEL_QUIET	0x430000 /* USR, OS, EN */
#define LOG_MOST	3 /* or more */
#define FREEZE_LBRS	0x800
#define STATUS_LBR_FRZ	(1ull << 58)

#define DATA		0x1600000 /* address of the data, like in branches.S */
#define STACK		0x1800000
#define CODE		0x1a00000

enum { JCC, JMP_IND, JMP, CALL_IND, CALL, RET, FAR = 8, NOT_TAKEN = 0xff };

struct row {
	uint64_t from, to;
	uint8_t type, user, counted;
};
extern const struct row path[], path_end[];
extern uint64_t lbr_msr, lbr_on, counter_on, to_18;
extern char branch_pf[], branch_gp[], branch_ud[], branch_int[], branch_leave[],
	    branch_syscall[];
extern char call_1[], call_2[], call_1_to[], call_2_to[];
void branches(void);
void calls(uint64_t n);

static bool arch; /* architectural LBR */
static bool logs; /* with counters */
static uint64_t event = BRANCHES; /* its overflow freezes */
static volatile unsigned int n_pmi, n_timer;

struct record {
	uint64_t from, to, type;
	uint64_t log; /* two bits of each counter */
};

static void verdict(const char *name, const char *what, uint64_t value, uint64_t want)
{
	print(value == want ? "ok " : "not ok ");
	print(name);
	if (value != want) {
		print(": ");
		print(what);
		print(" is 0x");
		print_number(value, 16);
		print(", not 0x");
		print_number(want, 16);
	}
	print("\n");
}

bool on_trap(struct frame *f)
{
	if (f->vector == 2) {
		n_pmi++;
		return true;
	}
	if (f->vector == VECTOR_TIMER) {
		n_timer++;
		apic_write(APIC_EOI, 0);
		return true;
	}
	return false;
}

/* ---- the stack of records, whichever kind */

static uint32_t reg_from(unsigned int i) { return (arch ? 0x1500 : 0x680) + i; }
static uint32_t reg_to(unsigned int i) { return (arch ? 0x1600 : 0x6c0) + i; }
static uint32_t reg_info(unsigned int i) { return (arch ? 0x1200 : 0xdc0) + i; }

static void clear(void)
{
	if (arch) {
		wrmsr(0x14cf, N);
		return;
	}
	for (unsigned int i = 0; i < N; i++) {
		wrmsr(reg_from(i), 0);
		wrmsr(reg_to(i), 0);
		wrmsr(reg_info(i), 0);
	}
}

/* The newest first. */
static void get(struct record *r)
{
	unsigned int tos = arch ? 0 : rdmsr(0x1c9);

	for (unsigned int i = 0; i < N; i++) {
		unsigned int at = arch ? i : (tos - i) % N;

		r[i].from = rdmsr(reg_from(at));
		r[i].to = rdmsr(reg_to(at));
		r[i].type = rdmsr(reg_info(at)) >> 56 & 0xf;
		r[i].log = rdmsr(reg_info(at)) >> 32 & 0xff;
	}
}

/* ---- filters, in LBR_SELECT's terms */

static const uint8_t select_bit[] = {
	[JCC] = 2, [JMP_IND] = 6, [JMP] = 7, [CALL_IND] = 4, [CALL] = 3, [RET] = 5, [FAR] = 8,
};
static const uint8_t ctl_bit[] = {
	[JCC] = 16, [JMP_IND] = 18, [JMP] = 17, [CALL_IND] = 20, [CALL] = 19, [RET] = 21,
	[FAR] = 22,
};
#define CALL_STACK	0x200

static uint64_t ctl_of(uint64_t select)
{
	uint64_t ctl = 1;

	if (!(select & 1))
		ctl |= 2;
	if (!(select & 2))
		ctl |= 4;
	if (select & CALL_STACK)
		ctl |= 8;
	for (unsigned int t = 0; t < sizeof(ctl_bit); t++)
		if (ctl_bit[t] && !(select >> select_bit[t] & 1))
			ctl |= 1ull << ctl_bit[t];
	return ctl;
}

static bool passes(uint64_t select, const struct row *r)
{
	return r->type != NOT_TAKEN && !(select >> r->user & 1) &&
	       !(select >> select_bit[r->type] & 1);
}

static bool pops(uint64_t select, const struct row *r)
{
	return r->type == RET && select & CALL_STACK;
}

/* Compute the log of @n branches, of which @not_taken were not taken. */
static uint64_t log_of(uint64_t n, uint64_t not_taken)
{
	if (!logs)
		return 0;
	return (n < LOG_MOST ? n : LOG_MOST) | (not_taken < LOG_MOST ? not_taken : LOG_MOST) << 2;
}

/* Compute the records of the rows up to @end. */
static void expected(uint64_t select, const struct row *end, struct record *want)
{
	struct record ring[N] = { 0 };
	uint64_t n = 0, not_taken = 0;
	unsigned int tos = 0;

	for (const struct row *r = path; r < end; r++) {
		n += r->counted;
		not_taken += r->type == NOT_TAKEN;
		if (!passes(select, r))
			continue;
		if (pops(select, r)) {
			ring[tos] = (struct record){ 0 };
			tos = (tos - 1) % N;
			continue;
		}
		tos = (tos + 1) % N;
		ring[tos] = (struct record){ r->from, r->to, arch ? r->type : 0,
					     log_of(n, not_taken) };
		n = not_taken = 0;
	}
	for (unsigned int i = 0; i < N; i++)
		want[i] = ring[(tos - i) % N];
}

static void run(uint64_t select, uint64_t k)
{
	for (int i = 11; i <= 13; i++) {
		low[i] &= ~1ull;
		asm volatile("invlpg (%0)" : : "r" ((uint64_t)i << 21) : "memory");
	}
	wrmsr(MSR_GLOBAL, 0);
	wrmsr(MSR_RESET, rdmsr(MSR_STATUS));
	n_pmi = 0;
	apic_write(APIC_LVTPC, LVT_NMI);
	wrmsr(MSR_DEBUGCTL, FREEZE_LBRS);
	clear();
	wrmsr(MSR_PMC0, (uint32_t)-k);
	counter_on = EVTSEL_ON | event;
	if (logs) {
		counter_on |= LOG;
		wrmsr(MSR_EVTSEL0 + 1, EVTSEL_QUIET | NOT_TAKENS | LOG);
	}
	wrmsr(MSR_GLOBAL, logs ? 3 : 1);
	if (arch) {
		lbr_msr = 0x14ce;
		lbr_on = ctl_of(select);
	} else {
		wrmsr(0x1c8, select);
		lbr_msr = MSR_DEBUGCTL;
		lbr_on = FREEZE_LBRS | 1;
	}
	branches();
}

/* Field by field: the first difference, or N. */
static unsigned int differ(const struct record *a, const struct record *b, uint64_t *x,
			   uint64_t *y)
{
	for (unsigned int i = 0; i < N; i++) {
		*x = a[i].from, *y = b[i].from;
		if (*x != *y)
			return i;
		*x = a[i].to, *y = b[i].to;
		if (*x != *y)
			return i;
		*x = a[i].type, *y = b[i].type;
		if (*x != *y)
			return i;
		*x = a[i].log, *y = b[i].log;
		if (*x != *y)
			return i;
	}
	*x = *y = 0;
	return N;
}

static bool counts(uint64_t select, const struct row *r)
{
	return event == BRANCHES ? r->counted : passes(select, r) && !pops(select, r);
}

/* Every prefix, and the whole. */
static void check_filter(const char *name, uint64_t select)
{
	struct record found[N], want[N];
	uint64_t k = 0, x = 0, y = 0, n = 0;
	unsigned int at = N;
	bool frozen = true;

	for (const struct row *r = path; r < path_end; r++)
		n += counts(select, r);
	for (const struct row *r = path; r <= path_end && at == N && frozen; r++) {
		if (r < path_end && !counts(select, r))
			continue;
		k = r < path_end ? k + 1 : n + 1;
		run(select, k);
		frozen = n_pmi == (k <= n) &&
			 !(rdmsr(MSR_STATUS) & STATUS_LBR_FRZ) == (k > n);
		get(found);
		expected(select, r < path_end ? r + 1 : r, want);
		at = differ(found, want, &x, &y);
	}
	print(at == N && frozen ? "ok " : "not ok ");
	print(name);
	print(" ");
	print_number(select, 16);
	if (!frozen)
		print(": not frozen as it should be");
	if (at != N || !frozen) {
		print(": after branch ");
		print_number(k, 10);
		print(", record ");
		print_number(at, 10);
		print(": 0x");
		print_number(x, 16);
		print(", not 0x");
		print_number(y, 16);
	} else {
		print(", ");
		print_number(n, 10);
		print(" branches");
	}
	print("\n");
}

/* ---- interrupts in between */

static void check_interrupts(void)
{
	struct record found[N];

	wrmsr(MSR_GLOBAL, 0);
	wrmsr(MSR_RESET, rdmsr(MSR_STATUS));
	wrmsr(MSR_DEBUGCTL, 0);
	clear();
	n_timer = 0;
	apic_write(0x3e0, 0xb); /* divide by 1 */
	apic_write(APIC_LVT_TIMER, VECTOR_TIMER | 0x20000);
	apic_write(APIC_INITIAL, 20000);
	if (arch) {
		wrmsr(0x14ce, ctl_of(0x3c5));
	} else {
		wrmsr(0x1c8, 0x3c5);
		wrmsr(MSR_DEBUGCTL, 1);
	}
	asm volatile("sti");
	/* A host that is busy lets time pass in steps. */
	for (int i = 0; i < 1000 && n_timer <= 10; i++) {
		clear();
		user_call(calls, 200000);
	}
	asm volatile("cli");
	wrmsr(arch ? 0x14ce : MSR_DEBUGCTL, 0);
	apic_write(APIC_LVT_TIMER, LVT_MASKED);
	get(found);
	verdict("interrupts, there were some", "it", n_timer > 10, 1);
	verdict("interrupts, call 2 from", "it", found[0].from, (uintptr_t)call_2);
	verdict("interrupts, call 2 to", "it", found[0].to, (uintptr_t)call_2_to);
	verdict("interrupts, call 1 from", "it", found[1].from, (uintptr_t)call_1);
	verdict("interrupts, call 1 to", "it", found[1].to, (uintptr_t)call_1_to);
	verdict("interrupts, no third", "it", found[2].from | found[2].to, 0);
}

/* ---- registers */

static void check_faults(void)
{
	static const struct {
		const char *name;
		uint32_t msr;
		uint64_t good, bad;
		bool arch;
	} table[] = {
		{ "LBR_SELECT", 0x1c8, 0x3ff, 0x400, false },
		{ "TOS", 0x1c9, 31, 32, false },
		{ "LBR_CTL", 0x14ce, 0x7f000e, 0x10, true },
		{ "LBR_DEPTH", 0x14cf, 32, 16, true },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint64_t value = 0;

		if (table[i].arch != arch) {
			verdict(table[i].name, "its fault", try_rdmsr(table[i].msr, &value), 1);
			continue;
		}
		verdict(table[i].name, "the fault", try_wrmsr(table[i].msr, table[i].good), 0);
		verdict(table[i].name, "the fault", try_wrmsr(table[i].msr, table[i].bad), 1);
		verdict(table[i].name, "it", rdmsr(table[i].msr), table[i].good);
		if (table[i].msr != 0x14cf)
			wrmsr(table[i].msr, 0);
	}
	for (unsigned int i = 0; i < 5; i++) {
		verdict("a selector that is logged", "the fault",
			try_wrmsr(MSR_EVTSEL0 + i, LOG), !logs || i == 4);
		(void)try_wrmsr(MSR_EVTSEL0 + i, 0);
	}
	wrmsr(reg_info(3), 0xffull << 32);
	verdict("INFO, what is logged", "it", rdmsr(reg_info(3)), logs ? 0xffull << 32 : 0);
	wrmsr(reg_from(3), 0x1234);
	verdict("FROM", "it", rdmsr(reg_from(3)), 0x1234);
	clear();
	verdict("FROM, cleared", "it", rdmsr(reg_from(3)), 0);
}

/* The last interrupt leads to the last branch; before it is what LER must have. */
static void check_ler(void)
{
	const struct row *end = path;

	while (end < path_end)
		end++;
	run(0, 0);
	verdict("LER, from", "it", rdmsr(0x1dd), end[-3].from);
	verdict("LER, to", "it", rdmsr(0x1de), end[-3].to);
	if (arch)
		verdict("LER, type", "it", rdmsr(0x1e0) >> 56, end[-3].type);
}

/* A debug exception ends recording, and leaves no record; not in the newer kind. */
static void check_debug(void)
{
	struct record found[N];
	uint64_t on;

	clear();
	if (!arch)
		wrmsr(0x1c8, 0);
	wrmsr(arch ? 0x14ce : MSR_DEBUGCTL, arch ? ctl_of(0) : 1);
	asm volatile(".byte 0xf1"); /* INT1 */
	on = rdmsr(arch ? 0x14ce : MSR_DEBUGCTL) & 1;
	wrmsr(arch ? 0x14ce : MSR_DEBUGCTL, 0);
	verdict("#DB, recording", "it", on, arch);
	get(found);
	if (!arch)
		verdict("#DB, no record", "it", found[0].from | found[0].to, 0);
	else
		verdict("#DB, record", "it", found[0].type, FAR);
}

/* ---- a host that records branches, too: the cases of docs/VPMU.md, section 5.4 */

#define LOSS		0x56504d00

static void host(const char *what)
{
	print(what);
	print("\n");
	while (!(inb(0x3fd) & 1))
		;
	(void)inb(0x3f8);
}

/* Records a branch; whether there is a record of it. */
static bool use(void)
{
	struct record found[N];

	clear();
	if (!arch)
		wrmsr(0x1c8, 0);
	wrmsr(arch ? 0x14ce : MSR_DEBUGCTL, arch ? ctl_of(0) : 1);
	asm volatile("jmp 1f\n1:");
	wrmsr(arch ? 0x14ce : MSR_DEBUGCTL, 0);
	get(found);
	return found[0].from;
}

/* @records: there are some; @generation: how often that it is lost has changed. */
static void told(const char *name, bool records, bool want, uint64_t generation)
{
	uint64_t loss = rdmsr(LOSS + 3), status = rdmsr(LOSS + 1) >> 58 & 1;

	verdict(name, "[0] a record, [4] bit of LOSS_STATUS, [15:8] reason, [63:32] generation",
		records | status << 4 | (loss & 0xff) << 8 | loss >> 32 << 32,
		want | !want << 4 | !want << 8 | generation << 32);
}

static void check_host(void)
{
	struct record found[N];
	bool kept;

	host("owner none none 0");
	host("event cpu0:cycles:pinned:lbr");
	told("1: pinned first", use(), false, 1);
	host("owner host lost 1");
	host("gone");
	host("owner none lost 1");
	get(found);
	told("5: gone, only read", found[0].from, false, 1);
	told("5: gone, used again", use(), true, 2);
	host("owner guest none 2");
	host("event cpu0:cycles:pinned:lbr");
	get(found);
	told("3: pinned comes", found[0].from, false, 3);
	wrmsr(reg_from(2), 0x1234);
	verdict("3: what is written stays", "FROM", rdmsr(reg_from(2)), 0x1234);
	host("gone");
	told("3: used again", use(), true, 4);
	host("event cpu0:cycles:lbr");
	get(found);
	told("4: flexible comes", found[0].from, true, 4);
	host("gone");
	host("event vcpu0:cycles:pinned:lbr");
	get(found);
	told("6: the thread's own comes", found[0].from, true, 4);
	host("gone");
	/* Long enough unused, it is given back; what is recorded is kept. */
	for (volatile uint64_t i = 0; i < 10000000; i++)
		;
	host("owner none none 4");
	host("event cpu0:cycles:lbr");
	get(found);
	kept = found[0].from;
	told("2: flexible first", use(), true, 4);
	verdict("2: records are kept", "it", kept, true);
	host("gone");
}

static void set_up(void)
{
	gate(13, branch_gp);
	gate(6, branch_ud);
	gate(14, branch_pf);
	gate(1, branch_int);
	gate(0x90, branch_int);
	gate(0x91, branch_leave);
	wrmsr(0xc0000081, (uint64_t)0x1b << 48 | (uint64_t)KERNEL_CS << 32);
	wrmsr(0xc0000082, (uintptr_t)branch_syscall);
	wrmsr(0xc0000084, 0x700);
	apic_write(APIC_SVR, 0x1ff);
	*(volatile uint64_t *)DATA = to_18;
	*(volatile uint32_t *)CODE = 0x90e7ff41; /* jmp *%r15 */
}

int main(const char *line)
{
	static const uint16_t filters[] = {
		0, 1, 2, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 0x1ff,
		0x0e4, 0x0e5, 0x0e6, 0x1fb, 0x1f7, 0x1ef, 0x1df, 0x1bf, 0x17f, 0x0ff,
		0x3c4, 0x3c5, 0x3c6, 0x3cd, 0x3d5,
	};
	static const uint16_t counted[] = { 0, 1, 2, 1 << 8, 0x3c4, 0x3c5 };
	uint32_t a, b, c, d, model;

	cpuid(1, &a, &b, &c, &d);
	model = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
	cpuid(7, &a, &b, &c, &d);
	arch = d >> 19 & 1;
	if (arch) {
		cpuid(0x1c, &a, &b, &c, &d);
		logs = c >> 16 & 0xf;
	}
	if (option(line, "host", 0)) {
		check_host();
		return 0x21;
	}
	check_faults();
	set_up();
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		check_filter("filter", filters[i]);
	/* Ice Lake's and Sapphire Rapids' */
	event = INSERTS;
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		if (model == 106 || model == 143)
			check_filter("records of", counted[i]);
	event = BRANCHES;
	check_ler();
	check_debug();
	check_interrupts();
	return 0x21;
}
