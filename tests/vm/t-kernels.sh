#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 2400
# takes: 100
#
# vpmu run --kernel: exact counts under the newest kernel that Debian
# packages, on models of Intel and AMD, booted and from a snapshot, by its suite and by its
# release. SOAK=1: under each suite's, and under the flavours.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
vpmu=$VPMU_BUILD/vpmu
work=$(mktemp -d "$TMPDIR/kernels.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$VPMU_BUILD/examples/demo" .

there() { # KERNEL: it is, or why the cases are skipped
	"$VPMU_ROOT/tools/guest-kernel" "$1" >/dev/null 2>log && return
	echo "skip $1: $(tail -n 1 log)"
	return 1
}

field() { python3 -c 'import json, sys; print(json.load(open("stats")).get(sys.argv[1]))' "$1" 2>&1; }

# demo's loop counts 41,020,005 instructions and 9,007,001 branches (examples/demo.S).
counts() { # NAME OPTION...
	local name=$1 out status=0
	shift
	out=$(timeout -k 10 400 "$vpmu" run --stats stats "$@" -- \
		perf stat -x, -e instructions:u,branches:u ./demo 2>&1 </dev/null) || status=$?
	case_of "$name" "$([[ $status = 0 &&
		$(sed -n 's/,.*instructions:u.*//p; s/,.*branches:u.*//p' <<<"$out" | paste -sd' ') = '41020005 9007001' ]] ||
		echo "status $status: $(tail -n 3 <<<"$out" | paste -sd' ')")"
}

models() { # KERNEL
	counts "$1/Intel" --kernel "$1" --no-snapshot
	counts "$1/Intel, two CPUs" --kernel "$1" --smp 2 --no-snapshot
	counts "$1/AMD" --kernel "$1" --cpu EPYC-Genoa --no-snapshot
	counts "$1/AMD, two CPUs" --kernel "$1" --cpu EPYC-Genoa --smp 2 --no-snapshot
}

newest=trixie-backports
if there $newest; then
	counts "$newest/Intel" --kernel $newest --no-snapshot
	case_of "$newest/boots" "$([ "$(field from)" = boot ] || field from)"
	counts "$newest/kept" --kernel $newest
	counts "$newest/from a snapshot" --kernel $newest
	case_of "$newest/starts from a snapshot" "$([ "$(field from)" = snapshot ] || field from)"
	release=$(field kernel)
	counts "$newest by its release" --kernel "$release" --cpu EPYC-Genoa --smp 2 --no-snapshot
	case_of "$newest by its release/is that one" "$([ "$(field kernel)" = "$release" ] || field kernel)"
	# Kernels of 7.x keep that a file is not there, unless they are told.
	(until [ -e looked ]; do sleep 0.1; done; touch made) &
	# shellcheck disable=SC2016 # for the guest's shell
	in_guest "$newest/host's file" --kernel $newest -- sh -c 'ls made 2>/dev/null; touch looked
		for i in $(seq 100); do [ ! -e made ] || { echo "ok is seen"; exit; }; sleep 0.1; done; echo "not ok is seen"'
	touch looked
	wait
	# shellcheck disable=SC2016 # for the guest's shell
	in_guest "$newest/hypervisor" --kernel $newest --cpu EPYC-Genoa --root --memory 2G -- sh -c \
		'PATH=$PATH:/sbin; modprobe kvm_amd && [ -c /dev/kvm ] && echo ok kvm_amd'
fi
[ -n "${SOAK:-}" ] || exit 0
for kernel in bookworm bookworm-backports trixie trixie-backports forky sid bookworm/rt trixie-backports/rt; do
	! there $kernel || models $kernel
done
for suite in bookworm trixie-backports; do
	out=$("$vpmu" run --kernel $suite/cloud -- true 2>&1)
	case_of "$suite/cloud is refused in words" "$([[ $? = 125 &&
		$out == *"it has no 9pnet_virtio 9p"*"take --kernel $suite or $suite/rt"* ]] || echo "$out")"
done
