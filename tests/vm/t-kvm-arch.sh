#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 5400
# takes: 700
#
# The architectural PMU that vpmu_kvm.ko serves in place of KVM's own: L1 is Debian's kernel
# with the module, L2 Debian's kernel without any driver, and unmodified perf; on kvm_amd and
# on kvm_intel. SOAK=1 does all of it on 6.1, 6.12 and the newest kernel, with every check of
# their memory; SEED=N and TURNS=N are of the hostile guest, MOVES=N of the one that is moved;
# MAKERS, SUITES and CASES choose.
set -uo pipefail
export L1_LIMIT=${L1_LIMIT:-$((2500 + ${TURNS:-0} / 150))} L2_LIMIT=${L2_LIMIT:-900}
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/nested.sh"
build_programs
build_bare
if ! log=$(make -s -C "$VPMU_ROOT/tests/vmm" O="$VPMU_BUILD/vmm" 2>&1); then
	echo "$log"
	echo 'not ok programs: make -C tests/vmm failed'
	exit 1
fi
build_contention "$VPMU_BUILD/guest/kvm_contention"
work=$(mktemp -d "$TMPDIR/kvm-arch.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export SEED=${SEED:-$RANDOM}
echo "# SEED=$SEED"

# others: modules that take a function to call, one to hook and a structure to be other than they
# are, built from changed copies of the sources, each in a directory of its name.
others() {
	local headers=$work/headers name file from to
	mkdir -p "$headers" && "$VPMU_ROOT/tools/guest-kernel" --headers "$headers" "$L1_DIR" >headers.out || return
	while read -r name file from to; do
		mkdir "$name" && cp -r "$VPMU_ROOT"/{kvm,include,lib} "$name/" || return
		sed -i "s/$from/$to/" "$name/kvm/module/$file"
		! cmp -s "$name/kvm/module/$file" "$VPMU_ROOT/kvm/module/$file" || return
		PATH=$headers/bin:$PATH KDIR=$(<headers.out) "$name/kvm/module/build" "$name/out" >"$name/log" 2>&1 ||
			{ tail -n 5 "$name/log"; return 1; }
	done <<-'END'
	kvm_emulate_hypercall kvm.c "kvm_emulate_hypercall",.*"v" "kvm_emulate_hypercall","vi"
	kvm_vcpu_reset arch_hook.c "kvm_vcpu_reset",.*"vi" "kvm_vcpu_reset","vp"
	kvm_x86_pmu_event_filter compat.h "iiiiiippa" "iiiiiipa"
	END
}

# round MAKER SUITE PARAMETERS TURNS MOVES CASE...
round() {
	local name=$2 cpu=EPYC-Milan suite=$2 parameters=$3 module driver
	local -x TURNS=${TURNS:-$4} MOVES=${MOVES:-$5}
	[[ ${MAKERS:-amd intel} == *$1* ]] || return 0
	[ "$1" = amd ] || cpu=SapphireRapids name=$2/$1
	shift 5
	if ! l1_kernel "$suite" 2>log || ! module=$(l1_module 2>log); then
		echo "skip $suite: $(tail -n 1 log)"
		return
	fi
	# L1 has no network, and the innermost guest of "deep" has this kernel.
	[[ " $* " != *' deep '* ]] || "$VPMU_ROOT/tools/guest-kernel" bookworm >/dev/null
	[[ " $* " != *' others '* ]] || others >log || { echo "not ok $name/others: $(tail -n 1 log)"; return; }
	driver=$(pv_guest "$suite") || { echo "$driver"; return; }
	l1_cpu=${CPU:-$cpu} in_l1 "$name" "${L1_OPTIONS[@]}" --smp 2 --uarch "${UARCH:-off}" \
		--append "$L1_PARAMETERS $parameters" -- "$VPMU_ROOT/tests/vm/kvm-arch-l1.sh" "$module" "$driver" "$suite" "$@"
}

# mediated PARAMETERS: KVM's own, which 7.x has on CPUs that save GLOBAL_CTRL at exits.
mediated() {
	[[ ${CASES:-mediated} == *mediated* ]] || return
	CPU=EPYC-Genoa round amd trixie-backports "$1" 0 0 mediated
	CPU=SapphireRapids,vmx-exit-save-perf-global-ctrl=on \
		round intel trixie-backports "$1" 0 0 mediated
}

# records SUITE PARAMETERS: of a CPU whose branch records KVM can give to guests.
records() {
	[[ ${CASES:-records} == *records* ]] || return
	CPU=Icelake-Server round intel "$1" "$2" 0 0 records
}

# topdown SUITE PARAMETERS: on a modelled CPU.
topdown() {
	[[ ${CASES:-topdown} == *topdown* ]] || return
	UARCH=on round intel "$1" "$2" 0 0 lent topdown
}

# It takes this CPU and kernel for KVM to let guests have PEBS.
precise() { # PARAMETERS
	[[ ${CASES:-precise} == *precise* ]] || return
	CPU=SapphireRapids round intel trixie-backports "$1" 0 0 precise
}

if [ -z "${SOAK:-}" ]; then
	if [ "${CASES:-}" != lent ]; then
		# shellcheck disable=SC2086 # words are meant
		round amd bookworm panic_on_warn=1 1000 3 ${CASES:-vmm tool property guest lost told contention}
		# shellcheck disable=SC2086 # words are meant
		CPU=Icelake-Server round intel trixie-backports panic_on_warn=1 1000 3 ${CASES:-vmm guest carried fuzz}
	fi
	[ "${CASES:-lent}" != lent ] || UARCH=on round intel bookworm panic_on_warn=1 0 0 lent
	exit 0
fi
all='vmm tool property kut guest own foreign lost told two deep contention memory storm carried fuzz'
# 7.3 lets modules read types.
if [[ ${CASES:-others} == *others* ]]; then
	round amd trixie-backports panic_on_warn=1 0 0 others
	[ "${CASES:-}" != others ] || exit 0
fi
strict='kfence.sample_interval=1 slub_debug=FZPU panic_on_warn=1'
[[ ${CASES:-} =~ ^(mediated|precise|records|topdown)$ ]] || for maker in amd intel; do
	for suite in ${SUITES:-bookworm bookworm-backports trixie-backports}; do
		# shellcheck disable=SC2086 # words are meant
		round $maker "$suite" "$strict" 100000 50 ${CASES:-$all}
	done
done
mediated "$strict"
precise "$strict"
for suite in ${SUITES:-bookworm bookworm-backports trixie-backports}; do
	records "$suite" "$strict"
	topdown "$suite" "$strict"
done
exit 0
