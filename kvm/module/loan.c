// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loans: groups of perf events that count topdown classes. The kernel makes no groups for its
 * modules, so a VMM opens one on the vCPU's thread, and lends it for the vCPU's life. The group
 * counts in guest mode only, in the rings that its attributes say: there may be one for each
 * choice of rings. The guest's fixed counter 3 is the leader, PERF_METRICS the others.
 *
 * The VMM can still enable, disable and reset them, which is between it and its guest. A sum
 * never goes back. The events cannot interrupt: each service looks for overflows. A guest may
 * disable or arm its event before the next one, and the event may leave its thread: there it is
 * looked for, too.
 */
#include <linux/file.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include "kvm.h"
#include "loan.h"
#include "vpmu-kvm-module.h"
#include "vpmu_kvm.h"

typedef struct file *vk_event_get_fn(unsigned int fd);
DEFINE_STATIC_CALL_NULL(vk_event_get, vk_event_get_fn);

static const struct vk_function vk_loan_functions[] = {
	VK_FUNCTION(vk_event_get, "perf_event_get", "i"),
};

struct vk_loan {
	struct list_head list;       /* entry of vk_vm.loans, then of vk_perf.loans */
	unsigned int vcpu;           /* vcpu_idx */
	u32 banks;
	bool taken;                  /* a guest's event has it */
	struct file *file[1 + VPMU_TOPDOWN];
	u64 last[1 + VPMU_TOPDOWN];  /* perf's count when it was last read, and the sum of */
	u64 sum[1 + VPMU_TOPDOWN];   /* all by which it has grown */
};

struct perf_event *vk_loan_leader(const struct vk_loan *l)
{
	return l->file[0]->private_data;
}

u64 vk_loan_read(struct vk_loan *l, unsigned int i, u64 *enabled, u64 *running)
{
	u64 now;

	if (!l->file[i])
		return 0;
	now = perf_event_read_value(l->file[i]->private_data, enabled, running);
	if (now > l->last[i])
		l->sum[i] += now - l->last[i];
	l->last[i] = now;
	return l->sum[i];
}

static struct vk_loan *vk_loan_of(const struct list_head *loans, u32 banks)
{
	struct vk_loan *l;

	list_for_each_entry(l, loans, list)
		if (l->banks == banks)
			return l;
	return NULL;
}

bool vk_loan_has(const struct list_head *loans, u32 banks)
{
	return vk_loan_of(loans, banks);
}

struct vk_loan *vk_loan_take(const struct list_head *loans, u32 banks)
{
	struct vk_loan *l = vk_loan_of(loans, banks);

	if (!l || l->taken)
		return NULL;
	l->taken = true;
	return l;
}

void vk_loan_return(struct vk_loan *l)
{
	l->taken = false;
}

static void vk_loan_free(struct vk_loan *l)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(l->file); i++)
		if (l->file[i])
			fput(l->file[i]);
	kfree(l);
}

void vk_loans_free(struct list_head *loans)
{
	struct vk_loan *l, *next;

	list_for_each_entry_safe(l, next, loans, list)
		vk_loan_free(l);
	INIT_LIST_HEAD(loans);
}

void vk_loans_move(struct vk_vm *vm, unsigned int vcpu, struct list_head *to)
{
	struct vk_loan *l, *next;

	mutex_lock(&vm->lock);
	list_for_each_entry_safe(l, next, &vm->loans, list)
		if (l->vcpu == vcpu)
			list_move(&l->list, to);
	mutex_unlock(&vm->lock);
}

static u32 vk_banks_of(const struct perf_event_attr *attr)
{
	return (attr->exclude_user ? 0 : VPMU_BANKS_USER) |
	       (attr->exclude_kernel ? 0 : VPMU_BANKS_KERNEL);
}

/*
 * Source: SDM vol. 3, "Performance Metrics"; Linux, arch/x86/events/intel/core.c: the slots
 * have an encoding of their own, and the classes follow each other.
 */
static const char *vk_loan_wrong(const struct perf_event *pe, const struct perf_event *leader,
				 unsigned int i)
{
	const struct perf_event_attr *a = &pe->attr;

	if (a->type != PERF_TYPE_RAW || a->config != (i ? 0x8000 + 0x100 * (i - 1) : 0x400))
		return "an event that is no topdown class, or out of order";
	if (pe->group_leader != leader)
		return "events that are no group";
	if (pe->cpu != -1 || !pe->hw.target)
		return "an event that is a CPU's, not a thread's";
	if (!a->exclude_host || a->exclude_guest || a->exclude_hv || a->exclude_idle)
		return "an event that does not count in guest mode only";
	if (a->sample_period || a->inherit || a->enable_on_exec || a->disabled != !i ||
	    vk_banks_of(a) != vk_banks_of(&leader->attr) || !vk_banks_of(a))
		return "an event that samples, is inherited, or has other modes than its leader";
	return NULL;
}

/* The files are the loan's, which vk_loan_free() puts. */
static int vk_loan_fill(struct vk_loan *l, const struct vpmu_kvm_lend *io, struct vpmu_error *why)
{
	unsigned int i;

	for (i = 0; i < io->n_events; i++) {
		struct file *file = static_call(vk_event_get)(io->event[i]);

		*why = (struct vpmu_error){ "a file that is no perf event", i, io->n_events };
		if (IS_ERR(file))
			return PTR_ERR(file);
		l->file[i] = file;
		why->what = vk_loan_wrong(file->private_data, vk_loan_leader(l), i);
		if (why->what)
			return -EINVAL;
	}
	*why = (struct vpmu_error){ };
	l->banks = vk_banks_of(&vk_loan_leader(l)->attr);
	return 0;
}

static int vk_loan_add(struct vk_vm *vm, struct kvm_vcpu *vcpu, struct vk_loan *l,
		       struct vpmu_error *why)
{
	struct vk_loan *other;
	int ret = 0;

	if (!mutex_trylock(&vcpu->mutex)) {
		why->what = "the vCPU runs";
		return -EBUSY;
	}
	l->vcpu = vcpu->vcpu_idx;
	mutex_lock(&vm->lock);
	list_for_each_entry(other, &vm->loans, list)
		if (other->vcpu == l->vcpu && other->banks == l->banks)
			ret = -EEXIST;
	if (vk_find(vcpu))
		ret = -EBUSY;
	if (!ret)
		list_add_tail(&l->list, &vm->loans);
	mutex_unlock(&vm->lock);
	mutex_unlock(&vcpu->mutex);
	if (ret)
		why->what = ret == -EBUSY ? "the vCPU has its PMU already" :
					    "the vCPU has been lent such a group already";
	return ret;
}

int vk_lend(struct kvm *kvm, const struct vpmu_kvm_lend *io, struct vpmu_error *why)
{
	struct kvm_vcpu *vcpu = kvm_get_vcpu_by_id(kvm, io->vcpu);
	struct vk_vm *vm = vk_vm_of(kvm);
	struct vk_loan *l;
	int ret;

	if (!vm || !vm->arch || vm->arch->n_fixed <= VK_FIXED_SLOTS) {
		why->what = "the guest has no architectural PMU with a slots counter";
		return -ENOENT;
	}
	if (!vcpu) {
		why->what = "no such vCPU";
		return -ENOENT;
	}
	if (io->n_events != 1u + vm->arch->topdown) {
		*why = (struct vpmu_error){ "events", io->n_events, 1 + vm->arch->topdown };
		return -EINVAL;
	}
	if (vk_find_functions(vk_loan_functions, ARRAY_SIZE(vk_loan_functions))) {
		why->what = "a function of perf's is not found, or kprobes are locked";
		return -EOPNOTSUPP;
	}
	l = vk_fails() ? NULL : kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	if (!l)
		return -ENOMEM;
	ret = vk_loan_fill(l, io, why) ?: vk_loan_add(vm, vcpu, l, why);
	if (ret)
		vk_loan_free(l);
	return ret;
}
