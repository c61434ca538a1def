#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# vpmu list: models by QEMU's names and by ours, and events as perf takes them.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
vpmu=${VPMU_BUILD:-$PWD/build}/vpmu

# line CPU EVENT: PERF, COUNTERS, FIXED, COUNT of an event.
line() {
	"$vpmu" list --cpu "$1" | awk -v event="$2" '$1 == event { print $2, $3, $4, $5 }'
}

# expect CPU EVENT WANT
expect() {
	local found
	found=$(line "$1" "$2")
	if [ "$found" = "$3" ]; then
		echo "ok $1 $2"
	else
		echo "not ok $1 $2: found '$found', needed '$3'"
	fi
}

expect Icelake-Server-v6 INST_RETIRED.ANY_P 'r00c0 0-7 0 exact'
expect core2duo INST_RETIRED.ANY_P 'r00c0 0-1 0 exact'
expect Penryn-v1 BR_INST_RETIRED.TAKEN 'r0cc4 0-1 - defined'
expect coreduo INSTR_RET 'r00c0 0-1 - exact'
expect Nehalem-IBRS BR_INST_RETIRED.ALL_BRANCHES 'r04c4 0-3 - exact'
expect Haswell-noTSX-IBRS BR_INST_RETIRED.NEAR_RETURN 'r08c4 0-3 - exact'
expect Cascadelake-Server-v5 INST_RETIRED.PREC_DIST 'r01c0 1 - exact'
expect Denverton-v3 BR_INST_RETIRED.JCC 'r7ec4 0-3 - exact'
expect GraniteRapids BR_INST_RETIRED.NEAR_TAKEN 'r20c4 0-7 - exact'
expect ClearwaterForest BR_INST_RETIRED.NEAR_TAKEN 'rfbc4 0-7 - exact'
expect clearwater-forest L2_REQUEST.MISS 'r10000007f24 0-7 - unavailable'
expect skylake-server BR_INST_RETIRED.CONDITIONAL 'r01c4 0-3 - exact'
expect EPYC-Rome-v4 EX_RET_COPS 'r00c1 0-5 - unavailable'
expect EPYC-Milan EX_RET_COND 'r00d1 0-5 - exact'
expect EPYC-Milan EX_RET_FUSED_INSTR 'r1000000d0 0-5 - unavailable'
expect EPYC-Genoa-v2 EX_RET_UNCOND_BRNCH_INSTR 'r1000000c9 0-5 - defined'
expect zen4 LS_NOT_HALTED_P0_CYC.P0_FREQ_CYC 'r100000120 0-5 - defined'
expect zen4 MERGE 'rf000000ff 0-5 - unavailable'
expect zen4 FP_RET_SSE_AVX_OPS.ALL 'r1f03 0,2,4 - unavailable'
expect EPYC EX_RET_INSTR 'r00c0 0-5 - exact'

line_on() {
	"$vpmu" list --cpu "$1" --uarch on | awk -v event="$2" '$1 == event { print $2, $3, $4, $5 }'
}
expect_on() {
	local found
	found=$(line_on "$1" "$2")
	if [ "$found" = "$3" ]; then
		echo "ok modelled $1 $2"
	else
		echo "not ok modelled $1 $2: found '$found', needed '$3'"
	fi
}
expect Icelake-Server LONGEST_LAT_CACHE.MISS 'r412e 0-7 - unavailable'
expect_on Icelake-Server LONGEST_LAT_CACHE.MISS 'r412e 0-7 - modelled'
expect_on Icelake-Server CYCLE_ACTIVITY.STALLS_TOTAL 'r40004a3 0-7 - modelled'
expect_on Icelake-Server MEM_INST_RETIRED.ALL_LOADS 'r81d0 0-3 - exact'
expect_on Icelake-Server MACHINE_CLEARS.COUNT 'r01c3 0-7 - unavailable'
expect_on SapphireRapids MEM_TRANS_RETIRED.LOAD_LATENCY 'r01cd 1-7 - modelled'
expect_on EPYC-Genoa EX_RET_BRN_MISP 'r00c3 0-5 - modelled'

# Whatever QEMU calls a model that has a PMU of its own.
for cpu in Broadwell Broadwell-noTSX-IBRS Cascadelake-Server Cascadelake-Server-noTSX Conroe Cooperlake \
	core2duo coreduo Denverton Haswell Haswell-IBRS Icelake-Server-noTSX IvyBridge IvyBridge-IBRS \
	KnightsMill n270 Nehalem Penryn SandyBridge SandyBridge-IBRS SapphireRapids Skylake-Client \
	Skylake-Client-noTSX-IBRS Skylake-Server-IBRS Snowridge Westmere Westmere-IBRS EPYC-IBPB; do
	if found=$("$vpmu" list --cpu "$cpu" 2>&1) && grep -q exact <<<"$found"; then
		echo "ok has $cpu"
	else
		echo "not ok has $cpu: $(head -n 1 <<<"$found")"
	fi
done

want='[{"event":457,"umask":0,"counters":63,"count":"defined"}]'
found=$("$vpmu" list --cpu EPYC-Genoa --json | python3 -c '
import json, sys
print(json.dumps([{k: e[k] for k in ("event", "umask", "counters", "count")}
                  for e in json.load(sys.stdin)["events"]
                  if e["name"] == "EX_RET_UNCOND_BRNCH_INSTR"], separators=(",", ":")))')
if [ "$found" = "$want" ]; then
	echo 'ok json'
else
	echo "not ok json: found $found, needed $want"
fi

if found=$("$vpmu" list --cpu EPYC-Naples 2>&1); then
	echo 'not ok unknown: no error'
elif [[ $found == *'EPYC-Naples: no table of its events'*zen3*generic-amd* ]]; then
	echo 'ok unknown'
else
	echo "not ok unknown: $found"
fi
