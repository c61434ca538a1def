# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by tests that run something in a guest. VPMU_ROOT, VPMU_BUILD and
# VPMU_QEMU come from tests/run; each has a default to run a test by hand.
VPMU_ROOT=${VPMU_ROOT:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
VPMU_BUILD=${VPMU_BUILD:-$VPMU_ROOT/build}
VPMU_QEMU=${VPMU_QEMU:-$("$VPMU_ROOT/qemu/build")} || exit 1
TMPDIR=${TMPDIR:-/tmp}
export VPMU_ROOT VPMU_BUILD VPMU_QEMU TMPDIR
# shellcheck source=tests/case.sh
. "$VPMU_ROOT/tests/case.sh"

models() { echo Icelake-Server-v6 SapphireRapids Skylake-Server ClearwaterForest; }

# One of QEMU's models for each other table of Intel's, with the CMPXCHG16B and the
# RDTSCP that programs of tests/guest use.
older_models() {
	echo core2duo,+rdtscp Nehalem,+rdtscp Westmere,+rdtscp SandyBridge IvyBridge Haswell Broadwell \
		Skylake-Client KnightsMill Denverton Snowridge
}

# Builds the programs of tests/guest, or says why not and ends.
build_programs() {
	local log
	log=$(make -s -C "$VPMU_ROOT/tests/guest" O="$VPMU_BUILD/guest" 2>&1) && return 0
	echo "$log"
	echo 'not ok programs: make -C tests/guest failed'
	exit 1
}

# in_guest NAME OPTION... -- COMMAND...: the command's cases with NAME/ before
# them, why it gave up (TAP's "Bail out!"), and one of its own when the command fails. A
# guest that hangs ends before its test does, so that the others have their turn.
in_guest() {
	local name=$1 out status=0
	shift
	out=$(timeout -k 10 "${GUEST_SECONDS:-600}" "$VPMU_BUILD/vpmu" run "$@" 2>&1 </dev/null) ||
		status=$?
	sed -E "s#^(ok|not ok|skip) #\1 $name/#; s#^Bail out! #not ok $name: #" <<<"$out"
	case $status in
	0) ;;
	124 | 137) echo "not ok $name: not done after ${GUEST_SECONDS:-600} s" ;;
	*) echo "not ok $name: vpmu run ended with status $status" ;;
	esac
}

# pv_guest SUITE: prints the file of vpmu_guest.ko for its kernel; false, after printing
# why it skips, when it cannot be had.
pv_guest() {
	local kernel driver log
	log=$(mktemp)
	if kernel=$("$VPMU_ROOT/tools/guest-kernel" "$1" 2>"$log") &&
		driver=$("$VPMU_ROOT/tools/guest-module" "$kernel" 2>"$log"); then
		echo "$driver"
		rm -f "$log"
		return
	fi
	echo "skip $1: $(tail -n 1 "$log")"
	rm -f "$log"
	return 1
}

build_bare() {
	local log
	log=$(make -s -C "$VPMU_ROOT/tests/bare" O="$VPMU_BUILD/bare" 2>&1) && return 0
	echo "$log"
	echo 'not ok bare: make -C tests/bare failed'
	exit 1
}

# bare PROGRAM CPU COMMAND-LINE OPTION...: a program of tests/bare in QEMU; a
# minute is many times what it takes.
bare() {
	local program=$1 cpu=$2 line=$3
	shift 3
	# Of several accelerators QEMU takes the first, so a test's own comes before this one.
	timeout -k 5 "${BARE_SECONDS:-60}" "$VPMU_QEMU/bin/qemu-system-x86_64" \
		-L "$VPMU_QEMU/share/qemu" \
		-nodefaults -no-user-config -display none -serial stdio -machine pc -bios qboot.rom \
		-m 64 -cpu "$cpu,check=off" -device isa-debug-exit,iobase=0xf4,iosize=4 \
		-kernel "$VPMU_BUILD/bare/$program" -append "$line" "$@" -accel tcg </dev/null
}
