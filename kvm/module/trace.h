/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's tracepoints, in the system vpmu_kvm. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM vpmu_kvm

#if !defined(VPMU_KVM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define VPMU_KVM_TRACE_H

#include <linux/tracepoint.h>

#include "vpmu_kvm.h"

TRACE_EVENT(vpmu_kvm_call,
	TP_PROTO(const struct vk_vcpu *c, const struct vpmu_hypercall *call),
	TP_ARGS(c, call),
	TP_STRUCT__entry(
		__field(pid_t, pid)
		__field(unsigned int, vcpu)
		__field(u64, op)
		__field(u64, address)
		__field(s64, result)
	),
	TP_fast_assign(
		__entry->pid = c->vm->pid;
		__entry->vcpu = c->number;
		__entry->op = call->arg[0];
		__entry->address = (u32)call->arg[1] | call->arg[2] << 32;
		__entry->result = call->result;
	),
	TP_printk("vm %d vcpu %u op %llu at %#llx result %lld", __entry->pid, __entry->vcpu,
		  __entry->op, __entry->address, __entry->result)
);

TRACE_EVENT(vpmu_kvm_overflow,
	TP_PROTO(const struct vk_vcpu *c, unsigned int slot),
	TP_ARGS(c, slot),
	TP_STRUCT__entry(
		__field(pid_t, pid)
		__field(unsigned int, vcpu)
		__field(unsigned int, slot)
	),
	TP_fast_assign(
		__entry->pid = c->vm->pid;
		__entry->vcpu = c->number;
		__entry->slot = slot;
	),
	TP_printk("vm %d vcpu %u slot %u", __entry->pid, __entry->vcpu, __entry->slot)
);

DECLARE_EVENT_CLASS(vpmu_kvm_vcpu,
	TP_PROTO(const struct vk_vcpu *c),
	TP_ARGS(c),
	TP_STRUCT__entry(
		__field(pid_t, pid)
		__field(unsigned int, vcpu)
	),
	TP_fast_assign(
		__entry->pid = c->vm->pid;
		__entry->vcpu = c->number;
	),
	TP_printk("vm %d vcpu %u", __entry->pid, __entry->vcpu)
);

DEFINE_EVENT(vpmu_kvm_vcpu, vpmu_kvm_attach,
	TP_PROTO(const struct vk_vcpu *c), TP_ARGS(c));
DEFINE_EVENT(vpmu_kvm_vcpu, vpmu_kvm_nmi,
	TP_PROTO(const struct vk_vcpu *c), TP_ARGS(c));
DEFINE_EVENT(vpmu_kvm_vcpu, vpmu_kvm_reset,
	TP_PROTO(const struct vk_vcpu *c), TP_ARGS(c));
DEFINE_EVENT(vpmu_kvm_vcpu, vpmu_kvm_detach,
	TP_PROTO(const struct vk_vcpu *c), TP_ARGS(c));

#endif /* VPMU_KVM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
