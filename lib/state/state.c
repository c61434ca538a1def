// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The encoding of saved state: fields in little-endian order, and sections with
 * their heads.
 */
#include <vpmu/state.h>

#define SECTION_HEAD	16u
#define SECTION_LENGTH	8u /* offset in the head of the number of the body's bytes */

static void state_fail(struct vpmu_state_cursor *c, int error)
{
	if (!c->error)
		c->error = error;
}

static void state_store(uint8_t *p, uint64_t value, unsigned int bytes)
{
	unsigned int i;

	for (i = 0; i < bytes; i++, value >>= 8)
		p[i] = (uint8_t)value;
}

void vpmu_state_put(struct vpmu_state_cursor *c, uint64_t value, unsigned int bytes)
{
	if (c->data) {
		if (c->error || c->pos > c->size || bytes > c->size - c->pos)
			state_fail(c, -VPMU_E2BIG);
		else
			state_store(c->data + c->pos, value, bytes);
	}
	c->pos += bytes;
}

uint64_t vpmu_state_get(struct vpmu_state_cursor *c, unsigned int bytes)
{
	uint64_t value = 0;
	unsigned int i;

	if (c->error || !c->data || c->pos > c->size || bytes > c->size - c->pos) {
		state_fail(c, -VPMU_EINVAL);
		return 0;
	}
	for (i = bytes; i-- > 0;)
		value = value << 8 | c->data[c->pos + i];
	c->pos += bytes;
	return value;
}

size_t vpmu_state_section_begin(struct vpmu_state_cursor *c, uint32_t id,
				uint16_t version, uint16_t flags)
{
	size_t head = c->pos;

	vpmu_state_put(c, id, 4);
	vpmu_state_put(c, version, 2);
	vpmu_state_put(c, flags, 2);
	vpmu_state_put(c, 0, 4);
	vpmu_state_put(c, 0, 4);
	return head;
}

void vpmu_state_section_end(struct vpmu_state_cursor *c, size_t head)
{
	size_t body = c->pos - head - SECTION_HEAD;

	while ((c->pos - head) % 8)
		vpmu_state_put(c, 0, 1);
	if (c->data && !c->error)
		state_store(c->data + head + SECTION_LENGTH, body, 4);
}
