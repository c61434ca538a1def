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
expect skylake-server BR_INST_RETIRED.CONDITIONAL 'r01c4 0-3 - exact'
expect EPYC-Rome-v4 EX_RET_COPS 'r00c1 0-5 - unavailable'
expect EPYC-Milan EX_RET_COND 'r00d1 0-5 - exact'
expect EPYC-Milan EX_RET_FUSED_INSTR 'r1000000d0 0-5 - unavailable'
expect EPYC-Genoa-v2 EX_RET_UNCOND_BRNCH_INSTR 'r1000000c9 0-5 - defined'
expect zen4 LS_NOT_HALTED_P0_CYC.P0_FREQ_CYC 'r100000120 0-5 - defined'
expect zen4 MERGE 'rf000000ff 0-5 - unavailable'
expect zen4 FP_RET_SSE_AVX_OPS.ALL 'r1f03 0,2,4 - unavailable'
expect EPYC EX_RET_INSTR 'r00c0 0-5 - exact'

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
