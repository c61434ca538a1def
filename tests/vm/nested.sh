# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by tests that need a real KVM: our QEMU executes a stock Debian kernel (L1),
# which loads its own KVM on the SVM that QEMU emulates and runs guests (L2) on it.
#
#   in_l1 NAME OPTION... -- SCRIPT [ARG...]
#
# runs the shell script SCRIPT as root of an L1, with options of `vpmu run` (--kernel,
# --smp, --append, --pmu, ...); in it stand the functions of nested-l1.sh. All see the
# same files; what SCRIPT or an L2 writes into the current directory stays. Its lines
# "ok ..." get NAME/ before them, and there are cases for its status and for L1's log,
# which is left in NAME.l1.log; L1's console and what SCRIPT wrote to stderr in NAME.err,
# whose end is shown when L1 fails. These files are copied to L1_KEEP, if that is set.
#
#   l1_kernel SUITE
#
# leaves in $L1_DIR what tools/guest-module wants for L1's kernel, in $L1_OPTIONS how
# `vpmu run` is given it and in $L1_PARAMETERS what its command line needs; l1_module
# prints the file of vpmu_kvm.ko for it. It is SUITE's kernel, or with DEBUG_KERNEL the
# one in that directory, which tests/kernel/build has printed.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"

l1_cpu=${L1_CPU:-EPYC-Milan}
l1_limit=${L1_LIMIT:-1200}	# seconds; many times what it takes, but see l2_limit

l1_kernel() {
	L1_OPTIONS=(--kernel "$1") L1_PARAMETERS=''
	if [ -n "${DEBUG_KERNEL:-}" ]; then
		set -- --from "$DEBUG_KERNEL/vmlinux" --modules "$DEBUG_KERNEL/modules"
		L1_OPTIONS=(--kernel "$2" "${@:3}" --memory 3G)
		L1_PARAMETERS='kasan_multi_shot kmemleak=on'
	fi
	L1_DIR=$("$VPMU_ROOT/tools/guest-kernel" "$@")
}

# build_contention FILE: compile tests/selftests/kvm_contention.c, or print a case and end
build_contention() {
	local log
	log=$(gcc -std=gnu11 -O2 -Wall -Wextra -Werror -static -pthread -o "$1" \
		"$VPMU_ROOT/tests/selftests/kvm_contention.c" 2>&1) && return
	echo "$log"
	echo "not ok kvm_contention: $(head -n 1 <<<"$log")"
	exit 1
}

l1_module() {
	KDIR=${DEBUG_KERNEL:+$DEBUG_KERNEL/build} "$VPMU_ROOT/tools/guest-module" --host "$L1_DIR"
}

in_l1() {
	local name=$1 options=() status=0 out
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	out=${name//\//-}
	timeout -k 5 "$l1_limit" "$VPMU_BUILD/vpmu" run -v --cpu "$l1_cpu" \
		--pmu "${L1_PMU:-arch}" --nested --root "${options[@]}" -- \
		bash "$VPMU_ROOT/tests/vm/nested-l1.sh" "$out.l1.log" "$@" \
		>"$out.out" 2>"$out.err" </dev/null || status=$?
	sed -E "s#^(ok|not ok|skip) #\1 $name/#" "$out.out"
	[ -z "${L1_KEEP:-}" ] || cp "$out".* "$L1_KEEP/"
	[ $status = 0 ] && return
	echo "not ok $name: L1 ended with status $status"
	tail -n 40 "$out.err" | sed 's/^/# /'
}
