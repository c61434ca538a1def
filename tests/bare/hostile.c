// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Does to the paravirtual PMU whatever a guest can: hypercalls with random and with
 * crafted registers and structs, from both rings and two vCPUs, while the second vCPU
 * rewrites the structs. Each answer is a known one; after RESET a known count is
 * exact again. "done", and how many vCPUs there are, is printed then, and a byte on the
 * serial port ends it.
 *
 * Command line: seed=N turns=N; eject=1: the second vCPU is taken away as it runs.
 */
#include "bare.h"
#include "pv.h"

/*
 * Where the structs are: 16-bit code reaches them, and the host may write anywhere in
 * there. No address in them leads to this program or the second vCPU's, whichever
 * halfwords of ARENA, FAR and ap_words come together. Counts and times that the host
 * has written there can, if they are read as an address later, and so can the random
 * words of write_op(): rare, but over millions of calls this program may have named
 * itself as a place for counts.
 */
#define ARENA		0x20000u
#define ARENA_SIZE	0x40000u
#define AP_CODE		0x60000u

static uint64_t state, seed;
static volatile uint64_t n_hits;
static uint64_t n_calls, n_done;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

static uint32_t below(uint32_t n)
{
	return (any() >> 32) % n;
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

/* RAM of the arena mostly; the ROM, devices, holes, the end of everything. */
static uint64_t address(void)
{
	static const uint64_t far[] = {
		0, 0xfffff000, 0xfee00000, 0xfec00000, 0xe0000000, 0xf0000000, 0x04000000,
		0x03fff000 + 0x1000, -4096ull, -8ull, -1ull, 1ull << 40, 1ull << 52, 0xffff0000,
		1ull << 63, 0xa0000, 0xb8000,
	};

	switch (below(16)) {
	case 0: return far[below(sizeof(far) / sizeof(far[0]))];
	case 1: return any() | 1ull << 40;
	case 2: return ARENA + ARENA_SIZE - 1 - below(64);
	case 3: return ARENA + below(ARENA_SIZE);
	case 4: case 5: case 6: return ARENA + (below(ARENA_SIZE) & ~7u);
	case 7: return ARENA + (below(ARENA_SIZE) & ~0xfffu) + 0xff8 - 8 * below(4);
	default: return ARENA + (below(ARENA_SIZE) & ~0xfffu);
	}
}

/* A page from there on is the arena's. */
static bool ours(uint64_t at)
{
	return at >= ARENA && at <= ARENA + ARENA_SIZE - 4096;
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
	o->op = below(32) ? 1 + below(6) : any();
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
	for (uint32_t i = 0; i < n && i < 64; i++)
		write_op((struct vpmu_pv_op *)(b + 1) + i);
	b->n_ops = below(32) ? n : any();
	b->size = below(32) ? sizeof(*b) + n * sizeof(struct vpmu_pv_op) : any();
	return at;
}

static uint64_t write_setup(void)
{
	uint64_t at = address();
	struct vpmu_pv_setup *s = (void *)(uintptr_t)at;

	if (!ours(at))
		return at;
	s->size = below(32) ? sizeof(*s) : any();
	s->vector = below(4) ? 0 : below(300);
	s->page = address();
	return at;
}

static uint64_t write_v1(void)
{
	uint64_t at = address(), attr = address();
	struct vpmu_pv1_params *p = (void *)(uintptr_t)at;
	struct vpmu_pv1_attr *a = (void *)(uintptr_t)attr;

	if (!ours(at))
		return at;
	if (ours(attr)) {
		memset(a, 0, sizeof(*a));
		a->type = type();
		a->config = config(a->type);
		a->sample_period = number();
		a->flags = below(4) ? 0 : any() >> below(64);
	}
	p->attr = attr;
	p->event = address();
	p->id = id();
	return at;
}

static int64_t call(uint64_t nr, uint64_t a0, uint64_t at)
{
	/* The upper halves of a1 and a2 mean nothing */
	uint64_t high = below(4) ? 0 : any() << 32;

	n_calls++;
	return below(8) ? pv_call(nr, a0, (uint32_t)at | high, at >> 32 | high)
			: pv_vmmcall(nr, a0, (uint32_t)at | high, at >> 32 | high);
}

static int64_t user_answer;

static void from_user(uint64_t nr)
{
	user_answer = pv_call(nr, VPMU_PV_OP_RESET, 0, 0);
}

static void turn(void)
{
	uint64_t nr = below(2) ? VPMU_PV_HYPERCALL : VPMU_PV1_HYPERCALL;
	int64_t r;

	switch (below(32)) {
	case 0: case 1: case 2: case 3:
		r = call(VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, write_setup());
		break;
	case 4: case 5: case 6: case 7:
		r = call(VPMU_PV1_HYPERCALL, VPMU_PV1_OPEN, write_v1());
		break;
	case 8: case 9: case 10: case 11: case 12:
		n_calls++;
		r = pv_call(VPMU_PV1_HYPERCALL, 2 + below(4), id(), any());
		break;
	case 13:
		r = below(8) ? 0 : call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, any());
		break;
	case 14: /* its answers go beyond those of others */
		n_calls++;
		r = pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_VERSION, below(8), any());
		if (r > 0)
			r = 0;
		break;
	case 15:
		n_calls++;
		r = pv_call(any(), any(), any() | 1ull << 40, any() | 1ull << 40);
		break;
	case 16:
		r = call(nr, below(2) ? any() : below(8), address());
		if (r > 63)
			r = 0;
		break;
	case 17:
		n_calls++;
		user_call(from_user, nr);
		if (user_answer != -VPMU_PV_EPERM)
			fail("user mode was answered", user_answer);
		return;
	default:
		r = call(VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, write_batch());
		break;
	}
	n_done += r >= 0;
	if (r > VPMU_PV_BATCH_MAX || (r < -VPMU_PV_EADDRNOTAVAIL && r != -VPMU_PV_ENOSYS))
		fail("an answer", r);
}

/*
 * The second vCPU, in real mode: writes one of ap_words to any place of the arena, and
 * now and then calls. Its NMIs return at once.
 */
extern char ap_code[], ap_code_end[];
asm(".pushsection .data\n"
    ".code16\n"
    "ap_code: mov $0x6000, %ax\n"
    "mov %ax, %ds\n"
    "mov %ax, %ss\n"
    "mov $0x1000, %sp\n"
    "lidtl ap_idtr - ap_code\n"
    "mov $0x2545f491, %ebp\n"
    "1: imul $1664525, %ebp, %ebp\n"
    "add $1013904223, %ebp\n"
    "mov %ebp, %eax\n"
    "shr $28, %eax\n"
    "mov %eax, %ebx\n"
    "and $3, %ebx\n"
    "add $2, %ebx\n"
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
    "2: vmcall\n"
    "incl ap_calls - ap_code\n"
    "jmp 1b\n"
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
    ".code64\n"
    "ap_code_end: .popsection");
extern char ap_nmi[], ap_calls[];

static void icr(uint32_t value)
{
	apic_write(APIC_ICR_HIGH, 1u << 24);
	apic_write(APIC_ICR, value);
	for (volatile int i = 0; i < 100000; i++)
		;
}

static void start_ap(void)
{
	volatile uint16_t *vectors = (volatile uint16_t *)0x61000;

	memcpy((void *)AP_CODE, ap_code, ap_code_end - ap_code);
	for (int i = 0; i < 256; i++) {
		vectors[2 * i] = ap_nmi - ap_code;
		vectors[2 * i + 1] = AP_CODE >> 4;
	}
	icr(0x4500);
	icr(0x4600 | AP_CODE >> 12);
}

/* What ACPI's _EJ0 does: CPU number 1, of the newer one of two interfaces. */
static void eject_ap(void)
{
	uint16_t port = 0xaf00;

	asm volatile("outl %0, %1" : : "a" (0), "d" (port));
	asm volatile("outl %0, %1" : : "a" (1), "d" (port));
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

	asm volatile("vmcall\n\t"
		     ".rept 1000; nop; .endr\n\t"
		     "mov %%r10, %%rax\n\t"
		     "mov %%r9, %%rcx\n\t"
		     "vmcall"
		     : "+a" (a), "+c" (c) : "b" (VPMU_PV_OP_BATCH), "d" (0), "r" (r9), "r" (r10)
		     : "memory");
	return a != 1;
}

/* Opened, enabled, 1000 NOPs, disabled: known to the instruction. */
static uint64_t known(void)
{
	static struct {
		struct vpmu_pv_batch head;
		struct vpmu_pv_op op[2];
	} on __attribute__((aligned(4096))), off __attribute__((aligned(4096)));
	static struct vpmu_pv_page page __attribute__((aligned(4096)));
	struct vpmu_pv_setup s = { sizeof(s), 0, (uintptr_t)&page };

	if (pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0))
		fail("RESET", 0);
	if (pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, (uintptr_t)&s, 0))
		fail("SETUP after RESET", 0);
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
	return known_count((uintptr_t)&on, (uintptr_t)&off) ? 0 : page.slot[0].count;
}

int main(const char *line)
{
	uint64_t turns = option(line, "turns", 1000), count = known(), i;
	uint32_t called = 0;

	seed = option(line, "seed", 1);
	state = seed * 2 + 1;
	memset((void *)(uintptr_t)ARENA, 0, ARENA_SIZE);
	start_ap();
	for (i = 0; i < turns; i++)
		turn();
	called = ap_called();
	if (option(line, "eject", 0))
		eject_ap();
	else
		icr(0x4500); /* INIT: it waits for a start now */
	if (known() != count || count != 1003)
		fail("a known count is", known());
	pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0);
	print("ok hostile: seed ");
	print_number(seed, 10);
	print(", ");
	print_number(n_calls, 10);
	print(" calls, ");
	print_number(n_done, 10);
	print(" done; ");
	print_number(called, 10);
	print(" of the other vCPU; ");
	print_number(n_hits, 10);
	print(option(line, "eject", 0) ? " NMIs\ndone 1\n" : " NMIs\ndone 2\n");
	while (!(inb(0x3fd) & 1))
		;
	return 0x21;
}
