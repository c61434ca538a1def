// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The paravirtual PMU without an operating system: counts and overflows to the very
 * instruction, in both versions; and the rights to call. Prints a line per case.
 *
 * Command line: abi=N, 1: version 1, 2: version 2, 3: both; 0: there is none.
 * turns=N: all of it N times.
 * host=1: the test's host part takes all counters away when "take" is printed, and then
 * sends a byte to the serial port.
 * halted=1: only the events of a halted vCPU that another one closes; the host part
 * compares the counters in use with the number after "used", and sends a byte.
 */
#include "bare.h"
#include "pv.h"

static volatile struct {
	unsigned int n;
	uint64_t rip, vector;
} hit;

#define RFLAGS_TF	0x100

static struct vpmu_pv_page page __attribute__((aligned(4096)));
static struct vpmu_pv_branches records __attribute__((aligned(4096)));
static struct { struct vpmu_pv_batch head; struct vpmu_pv_op op[VPMU_PV_BATCH_MAX]; }
	batch __attribute__((aligned(4096))), other __attribute__((aligned(4096)));

bool on_trap(struct frame *f)
{
	if (f->vector == 6) { /* VMCALL and VMMCALL are no instructions here */
		hit.n++;
		f->rip += 3;
		return true;
	}
	if (f->vector == 1) { /* single_step(): once is enough */
		f->rflags &= ~RFLAGS_TF;
		return true;
	}
	if (f->vector != 2 && f->vector != VECTOR_PMI)
		return false;
	hit.n++;
	hit.rip = f->rip;
	hit.vector = f->vector;
	if (f->vector == VECTOR_PMI)
		apic_write(APIC_EOI, 0);
	return true;
}

static void expect_in(const char *name, const char *what, int64_t value, int64_t want)
{
	print(value == want ? "ok " : "not ok ");
	print(name);
	if (value != want) {
		print(": ");
		print(what);
		print(value < 0 ? " is -" : " is ");
		print_number(value < 0 ? -value : value, 10);
		print(want < 0 ? ", not -" : ", not ");
		print_number(want < 0 ? -want : want, 10);
	}
	print("\n");
}

/*
 * VMCALL, NOPs, and another one, both of version @nr with a0 and a1 given: what
 * enables counts itself, what disables does not. Returns the first NOP's address.
 */
#define BETWEEN	(1 + 97 + 5)
static uint64_t between(uint32_t nr, uint32_t on0, uint64_t on1, uint32_t off0, uint64_t off1)
{
	register uint64_t r8 asm("r8") = off0, r9 asm("r9") = off1, r10 asm("r10") = nr;
	uint64_t at;

	asm volatile("lea 1f(%%rip), %0\n\t"
		     "vmcall\n"
		     "1: .rept 97; nop; .endr\n\t"
		     "mov %%r10, %%rax\n\t"
		     "mov %%r9, %%rcx\n\t"
		     "mov %%r8, %%rbx\n\t"
		     "nop\n\t"
		     "nop\n\t"
		     "vmcall"
		     : "=&S" (at), "+a" (nr), "+b" (on0), "+c" (on1)
		     : "d" (0), "r" (r8), "r" (r9), "r" (r10)
		     : "memory", "rdi");
	return at;
}

/* ---- version 2 */

static struct vpmu_pv_op *op(uint16_t code, uint32_t id)
{
	struct vpmu_pv_op *o = &batch.op[batch.head.n_ops++];

	memset(o, 0, sizeof(*o));
	o->op = code;
	o->id = id;
	o->result = 1;
	return o;
}

static int64_t go(void)
{
	batch.head.size = sizeof(batch.head) + batch.head.n_ops * sizeof(struct vpmu_pv_op);
	return pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, (uintptr_t)&batch, 0);
}

static void begin(void)
{
	memset(&batch.head, 0, sizeof(batch.head));
}

static void opening(uint32_t id, uint32_t type, uint64_t config, uint32_t flags)
{
	struct vpmu_pv_op *o = op(VPMU_PV_OPEN, id);

	o->u.open.type = type;
	o->u.open.config = config;
	o->u.open.flags = flags;
}

static void enabling(uint32_t id, uint32_t slot, uint64_t left, uint64_t period)
{
	struct vpmu_pv_op *o = op(VPMU_PV_ENABLE, id);

	o->slot = slot;
	o->u.enable.left = left;
	o->u.enable.period = period;
}

/* The first error among the last batch's results, or 0 */
static int64_t results(void)
{
	for (uint32_t i = 0; i < batch.head.n_ops; i++)
		if (batch.op[i].result)
			return batch.op[i].result;
	return 0;
}

/* ENABLE by batch, NOPs, DISABLE by other. */
static uint64_t counted(void)
{
	return between(VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, (uintptr_t)&batch,
		       VPMU_PV_OP_BATCH, (uintptr_t)&other);
}

static void disabling(uint32_t id)
{
	begin();
	op(VPMU_PV_DISABLE, id);
	batch.head.size = sizeof(batch.head) + sizeof(struct vpmu_pv_op);
	other = batch;
	begin();
}

static int64_t set_up(uint32_t vector)
{
	struct vpmu_pv_setup s = { sizeof(s), vector, (uintptr_t)&page };

	return pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, (uintptr_t)&s, 0);
}

static void check_overflows(void)
{
	uint64_t at = 0, k;

	for (k = 1; k <= 98; k++) {
		disabling(1);
		enabling(1, 0, k, 0);
		batch.head.size = sizeof(batch.head) + sizeof(struct vpmu_pv_op);
		page.overflowed[0] = 0;
		hit.n = 0;
		at = counted();
		if (hit.n != 1 || hit.rip != at + k - 1 || page.overflowed[0] != 1)
			break;
	}
	expect_in("v2, overflow at each instruction", "the last that is right", k - 1, 98);
	expect_in("v2, overflows", "their number", page.slot[0].overflows, 98);
}

static void check_vector(void)
{
	uint64_t at;

	expect_in("v2, vector 31", "SETUP", set_up(31), -VPMU_PV_ERANGE);
	expect_in("v2, vector", "SETUP", set_up(VECTOR_PMI), 0);
	disabling(1);
	enabling(1, 5, 50, 0);
	batch.head.size = sizeof(batch.head) + sizeof(struct vpmu_pv_op);
	hit.n = 0;
	asm volatile("sti");
	at = counted();
	asm volatile("cli");
	expect_in("v2, vector, interrupts", "number", hit.n, 1);
	expect_in("v2, vector, which", "it", hit.vector, VECTOR_PMI);
	expect_in("v2, vector, address", "it", hit.rip - at, 49);
	expect_in("v2, vector, bitmap", "it", page.overflowed[0], 1 << 5);
	expect_in("v2, so far", "overflows", page.slot[5].overflows, 99);
	disabling(1);
	enabling(1, 5, 10, 20);
	batch.head.size = sizeof(batch.head) + sizeof(struct vpmu_pv_op);
	counted();
	asm volatile("sti; nop; cli"); /* one came of them */
	expect_in("v2, again and again", "overflows", page.slot[5].overflows,
		  99 + 1 + (BETWEEN - 10) / 20);
	expect_in("v2, back to NMI", "SETUP", set_up(0), 0);
}

static void check_batch(void)
{
	begin();
	opening(2, VPMU_PV_TYPE_HARDWARE, 4, 0);
	opening(2, VPMU_PV_TYPE_HARDWARE, 4, 0);
	op(77, 2);
	enabling(2, 63, 0, 0);
	enabling(2, 1, 0, 0);
	op(VPMU_PV_DISABLE, 3);
	op(VPMU_PV_CLOSE, 2);
	expect_in("v2, a batch", "answer", go(), 7);
	expect_in("v2, OPEN", "result", batch.op[0].result, 0);
	expect_in("v2, OPEN twice", "result", batch.op[1].result, -VPMU_PV_EEXIST);
	expect_in("v2, OPEN twice, wrong", "offset", batch.op[1].wrong, 8);
	expect_in("v2, no such operation", "result", batch.op[2].result, -VPMU_PV_ENOSYS);
	expect_in("v2, no such slot", "result", batch.op[3].result, -VPMU_PV_EINVAL);
	expect_in("v2, no such slot, wrong", "offset", batch.op[3].wrong, 12);
	expect_in("v2, ENABLE", "result", batch.op[4].result, 0);
	expect_in("v2, no such id", "result", batch.op[5].result, -VPMU_PV_ENOENT);
	expect_in("v2, CLOSE", "result", batch.op[6].result, 0);
	begin();
	opening(3, VPMU_PV_TYPE_HARDWARE, 5, 0);
	go();
	expect_in("v2, what nobody counts", "result", batch.op[0].result, -VPMU_PV_ENOENT);
}

/* A NOP after which there is a #DB. Returns the address of the next instruction. */
static uint64_t single_step(void)
{
	uint64_t at;

	asm volatile("lea 1f(%%rip), %0\n\t"
		     "pushfq\n\t"
		     "orl %1, (%%rsp)\n\t"
		     "popfq\n\t"
		     "nop\n"
		     "1:"
		     : "=&r" (at) : "i" (RFLAGS_TF) : "memory", "cc");
	return at;
}

/*
 * On real hardware #DB clears DEBUGCTL.LBR, a bit of the architectural PMU. Branch
 * records of the paravirtual PMU go on: #DB and its IRET are in them.
 */
static void check_debug_exception(void)
{
	struct vpmu_pv_setup_branches s = { { sizeof(s), 0, (uintptr_t)&page },
					    (uintptr_t)&records };
	uint64_t at, turns = 1000;

	expect_in("v2, records", "SETUP",
		  pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, (uintptr_t)&s, 0), 0);
	begin();
	opening(4, VPMU_PV_TYPE_HARDWARE, 1, VPMU_PV_EVENT_BRANCHES);
	batch.op[0].u.open.suppress = VPMU_PV_SUPPRESS_ALL & ~VPMU_PV_CALL_STACK &
				      ~VPMU_PV_SUPPRESS_KERNEL & ~VPMU_PV_SUPPRESS_USER &
				      ~VPMU_PV_SUPPRESS_FAR;
	enabling(4, 0, 1000, 0);
	hit.n = 0;
	go();
	at = single_step();
	asm volatile("1: dec %0; jnz 1b" : "+r" (turns) : : "cc");
	expect_in("v2, records, overflow", "number", hit.n, 1);
	expect_in("v2, records, #DB", "far branches", records.n, 2);
	expect_in("v2, records, #DB", "its address", records.entry[1].from - at, 0);
	expect_in("v2, records, IRET", "its target", records.entry[0].to - at, 0);
	begin();
	op(VPMU_PV_CLOSE, 4);
	go();
	expect_in("v2, records, none", "SETUP", set_up(0), 0);
}

static bool host;

static void tell(const char *what)
{
	print(what);
	while (!(inb(0x3fd) & 1))
		;
	(void)inb(0x3f8);
}

/* A host's events, or more of the guest's own than there are counters. */
static void check_lost(void)
{
	uint32_t n = host ? 1 : 16, lost = 0, bits = 0, changed, i;

	begin();
	for (i = 0; i < n; i++)
		opening(10 + i, VPMU_PV_TYPE_RAW, 0xc4, VPMU_PV_EVENT_PINNED);
	go();
	begin();
	for (i = 0; i < n; i++)
		enabling(10 + i, i, 0, 0);
	page.changed[0] = 0;
	go();
	expect_in("v2, to be lost", "results", results(), 0);
	if (host) {
		expect_in("v2, not lost yet", "flags", page.slot[0].flags & 0xff02, 0);
		tell("take\n");
	}
	for (i = 0; i < n; i++)
		lost += (page.slot[i].flags & (VPMU_PV_SLOT_LOST | VPMU_PV_SLOT_REASON)) ==
			(VPMU_PV_SLOT_LOST | VPMU_LOSS_LOST << VPMU_PV_SLOT_REASON_SHIFT);
	changed = page.changed[0];
	for (i = 0; i < 32; i++)
		bits += changed >> i & 1;
	if (host) {
		expect_in("v2, lost to the host", "events", lost, 1);
		expect_in("v2, lost to the host, bitmap", "it", changed, 1);
	} else {
		expect_in("v2, lost", "as many as bits changed", lost, bits);
		expect_in("v2, some lost", "they", lost > 0 && lost < n, 1);
	}
	begin();
	for (i = 0; i < n; i++)
		op(VPMU_PV_CLOSE, 10 + i);
	go();
	expect_in("v2, lost and closed", "results", results(), 0);
}

static void version_2(void)
{
	uint32_t base = pv_base("VPMUforGuest"), a, b, c, d;

	cpuid(base + VPMU_CPUID_FEATURES, &a, &b, &c, &d);
	expect_in("v2, feature", "bit", !!(a & VPMU_CPUID_FEATURE_PV), 1);
	cpuid(base + VPMU_CPUID_PV, &a, &b, &c, &d);
	expect_in("v2, CPUID", "version", a & 0xff, 2);
	expect_in("v2, number", "it", d, VPMU_PV_HYPERCALL);
	expect_in("v2, VERSION", "magic", pv_call(VPMU_PV_HYPERCALL, 0, 0, 0), VPMU_PV_MAGIC);
	expect_in("v2, VERSION, EAX", "it", pv_call(VPMU_PV_HYPERCALL, 0, 1, 0), a);
	expect_in("v2, RESET", "answer", pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0), 0);
	expect_in("v2, SETUP", "answer", set_up(0), 0);
	begin();
	opening(1, VPMU_PV_TYPE_HARDWARE, 1, 0);
	expect_in("v2, one operation", "done", go(), 1);
	expect_in("v2, OPEN instructions", "result", results(), 0);
	disabling(1);
	enabling(1, 0, 0, 0);
	batch.head.size = sizeof(batch.head) + sizeof(struct vpmu_pv_op);
	counted();
	expect_in("v2, exact count", "it", page.slot[0].count, BETWEEN);
	counted();
	expect_in("v2, and again", "it", page.slot[0].count, 2 * BETWEEN);
	expect_in("v2, running", "it", page.slot[0].enabled - page.slot[0].running, 0);
	check_overflows();
	check_vector();
	if (b & VPMU_PV_HAS_BRANCHES)
		check_debug_exception();
	check_batch();
	check_lost();
	expect_in("v2, RESET at the end", "answer",
		  pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0), 0);
}

/* ---- the doorbell */

static int64_t user_answer;
static struct vpmu_pv_call ring[2] __attribute__((aligned(32)));

/* Returns the host's answer, or 1 for #GP */
static int64_t bell(uint32_t what, uint64_t a)
{
	ring[0] = (struct vpmu_pv_call){ .size = sizeof(ring[0]), .op = what,
		.a1 = (uint32_t)a, .a2 = a >> 32, .result = -77 };
	return try_wrmsr(VPMU_PV_MSR_DOORBELL, (uintptr_t)&ring[0]) ? 1 : ring[0].result;
}

static int64_t bell_go(void)
{
	batch.head.size = sizeof(batch.head) + batch.head.n_ops * sizeof(struct vpmu_pv_op);
	return bell(VPMU_PV_OP_BATCH, (uintptr_t)&batch);
}

/* As between(), with both calls made ready in ring[]. */
#define RING_BETWEEN	(1 + 97 + 1)
static void ring_between(uintptr_t on, uintptr_t off)
{
	asm volatile("wrmsr\n\t"
		     ".rept 97; nop; .endr\n\t"
		     "mov %%ebx, %%eax\n\t"
		     "wrmsr"
		     : "+a" (on) : "b" (off), "c" (VPMU_PV_MSR_DOORBELL), "d" (0) : "memory");
}

static void bell_of_user(uint64_t at)
{
	user_answer = try_wrmsr(VPMU_PV_MSR_DOORBELL, at);
}

static void check_doorbell(void)
{
	static const struct vpmu_pv_setup setup = { .size = sizeof(setup),
		.page = (uintptr_t)&page };
	uint32_t base = pv_base("VPMUforGuest"), a, b, c, d;
	uint64_t value;

	cpuid(base + VPMU_CPUID_PV, &a, &b, &c, &d);
	expect_in("doorbell, CPUID", "bit", !!(b & VPMU_PV_HAS_DOORBELL), 1);
	expect_in("doorbell, hypercall", "VERSION's answer",
		  pv_call(VPMU_PV_HYPERCALL, 0, 0, 0),
		  d ? (int64_t)VPMU_PV_MAGIC : -VPMU_PV_ENOSYS);
	expect_in("doorbell, VERSION", "magic", bell(0, 0), VPMU_PV_MAGIC);
	expect_in("doorbell, no such operation", "answer", bell(77, 0), -VPMU_PV_ENOSYS);
	expect_in("doorbell, misaligned", "#GP",
		  try_wrmsr(VPMU_PV_MSR_DOORBELL, (uintptr_t)&ring[0] + 8), 1);
	expect_in("doorbell, no RAM", "#GP", try_wrmsr(VPMU_PV_MSR_DOORBELL, 0xfee00000), 1);
	expect_in("doorbell, far", "#GP", try_wrmsr(VPMU_PV_MSR_DOORBELL, 0ull - 32), 1);
	expect_in("doorbell, read", "#GP", try_rdmsr(VPMU_PV_MSR_DOORBELL, &value), 1);
	user_call(bell_of_user, (uintptr_t)&ring[0]);
	expect_in("doorbell, from user mode", "#GP", user_answer, 1);
	expect_in("doorbell, SETUP", "answer", bell(VPMU_PV_OP_SETUP, (uintptr_t)&setup), 0);
	begin();
	opening(1, VPMU_PV_TYPE_HARDWARE, 1, 0);
	expect_in("doorbell, a batch", "done", bell_go(), 1);
	expect_in("doorbell, OPEN", "result", results(), 0);
	begin();
	enabling(1, 0, 0, 0);
	batch.head.size = sizeof(batch.head) + sizeof(struct vpmu_pv_op);
	other = batch;
	begin();
	op(VPMU_PV_DISABLE, 1);
	batch.head.size = sizeof(batch.head) + sizeof(struct vpmu_pv_op);
	ring[0] = (struct vpmu_pv_call){ .size = sizeof(ring[0]), .op = VPMU_PV_OP_BATCH,
		.a1 = (uint32_t)(uintptr_t)&other };
	ring[1] = (struct vpmu_pv_call){ .size = sizeof(ring[0]), .op = VPMU_PV_OP_BATCH,
		.a1 = (uint32_t)(uintptr_t)&batch };
	ring_between((uintptr_t)&ring[0], (uintptr_t)&ring[1]);
	expect_in("doorbell, results", "of both", ring[0].result + ring[1].result, 2);
	expect_in("doorbell, exact count", "it", page.slot[0].count, RING_BETWEEN);
	expect_in("doorbell, RESET", "answer", bell(VPMU_PV_OP_RESET, 0), 0);
}

/* ---- a vCPU that is halted */

#define AP_CODE	0x60000u

/* The second vCPU, in real mode: SETUP, a batch, and then it stops. */
extern char ap_code[], ap_code_end[], ap_setup[], ap_batch[], ap_done[];
asm(".pushsection .data\n"
    ".code16\n"
    ".balign 8\n"
    "ap_code: mov %cs, %ax\n"
    "mov %ax, %ds\n"
    "mov $0x56504d55, %eax\n"
    "mov $1, %ebx\n"			/* SETUP */
    "mov ap_setup - ap_code, %ecx\n"
    "xor %edx, %edx\n"
    "vmcall\n"
    "mov $0x56504d55, %eax\n"
    "mov $2, %ebx\n"			/* BATCH */
    "mov ap_batch - ap_code, %ecx\n"
    "vmcall\n"
    "mov %eax, ap_done - ap_code\n"
    "1: hlt\n"
    "jmp 1b\n"
    ".balign 4\n"
    "ap_setup: .long 0\n"
    "ap_batch: .long 0\n"
    "ap_done: .long 0\n"
    ".code64\n"
    "ap_code_end: .popsection");

static void check_halted(void)
{
	static const struct vpmu_pv_setup setup = { .size = sizeof(setup),
		.page = (uintptr_t)&page };
	uint32_t done = AP_CODE + (ap_done - ap_code);

	begin();
	opening(1, VPMU_PV_TYPE_HARDWARE, 1, 0);
	enabling(1, 0, 0, 0);
	batch.head.size = sizeof(batch.head) + 2 * sizeof(struct vpmu_pv_op);
	*(volatile uint32_t *)ap_setup = (uintptr_t)&setup;
	*(volatile uint32_t *)ap_batch = (uintptr_t)&batch;
	ap_start(AP_CODE, ap_code, ap_code_end);
	for (uint64_t i = 0; !*word(done) && i < 1000000000; i++)
		asm volatile("pause");
	expect_in("halted, a batch", "done", *word(done), 2);
	expect_in("halted, OPEN and ENABLE", "results", results(), 0);
	tell("used 1\n");
	expect_in("halted, RESET by another one", "answer",
		  pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0), 0);
	tell("used 0\n");
}

/* ---- version 1 */

static struct vpmu_pv1_attr attr;
static struct vpmu_pv1_event event __attribute__((aligned(8)));
static struct vpmu_pv1_params params;

static int64_t v1(uint32_t what, uint32_t id)
{
	return pv_call(VPMU_PV1_HYPERCALL, what, id, 0);
}

static void version_1(void)
{
	uint32_t base = pv_base("KVMKVMKVM\0\0"), a, b, c, d;
	uint64_t at, k;

	cpuid(base + 1, &a, &b, &c, &d);
	expect_in("v1, CPUID", "features", a, 1 << VPMU_PV1_FEATURE);
	expect_in("v1, CLOSE of nothing", "answer", v1(VPMU_PV1_CLOSE, 7), -VPMU_PV_ENOENT);
	attr.type = VPMU_PV_TYPE_HARDWARE;
	attr.config = 1;
	params.attr = (uintptr_t)&attr;
	params.event = (uintptr_t)&event;
	params.id = 7;
	event.count = 5;
	expect_in("v1, OPEN", "answer", v1(VPMU_PV1_OPEN, (uintptr_t)&params), 0);
	between(VPMU_PV1_HYPERCALL, VPMU_PV1_ENABLE, 7, VPMU_PV1_DISABLE, 7);
	expect_in("v1, exact count", "it", event.count, BETWEEN);
	expect_in("v1, READ", "answer", v1(VPMU_PV1_READ, 7), 0);
	expect_in("v1, CLOSE", "answer", v1(VPMU_PV1_CLOSE, 7), 0);
	for (k = 1; k <= 98; k++) {
		attr.sample_period = 9 * BETWEEN + k; /* the rest of the period is kept */
		event.overflows = 0;
		hit.n = 0;
		v1(VPMU_PV1_OPEN, (uintptr_t)&params);
		for (int i = 0; i < 10; i++)
			at = between(VPMU_PV1_HYPERCALL, VPMU_PV1_ENABLE, 7,
				     VPMU_PV1_DISABLE, 7);
		v1(VPMU_PV1_CLOSE, 7);
		if (hit.n != 1 || event.overflows != 1 || hit.rip != at + k - 1)
			break;
	}
	expect_in("v1, overflow at each instruction", "the last that is right", k - 1, 98);
}

/* ---- who may call */


static void from_user(uint64_t nr)
{
	user_answer = pv_call(nr, 0, 0, 0);
}

static void check_callers(uint32_t abi)
{
	uint32_t nr = abi & 2 ? VPMU_PV_HYPERCALL : VPMU_PV1_HYPERCALL;

	user_call(from_user, nr);
	expect_in("from user mode", "answer", user_answer, -VPMU_PV_EPERM);
	user_call(from_user, 77);
	expect_in("from user mode, no such number", "answer", user_answer, -VPMU_PV_EPERM);
	expect_in("no such number", "answer", pv_call(77, 0, 0, 0), -VPMU_PV_ENOSYS);
	expect_in("no such operation", "answer", pv_call(nr, 77, 0, 0), -VPMU_PV_ENOSYS);
	expect_in("VMMCALL", "answer", pv_vmmcall(nr, 77, 0, 0), -VPMU_PV_ENOSYS);
	if (!(abi & 1))
		expect_in("no version 1", "answer", v1(VPMU_PV1_CLOSE, 7), -VPMU_PV_ENOSYS);
	if (!(abi & 2))
		expect_in("no version 2", "answer", pv_call(VPMU_PV_HYPERCALL, 0, 0, 0),
			  -VPMU_PV_ENOSYS);
}

static void check_none(void)
{
	hit.n = 0;
	pv_call(VPMU_PV_HYPERCALL, 0, 0, 0);
	expect_in("VMCALL without", "#UD", hit.n, 1);
	pv_vmmcall(VPMU_PV_HYPERCALL, 0, 0, 0);
	expect_in("VMMCALL without", "#UD", hit.n, 2);
	expect_in("KVM's leaves without", "base", pv_base("KVMKVMKVM\0\0"), 0);
}

int main(const char *line)
{
	uint32_t abi = option(line, "abi", 2);

	host = option(line, "host", 0);
	if (option(line, "halted", 0)) {
		check_halted();
		return 0x21;
	}
	if (option(line, "bell", 0) == 2) {
		own_stack(VECTOR_PMI, false);
		check_doorbell();
		return 0x21;
	}
	apic_write(APIC_SVR, 0x1ff);
	own_stack(VECTOR_PMI, false);
	if (!abi)
		check_none();
	else
		check_callers(abi);
	for (uint64_t i = option(line, "turns", 1); i; i--) {
		if (abi & 2)
			version_2();
		if (abi & 1)
			version_1();
	}
	if (option(line, "bell", 0))
		check_doorbell();
	else if (abi)
		expect_in("no doorbell", "done", bell(0, 0) != 1 && ring[0].result != -77, 0);
	return 0x21;
}
