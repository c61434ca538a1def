// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A ring of trace records for one writer and one reader. */
#include <vpmu/trace.h>

int vpmu_trace_init(struct vpmu_trace_ring *ring, struct vpmu_trace_record *record,
		    uint32_t size)
{
	if (!record || !size || (size & (size - 1)))
		return -VPMU_EINVAL;
	memset(ring, 0, sizeof(*ring));
	ring->record = record;
	ring->size = size;
	return 0;
}

/* The record is written before head, which publishes it to the reader. */
bool vpmu_trace_put(struct vpmu_trace_ring *ring, const struct vpmu_trace_record *r)
{
	uint32_t head = ring->head;

	if (head - vpmu_atomic_get(&ring->tail) == ring->size) {
		ring->dropped++;
		return false;
	}
	ring->record[head & (ring->size - 1)] = *r;
	vpmu_atomic_set(&ring->head, head + 1);
	return true;
}

bool vpmu_trace_get(struct vpmu_trace_ring *ring, struct vpmu_trace_record *r)
{
	uint32_t tail = ring->tail;

	if (vpmu_atomic_get(&ring->head) == tail)
		return false;
	*r = ring->record[tail & (ring->size - 1)];
	vpmu_atomic_set(&ring->tail, tail + 1);
	return true;
}
