// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The registers and CPUID leaves of a PMU: names, numbers and fields.
 *
 * Sources: SDM vol. 3, "Architectural Performance Monitoring", "Last Branch Records",
 * and vol. 2, "CPUID"; AMD64 APM vol. 2, "Performance Monitoring Counters";
 * docs/GUEST-LOSS.md.
 */
#define _GNU_SOURCE
#include <string.h>
#include <vpmu/loss.h>
#include <vpmu/msr.h>

#include "registers.h"
#include "vpmu.h"

#define END	{ 0, 0, 0, NULL, NULL }
#define FLAG(bit, name, meaning)	{ bit, 1, FIELD_FLAG, name, meaning }

static const struct field evtsel[] = {
	{ 0, 16, FIELD_EVENT, "event", NULL },
	FLAG(16, "USR", "counts in user mode (ring 1 to 3)"),
	FLAG(17, "OS", "counts in the kernel (ring 0)"),
	FLAG(18, "EDGE", "counts beginnings"),
	FLAG(19, "PC", "pin control: toggles a pin"),
	FLAG(20, "INT", "interrupts when it overflows"),
	FLAG(21, "ANY", "counts all threads of the core"),
	FLAG(22, "EN", "enabled"),
	FLAG(23, "INV", "inverts the comparison with CMASK"),
	{ 24, 8, FIELD_NUMBER, "CMASK", "counts cycles with at least this many" },
	FLAG(32, "IN_TX", "counts within transactions"),
	FLAG(33, "IN_TXCP", "leaves aborted transactions out"),
	FLAG(34, "ADAPTIVE", "PEBS records as PEBS_DATA_CFG says"),
	FLAG(35, "LBR_LOG", "branch records log its counts"),
	FLAG(36, "EQ", "CMASK compares for equal"),
	FLAG(37, "RDPMC_USR_DISABLE", "reads 0 by RDPMC outside of ring 0"),
	{ 40, 8, FIELD_HEX, "UMASK2", "second unit mask" },
	END
};

static const struct field amd_evtsel[] = {
	{ 0, 16, FIELD_EVENT, "event", NULL },
	FLAG(16, "USR", "counts in user mode (ring 1 to 3)"),
	FLAG(17, "OS", "counts in the kernel (ring 0)"),
	FLAG(18, "EDGE", "counts beginnings"),
	FLAG(19, "PC", "pin control"),
	FLAG(20, "INT", "interrupts when it overflows"),
	FLAG(22, "EN", "enabled"),
	FLAG(23, "INV", "inverts the comparison with CMASK"),
	{ 24, 8, FIELD_NUMBER, "CMASK", "counts cycles with at least this many" },
	{ 32, 4, FIELD_HEX, "SELECT_HIGH", "bits 11:8 of the event select" },
	FLAG(40, "GUEST_ONLY", "counts while a guest runs"),
	FLAG(41, "HOST_ONLY", "counts while no guest runs"),
	END
};

static const struct field fixed_ctrl[] = {
	{ 0, 16, FIELD_RINGS, "FIXED", NULL },
	FLAG(32, "FIXED0 ADAPTIVE", "PEBS records as PEBS_DATA_CFG says"),
	FLAG(33, "FIXED0 RDPMC_USR_DISABLE", "reads 0 by RDPMC outside of ring 0"),
	FLAG(36, "FIXED1 ADAPTIVE", "PEBS records as PEBS_DATA_CFG says"),
	FLAG(37, "FIXED1 RDPMC_USR_DISABLE", "reads 0 by RDPMC outside of ring 0"),
	FLAG(40, "FIXED2 ADAPTIVE", "PEBS records as PEBS_DATA_CFG says"),
	FLAG(41, "FIXED2 RDPMC_USR_DISABLE", "reads 0 by RDPMC outside of ring 0"),
	FLAG(44, "FIXED3 ADAPTIVE", "PEBS records as PEBS_DATA_CFG says"),
	FLAG(45, "FIXED3 RDPMC_USR_DISABLE", "reads 0 by RDPMC outside of ring 0"),
	END
};

static const struct field status[] = {
	{ 0, 16, FIELD_COUNTERS, "PMC", "overflowed" },
	{ 32, 16, FIELD_FIXED, "FIXED", "overflowed" },
	FLAG(48, "METRICS", "PERF_METRICS overflowed"),
	FLAG(54, "ARCH_PEBS", "the PEBS buffer passed its threshold"),
	FLAG(55, "TRACE_TOPA", "processor trace: a region is full"),
	FLAG(58, "LBR_FRZ", "branch records are frozen"),
	FLAG(59, "CTR_FRZ", "counters are frozen"),
	FLAG(60, "ASCI", "changed by secure enclaves"),
	FLAG(61, "UNCORE", "an uncore counter overflowed"),
	FLAG(62, "DS_BUFFER", "the DS save area passed its threshold"),
	FLAG(63, "COND_CHGD", "something has changed"),
	END
};

static const struct field amd_status[] = {
	{ 0, 16, FIELD_COUNTERS, "PMC", "overflowed" },
	FLAG(58, "LBR_FRZ", "branch records are frozen"),
	FLAG(59, "PMC_FRZ", "counters are frozen"),
	END
};

static const struct field global_ctrl[] = {
	{ 0, 16, FIELD_COUNTERS, "PMC", "enabled" },
	{ 32, 16, FIELD_FIXED, "FIXED", "enabled" },
	FLAG(48, "METRICS", "PERF_METRICS is enabled"),
	END
};

static const struct field amd_ctrl[] = {
	{ 0, 16, FIELD_COUNTERS, "PMC", "enabled" },
	END
};

static const struct field inuse[] = {
	{ 0, 16, FIELD_COUNTERS, "PMC", "event select in use" },
	{ 32, 16, FIELD_FIXED, "FIXED", "in use" },
	FLAG(63, "PMI", "some counter interrupts"),
	END
};

static const struct field capabilities[] = {
	{ 0, 6, FIELD_HEX, "LBR_FMT", "branch records: 5 with LBR_INFO, 3f architectural" },
	FLAG(6, "PEBS_TRAP", "PEBS: registers as after the instruction"),
	FLAG(7, "PEBS_ARCH_REG", "PEBS: registers are in the record"),
	{ 8, 4, FIELD_NUMBER, "PEBS_FMT", "format of PEBS records; 15: architectural" },
	FLAG(12, "SMM_FREEZE", "DEBUGCTL can freeze counters in SMM"),
	FLAG(13, "FW_WRITE", "full-width counters from 4C1H on"),
	FLAG(14, "PEBS_BASELINE", "PEBS: adaptive records, any counter"),
	FLAG(15, "PERF_METRICS", "topdown metrics"),
	FLAG(16, "PEBS_OUTPUT_PT", "PEBS: records into processor trace"),
	FLAG(17, "PEBS_TIMING", "PEBS: latency of retiring"),
	FLAG(19, "METRICS_CLEAR", "RDPMC can clear PERF_METRICS"),
	END
};

static const struct field misc_enable[] = {
	FLAG(0, "FAST_STRINGS", "fast string operations"),
	FLAG(3, "TCC", "automatic thermal control"),
	FLAG(7, "PERFMON", "there is a PMU"),
	FLAG(11, "BTS_UNAVAILABLE", "no branch trace store"),
	FLAG(12, "PEBS_UNAVAILABLE", "no PEBS"),
	FLAG(16, "SPEEDSTEP", "enhanced SpeedStep"),
	FLAG(18, "MONITOR", "MONITOR and MWAIT"),
	FLAG(22, "LIMIT_CPUID", "CPUID ends at leaf 3"),
	FLAG(23, "XTPR_DISABLE", "no task priority messages"),
	FLAG(34, "XD_DISABLE", "no execute-disable bit"),
	FLAG(38, "TURBO_DISABLE", "no turbo"),
	END
};

static const struct field debugctl[] = {
	FLAG(0, "LBR", "branches are recorded"),
	FLAG(1, "BTF", "single-steps branches"),
	{ 2, 4, FIELD_HEX, "PB", "AMD: breakpoint pins" },
	FLAG(6, "TR", "branch trace messages"),
	FLAG(7, "BTS", "branch trace store"),
	FLAG(8, "BTINT", "... interrupts when it is full"),
	FLAG(9, "BTS_OFF_OS", "... not in ring 0"),
	FLAG(10, "BTS_OFF_USR", "... in ring 0 only"),
	FLAG(11, "FREEZE_LBRS_ON_PMI", "a PMI freezes branch records"),
	FLAG(12, "FREEZE_PERFMON_ON_PMI", "a PMI freezes counters"),
	FLAG(13, "UNCORE_PMI_EN", "uncore counters interrupt"),
	FLAG(14, "FREEZE_WHILE_SMM", "counters stand still in SMM"),
	FLAG(15, "RTM_DEBUG", "debugging of transactions"),
	END
};

static const struct field lbr_select[] = {
	FLAG(0, "CPL_EQ_0", "leaves out what ends in ring 0"),
	FLAG(1, "CPL_NEQ_0", "leaves out what ends in other rings"),
	FLAG(2, "JCC", "leaves out conditional branches"),
	FLAG(3, "NEAR_REL_CALL", "leaves out direct calls"),
	FLAG(4, "NEAR_IND_CALL", "leaves out indirect calls"),
	FLAG(5, "NEAR_RET", "leaves out returns"),
	FLAG(6, "NEAR_IND_JMP", "leaves out indirect jumps"),
	FLAG(7, "NEAR_REL_JMP", "leaves out direct jumps"),
	FLAG(8, "FAR_BRANCH", "leaves out far branches"),
	FLAG(9, "EN_CALLSTACK", "a return takes its call's entry away"),
	END
};

static const struct field arch_lbr_ctl[] = {
	FLAG(0, "LBREN", "branches are recorded"),
	FLAG(1, "OS", "what ends in ring 0"),
	FLAG(2, "USR", "what ends in other rings"),
	FLAG(3, "CALL_STACK", "a return takes its call's entry away"),
	FLAG(16, "JCC", "conditional branches"),
	FLAG(17, "NEAR_REL_JMP", "direct jumps"),
	FLAG(18, "NEAR_IND_JMP", "indirect jumps"),
	FLAG(19, "NEAR_REL_CALL", "direct calls"),
	FLAG(20, "NEAR_IND_CALL", "indirect calls"),
	FLAG(21, "NEAR_RET", "returns"),
	FLAG(22, "OTHER_BRANCH", "far branches, interrupts, exceptions"),
	END
};

static const struct field lbr_info[] = {
	{ 0, 16, FIELD_NUMBER, "CYC_CNT", "cycles since the entry before" },
	{ 32, 2, FIELD_NUMBER, "PMC0_CNT", "counts since the entry before, 3: or more" },
	{ 34, 2, FIELD_NUMBER, "PMC1_CNT", "likewise" },
	{ 36, 2, FIELD_NUMBER, "PMC2_CNT", "likewise" },
	{ 38, 2, FIELD_NUMBER, "PMC3_CNT", "likewise" },
	{ 56, 4, FIELD_BRANCH, "BR_TYPE", NULL },
	FLAG(60, "CYC_CNT_VALID", "CYC_CNT means something"),
	FLAG(61, "TSX_ABORT", "it is a transaction's abort"),
	FLAG(62, "IN_TSX", "within a transaction"),
	FLAG(63, "MISPRED", "was mispredicted"),
	END
};

static const struct field pebs_enable[] = {
	{ 0, 16, FIELD_COUNTERS, "PMC", "its overflow writes a record" },
	{ 32, 16, FIELD_FIXED, "FIXED", "its overflow writes a record" },
	END
};

static const struct field pebs_data_cfg[] = {
	FLAG(0, "MEMINFO", "records have address, latency and source"),
	FLAG(1, "GPRS", "... the general registers"),
	FLAG(2, "XMMS", "... XMM0 to XMM15"),
	FLAG(3, "LBRS", "... branch records"),
	{ 24, 8, FIELD_LESS_ONE, "LBR_ENTRIES", "as many of them" },
	END
};

static const struct field pebs_base[] = {
	{ 0, 4, FIELD_NUMBER, "SIZE", "2 to the power of it, pages" },
	{ 12, 40, FIELD_HEX, "ADDRESS", "physical, by 4096" },
	END
};
static const struct field pebs_index[] = {
	{ 4, 23, FIELD_NUMBER, "WR", "next record, by 16 bytes" },
	FLAG(31, "FULL", "a record did not fit"),
	FLAG(32, "EN", "the threshold interrupts"),
	{ 36, 23, FIELD_NUMBER, "THRESH", "threshold, by 16 bytes" },
	END
};

static const struct field metrics[] = {
	{ 0, 8, FIELD_PERCENT, "RETIRING", "of all slots" },
	{ 8, 8, FIELD_PERCENT, "BAD_SPECULATION", "of all slots" },
	{ 16, 8, FIELD_PERCENT, "FRONTEND_BOUND", "of all slots" },
	{ 24, 8, FIELD_PERCENT, "BACKEND_BOUND", "of all slots" },
	{ 32, 8, FIELD_PERCENT, "HEAVY_OPERATIONS", "of all slots, in RETIRING" },
	{ 40, 8, FIELD_PERCENT, "BRANCH_MISPREDICTS", "of all slots, in BAD_SPECULATION" },
	{ 48, 8, FIELD_PERCENT, "FETCH_LATENCY", "of all slots, in FRONTEND_BOUND" },
	{ 56, 8, FIELD_PERCENT, "MEMORY_BOUND", "of all slots, in BACKEND_BOUND" },
	END
};

static const struct field counter[] = { { 0, 64, FIELD_COUNT, "count", NULL }, END };
static const struct field address[] = { { 0, 64, FIELD_HEX, "address", NULL }, END };
static const struct field offcore[] = {
	{ 0, 64, FIELD_HEX, "requests", "and where they were answered" }, END
};
static const struct field load_latency[] = {
	{ 0, 16, FIELD_NUMBER, "threshold", "cycles" }, END
};
static const struct field amd_debug[] = { FLAG(6, "LBRS_EN", "records branches"), END };
static const struct field amd_from[] = {
	{ 0, 58, FIELD_HEX, "address", NULL },
	FLAG(63, "MISPREDICT", "it went another way than predicted"),
	END
};
static const struct field amd_to[] = {
	{ 0, 58, FIELD_HEX, "address", NULL },
	FLAG(62, "SPEC", "speculative"),
	FLAG(63, "VALID", "it has retired"),
	END
};
static const struct field depth[] = { { 0, 64, FIELD_NUMBER, "entries", NULL }, END };

static const struct field reload_causes[] = {
	{ 0, 16, FIELD_COUNTERS, "PMC", "its overflow reloads this one" },
	{ 32, 16, FIELD_FIXED, "FIXED", "its overflow reloads this one" },
	END
};
static const struct field reload[] = {
	{ 0, 32, FIELD_HEX, "RELOAD", "what it is reloaded with" },
	FLAG(35, "ALLOW_IN_RECORD", "records may have its value"),
	FLAG(36, "CNTR_GP", "its records have values of PMCs"),
	FLAG(37, "CNTR_FIXED", "... of fixed counters"),
	FLAG(38, "CNTR_METRICS", "... PERF_METRICS"),
	{ 40, 2, FIELD_NUMBER, "LBR", "... branch records: 1: 8, 2: 16, 3: all" },
	FLAG(49, "XMM", "... XMM0 to XMM15"),
	FLAG(61, "GPR", "... the general registers"),
	FLAG(62, "AUX", "... address, latency and source"),
	FLAG(63, "PEBS_EN", "its overflow writes a record"),
	END
};

static const struct field generation[] = {
	{ 0, 64, FIELD_NUMBER, "generation", "changes of any counter's reason" }, END
};
static const struct field loss_status[] = {
	{ 0, 16, FIELD_COUNTERS, "PMC", "enabled and does not count" },
	{ 32, 16, FIELD_FIXED, "FIXED", "enabled and does not count" },
	FLAG(58, "LBR", "branch records are enabled and not made"),
	END
};
static const struct field loss_ctrl[] = {
	FLAG(0, "PMI", "interrupts when a counter is lost"), END
};
static const struct field loss_reason[] = {
	{ 0, 8, FIELD_LOSS, "now", NULL },
	{ 8, 8, FIELD_LOSS, "latest", NULL },
	{ 32, 32, FIELD_NUMBER, "generation", "changes of what it is now" },
	END
};
static const struct field loss_time[] = {
	{ 0, 64, FIELD_NUMBER, "time", "in the unit of the leaf that describes the block" }, END
};

/* ---- CPUID */

static const struct field leaf_0a_eax[] = {
	{ 0, 8, FIELD_NUMBER, "version", "of architectural performance monitoring" },
	{ 8, 8, FIELD_NUMBER, "counters", "general-purpose ones" },
	{ 16, 8, FIELD_NUMBER, "width", "bits of each" },
	{ 24, 8, FIELD_NUMBER, "events", "bits of EBX that mean something" },
	END
};
static const struct field leaf_0a_ebx[] = {
	{ 0, 32, FIELD_EVENTS_NOT, "unavailable", NULL }, END
};
static const struct field leaf_0a_ecx[] = { { 0, 32, FIELD_FIXED, "FIXED", "is there" }, END };
static const struct field leaf_0a_edx[] = {
	{ 0, 5, FIELD_NUMBER, "fixed", "fixed counters, contiguous" },
	{ 5, 8, FIELD_NUMBER, "width", "bits of each" },
	FLAG(15, "ANYTHREAD_DEPRECATED", "no ANY bit"),
	END
};
static const struct field leaf_23_eax[] = {
	FLAG(0, "MAIN", "subleaf 0 is there"),
	FLAG(1, "COUNTERS", "subleaf 1: which counters"),
	FLAG(2, "ACR", "subleaf 2: auto counter reload"),
	FLAG(3, "EVENTS", "subleaf 3: architectural events"),
	FLAG(4, "PEBS_CAPS", "subleaf 4: PEBS"),
	FLAG(5, "PEBS_COUNTERS", "subleaf 5: counters with PEBS"),
	END
};
static const struct field leaf_23_ebx[] = {
	FLAG(0, "UMASK2", "selectors have UMASK2"),
	FLAG(1, "EQ", "selectors have EQ"),
	FLAG(2, "RDPMC_USR_DISABLE", "RDPMC can be disabled outside of ring 0"),
	END
};
static const struct field leaf_23_ecx[] = {
	{ 0, 8, FIELD_NUMBER, "slots", "issue slots a cycle" }, END
};
static const struct field counters_there[] = {
	{ 0, 32, FIELD_COUNTERS, "PMC", "is there" }, END
};
static const struct field fixed_there[] = { { 0, 32, FIELD_FIXED, "FIXED", "is there" }, END };
static const struct field counters_reload[] = {
	{ 0, 32, FIELD_COUNTERS, "PMC", "can be reloaded" }, END
};
static const struct field fixed_reload[] = {
	{ 0, 32, FIELD_FIXED, "FIXED", "can be reloaded" }, END
};
static const struct field counters_cause[] = {
	{ 0, 32, FIELD_COUNTERS, "PMC", "can cause a reload" }, END
};
static const struct field fixed_cause[] = {
	{ 0, 32, FIELD_FIXED, "FIXED", "can cause a reload" }, END
};
static const struct field leaf_23_3[] = { { 0, 32, FIELD_EVENTS, "available", NULL }, END };
static const struct field leaf_23_4[] = {
	FLAG(3, "ALLOW_IN_RECORD", "records can have counters' values"),
	FLAG(4, "CNTR_GP", "of PMCs"),
	FLAG(5, "CNTR_FIXED", "of fixed counters"),
	FLAG(6, "CNTR_METRICS", "PERF_METRICS"),
	{ 8, 2, FIELD_NUMBER, "LBR", "records can have branch records" },
	{ 16, 8, FIELD_HEX, "XER", "... XMM0 to XMM15: 2, and wider ones" },
	FLAG(29, "GPR", "... the general registers"),
	FLAG(30, "AUX", "... address, latency and source"),
	END
};
static const struct field counters_pdist[] = {
	{ 0, 32, FIELD_COUNTERS, "PMC", "has PDIST" }, END
};
static const struct field fixed_pdist[] = { { 0, 32, FIELD_FIXED, "FIXED", "has PDIST" }, END };
static const struct field counters_pebs[] = {
	{ 0, 32, FIELD_COUNTERS, "PMC", "has PEBS" }, END
};
static const struct field fixed_pebs[] = { { 0, 32, FIELD_FIXED, "FIXED", "has PEBS" }, END };
static const struct field leaf_1c_eax[] = {
	{ 0, 8, FIELD_DEPTHS, "depths", "entries that can be chosen" },
	FLAG(30, "DEEP_C_STATE_RESET", "deep C-states may clear the records"),
	FLAG(31, "IP_LIP", "addresses are linear"),
	END
};
static const struct field leaf_1c_ebx[] = {
	FLAG(0, "CPL", "filters by ring"),
	FLAG(1, "BRANCH", "filters by kind of branch"),
	FLAG(2, "CALL_STACK", "call-stack mode"),
	END
};
static const struct field leaf_1c_ecx[] = {
	FLAG(0, "MISPREDICT", "records tell mispredictions"),
	FLAG(1, "TIMED", "records tell cycles"),
	FLAG(2, "BR_TYPE", "records tell the kind of branch"),
	{ 16, 4, FIELD_HEX, "EVENT_LOGGING", "counters whose events records can tell" },
	END
};
static const struct field leaf_amd_eax[] = {
	FLAG(0, "PerfMonV2", "global control and status"),
	FLAG(1, "LbrStack", "branch records, version 2"),
	FLAG(2, "LbrAndPmcFreeze", "a PMI can freeze both"),
	END
};
static const struct field leaf_amd_ebx[] = {
	{ 0, 4, FIELD_NUMBER, "NumPerfCtrCore", "counters of the core" },
	{ 4, 6, FIELD_NUMBER, "LbrStackSz", "branch records" },
	{ 10, 6, FIELD_NUMBER, "NumPerfCtrNB", "counters of the data fabric" },
	{ 16, 6, FIELD_NUMBER, "NumPerfCtrUmc", "counters of memory controllers" },
	END
};

#define MSR(first, n, stride, name, fields)	{ name, NULL, fields, first, n, stride, false }
#define AMD(first, n, stride, name, fields)	{ name, NULL, fields, first, n, stride, true }
#define TAIL(first, n, stride, name, tail, fields) { name, tail, fields, first, n, stride, false }
#define CPUID(name, fields)	{ "CPUID." name, NULL, fields, 0, 0, 0, false }

const struct reg registers[] = {
	MSR(VPMU_MSR_PERFEVTSEL0, 8, 1, "IA32_PERFEVTSEL", evtsel),
	MSR(VPMU_MSR_PMC0, 8, 1, "IA32_PMC", counter),
	MSR(VPMU_MSR_A_PMC0, 8, 1, "IA32_A_PMC", counter),
	MSR(VPMU_MSR_FIXED_CTR0, 4, 1, "IA32_FIXED_CTR", counter),
	MSR(VPMU_MSR_FIXED_CTR_CTRL, 1, 0, "IA32_FIXED_CTR_CTRL", fixed_ctrl),
	MSR(VPMU_MSR_GLOBAL_STATUS, 1, 0, "IA32_PERF_GLOBAL_STATUS", status),
	MSR(VPMU_MSR_GLOBAL_CTRL, 1, 0, "IA32_PERF_GLOBAL_CTRL", global_ctrl),
	MSR(VPMU_MSR_GLOBAL_OVF_CTRL, 1, 0, "IA32_PERF_GLOBAL_OVF_CTRL", status),
	MSR(VPMU_MSR_GLOBAL_STATUS_SET, 1, 0, "IA32_PERF_GLOBAL_STATUS_SET", status),
	MSR(VPMU_MSR_GLOBAL_INUSE, 1, 0, "IA32_PERF_GLOBAL_INUSE", inuse),
	MSR(VPMU_MSR_PERF_CAPABILITIES, 1, 0, "IA32_PERF_CAPABILITIES", capabilities),
	MSR(VPMU_MSR_PERF_METRICS, 1, 0, "MSR_PERF_METRICS", metrics),
	MSR(VPMU_MSR_MISC_ENABLE, 1, 0, "IA32_MISC_ENABLE", misc_enable),
	MSR(VPMU_MSR_DEBUGCTL, 1, 0, "IA32_DEBUGCTL", debugctl),
	MSR(VPMU_MSR_LBR_SELECT, 1, 0, "MSR_LBR_SELECT", lbr_select),
	MSR(VPMU_MSR_LBR_SELECT + 1, 1, 0, "MSR_LASTBRANCH_TOS", depth),
	MSR(VPMU_MSR_LER_FROM, 1, 0, "MSR_LER_FROM", address),
	MSR(VPMU_MSR_LER_FROM + 1, 1, 0, "MSR_LER_TO", address),
	MSR(VPMU_MSR_LER_INFO, 1, 0, "IA32_LER_INFO", lbr_info),
	TAIL(VPMU_MSR_LBR_FROM, 32, 1, "MSR_LASTBRANCH_", "_FROM_IP", address),
	TAIL(VPMU_MSR_LBR_TO, 32, 1, "MSR_LASTBRANCH_", "_TO_IP", address),
	MSR(VPMU_MSR_LBR_INFO, 32, 1, "MSR_LBR_INFO_", lbr_info),
	TAIL(VPMU_MSR_ARCH_LBR_INFO, 32, 1, "IA32_LBR_", "_INFO", lbr_info),
	TAIL(VPMU_MSR_ARCH_LBR_FROM, 32, 1, "IA32_LBR_", "_FROM_IP", address),
	TAIL(VPMU_MSR_ARCH_LBR_TO, 32, 1, "IA32_LBR_", "_TO_IP", address),
	MSR(VPMU_MSR_ARCH_LBR_CTL, 1, 0, "IA32_LBR_CTL", arch_lbr_ctl),
	MSR(VPMU_MSR_ARCH_LBR_CTL + 1, 1, 0, "IA32_LBR_DEPTH", depth),
	MSR(VPMU_MSR_PEBS_ENABLE, 1, 0, "IA32_PEBS_ENABLE", pebs_enable),
	MSR(VPMU_MSR_PEBS_ENABLE + 1, 1, 0, "MSR_PEBS_DATA_CFG", pebs_data_cfg),
	MSR(VPMU_MSR_PEBS_BASE, 1, 0, "IA32_PEBS_BASE", pebs_base),
	MSR(VPMU_MSR_PEBS_BASE + 1, 1, 0, "IA32_PEBS_INDEX", pebs_index),
	MSR(VPMU_MSR_PEBS_LD_LAT, 1, 0, "MSR_PEBS_LD_LAT_THRESHOLD", load_latency),
	MSR(VPMU_MSR_OFFCORE_RSP_0, 2, 1, "MSR_OFFCORE_RSP_", offcore),
	MSR(VPMU_MSR_DS_AREA, 1, 0, "IA32_DS_AREA", address),
	TAIL(VPMU_MSR_PMC_GP(0), 8, VPMU_PMC_STRIDE, "IA32_PMC_GP", "_CTR", counter),
	TAIL(VPMU_MSR_PMC_GP(0) + 1, 8, VPMU_PMC_STRIDE, "IA32_PMC_GP", "_CFG_A", evtsel),
	TAIL(VPMU_MSR_PMC_GP(0) + 2, 8, VPMU_PMC_STRIDE, "IA32_PMC_GP", "_CFG_B", reload_causes),
	TAIL(VPMU_MSR_PMC_GP(0) + 3, 8, VPMU_PMC_STRIDE, "IA32_PMC_GP", "_CFG_C", reload),
	TAIL(VPMU_MSR_PMC_FX(0), 4, VPMU_PMC_STRIDE, "IA32_PMC_FX", "_CTR", counter),
	TAIL(VPMU_MSR_PMC_FX(0) + 2, 4, VPMU_PMC_STRIDE, "IA32_PMC_FX", "_CFG_B", reload_causes),
	TAIL(VPMU_MSR_PMC_FX(0) + 3, 4, VPMU_PMC_STRIDE, "IA32_PMC_FX", "_CFG_C", reload),
	AMD(VPMU_MSR_K7_EVTSEL0, 4, 1, "K7_EVTSEL", amd_evtsel),
	AMD(VPMU_MSR_K7_PERFCTR0, 4, 1, "K7_PERFCTR", counter),
	AMD(VPMU_MSR_AMD_PERF_CTL0, 6, 2, "PERF_CTL", amd_evtsel),
	AMD(VPMU_MSR_AMD_PERF_CTL0 + 1, 6, 2, "PERF_CTR", counter),
	AMD(VPMU_MSR_AMD_GLOBAL_STATUS, 1, 0, "PERF_CNTR_GLOBAL_STATUS", amd_status),
	AMD(VPMU_MSR_AMD_GLOBAL_CTRL, 1, 0, "PERF_CNTR_GLOBAL_CTL", amd_ctrl),
	AMD(VPMU_MSR_AMD_GLOBAL_STATUS_CLR, 1, 0, "PERF_CNTR_GLOBAL_STATUS_CLR", amd_status),
	AMD(VPMU_MSR_AMD_GLOBAL_STATUS_SET, 1, 0, "PERF_CNTR_GLOBAL_STATUS_SET", amd_status),
	AMD(VPMU_MSR_AMD_LBR_SELECT, 1, 0, "LBR_SELECT", lbr_select),
	AMD(VPMU_MSR_AMD_LBR_SELECT + 1, 1, 0, "DBG_EXTN_CFG", amd_debug),
	AMD(VPMU_MSR_AMD_LBR_FROM, 16, 2, "AMD_SAMP_BR_FROM_", amd_from),
	AMD(VPMU_MSR_AMD_LBR_FROM + 1, 16, 2, "AMD_SAMP_BR_TO_", amd_to),
	MSR(VPMU_MSR_LOSS_GENERATION, 1, 0, "VPMU_LOSS_GENERATION", generation),
	MSR(VPMU_MSR_LOSS_STATUS, 1, 0, "VPMU_LOSS_STATUS", loss_status),
	MSR(VPMU_MSR_LOSS_CTRL, 1, 0, "VPMU_LOSS_CTRL", loss_ctrl),
	MSR(VPMU_MSR_LOSS_LBR, 1, 0, "VPMU_LOSS_LBR", loss_reason),
	MSR(VPMU_MSR_LOSS_PMC(0), 24, 4, "VPMU_LOSS_ENABLED", loss_time),
	MSR(VPMU_MSR_LOSS_PMC(0) + 1, 24, 4, "VPMU_LOSS_RUNNING", loss_time),
	MSR(VPMU_MSR_LOSS_PMC(0) + 2, 24, 4, "VPMU_LOSS_REASON", loss_reason),

	CPUID("0AH:EAX", leaf_0a_eax),
	CPUID("0AH:EBX", leaf_0a_ebx),
	CPUID("0AH:ECX", leaf_0a_ecx),
	CPUID("0AH:EDX", leaf_0a_edx),
	CPUID("1CH:EAX", leaf_1c_eax),
	CPUID("1CH:EBX", leaf_1c_ebx),
	CPUID("1CH:ECX", leaf_1c_ecx),
	CPUID("23H.0:EAX", leaf_23_eax),
	CPUID("23H.0:EBX", leaf_23_ebx),
	CPUID("23H.0:ECX", leaf_23_ecx),
	CPUID("23H.1:EAX", counters_there),
	CPUID("23H.1:EBX", fixed_there),
	CPUID("23H.2:EAX", counters_reload),
	CPUID("23H.2:EBX", fixed_reload),
	CPUID("23H.2:ECX", counters_cause),
	CPUID("23H.2:EDX", fixed_cause),
	CPUID("23H.3:EAX", leaf_23_3),
	CPUID("23H.4:EBX", leaf_23_4),
	CPUID("23H.5:EAX", counters_pebs),
	CPUID("23H.5:EBX", counters_pdist),
	CPUID("23H.5:ECX", fixed_pebs),
	CPUID("23H.5:EDX", fixed_pdist),
	CPUID("80000022H:EAX", leaf_amd_eax),
	CPUID("80000022H:EBX", leaf_amd_ebx),
};
const size_t n_registers = sizeof(registers) / sizeof(registers[0]);

const struct reg *register_at(uint32_t msr, uint32_t *index)
{
	for (size_t i = 0; i < n_registers; i++) {
		const struct reg *r = &registers[i];
		uint32_t stride = r->stride ? r->stride : 1, d = msr - r->first;

		if (msr < r->first || d % stride || d / stride >= r->n)
			continue;
		*index = d / stride;
		return r;
	}
	return NULL;
}

char *register_name(uint32_t msr)
{
	uint32_t index;
	const struct reg *r = register_at(msr, &index);

	if (!r)
		return xprintf("msr 0x%x", msr);
	if (r->n == 1)
		return strdup(r->name);
	return xprintf("%s%u%s", r->name, index, r->tail ? r->tail : "");
}
