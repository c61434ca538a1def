#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# vpmu decode: values whose meaning the manuals say, reserved bits, what is typed
# wrong; and every register of msr.h has a name.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
vpmu=${VPMU_BUILD:-$PWD/build}/vpmu

# says WANTED ARGUMENT...: the fields, "bits name: meaning" joined by " | "
says() {
	local want=$1 found
	shift
	found=$("$vpmu" decode "$@" 2>&1 | sed 1d | sed -E 's/^ +([^ ]+) +(.*[^ ])  +/\1 \2: /; s/ +:/:/' |
		paste -sd'|' | sed 's/|/ | /g')
	case_of "$*" "$([ "$found" = "$want" ] || echo "found '$found', not '$want'")"
}
says "15:0 event: INST_RETIRED.ANY_P: exact, on counters 0-7, fixed counter 0 | 16 USR: counts in user \
mode (ring 1 to 3) | 22 EN: enabled" PERFEVTSEL0=0x4100c0
says '15:0 event: EX_RET_BRN: defined, on counters 0-5 | 41 HOST_ONLY: counts while no guest runs' \
	perf_ctl2=0x200000000c2
says '3:0 FIXED0: OS USR: INST_RETIRED.ANY_P | 7:4 FIXED1: USR PMI: CPU_CLK_UNHALTED.THREAD_P' 38dH=0xa3
says '15:0 PMC 3: overflowed | 47:32 FIXED 1: overflowed | 59 CTR_FRZ: counters are frozen | 63 COND_CHGD: something has changed' \
	0x38e=0x8800000200000008
says '15:0 PMC 0,9: enabled (Intel Icelake-SP, Icelake-D does not have 9) | 49 reserved: writing it is a #GP' \
	GLOBAL_CTRL=0x2000000000201
says '11:8 PEBS_FMT: 4: format of PEBS records; 15: architectural | 13 FW_WRITE: full-width counters from 4C1H on' \
	ia32_perf_capabilities=0x2400
says '0 LBREN: branches are recorded | 2 USR: what ends in other rings | 21 NEAR_RET: returns' LBR_CTL=0x200005
says '63:0 address: 0xffffffff81000000' LBR_3_FROM_IP=0xffffffff81000000
says '59:56 BR_TYPE: return | 63 MISPRED: was mispredicted' IA32_LBR_0_INFO=0x8500000000000000
says '0 MEMINFO: records have address, latency and source | 3 LBRS: ... branch records | 31:24 LBR_ENTRIES: 32: as many of them' \
	PEBS_DATA_CFG=0x1f000009
says '33:32 PMC0_CNT: 3: counts since the entry before, 3: or more | 37:36 PMC2_CNT: 1: likewise | 59:56 BR_TYPE: return' \
	IA32_LBR_0_INFO=0x500001300000000
says '15:0 event: INST_RETIRED.ANY_P: exact, on counters 0-7, fixed counter 0 | 35 LBR_LOG: branch records log its counts' \
	PERFEVTSEL0=0x8000000c0
says '26:4 WR: 240: next record, by 16 bytes | 32 EN: the threshold interrupts | 58:36 THRESH: 3840: threshold, by 16 bytes' \
	PEBS_INDEX=0xf00100000f00
says '31:0 RELOAD: 0xfffffff0: what it is reloaded with | 41:40 LBR: 3: ... branch records: 1: 8, 2: 16, 3: all | 63 PEBS_EN: its overflow writes a record' \
	PMC_FX1_CFG_C=0x80000300fffffff0
says '63:0 count: 281474976709656, 1000 before it overflows (48 bits)' A_PMC0=0xfffffffffc18
says '7:0 RETIRING: 50.1 % of all slots | 15:8 BAD_SPECULATION: 100.0 % of all slots' 0x329=0xff80
says '7:0 version: 5: of architectural performance monitoring | 15:8 counters: 8: general-purpose ones | 23:16 width: 48: bits of each | 31:24 events: 8: bits of EBX that mean something' \
	CPUID.0AH:EAX=0x08300805
says '31:0 unavailable: LLC misses, branch misses' cpuid.0xa.ebx=0x50
says '1 COUNTERS: subleaf 1: which counters | 2 ACR: subleaf 2: auto counter reload' CPUID.23H:EAX=6
says '31:0 PMC 0-7: is there' cpuid.23.1.eax=255
says '7:0 depths: 8, 16, 32: entries that can be chosen | 31 IP_LIP: addresses are linear' CPUID.1CH:EAX=0x8000000b
says '3:0 NumPerfCtrCore: 6: counters of the core | 9:4 LbrStackSz: 16: branch records' CPUID.80000022H:EBX=0x106
says '7:0 now: lost: the host has its counter | 15:8 latest: lost: the host has its counter' VPMU_LOSS_REASON5=0x101
says '15:0 event: BR_INST_RETIRED.COND: exact, on counters 0-7' r11c4
case_of json "$("$vpmu" decode --json 0x186=0x4100c0 | python3 -c '
import json, sys
r, = json.load(sys.stdin)
assert (r["register"], r["value"]) == ("IA32_PERFEVTSEL0", "0x4100c0"), r
assert [f["bits"] for f in r["fields"]] == ["15:0", "16", "22"], r' 2>&1 | tail -n 1)"

refused() { # WORDS ARGUMENT...
	local want=$1 out status=0
	shift
	out=$("$vpmu" decode "$@" 2>&1) || status=$?
	case_of "refuses $*" "$([ $status = 125 ] && [[ $out == *"$want"* ]] || echo "status $status: $out")"
}
refused 'did you mean GLOBAL_CTRL?' PERF_GLOBL_CTRL=1
refused "found 'x7', needed a number" 0x186=x7
refused 'found no' PERFEVTSEL0
refused 'no MSR of a PMU' 0x10=1
refused 'more than the 32 bits' CPUID.0AH:EAX=0x100000000
refused 'needed one of AMD' --cpu Icelake-Server PERF_CTL0=1

# Each MSR that msr.h gives a number.
unnamed=''
while read -r msr; do
	"$vpmu" decode "$msr=0" >/dev/null 2>&1 || unnamed+="$msr "
done < <(sed -nE 's/^#define VPMU_MSR_[A-Z0-9_]+\t+\(?(0x[0-9a-f]+)u.*/\1/p' include/vpmu/msr.h)
case_of 'every register of msr.h' "$unnamed"
