// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The run-time of programs without an operating system: output, the command
 * line, exceptions, a second CPU.
 */
#include "bare.h"

#define SERIAL	0x3f8
#define EXIT	0xf4	/* isa-debug-exit: QEMU's status is 2 * value + 1 */

extern uint8_t idt[256][16];

void leave(int status)
{
	for (;;)
		outb(EXIT, status);
}

void print(const char *text)
{
	while (*text)
		outb(SERIAL, *text++);
}

void print_number(uint64_t n, unsigned int base)
{
	char digits[24], *d = digits + sizeof(digits) - 1;

	*d = 0;
	do {
		*--d = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	print(d);
}

/* NAME=NUMBER on the command line. */
uint64_t option(const char *line, const char *name, uint64_t otherwise)
{
	uint64_t n = 0;
	size_t i;

	for (; *line; line++) {
		for (i = 0; name[i] && line[i] == name[i]; i++)
			;
		if (name[i] || line[i] != '=')
			continue;
		for (line += i + 1; *line >= '0' && *line <= '9'; line++)
			n = 10 * n + (*line - '0');
		return n;
	}
	return otherwise;
}

void gate(unsigned int vector, const void *handler)
{
	uint64_t at = (uintptr_t)handler;

	idt[vector][0] = at;
	idt[vector][1] = at >> 8;
	idt[vector][6] = at >> 16;
	idt[vector][7] = at >> 24;
}

void own_stack(unsigned int vector, bool own)
{
	idt[vector][4] = own;
}

bool quiet;

static void print_both(uint64_t n)
{
	print_number(n, 10);
	print(" (0x");
	print_number(n, 16);
	print(")");
}

void expect(const char *name, uint64_t value, uint64_t want)
{
	if (quiet && value == want)
		return;
	print(value == want ? "ok " : "not ok ");
	print(name);
	if (value != want) {
		print(": ");
		print_both(value);
		print(", not ");
		print_both(want);
	}
	print("\n");
}

static uint64_t state = 1;

void any_from(uint64_t seed)
{
	state = seed * 0x9e3779b97f4a7c15ull | 1;
}

uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

uint64_t below(uint32_t n)
{
	return (any() >> 32) % n;
}

static void ap_send(uint32_t value)
{
	apic_write(APIC_ICR_HIGH, 1u << 24);
	apic_write(APIC_ICR, value);
	for (volatile int i = 0; i < 100000; i++) /* it takes INIT before a start */
		;
}

void ap_stop(void)
{
	ap_send(0x4500);
}

void ap_start(uint32_t at, const char *code, const char *end)
{
	volatile char *to = (volatile char *)(uintptr_t)at;

	while (code < end)
		*to++ = *code++;
	ap_stop();
	ap_send(0x4600 | at >> 12);
}

static void die(const struct frame *f)
{
	print("not ok guest: vector ");
	print_number(f->vector, 10);
	print(", error ");
	print_number(f->error, 16);
	print(" at ");
	print_number(f->cs, 16);
	print(":");
	print_number(f->rip, 16);
	print("\n");
	leave(0x7f);
}

void trap(struct frame *f);
void trap(struct frame *f)
{
	if (f->vector == VECTOR_LEAVE) {
		f->rip = (uintptr_t)user_left;
		f->cs = KERNEL_CS;
		f->ss = KERNEL_SS;
		f->rflags = 2;
		f->rsp = user_resume;
		return;
	}
	if (f->vector == 13 && recover) {
		f->rip = recover;
		recover = 0;
		return;
	}
	if (!on_trap(f))
		die(f);
}
