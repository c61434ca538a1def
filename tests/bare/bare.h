/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The environment that programs without an operating system share. */
#ifndef BARE_H
#define BARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_CS	0x08
#define KERNEL_SS	0x10
#define USER_CS		0x2b

#define VECTOR_PMI	0x40	/* for LVTPC in fixed mode */
#define VECTOR_TIMER	0x41
#define VECTOR_LEAVE	0x81	/* back from user mode */

#define APIC_EOI	0x0b0
#define APIC_SVR	0x0f0
#define APIC_ICR	0x300
#define APIC_ICR_HIGH	0x310
#define APIC_LVT_TIMER	0x320
#define APIC_LVTPC	0x340
#define APIC_INITIAL	0x380
#define LVT_NMI		0x400
#define LVT_SMI		0x200
#define LVT_MASKED	0x10000

#define MSR_PMC0	0x0c1
#define MSR_EVTSEL0	0x186
#define MSR_DEBUGCTL	0x1d9
#define MSR_FIXED0	0x309
#define MSR_FIXED_CTRL	0x38d
#define MSR_STATUS	0x38e
#define MSR_GLOBAL	0x38f
#define MSR_RESET	0x390
#define EVTSEL_ON	0x530000	/* USR, OS, INT, EN */

struct frame {
	uint64_t r15, r14, r13, r12, r11, r10, r9, r8;
	uint64_t rbp, rdi, rsi, rdx, rcx, rbx, rax;
	uint64_t vector, error;
	uint64_t rip, cs, rflags, rsp, ss;
};

/* boot.S */
extern uint64_t recover, user_resume, low[512];
extern char user_left[];
void user_call(void (*f)(uint64_t), uint64_t arg);
int try_rdmsr(uint32_t msr, uint64_t *value);
int try_wrmsr(uint32_t msr, uint64_t value);
int try_rdpmc(uint32_t index, uint64_t *value);

/* bare.c */
void leave(int status) __attribute__((noreturn));
void print(const char *text);
void print_number(uint64_t n, unsigned int base);
uint64_t option(const char *line, const char *name, uint64_t otherwise);
void gate(unsigned int vector, const void *handler);
void own_stack(unsigned int vector, bool own);
/* A line: whether @value is what is wanted; none if it is, and @quiet. */
extern bool quiet;
void expect(const char *name, uint64_t value, uint64_t want);
/* Random numbers, the same ones from the same seed; below @n. */
void any_from(uint64_t seed);
uint64_t any(void);
uint64_t below(uint32_t n);
/* CPU 1: code for real mode is copied to @at, a page below 1 MiB, and begins there. */
void ap_start(uint32_t at, const char *code, const char *end);
void ap_stop(void); /* INIT: it waits for a start */

/* The program's own: a trap that bare.c does not know. False: it is fatal. */
bool on_trap(struct frame *f);
int main(const char *line);

static inline uint64_t rdmsr(uint32_t msr)
{
	uint32_t low, high;

	asm volatile("rdmsr" : "=a" (low), "=d" (high) : "c" (msr) : "memory");
	return low | (uint64_t)high << 32;
}

static inline void wrmsr(uint32_t msr, uint64_t value)
{
	asm volatile("wrmsr" : : "c" (msr), "a" ((uint32_t)value),
		     "d" ((uint32_t)(value >> 32)) : "memory");
}

static inline void outb(uint16_t port, uint8_t value)
{
	asm volatile("outb %0, %1" : : "a" (value), "Nd" (port));
}

static inline void outl(uint16_t port, uint32_t value)
{
	asm volatile("outl %0, %1" : : "a" (value), "Nd" (port));
}

static inline uint8_t inb(uint16_t port)
{
	uint8_t value;

	asm volatile("inb %1, %0" : "=a" (value) : "Nd" (port));
	return value;
}

/* A word of memory that another CPU, or a device, accesses too. */
static inline volatile uint32_t *word(uint32_t at)
{
	return (volatile uint32_t *)(uintptr_t)at;
}

static inline uint32_t apic_read(uint32_t reg)
{
	return *(volatile uint32_t *)(uintptr_t)(0xfee00000 + reg);
}

static inline void apic_write(uint32_t reg, uint32_t value)
{
	*(volatile uint32_t *)(uintptr_t)(0xfee00000 + reg) = value;
}

static inline void cpuid(uint32_t leaf, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
	asm volatile("cpuid" : "=a" (*a), "=b" (*b), "=c" (*c), "=d" (*d) : "a" (leaf), "c" (0));
}

#endif
