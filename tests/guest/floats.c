// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Floating point by SSE, for a guest's CPU to be held against the one that it runs on: a line
 * for each operation and rounding mode, with a checksum of all results and of the exceptions
 * that they raise, once with the flags cleared before each operation and once with all set.
 *
 *   floats N    N pairs of operands for each
 *   floats -v N each operation, too: both operands, the result, the flags
 *
 * The operands are integers, fractions of few digits and of many, numbers close to the limits of
 * their type, denormals, infinities and NaNs. Left out is what QEMU does not do: the flag for a
 * denormal operand, and which of two NaNs is the result.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS	0x3d	/* in MXCSR: precision, underflow, overflow, zero divide, invalid */
#define MASKS	0x1f80

static uint64_t state = 1;

static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

/* A number with so many bits of fraction and of exponent; a double has 52 and 11. */
static uint64_t operand(int fraction, int exponents)
{
	uint64_t r = any(), bits, exponent;
	uint64_t mask = (1ull << fraction) - 1, top = (1u << exponents) - 1, bias = top / 2;

	switch (r & 15) {
	case 0: /* special ones */
		bits = (any() & 1 ? 0 : mask & any()), exponent = any() & 1 ? top : 0;
		break;
	case 1: /* at the limits */
		bits = mask & (any() & 1 ? any() : -1ull);
		exponent = any() & 1 ? top - 1 - (any() & 3) : any() & 3;
		break;
	case 2: case 3: case 4: /* anything */
		bits = mask & any(), exponent = any() & top;
		break;
	case 5: case 6: case 7: /* all digits, near one */
		bits = mask & any(), exponent = bias - 8 + (any() & 15);
		break;
	default: /* few digits */
		bits = mask & (any() << (fraction - 1 - any() % (fraction - 1)));
		exponent = bias - 4 + (any() & 31);
	}
	return (r >> 63) << (fraction + exponents) | exponent << fraction | bits;
}

static int is_nan(uint64_t number, int fraction, int exponents)
{
	uint64_t magnitude = number & ((1ull << (fraction + exponents)) - 1);

	return magnitude > ((1ull << exponents) - 1) << fraction;
}

static uint32_t mxcsr(void)
{
	uint32_t value;

	asm volatile("stmxcsr %0" : "=m" (value));
	return value;
}

/*
 * The operation on both operands, and its result's bits: of doubles, and of floats, whose
 * operands are in the low halves.
 */
#define ARITHMETIC(name, insn) \
static uint64_t name(uint64_t a, uint64_t b) \
{ \
	uint64_t result; \
	asm volatile("movq %1, %%xmm0; movq %2, %%xmm1; " insn " %%xmm1, %%xmm0; movq %%xmm0, %0" \
		     : "=r" (result) : "r" (a), "r" (b) : "xmm0", "xmm1"); \
	return result; \
}
#define TO_INTEGER(name, insn) \
static uint64_t name(uint64_t a, uint64_t b) \
{ \
	uint64_t result = 0; \
	(void)b; \
	asm volatile("movq %1, %%xmm0; " insn : "+a" (result) : "r" (a) : "xmm0"); \
	return result; \
}
#define FROM_INTEGER(name, insn) \
static uint64_t name(uint64_t a, uint64_t b) \
{ \
	uint64_t result, integer = (int64_t)a >> (b & 63); \
	asm volatile("pxor %%xmm0, %%xmm0; " insn "; movq %%xmm0, %0" \
		     : "=r" (result) : "a" (integer) : "xmm0"); \
	return result; \
}
ARITHMETIC(addsd, "addsd")
ARITHMETIC(subsd, "subsd")
ARITHMETIC(mulsd, "mulsd")
ARITHMETIC(divsd, "divsd")
ARITHMETIC(sqrtsd, "sqrtsd")
ARITHMETIC(addss, "addss")
ARITHMETIC(subss, "subss")
ARITHMETIC(mulss, "mulss")
ARITHMETIC(divss, "divss")
ARITHMETIC(sqrtss, "sqrtss")
ARITHMETIC(cvtsd2ss, "cvtsd2ss")
ARITHMETIC(cvtss2sd, "cvtss2sd")
TO_INTEGER(cvttsd2si32, "cvttsd2si %%xmm0, %%eax")
TO_INTEGER(cvttsd2si64, "cvttsd2si %%xmm0, %%rax")
TO_INTEGER(cvtsd2si32, "cvtsd2si %%xmm0, %%eax")
TO_INTEGER(cvtsd2si64, "cvtsd2si %%xmm0, %%rax")
TO_INTEGER(cvttss2si32, "cvttss2si %%xmm0, %%eax")
TO_INTEGER(cvttss2si64, "cvttss2si %%xmm0, %%rax")
TO_INTEGER(cvtss2si32, "cvtss2si %%xmm0, %%eax")
TO_INTEGER(cvtss2si64, "cvtss2si %%xmm0, %%rax")
FROM_INTEGER(cvtsi2sd32, "cvtsi2sd %%eax, %%xmm0")
FROM_INTEGER(cvtsi2sd64, "cvtsi2sd %%rax, %%xmm0")
FROM_INTEGER(cvtsi2ss32, "cvtsi2ss %%eax, %%xmm0")
FROM_INTEGER(cvtsi2ss64, "cvtsi2ss %%rax, %%xmm0")

static const struct {
	const char *name;
	uint64_t (*f)(uint64_t a, uint64_t b);
	int fraction, exponents;
} operations[] = {
#define DOUBLE(name) { #name, name, 52, 11 }
#define FLOAT(name) { #name, name, 23, 8 }
	DOUBLE(addsd), DOUBLE(subsd), DOUBLE(mulsd), DOUBLE(divsd), DOUBLE(sqrtsd),
	FLOAT(addss), FLOAT(subss), FLOAT(mulss), FLOAT(divss), FLOAT(sqrtss),
	DOUBLE(cvtsd2ss), FLOAT(cvtss2sd),
	DOUBLE(cvttsd2si32), DOUBLE(cvttsd2si64), DOUBLE(cvtsd2si32), DOUBLE(cvtsd2si64),
	FLOAT(cvttss2si32), FLOAT(cvttss2si64), FLOAT(cvtss2si32), FLOAT(cvtss2si64),
	DOUBLE(cvtsi2sd32), DOUBLE(cvtsi2sd64), DOUBLE(cvtsi2ss32), DOUBLE(cvtsi2ss64),
};

static uint64_t mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3ull + (value >> 29);
}

/* @mode: the rounding, and 4 if the flags are set before. */
static void try_all(size_t i, uint32_t mode, unsigned long n, int verbose)
{
	const int fraction = operations[i].fraction, exponents = operations[i].exponents;
	uint32_t control = MASKS | (mode & 3) << 13 | (mode & 4 ? FLAGS : 0), flags;
	uint64_t sum = 0, a, b, result;

	state = i + 1;
	for (unsigned long k = 0; k < n; k++) {
		a = operand(fraction, exponents);
		b = operand(fraction, exponents);
		if (is_nan(a, fraction, exponents) && is_nan(b, fraction, exponents))
			b = 0;
		asm volatile("ldmxcsr %0" : : "m" (control));
		result = operations[i].f(a, b);
		flags = mxcsr() & FLAGS;
		sum = mix(mix(sum, result), flags);
		if (verbose)
			printf("%s %u %016" PRIx64 " %016" PRIx64 " %016" PRIx64 " %02x\n",
			       operations[i].name, mode, a, b, result, flags);
	}
	printf("%s rounding %u flags %s: %016" PRIx64 "\n", operations[i].name, mode & 3,
	       mode & 4 ? "set" : "clear", sum);
}

int main(int argc, char **argv)
{
	int verbose = argc == 3 && !strcmp(argv[1], "-v");
	unsigned long n = argc == 2 + verbose ? strtoul(argv[1 + verbose], NULL, 10) : 0;

	if (!n) {
		fprintf(stderr, "usage: floats [-v] N\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		for (uint32_t mode = 0; mode < 8; mode++)
			try_all(i, mode, n, verbose);
	return 0;
}
