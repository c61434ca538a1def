// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The paravirtual PMU in 32-bit protected mode: version 1's structs as a 32-bit
 * compiler lays them out, version 2's as they always are. Prints a line per case.
 */
#include <stdint.h>
#include "pv.h"

struct attr {
	uint32_t type;
	uint64_t config, sample_period, sample_type, read_format, flags;
	uint32_t bp_type;
	uint64_t bp_addr, bp_len;
};
struct params {
	uint64_t attr, event;
	int32_t id;
};
_Static_assert(sizeof(struct attr) == VPMU_PV1_ATTR_BYTES_32, "");
_Static_assert(sizeof(struct params) == VPMU_PV1_PARAMS_BYTES, "");

/* From PVH's entry to main() with flat segments and a gate for NMIs. */
asm(".pushsection .note.pvh, \"a\", @note\n"
    ".balign 4\n"
    ".long 4, 4, 18\n"
    ".asciz \"Xen\"\n"
    ".long start32\n"
    ".popsection\n"
    ".globl start32\n"
    "start32: cli\n"
    "lgdt gdt_pointer\n"
    "ljmp $8, $1f\n"
    "1: mov $16, %eax\n"
    "mov %eax, %ds\n"
    "mov %eax, %es\n"
    "mov %eax, %ss\n"
    "mov $stack + 4096, %esp\n"
    "mov $nmi, %eax\n"
    "mov %ax, idt + 16\n"
    "shr $16, %eax\n"
    "mov %ax, idt + 22\n"
    "lidt idt_pointer\n"
    "call main\n"
    "nmi: push %eax\n"
    "mov 4(%esp), %eax\n"
    "mov %eax, hit_at\n"
    "incl hit_n\n"
    "pop %eax\n"
    "iret\n"
    ".pushsection .data\n"
    ".balign 8\n"
    "gdt: .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff\n"
    "gdt_pointer: .short . - gdt - 1\n"
    ".long gdt\n"
    ".balign 8\n"
    "idt: .quad 0, 0, 0x00008e0000080000\n"
    "idt_pointer: .short . - idt - 1\n"
    ".long idt\n"
    ".popsection");

char stack[4096];
volatile uint32_t hit_n, hit_at;
uint32_t next_call[3]; /* EAX, EBX, ECX of the second one */

static void out(uint16_t port, uint8_t value)
{
	asm volatile("outb %0, %1" : : "a" (value), "Nd" (port));
}

static void print(const char *text)
{
	while (*text)
		out(0x3f8, *text++);
}

static void print_number(uint32_t n)
{
	for (int shift = 28; shift >= 0; shift -= 4)
		out(0x3f8, "0123456789abcdef"[n >> shift & 15]);
}

static void expect(const char *name, uint32_t value, uint32_t want)
{
	print(value == want ? "ok " : "not ok ");
	print(name);
	if (value != want) {
		print(": it is 0x");
		print_number(value);
		print(", not 0x");
		print_number(want);
	}
	print("\n");
}

/* VMCALL, NOPs and another one, as next_call says; the first NOP's address. */
#define BETWEEN (1 + 97 + 3)
static __attribute__((noinline, noclone))
uint32_t between(uint32_t nr, uint32_t a0, uint32_t a1)
{
	asm volatile("vmcall\n"
		     "between_at: .rept 97; nop; .endr\n\t"
		     "mov next_call, %%eax\n\t"
		     "mov next_call + 4, %%ebx\n\t"
		     "mov next_call + 8, %%ecx\n\t"
		     "vmcall"
		     : "+a" (nr), "+b" (a0), "+c" (a1) : "d" (0) : "memory");
	asm volatile("mov $between_at, %0" : "=r" (nr));
	return nr;
}

static void second(uint32_t nr, uint32_t a0, uint32_t a1)
{
	next_call[0] = nr;
	next_call[1] = a0;
	next_call[2] = a1;
}

static struct attr attr __attribute__((aligned(4)));
static struct { uint32_t odd; struct params p; } params __attribute__((aligned(8)));
/* At a multiple of 4 that is not one of 8, with a member after it. */
static struct {
	uint32_t odd;
	uint32_t count, count_high;
	int32_t overflows;
	uint32_t behind;
} event __attribute__((aligned(8)));

static int32_t v1(uint32_t what, uint32_t id)
{
	return pv_call(VPMU_PV1_HYPERCALL, what, id, 0);
}

static void version_1(void)
{
	uint32_t at, k;

	attr.config = 1;
	params.p.attr = (uintptr_t)&attr;
	params.p.event = (uintptr_t)&event.count;
	params.p.id = -3;
	event.behind = 0x1234;
	expect("32 bits, v1, CLOSE of nothing", v1(VPMU_PV1_CLOSE, -3), -VPMU_PV_ENOENT);
	expect("32 bits, v1, OPEN", v1(VPMU_PV1_OPEN, (uintptr_t)&params.p), 0);
	second(VPMU_PV1_HYPERCALL, VPMU_PV1_DISABLE, -3);
	between(VPMU_PV1_HYPERCALL, VPMU_PV1_ENABLE, -3);
	expect("32 bits, v1, exact count", event.count, BETWEEN);
	expect("32 bits, v1, CLOSE", v1(VPMU_PV1_CLOSE, -3), 0);
	for (k = 1; k <= 98; k++) {
		attr.sample_period = 9 * BETWEEN + k; /* the rest of the period is kept */
		event.overflows = 0;
		hit_n = 0;
		v1(VPMU_PV1_OPEN, (uintptr_t)&params.p);
		for (int i = 0; i < 10; i++)
			at = between(VPMU_PV1_HYPERCALL, VPMU_PV1_ENABLE, -3);
		v1(VPMU_PV1_CLOSE, -3);
		if (hit_n != 1 || event.overflows != 1 || hit_at != at + k - 1)
			break;
	}
	expect("32 bits, v1, overflow at each instruction", k - 1, 98);
	expect("32 bits, v1, behind the struct", event.behind, 0x1234);
}

static struct vpmu_pv_page page __attribute__((aligned(4096)));
static struct {
	struct vpmu_pv_batch head;
	struct vpmu_pv_op op[2];
} on __attribute__((aligned(4096))), off __attribute__((aligned(4096)));

static void version_2(void)
{
	struct vpmu_pv_setup setup = { sizeof(setup), 0, (uintptr_t)&page };

	expect("32 bits, v2, VERSION", pv_call(VPMU_PV_HYPERCALL, 0, 0, 0), VPMU_PV_MAGIC);
	expect("32 bits, v2, SETUP",
	       pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_SETUP, (uintptr_t)&setup, 0), 0);
	expect("32 bits, v2, BATCH far away",
	       pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, (uintptr_t)&on, 1), -VPMU_PV_EFAULT);
	on.head.n_ops = 2;
	on.head.size = sizeof(on);
	on.op[0].op = VPMU_PV_OPEN;
	on.op[0].id = 1;
	on.op[0].u.open.config = 1;
	on.op[1].op = VPMU_PV_ENABLE;
	on.op[1].id = 1;
	off.head.n_ops = 1;
	off.head.size = sizeof(off.head) + sizeof(off.op[0]);
	off.op[0].op = VPMU_PV_DISABLE;
	off.op[0].id = 1;
	second(VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, (uintptr_t)&off);
	between(VPMU_PV_HYPERCALL, VPMU_PV_OP_BATCH, (uintptr_t)&on);
	expect("32 bits, v2, exact count", page.slot[0].count, BETWEEN);
	expect("32 bits, v2, RESET", pv_call(VPMU_PV_HYPERCALL, VPMU_PV_OP_RESET, 0, 0), 0);
}

void main(void) __attribute__((noreturn));
void main(void)
{
	version_1();
	version_2();
	for (;;)
		out(0xf4, 0x21);
}
