/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMX operation under TCG: its state, and what the rest of target/i386 calls.
 *
 * "Guest" means VMX non-root operation, as HF_GUEST_MASK does, which VMX and
 * SVM share: translated code only knows that something may be intercepted.
 */
#ifndef I386_VMX_H
#define I386_VMX_H

/* VMXState.vmcs while there is no current VMCS, which VMPTRST stores as such */
#define VMX_NO_VMCS UINT64_MAX

/*
 * Fields of the current VMCS are in guest memory.  Those that decide what
 * exits are copied here by VM entry, after they were checked, so that another
 * CPU that writes to that memory changes nothing until the next entry.
 */
typedef struct VMXState {
    bool on;                    /* in VMX operation */
    bool guest;                 /* in non-root operation; HF_GUEST is set */
    bool halted;                /* the guest's activity state is HLT */
    bool smm_guest;             /* SMM interrupted non-root operation */
    uint64_t region;            /* the operand of VMXON */
    uint64_t vmcs;              /* the current VMCS, or VMX_NO_VMCS */

    /* Controls of the guest */
    uint32_t pin, proc, proc2, exit, entry;
    uint32_t exceptions, pf_mask, pf_match;
    uint64_t cr0_mask, cr0_shadow, cr4_mask, cr4_shadow;
    uint64_t cr3_target[4];
    uint32_t n_cr3_targets;
    uint64_t io_bitmap[2], msr_bitmap, eptp;
    /*
     * With EPT and PAE paging the fields of the VMCS are the entries that CR3
     * would have loaded, until the guest writes to a control register
     */
    uint64_t pdpte[4];
    bool pdptes;
    uint64_t timer_end;         /* the TSC when the preemption timer expires */

    /*
     * The event that is being delivered through the guest's IDT, in the format
     * of the IDT-vectoring fields; bit 31 is clear when there is none.  VM
     * entry or the beginning of a delivery sets it, the delivery's end or an
     * exit clears it.
     */
    uint32_t vectoring, vectoring_error;

    /* The linear address of a page fault that may exit, and does not set CR2 */
    uint64_t fault_address;
    /*
     * The instruction that may exit, see vmx_insn_word().  Restored with the
     * instruction pointer.
     */
    uint64_t insn;

    /* The exit that is under way, from vmx_vmexit() to vmx_do_vmexit() */
    uint32_t exit_reason, exit_info, exit_error;
    uint64_t exit_qualification, exit_gpa, exit_gla;
} VMXState;

/* TCG's features by feature word: controls that may be 0 or 1, and so on */
#define TCG_VMX_PINBASED_FEATURES (VMX_PIN_BASED_EXT_INTR_MASK | \
          VMX_PIN_BASED_NMI_EXITING | VMX_PIN_BASED_VIRTUAL_NMIS | \
          VMX_PIN_BASED_VMX_PREEMPTION_TIMER)
#define TCG_VMX_PROCBASED_FEATURES (VMX_CPU_BASED_VIRTUAL_INTR_PENDING | \
          VMX_CPU_BASED_USE_TSC_OFFSETING | VMX_CPU_BASED_HLT_EXITING | \
          VMX_CPU_BASED_INVLPG_EXITING | VMX_CPU_BASED_MWAIT_EXITING | \
          VMX_CPU_BASED_RDPMC_EXITING | VMX_CPU_BASED_RDTSC_EXITING | \
          VMX_CPU_BASED_CR3_LOAD_EXITING | VMX_CPU_BASED_CR3_STORE_EXITING | \
          VMX_CPU_BASED_CR8_LOAD_EXITING | VMX_CPU_BASED_CR8_STORE_EXITING | \
          VMX_CPU_BASED_VIRTUAL_NMI_PENDING | VMX_CPU_BASED_MOV_DR_EXITING | \
          VMX_CPU_BASED_UNCOND_IO_EXITING | VMX_CPU_BASED_USE_IO_BITMAPS | \
          VMX_CPU_BASED_USE_MSR_BITMAPS | VMX_CPU_BASED_MONITOR_EXITING | \
          VMX_CPU_BASED_PAUSE_EXITING | \
          VMX_CPU_BASED_ACTIVATE_SECONDARY_CONTROLS)
#define TCG_VMX_SECONDARY_FEATURES (VMX_SECONDARY_EXEC_ENABLE_EPT | \
          VMX_SECONDARY_EXEC_RDTSCP | VMX_SECONDARY_EXEC_ENABLE_VPID | \
          VMX_SECONDARY_EXEC_WBINVD_EXITING | \
          VMX_SECONDARY_EXEC_UNRESTRICTED_GUEST)
#define TCG_VMX_EXIT_FEATURES (VMX_VM_EXIT_SAVE_DEBUG_CONTROLS | \
          VMX_VM_EXIT_LOAD_IA32_PERF_GLOBAL_CTRL | \
          VMX_VM_EXIT_ACK_INTR_ON_EXIT | VMX_VM_EXIT_SAVE_IA32_PAT | \
          VMX_VM_EXIT_LOAD_IA32_PAT | VMX_VM_EXIT_SAVE_IA32_EFER | \
          VMX_VM_EXIT_LOAD_IA32_EFER | \
          VMX_VM_EXIT_SAVE_VMX_PREEMPTION_TIMER | \
          VMX_VM_EXIT_SAVE_IA32_PERF_GLOBAL_CTRL)
#define TCG_VMX_ENTRY_FEATURES (VMX_VM_ENTRY_LOAD_DEBUG_CONTROLS | \
          VMX_VM_ENTRY_IA32E_MODE | VMX_VM_ENTRY_LOAD_IA32_PERF_GLOBAL_CTRL | \
          VMX_VM_ENTRY_LOAD_IA32_PAT | VMX_VM_ENTRY_LOAD_IA32_EFER)
#define TCG_VMX_MISC_FEATURES (MSR_VMX_MISC_STORE_LMA | \
          MSR_VMX_MISC_ACTIVITY_HLT | MSR_VMX_MISC_VMWRITE_VMEXIT | \
          MSR_VMX_MISC_ZERO_LEN_INJECT)
#define TCG_VMX_EPT_VPID_FEATURES (MSR_VMX_EPT_EXECONLY | \
          MSR_VMX_EPT_PAGE_WALK_LENGTH_4 | MSR_VMX_EPT_UC | MSR_VMX_EPT_WB | \
          MSR_VMX_EPT_2MB | MSR_VMX_EPT_1GB | MSR_VMX_EPT_INVEPT | \
          MSR_VMX_EPT_AD_BITS | MSR_VMX_EPT_INVEPT_SINGLE_CONTEXT | \
          MSR_VMX_EPT_INVEPT_ALL_CONTEXT | MSR_VMX_EPT_INVVPID | \
          MSR_VMX_EPT_INVVPID_SINGLE_ADDR | \
          MSR_VMX_EPT_INVVPID_SINGLE_CONTEXT | \
          MSR_VMX_EPT_INVVPID_ALL_CONTEXT | \
          MSR_VMX_EPT_INVVPID_SINGLE_CONTEXT_NOGLOBALS)
#define TCG_VMX_BASIC_FEATURES (MSR_VMX_BASIC_INS_OUTS | \
          MSR_VMX_BASIC_TRUE_CTLS)

#if defined(CONFIG_TCG) && !defined(CONFIG_USER_ONLY)
/*
 * Which of @request a CPU in VMX operation acts upon now, as
 * x86_cpu_pending_interrupt(); INIT and SIPI are vmx_blocks_init()'s.
 */
int vmx_pending_interrupt(CPUArchState *env, int request);
/* VMX operation blocks INIT, except that a guest exits upon it */
bool vmx_blocks_init(CPUArchState *env);

void vmx_unrealize(X86CPU *cpu);

extern const VMStateDescription vmstate_vmx_tcg;
#endif

#endif /* I386_VMX_H */
