// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Does to the paravirtual PMU whatever a guest can: hypercalls with random and with
 * crafted registers and structs, from both rings and two vCPUs, while the second vCPU
 * rewrites the structs, and overflows come in between. Each answer is a known one;
 * after RESET a known count is exact again, and an overflow comes. "done", and how many
 * vCPUs there are, is printed then, and a byte on the serial port ends it.
 *
 * Command line: seed=N turns=N; eject=1: the second vCPU is taken away as it runs;
 * bell=1: version 2 by the doorbell, and known=N: what the known count is then.
 */
#include "bare.h"
#include "pv.h"

/*
 * The host writes where structs tell it to, and this program writes those, so its own
 * address must not get into one; nor can it know beforehand what the host has written.
 *
 *	arena	batches, attributes, and what the host writes: counts, slots, results.
 *		Nothing in it is ever read as an address.
 *	names	the structs that have addresses in them, SETUP's and version 1's params.
 *		The high half of each word there is one of open_halves, or no RAM's,
 *		whether this program or the host wrote it, so that every address in
 *		there is the arena's or that of another open place, and never the
 *		names' own.
 *	rest	this program and all other RAM: a change there is a write of the host
 *		that was not asked for.
 *
 * 16-bit code reaches the first two.
 */
#define ARENA		0x20000u
#define ARENA_SIZE	0x40000u
#define AP_CODE		0x60000u
#define AP_VECTORS	0x61000u
#define AP_END		0x62000u
#define NAMES		0x70000u
#define NAMES_SIZE	0xf000u		/* params may cross into its last page */
#define RAM_END		0x4000000u

/* Places of 64 KiB each that the host may write, or that are no RAM. */
static const uint16_t open_halves[] = { 0, 1, 2, 3, 4, 5, 8, 0xa, 0xb, 0x80, 0xff };

static uint64_t seed;
static volatile uint64_t n_hits;
static uint64_t n_calls, n_done;

/* The struct whose address rings the doorbell; the second vCPU has its own. */
static struct vpmu_pv_call ring __attribute__((aligned(32)));
static bool bell;

static int64_t ring_at(uint64_t gpa)
{
	return try_wrmsr(VPMU_PV_MSR_DOORBELL, gpa) ? -VPMU_PV_EFAULT : ring.result;
}

static int64_t any_call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
	if (!bell)
		return pv_call(nr, a0, a1, a2);
	if (nr != VPMU_PV_HYPERCALL) /* KVM replaces a VMCALL on AMD's CPUs */
		return pv_vmmcall(nr, a0, a1, a2);
	ring = (struct vpmu_pv_call){ .size = sizeof(ring), .op = a0, .a1 = a1, .a2 = a2,
		.result = -VPMU_PV_ENOSYS };
	return ring_at((uintptr_t)&ring);
}

bool on_trap(struct frame *f)
{
	n_hits += f->vector == 2;
	return f->vector == 2;
}

static void fail(const char *what, uint64_t value)
{
	print("not ok hostile: seed ");
	print_number(seed, 10);
	print(", ");
	print(what);
	print(" 0x");
	print_number(value, 16);
	print("\n");
	leave(0x22);
}

static const uint64_t far[] = {
	0xfffff000, 0xfee00000, 0xfec00000, 0xe0000000, 0xf0000000, RAM_END,
	-4096ull, -8ull, -1ull, 1ull << 40, 1ull << 52, 0xffff0000, 1ull << 63, 0xa0000,
	0xb8000,
};

/* In these @size bytes of RAM mostly; the ROM, devices, holes, the end of everything. */
static uint64_t place(uint32_t from, uint32_t size)
{
	switch (below(16)) {
	case 0: return far[below(sizeof(far) / sizeof(far[0]))];
	case 1: return any() | 1ull << 40;
	case 2: return from + size - 1 - below(64);
	case 3: return from + below(size);
	case 4: case 5: case 6: return from + (below(size) & ~7u);
	case 7: return from + (below(size) & ~0xfffu) + 0xff8 - 8 * below(4);
	default: return from + (below(size) & ~0xfffu);
	}
}

static uint64_t address(void)
{
	return below(256) ? place(ARENA, ARENA_SIZE) : 0;
}

/* A page from there on is the arena's. */
static bool ours(uint64_t at)
{
	return at >= ARENA && at <= ARENA + ARENA_SIZE - 4096;
}

static bool is_open(uint16_t half)
{
	for (uint32_t i = 0; i < sizeof(open_halves) / sizeof(open_halves[0]); i++)
		if (half == open_halves[i])
			return true;
	return half >= RAM_END >> 16;
}

/*
 * A struct with addresses, at any place of the names. At a misaligned one nothing is
 * read, so nothing is written there either: halves of words stay what they are.
 */
static uint64_t write_names(const void *from, uint32_t bytes)
{
	uint64_t at = place(NAMES, NAMES_SIZE);
	volatile uint32_t *to = (volatile uint32_t *)(uintptr_t)at;
	const uint32_t *words = from;

	if (at % 4 || at < NAMES || at > NAMES + NAMES_SIZE - bytes)
		return at;
	for (uint32_t i = 0; i < bytes / 4; i++)
		to[i] = is_open(words[i] >> 16) ? words[i] : words[i] | 0x80000000;
	return at;
}

static uint64_t number(void)
{
	switch (below(8)) {
	case 0: return any();
	case 1: return 1ull << below(64);
	case 2: return VPMU_PV_LEFT_MAX + below(3) - 1;
	case 3: return -(uint64_t)below(4);
	default: return below(300);
	}
}

static uint32_t id(void)
{
	switch (below(16)) {
	case 0: return any();
	case 1: return 510 + below(6);
	case 2: return 0;
	default: return 1 + below(20);
	}
}

static uint64_t config(uint32_t type)
{
	static const uint16_t raw[] = { 0x00c0, 0x00c4, 0x003c, 0x013c, 0x11c4, 0x20c4, 0x4f2e };

	if (!below(16))
		return any();
	if (type == VPMU_PV_TYPE_RAW)
		return raw[below(7)] | (below(4) ? 0 : any() & 0xff840000);
	return below(type == VPMU_PV_TYPE_HARDWARE ? 11 : 7) | below(3) << 8 | below(2) << 16;
}

static uint32_t type(void)
{
	static const uint8_t types[] = { 0, 0, 0, 4, 4, 3, 1, 5 };

	return below(32) ? types[below(8)] : any();
}

static void write_op(struct vpmu_pv_op *o)
{
	for (uint32_t i = 0; i < sizeof(*o) / 4; i++)
		((volatile uint32_t *)o)[i] = below(64) ? 0 : any();
	o->op = below(32) ? 1 + below(7) : any();
	o->id = id();
	o->slot = below(16) ? below(20) : any();
	if (o->op == VPMU_PV_OPEN) {
		o->u.open.type = type();
		o->u.open.config = config(o->u.open.type);
		o->u.open.flags = below(4) ? 0 : below(64);
		o->u.open.leader = below(4) ? 0 : id();
	} else {
		o->u.enable.left = number();
		o->u.enable.period = below(2) ? 0 : number();
	}
}

static uint64_t write_batch(void)
{
	uint64_t at = address();
	struct vpmu_pv_batch *b = (void *)(uintptr_t)at;
	uint32_t n = below(8) ? 1 + below(6) : below(66);

	if (!ours(at))
		return at;
	memset(b, 0, sizeof(*b));
	for (uint32_t i = 0; i < n && i < VPMU_PV_BATCH_MAX; i++) /* its page's end */
		write_op((struct vpmu_pv_op *)(b + 1) + i);
	b->n_ops = below(32) ? n : any();
	b->size = below(32) ? sizeof(*b) + n * sizeof(struct vpmu_pv_op) : any();
	return at;
}

static uint64_t write_setup(void)
{
	struct vpmu_pv_setup s = {
		.size = below(32) ? sizeof(s) : any(),
		.vector = below(4) ? 0 : below(300),
		.page = address(),
	};

	return write_names(&s, sizeof(s));
}

static uint64_t write_v1(void)
{
	struct vpmu_pv1_params p = { .attr = address(), .event = address(), .id = id() };
	struct vpmu_pv1_attr *a = (void *)(uintptr_t)p.attr;

	if (ours(p.attr)) {
		memset(a, 0, sizeof(*a));
		a->type = type();
		a->config = config(a->type);
		a->sample_period = number();
		a->flags = below(4) ? 0 : any() >> below(64);
	}
	return write_names(&p, sizeof(p));
}

static int64_t call(uint64_t nr, uint64_t a0, uint64_t at)
{
	/* The upper halves of a1 and a2 mean nothing */
	uint64_t high = below(4) ? 0 : any() << 32;

	n_calls++;
	return below(8) ? any_call(nr, a0, (uint32_t)at | high, at >> 32 | high)
			: pv_vmmcall(nr, a0, (uint32_t)at | high, at >> 32 | high);
}

static int64_t batch_at(const void *batch)
{
	return any_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, (uintptr_t)batch, 0);
}

/* Instructions, the first overflow after @left and more after each @period. */
static int64_t sample(void *at, uint32_t id, uint32_t slot, uint64_t left, uint64_t period)
{
	struct {
		struct vpmu_pv_batch head;
		struct vpmu_pv_op op[2];
	} *on = at;

	memset(on, 0, sizeof(*on));
	on->head.size = sizeof(*on);
	on->head.n_ops = 2;
	on->op[0].op = VPMU_PV_OPEN;
	on->op[1].op = VPMU_PV_ENABLE;
	on->op[0].id = on->op[1].id = id;
	on->op[0].u.open.config = 1;
	on->op[1].slot = slot;
	on->op[1].u.enable.left = left;
	on->op[1].u.enable.period = period;
	return batch_at(on);
}

static void spin(uint32_t n)
{
	for (volatile uint32_t i = 0; i < n; i++)
		;
}

/* The calls of a driver, while the other vCPU may be anywhere in it. */
static int64_t sampler(void)
{
	const struct vpmu_pv_setup s = { .size = sizeof(s), .page = ARENA + ARENA_SIZE - 4096 };
	int64_t r = -1;
	int i;

	for (i = 0; i < 8 && r; i++)
		r = call(VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, write_names(&s, sizeof(s)));
	n_calls++;
	r = sample((void *)(uintptr_t)(ARENA + (below(ARENA_SIZE) & ~0xfffu)), 1 + below(20),
		   below(20), 1 + below(500), below(2) ? 0 : 1 + below(5000));
	spin(1000);
	return r;
}

static int64_t user_answer;

static void from_user(uint64_t nr)
{
	user_answer = any_call(nr, VPMU_PV_OP_RESET, 0, 0);
}

static void turn(void)
{
	uint64_t nr = below(2) ? VPMU_PV_HYPERCALL : VPMU_PV1_HYPERCALL;
	int64_t r;
	uint64_t op;

	switch (below(32)) {
	case 0: case 1: case 2: case 3:
		r = call(VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, write_setup());
		break;
	case 4: case 5: case 6: case 7:
		r = call(VPMU_PV1_HYPERCALL, VPMU_PV1_OPEN, write_v1());
		break;
	case 8: case 9: case 10: case 11: case 12:
		n_calls++;
		r = any_call(VPMU_PV1_HYPERCALL, 2 + below(4), id(), any());
		break;
	case 13:
		r = below(8) ? 0 : call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, any());
		break;
	case 14: /* its answers go beyond those of others */
		n_calls++;
		r = any_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_VERSION, below(8), any());
		if (r > 0)
			r = 0;
		break;
	case 15:
		n_calls++;
		r = any_call(any(), any(), any() | 1ull << 40, any() | 1ull << 40);
		break;
	case 16:
		op = below(2) ? any() : below(8);
		/* 1 is SETUP, and OPEN */
		r = call(nr, op, op == 1 ? place(NAMES, NAMES_SIZE) : address());
		if (r > 63)
			r = 0;
		break;
	case 17:
		n_calls++;
		user_call(from_user, nr);
		/* #GP's, where the hypercall is another's */
		if (user_answer != -VPMU_PV_EPERM && !(bell && user_answer == -VPMU_PV_EFAULT))
			fail("user mode was answered", user_answer);
		return;
	case 18: /* an address without a struct */
		if (bell && try_wrmsr(VPMU_PV_MSR_DOORBELL, below(2) ? any() | 1ull << 40 :
				      address() | 1u << below(5)) == 0)
			fail("no #GP", 0);
		return;
	case 19: case 20:
		r = sampler();
		break;
	default:
		r = call(VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, write_batch());
		break;
	}
	n_done += r >= 0;
	if (r > VPMU_PV_BATCH_MAX || (r < -VPMU_PV_EADDRNOTAVAIL && r != -VPMU_PV_ENOSYS))
		fail("an answer", r);
}

/*
 * The second vCPU, in real mode: writes one of ap_words, which are all open, to any place
 * of the arena and the names, and now and then calls. Its NMIs return at once.
 */
extern char ap_code[], ap_code_end[];
asm(".pushsection .data\n"
    ".code16\n"
    ".balign 32\n"
    "ap_code: mov $0x6000, %ax\n"
    "mov %ax, %ds\n"
    "mov %ax, %ss\n"
    "mov $0x1000, %sp\n"
    "lidtl ap_idtr - ap_code\n"
    "mov $0x2545f491, %ebp\n"
    "1: testb $2, ap_bell - ap_code\n"
    "jnz 5f\n"
    "imul $1664525, %ebp, %ebp\n"
    "add $1013904223, %ebp\n"
    "mov %ebp, %eax\n"
    "shr $28, %eax\n"
    "mov %eax, %ebx\n"
    "and $7, %ebx\n"
    "cmp $3, %ebx\n"
    "jbe 4f\n"
    "mov $5, %ebx\n"			/* the names: half of all */
    "4: add $2, %ebx\n"
    "shl $12, %ebx\n"
    "mov %bx, %es\n"
    "mov %ebp, %eax\n"
    "shr $20, %eax\n"
    "and $0x1e, %eax\n"
    "mov %ax, %si\n"
    "mov ap_words - ap_code(%si), %dx\n"
    "mov %ebp, %edi\n"
    "shr $8, %edi\n"
    "and $0x03fe, %edi\n"		/* the beginning of a page: most is there */
    "mov %ebp, %eax\n"
    "shr $13, %eax\n"
    "and $0xf000, %eax\n"
    "or %eax, %edi\n"
    "mov %dx, %es:(%di)\n"
    "mov %ebp, %eax\n"
    "and $0x3f000, %eax\n"
    "jnz 1b\n"
    "mov %ebp, %ebx\n"
    "shr $24, %ebx\n"
    "and $3, %ebx\n"			/* VERSION, SETUP, BATCH, RESET */
    "mov %ebp, %ecx\n"
    "shr $6, %ecx\n"
    "and $0x3f000, %ecx\n"
    "add $0x20000, %ecx\n"
    "xor %edx, %edx\n"
    "mov $0x56504d55, %eax\n"
    "testl $0x800, %ebp\n"
    "jz 2f\n"
    "mov $3, %eax\n"			/* or OPEN to READ */
    "inc %ebx\n"
    "2: cmp $1, %ebx\n"		/* SETUP, OPEN */
    "jne 3f\n"
    "and $0xf000, %ecx\n"
    "or $0x70000, %ecx\n"
    "3: testb $1, ap_bell - ap_code\n"
    "jnz 4f\n"
    PV_VMCALL "\n"
    "incl ap_calls - ap_code\n"
    "jmp 1b\n"
    "4: mov %ebx, ap_ring + 4 - ap_code\n"
    "mov %ecx, ap_ring + 8 - ap_code\n"
    "mov $0x56504d08, %ecx\n"
    "mov $0x60000 + ap_ring - ap_code, %eax\n"
    "wrmsr\n"
    "incl ap_calls - ap_code\n"
    "jmp 1b\n"
    "5: movb $4, ap_bell - ap_code\n"	/* told to stop, and tells that it has */
    "hlt\n"
    "jmp 5b\n"
    "ap_fault: push %bp\n"		/* the WRMSR's fault: skip it */
    "mov %sp, %bp\n"
    "addw $2, 2(%bp)\n"
    "pop %bp\n"
    "ap_nmi: iretw\n"
    ".balign 4\n"
    "ap_idtr: .short 0x3ff\n"
    ".long 0x61000\n"
    ".balign 4\n"
    "ap_words: .short 0, 0, 1, 2, 3, 4, 5, 64 + 64, 0xff, 0x1000, 0x2000, 0x2008\n"
    ".short 0xffff, 0xfff8, 0xfee0, 0x8\n"
    ".globl ap_calls\n"
    ".balign 4\n"
    "ap_calls: .long 0\n"
    "ap_bell: .long 0\n"
    ".balign 32\n"
    "ap_ring: .long 32, 0, 0, 0, 0, 0, 0, 0\n"
    ".code64\n"
    "ap_code_end: .popsection");
extern char ap_nmi[], ap_fault[], ap_calls[], ap_bell[];

static void start_ap(void)
{
	volatile uint16_t *vectors = (volatile uint16_t *)(uintptr_t)AP_VECTORS;

	for (int i = 0; i < 256; i++) {
		vectors[2 * i] = ap_nmi - ap_code;
		vectors[2 * i + 1] = AP_CODE >> 4;
	}
	vectors[2 * 13] = ap_fault - ap_code;
	*(volatile uint32_t *)ap_bell = bell;
	ap_start(AP_CODE, ap_code, ap_code_end);
}

/* Wait until no call of the second vCPU is in progress. */
static void stop_ap(void)
{
	volatile uint32_t *word = (volatile uint32_t *)(AP_CODE + (ap_bell - ap_code));

	*word |= 2;
	for (uint64_t i = 0; (*word & 0xff) != 4; i++) {
		if (i == 1000000000)
			fail("the other vCPU does not stop", *word);
		asm volatile("pause");
	}
	ap_stop();
}

/* Do what ACPI's _EJ0 does: eject CPU number 1, by the newer one of two interfaces. */
static void eject_ap(void)
{
	uint16_t port = 0xaf00;

	outl(port, 0);
	outl(port, 1);
	outb(port + 4, 8);
}

static uint32_t ap_called(void)
{
	return *(volatile uint32_t *)(AP_CODE + (ap_calls - ap_code));
}

/* One batch, 1000 NOPs, another one, whose answer it returns: 0 if that is right. */
static uint64_t known_count(uint64_t on, uint64_t off)
{
	register uint64_t r9 asm("r9") = off, r10 asm("r10") = VPMU_PV_HYPERCALL;
	uint64_t a = VPMU_PV_HYPERCALL, c = on;

	asm volatile(PV_VMCALL "\n\t"
		     ".rept 1000; nop; .endr\n\t"
		     "mov %%r10, %%rax\n\t"
		     "mov %%r9, %%rcx\n\t"
		     PV_VMCALL
		     : "+a" (a), "+c" (c) : "b" (VPMU_PV_OP_BATCH), "d" (0), "r" (r9), "r" (r10)
		     : "memory");
	return a != 1;
}

/* Like known_call(), by the doorbell. */
static uint64_t known_bell(uint64_t on, uint64_t off)
{
	static struct vpmu_pv_call call[2] __attribute__((aligned(32)));
	int i;

	for (i = 0; i < 2; i++)
		call[i] = (struct vpmu_pv_call){ .size = sizeof(call[i]),
			.op = VPMU_PV_OP_BATCH, .a1 = i ? off : on };
	asm volatile("wrmsr\n\t"
		     ".rept 1000; nop; .endr\n\t"
		     "mov %%ebx, %%eax\n\t"
		     "nop\n\t"
		     "wrmsr"
		     : : "a" (&call[0]), "b" (&call[1]), "c" (VPMU_PV_MSR_DOORBELL), "d" (0)
		     : "memory");
	return call[1].result != 1;
}

/* Return to the state at the beginning. */
static void begin(const volatile struct vpmu_pv_page *page)
{
	struct vpmu_pv_setup s = { sizeof(s), 0, (uintptr_t)page };

	if (any_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0))
		fail("RESET", 0);
	if (any_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, (uintptr_t)&s, 0))
		fail("SETUP after RESET", 0);
}

/* Until an overflow has come, which needs a thousand instructions. */
static void overflow(void)
{
	static uint8_t batch[4096] __attribute__((aligned(4096)));
	static struct vpmu_pv_page page __attribute__((aligned(4096)));
	uint64_t before = n_hits, i;

	begin(&page);
	if (sample(batch, 1, 0, 1000, 0) != 2)
		fail("no sampler after RESET", 0);
	for (i = 0; n_hits == before; i++)
		if (i == 100000000)
			fail("no NMI of an overflow", page.slot[0].overflows);
}

/* Opened, enabled, 1000 NOPs, disabled: known to the instruction. */
static uint64_t known(void)
{
	static struct {
		struct vpmu_pv_batch head;
		struct vpmu_pv_op op[2];
	} on __attribute__((aligned(4096))), off __attribute__((aligned(4096)));
	static struct vpmu_pv_page page __attribute__((aligned(4096)));

	begin(&page);
	memset(&on, 0, sizeof(on));
	memset(&off, 0, sizeof(off));
	on.head.size = sizeof(on);
	on.head.n_ops = 2;
	on.op[0].op = VPMU_PV_OPEN;
	on.op[0].id = 1;
	on.op[0].u.open.config = 1;
	on.op[1].op = VPMU_PV_ENABLE;
	on.op[1].id = 1;
	off.head.size = sizeof(off.head) + sizeof(off.op[0]);
	off.head.n_ops = 1;
	off.op[0].op = VPMU_PV_DISABLE;
	off.op[0].id = 1;
	return (bell ? known_bell : known_count)((uintptr_t)&on, (uintptr_t)&off) ? 0 :
	       page.slot[0].count;
}

/* An NMI that is on its way when the PMU is reset still comes, and its handler counts. */
static uint64_t known_again(void)
{
	uint64_t before, count, i = 0;

	do {
		before = n_hits;
		count = known();
	} while (n_hits != before && ++i < 16);
	return count;
}

/* Text and constants of this program, from link.ld. */
extern char image_start[], constant_end[], image_end[];
static uint64_t text_sum;

static uint64_t sum_text(void)
{
	uint64_t sum = 0;

	for (uint64_t *at = (uint64_t *)image_start; (char *)at < constant_end; at++)
		sum = sum * 31 + *at;
	return sum;
}

/* The next word of RAM that may not be written; RAM_END: there is none. */
static uint32_t next_quiet(uint32_t at)
{
	at += 8;
	if (at < AP_END)
		at = AP_END;
	if (at >= 0xa0000 && at < (uintptr_t)image_end)
		at = ((uintptr_t)image_end + 7) & ~7u;
	while (at < RAM_END && (is_open(at >> 16) || at >> 16 == NAMES >> 16))
		at = (at | 0xffff) + 1;
	return at;
}

static void fill_quiet(void)
{
	for (uint32_t at = next_quiet(0); at < RAM_END; at = next_quiet(at))
		*(uint64_t *)(uintptr_t)at = at * 0x9e3779b97f4a7c15ull;
	text_sum = sum_text();
}

static void check_quiet(bool all)
{
	uint32_t n = ap_calls - ap_code;

	if (sum_text() != text_sum)
		fail("the host has written into the program, whose sum was", text_sum);
	for (uint32_t i = 0; i < n; i++)
		if (((volatile char *)(uintptr_t)AP_CODE)[i] != ap_code[i])
			fail("the host has written at", AP_CODE + i);
	for (uint32_t at = next_quiet(0); all && at < RAM_END; at = next_quiet(at)) {
		if (*(volatile uint64_t *)(uintptr_t)at == at * 0x9e3779b97f4a7c15ull)
			continue;
		print("# ");
		print_number(*(volatile uint64_t *)(uintptr_t)at, 16);
		print("\n");
		fail("the host has written at", at);
	}
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 1000), want = option(line, "known", 1003), count, i;
	bool eject = option(line, "eject", 0);
	uint64_t hits;
	uint32_t called = 0;

	bell = option(line, "bell", 0);
	count = known_again();
	seed = option(line, "seed", 1);
	any_from(seed);
	memset((void *)(uintptr_t)ARENA, 0, ARENA_SIZE);
	memset((void *)(uintptr_t)NAMES, 0, 0x10000);
	fill_quiet();
	start_ap();
	for (i = 0; i < turns; i++) {
		turn();
		if (i % 1024 == 0)
			check_quiet(i % (1 << 18) == 0);
	}
	called = ap_called();
	if (eject)
		eject_ap();
	else
		stop_ap();
	if (count == want)
		count = known_again();
	if (count != want)
		fail("a known count is", count);
	hits = n_hits;
	overflow();
	any_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0);
	check_quiet(true);
	print("ok hostile: seed ");
	print_number(seed, 10);
	print(", ");
	print_number(n_calls, 10);
	print(" calls, ");
	print_number(n_done, 10);
	print(" done; ");
	print_number(called, 10);
	print(" of the other vCPU; ");
	print_number(hits, 10);
	print(eject ? " NMIs\ndone 1\n" : " NMIs\ndone 2\n");
	while (!(inb(0x3fd) & 1))
		;
	return 0x21;
}
