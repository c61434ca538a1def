#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# takes: 50
#
# Other people's tools in a guest: rr records threads and replays them, in another guest as well;
# likwid and PAPI count; perf c2c has what it needs; a server serves its client over the guest's
# loopback, and repeats. SOAK=1: the examples of libpfm4, from its source package. docs/TOOLS.md
# says what each tool needs.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
work=$(mktemp -d "$TMPDIR/tools.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

guest() { # OPTION... -- COMMAND...
	timeout -k 10 "${GUEST_SECONDS:-300}" "$VPMU_BUILD/vpmu" run "$@" </dev/null 2>&1
}
installed() { # NAME PACKAGE
	command -v "$1" >/dev/null && return
	echo "skip $2: not installed; apt-get install $2"
	return 1
}

# A race decides what the program prints. rr counts branches to find a switch of threads again, and
# would warn on stderr of a file that is not the one that it recorded.
if installed rr rr; then
	gcc -O1 -pthread -o threads "$VPMU_ROOT/tests/repeat/mutex.c" || echo 'not ok threads: it does not compile'
	# shellcheck disable=SC2016 # expanded in the guest
	out=$(guest -- sh -c 'export _RR_TRACE_DIR=$PWD/trace && exec rr record ./threads')
	replayed=$(guest -- rr replay -a trace/threads-0)
	case_of 'rr records, and replays in another guest' "$(
		[[ $out =~ ^[0-9a-f]+\ [0-9]+$ ]] && [ "$out" = "$replayed" ] || echo "$out, then $replayed")"
fi

# PAPI's program has a loop of its own, so its counts repeat.
if installed papi_command_line papi-tools; then
	# shellcheck disable=SC2016 # expanded in the guest
	out=$(guest -- sh -c 'for i in 1 2; do papi_command_line PAPI_TOT_INS PAPI_BR_INS | grep "^PAPI.*: *[1-9]"; done')
	case_of 'PAPI counts' "$([ "$(wc -l <<<"$out")" = 4 ] && [ "$(sort -u <<<"$out" | wc -l)" = 2 ] || echo "$out")"
fi

# likwid counts the CPU's user code, its own between start and end included: some 6000 instructions.
# Its daemon closes as many files as it may have open.
if installed likwid-perfctr likwid; then
	for options in '--cpu Icelake-Server' ${SOAK:+'--cpu Skylake-Server' '--uarch on'}; do
		# shellcheck disable=SC2016,SC2086 # expanded in the guest; words
		out=$(guest --root $options -- sh -c 'ulimit -n 64; likwid-perfctr -O -C 0 -M 1 \
			-g INSTR_RETIRED_ANY:FIXC0,BR_INST_RETIRED_ALL_BRANCHES:PMC0 "$1"' sh "$VPMU_BUILD/examples/demo")
		case_of "likwid counts, $options" "$(awk -F, '
			$2 == "FIXC0" { i = $3 >= 41020005 && $3 < 41120005 }
			$2 == "PMC0" { b = $3 >= 9007001 && $3 < 9027001 }
			END { exit !i || !b }' <<<"$out" || echo "$out")"
	done
fi

# perf c2c says no more than "No such device or address" by itself.
out=$(guest -- perf c2c record -o c2c true)
case_of 'perf c2c says what it needs' "$([[ $out = *'perf c2c needs an address for each sample: --uarch on takes it'* ]] ||
	echo "$out")"
out=$(guest --uarch on -- perf c2c record -o c2c true && guest -- perf c2c report -i c2c --stats)
case_of 'perf c2c' "$(grep -q 'Load Operations  *: *[1-9]' <<<"$out" || echo "$out")"

# A server, and its client. Python reads its directory, in which no file may be added.
cp "$VPMU_ROOT/examples/server.sh" .
server() { guest --repeat -- perf stat -x, -e instructions:u,instructions:k ./server.sh; }
out=$(server)
case_of 'server' "$(grep -qx "$(stat -c %s server.sh) bytes served" <<<"$out" && [ "$(grep -c '^[1-9]' <<<"$out")" = 3 ] ||
	echo "$out")"
case_of 'server, the same instructions' "$(diff <(echo "$out") <(server))"

[ -n "${SOAK:-}" ] || exit 0
if ! log=$("$VPMU_ROOT/tools/debian" -s bookworm source libpfm4 '4.13.*' . 2>&1 && dpkg-source --no-check -x libpfm4_*.dsc libpfm4 2>&1 &&
	make -s -C libpfm4 CONFIG_PFMLIB_SHARED=n 2>&1); then
	echo "skip libpfm4: $(tail -n 1 <<<"$log")"
	exit 0
fi
examples=libpfm4/perf_examples
out=$(guest -- "$examples/task" -e instructions:u,branches:u "$VPMU_BUILD/examples/demo")
case_of 'libpfm4: task' "$(grep -q ' 41020005 instructions:u ' <<<"$out" && grep -q ' 9007001 branches:u ' <<<"$out" || echo "$out")"
out=$(guest -- sh -c "$examples/self_basic; $examples/self_basic")
case_of 'libpfm4: self_basic' "$([ "$(grep -c '^count=[1-9]' <<<"$out")" = 2 ] && [ "$(grep '^count' <<<"$out" | sort -u | wc -l)" = 1 ] || echo "$out")"
out=$(guest -- "$examples/self_smpl_multi" 2)
case_of 'libpfm4: self_smpl_multi' "$([[ $out = *'mismatch = 0, bad_msg = 0, bad_restart = 0'* ]] || echo "$out")"
out=$(guest --root -- "$examples/syst_count" -e instructions -d 1)
case_of 'libpfm4: syst_count' "$(grep -q '^CPU0 .* [1-9][0-9]* instructions' <<<"$out" || echo "$out")"
exit 0
