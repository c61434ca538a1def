#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 240
#
# The kernel module builds without a warning, objtool's and sparse's included, and takes
# nothing from the kernel that the core does not need; tests/graph looks at its files' calls.
set -euo pipefail

root=${VPMU_ROOT:-$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# shellcheck disable=SC1091 # beside this file
. "$root/tests/sparse.sh"

rc=0
"$root/kvm/module/build" "$tmp/out" >"$tmp/log" 2>&1 || rc=$?
if [ $rc = 77 ]; then
	echo "skip module: $(cat "$tmp/log")"
	exit 0
fi
if [ $rc != 0 ] || [ ! -e "$tmp/out/vpmu_kvm.ko" ]; then
	cat "$tmp/log"
	echo "not ok module builds: exit status $rc"
	exit 1
fi
# BTF needs the kernel's own vmlinux, which no package installs.
if grep -iE 'warning|objtool' "$tmp/log"; then
	echo "not ok module builds without a warning: see above"
else
	echo "ok module builds without a warning"
fi
# faults.c is in builds for tests only.
shopt -s extglob
sparse_case "module" "$tmp/log" "$root"/kvm/module/!(faults).c

"$root/tests/graph" --room kvm/module "$tmp/out"

# The four functions, and what the compiler itself calls in a hardened kernel.
foreign=$(nm -u "$tmp/out/core.o" | awk '{ print $2 }' | grep -vxE \
	'mem(cpy|move|set|cmp)|__fentry__|__stack_chk_fail|__x86_(return_thunk|indirect_thunk_.*)|__ubsan_.*|__fortify_(panic|report)' ||
	true)
if [ -n "$foreign" ]; then
	echo "not ok core needs four functions: also ${foreign//$'\n'/ }"
else
	echo "ok core needs four functions"
fi

if [ "$(modinfo -F license "$tmp/out/vpmu_kvm.ko")" = GPL ]; then
	echo "ok module names its licence"
else
	echo "not ok module names its licence: $(modinfo -F license "$tmp/out/vpmu_kvm.ko")"
fi
