/* SPDX-License-Identifier: GPL-2.0-only */
/* Groups of topdown events that a VMM has lent to its vCPUs. */
#ifndef VPMU_KVM_LOAN_H
#define VPMU_KVM_LOAN_H

#include <linux/list.h>
#include <linux/types.h>

struct perf_event;
struct vk_loan;
struct vk_vm;

#define VK_FIXED_SLOTS	3 /* number of the fixed counter */

/** Is there one for the rings @banks? */
bool vk_loan_has(const struct list_head *loans, u32 banks);

/** One that counts in the rings @banks, until vk_loan_return(); NULL: there is none. */
struct vk_loan *vk_loan_take(const struct list_head *loans, u32 banks);
void vk_loan_return(struct vk_loan *l);

/** The event of the slots. Its group stays as long as the loan. */
struct perf_event *vk_loan_leader(const struct vk_loan *l);

/**
 * Read event @i of the group, 0 for the slots or 1 for the first class: what it has counted
 * since it was lent, and perf's times. Classes that are not lent count nothing. May sleep.
 */
u64 vk_loan_read(struct vk_loan *l, unsigned int i, u64 *enabled, u64 *running);

/** Hand what is lent to a vCPU over, when it is made. May sleep. */
void vk_loans_move(struct vk_vm *vm, unsigned int vcpu, struct list_head *to);

/** The end of these loans, which nothing uses. May sleep. */
void vk_loans_free(struct list_head *loans);

#endif /* VPMU_KVM_LOAN_H */
