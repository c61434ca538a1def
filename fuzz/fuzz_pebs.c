// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A guest with PEBS whose DS save area, buffer and page table are whatever it likes,
 * and change. A slow model says after each instruction what memory, counters and
 * status must be; the work that the guest can cause is bounded.
 */
#include "input.h"
#include "pebs_rig.h"

#define COUNTERS	3 /* GP 0 and 1, fixed 0 */
#define MASK48		((1ull << 48) - 1)
#define BUFFER_FULL	(1ull << 62)
#define HOOKS_MAX	64u /* hooks per instruction, with at most 3 LBR entries */
#define STATE_MAX	8192

static struct {
	uint8_t ram[RIG_RAM];
	uint64_t ds, cfg;
	uint64_t value[COUNTERS], enabled, wrapped, adaptive, status;
	unsigned int pmis;
} m;

static const unsigned int bit_of[COUNTERS] = { 0, 1, 32 };

/* An address: near something, or anything. */
static uint64_t address(void)
{
	uint8_t how = byte();

	switch (how % 8) {
	case 0:
		return word(8);
	case 1:
		return 0ull - byte();
	case 2:
		return RIG_LINEAR + RIG_RAM - byte();
	case 3:
		return RIG_LINEAR + (how / 8 % RIG_PAGES) * RIG_PAGE - byte();
	default:
		return RIG_LINEAR + word(2) % RIG_RAM;
	}
}

static bool may(const struct pebs_rig *r, uint64_t at, bool write)
{
	uint8_t map;

	if (at < RIG_LINEAR || at - RIG_LINEAR >= RIG_RAM)
		return false;
	map = r->map[(at - RIG_LINEAR) / RIG_PAGE];
	return map == RIG_WRITABLE || (map == RIG_READ_ONLY && !write);
}

static bool all(const struct pebs_rig *r, uint64_t at, uint64_t n, bool write)
{
	while (n--)
		if (!may(r, at++, write))
			return false;
	return true;
}

static bool get(const struct pebs_rig *r, uint64_t at, uint64_t *value)
{
	if (!all(r, at, 8, false))
		return false;
	memcpy(value, m.ram + (at - RIG_LINEAR), 8);
	return true;
}

/* Where nothing but an address that does not wrap can be, it has been looked at. */
static uint64_t put(uint64_t at, uint64_t value)
{
	memcpy(m.ram + (at - RIG_LINEAR), &value, 8);
	return at + 8;
}

static void model_write(uint64_t at, uint64_t size, uint64_t cfg, uint64_t counters,
			const struct vpmu_sample *s)
{
	unsigned int i;

	at = put(at, size << 48 | cfg);
	at = put(at, s->ip);
	at = put(at, counters);
	at = put(at, s->tsc);
	for (i = 0; cfg & 1 && i < 4; i++)
		at = put(at, i ? 0 : s->address);
	if (cfg & 2) {
		at = put(at, s->flags);
		at = put(at, s->next_ip);
		for (i = 0; i < 16; i++)
			at = put(at, s->gpr[i]);
	}
	for (i = 0; cfg & 4 && i < 32; i++)
		at = put(at, s->xmm[i / 2][i % 2]);
	for (i = 0; cfg & 8 && i < 3 * ((cfg >> 24 & 0xff) + 1); i++)
		at = put(at, 0);
}

static bool mmio(const struct pebs_rig *r, uint64_t at)
{
	return at >= RIG_LINEAR && at - RIG_LINEAR < RIG_RAM &&
	       r->map[(at - RIG_LINEAR) / RIG_PAGE] == RIG_MMIO;
}

/* Returns whether one was written. MMIO cannot be told before it is tried. */
static bool model_record(const struct pebs_rig *r, uint64_t *index, uint64_t max,
			 uint64_t cfg, uint64_t counters, const struct vpmu_sample *s,
			 bool *unknown)
{
	uint64_t size = 32 + (cfg & 1 ? 32 : 0) + (cfg & 2 ? 144 : 0) +
			(cfg & 4 ? 256 : 0) + (cfg & 8 ? 24 * ((cfg >> 24 & 0xff) + 1) : 0);
	uint64_t i;

	if (*index > max || max - *index < size || *index + size < *index)
		return false;
	for (i = 0; i < size; i++)
		*unknown |= mmio(r, *index + i);
	for (i = 0; i < 8; i++)
		*unknown |= mmio(r, m.ds + 0x28 + i);
	if (*unknown || !all(r, *index, size, true) || !all(r, m.ds + 0x28, 8, true))
		return false;
	model_write(*index, size, cfg, counters, s);
	*index += size;
	put(m.ds + 0x28, *index);
	return true;
}

/* Returns false when MMIO was in the way, and memory is to be taken as it is. */
static bool model_occurred(const struct pebs_rig *r, unsigned int due)
{
	static const unsigned int at[COUNTERS] = { 0x40, 0x48, 0x80 };
	uint64_t index, max, threshold, reset[COUNTERS], counters[2] = { 0, 0 };
	bool written = false, unknown = false;
	struct vpmu_sample s;
	unsigned int i;

	if (!get(r, m.ds + 0x28, &index) || !get(r, m.ds + 0x30, &max) ||
	    !get(r, m.ds + 0x38, &threshold))
		return true;
	for (i = 0; i < COUNTERS; i++)
		if (due >> i & 1 && !get(r, m.ds + at[i], &reset[i]))
			return true;
	pebs_rig_sample(r, &s);
	for (i = 0; i < COUNTERS; i++)
		if (due >> i & 1)
			counters[!(m.adaptive >> i & 1) && m.cfg] |= 1ull << bit_of[i];
	if (counters[0])
		written |= model_record(r, &index, max, m.cfg, counters[0], &s, &unknown);
	if (counters[1])
		written |= model_record(r, &index, max, 0, counters[1], &s, &unknown);
	for (i = 0; i < COUNTERS; i++)
		if (due >> i & 1)
			m.value[i] = reset[i] & MASK48;
	if (written && !unknown && index >= threshold) {
		m.status = BUFFER_FULL;
		m.pmis++;
	}
	return !unknown;
}

static void step(struct pebs_rig *r)
{
	unsigned int due = 0, i;
	uint64_t status = 0;
	bool known = true;

	r->n_hook = 0;
	pebs_rig_run(r, 1);
	require(r->n_hook <= HOOKS_MAX, "work is bounded");
	for (i = 0; i < COUNTERS; i++) {
		m.value[i] = (m.value[i] + 1) & MASK48;
		if (m.enabled >> i & m.wrapped >> i & 1)
			due |= 1u << i;
		else if (!m.value[i] && m.enabled >> i & 1)
			m.wrapped |= 1u << i;
	}
	m.wrapped &= ~(uint64_t)due;
	if (due)
		known = model_occurred(r, due);
	(void)vpmu_arch_rdmsr(r->v, 0x38e, &status);
	if (!known) {
		memcpy(m.ram, r->ram, RIG_RAM);
		m.status = status & BUFFER_FULL;
		m.pmis = r->n_pmi;
	}
	require(!memcmp(m.ram, r->ram, RIG_RAM), "memory is as the model's");
	require((status & BUFFER_FULL) == m.status, "status is as the model's");
	require(r->n_pmi == m.pmis, "interrupts are as the model's");
	require(!r->script.broken, "ops.h is kept");
}

static void write_msr(struct pebs_rig *r, uint32_t msr, uint64_t value)
{
	(void)vpmu_arch_wrmsr(r->v, msr, value);
	vpmu_script_service(&r->script);
}

static void set_adaptive(struct pebs_rig *r)
{
	write_msr(r, 0x186, 0x4200c0 | (m.adaptive & 1) << 34);
	write_msr(r, 0x187, 0x4200c0 | (m.adaptive & 2) << 33);
	write_msr(r, 0x38d, 1 | (m.adaptive & 4) << 30);
}

static void save_and_load(struct pebs_rig *r)
{
	static uint8_t buf[STATE_MAX];
	size_t used;

	require(!vpmu_arch_save(r->v, buf, sizeof(buf), &used), "it can be saved");
	require(!vpmu_arch_load(r->v, buf, used), "what was saved can be loaded");
}

/* A value for a field: often near the end of a few records. */
static uint64_t field(void)
{
	uint8_t how = byte();
	uint64_t index;

	if (how % 4 == 0)
		return word(8);
	if (how % 4 == 1)
		return address();
	memcpy(&index, m.ram + (m.ds + 0x28 - RIG_LINEAR) % (RIG_RAM - 8), 8);
	return index + 32 * (how / 16) + (how & 8 ? byte() % 3 - 1u : 0);
}

static void operation(struct pebs_rig *r)
{
	uint8_t op = byte(), i;
	uint64_t at;

	switch (op % 8) {
	case 0: /* a counter, near its end */
		i = op / 8 % COUNTERS;
		m.value[i] = (0ull - byte() % 8) & MASK48;
		m.wrapped &= ~(1ull << i);
		write_msr(r, i < 2 ? 0x4c1u + i : 0x309u, m.value[i]);
		break;
	case 1:
		m.enabled = op / 8 % 8;
		write_msr(r, 0x3f1, (m.enabled & 3) | (m.enabled & 4) << 30);
		break;
	case 2:
		m.cfg = (op / 8 % 16) | (uint64_t)(byte() % 3) << 24;
		write_msr(r, 0x3f2, m.cfg);
		m.adaptive = byte() % 8;
		set_adaptive(r);
		break;
	case 3:
		at = address();
		if (vpmu_arch_wrmsr(r->v, 0x600, at) == VPMU_HANDLED)
			m.ds = at;
		break;
	case 4: /* a field of the area, where it is memory */
		at = m.ds + 8 * (op / 8 % 18);
		if (at >= RIG_LINEAR && at - RIG_LINEAR <= RIG_RAM - 8) {
			put(at, field());
			memcpy(r->ram, m.ram, RIG_RAM);
		}
		break;
	case 5:
		r->map[op / 8 % RIG_PAGES] = byte() % 8 < 4 ? RIG_WRITABLE : byte() % 4;
		break;
	case 6:
		if (op & 8)
			save_and_load(r);
		write_msr(r, 0x390, BUFFER_FULL | 1ull << 63);
		m.status = 0;
		break;
	default:
		break;
	}
	for (i = 0; i < op % 5; i++)
		step(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pebs_rig *r = pebs_rig_new(4, 0, NULL);
	uint64_t value;
	unsigned int i;

	input = data;
	left = size;
	memset(&m, 0, sizeof(m));
	m.adaptive = 7;
	m.ds = RIG_LINEAR + 64;
	put(m.ds + 0x28, RIG_LINEAR + RIG_PAGE - 64);
	put(m.ds + 0x30, RIG_LINEAR + RIG_RAM);
	put(m.ds + 0x38, RIG_LINEAR + 3 * RIG_PAGE);
	memcpy(r->ram, m.ram, RIG_RAM);
	set_adaptive(r);
	write_msr(r, 0x600, m.ds);
	write_msr(r, 0x38f, 3 | 1ull << 32);
	while (left) {
		operation(r);
		for (i = 0; i < COUNTERS; i++) {
			value = 0;
			(void)vpmu_arch_rdmsr(r->v, i < 2 ? 0x4c1u + i : 0x309u, &value);
			require(value == m.value[i], "counters are as the model's");
		}
	}
	pebs_rig_free(r);
	return 0;
}
