#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 3600
# takes: 450
#
# The commands of the documents work: each command of their sh blocks, except for the rows
# of documents.tsv, is typed as it stands. A transcript shows the output of its command:
# the layout, and the counts that are the same in every run. README's picture of a session
# is recorded again. t-docs.sh PATTERN: only documents whose name contains it, that picture,
# or "nested"; SOAK=1 types those of the kinds soak, host and guest, too.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=nested.sh
. "$(dirname "$(readlink -f "$0")")/nested.sh"
cd "$VPMU_ROOT" || exit 1
# shellcheck source-path=SCRIPTDIR source=../documents.sh
. tests/documents.sh
work=$(mktemp -d "$TMPDIR/docs.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The directory for typing: the source tree by its parts, so that nothing is left in it,
# and the programs that the reader has.
ln -s "$VPMU_ROOT"/{bench,docs,examples,tests,tools} "$work"
ln -s "$VPMU_BUILD" "$work/build"
for program in app program your-program; do
	cp "$VPMU_BUILD/examples/demo" "$work/$program"
done
unset VPMU_PERF_SEQUENCES # set by tests/run, and not by a reader
make() { command make -C "$VPMU_ROOT" BUILD="$VPMU_BUILD" "$@"; }
export -f make

# Fetch the kernel first, or a transcript would begin with that.
tools/guest-kernel >/dev/null 2>&1

# Nothing outside of $work, and of what takes long as much as shows that it works.
shorter() {
	sed -E "s,/tmp/vpmu\>,$work/dest,g; s/_SEQUENCES=[0-9]+/_SEQUENCES=50/
		s#^(make bench|bench/run --rounds.*)\$#bench/run --unpatched $VPMU_QEMU --variants unpatched,two --workloads awk --no-costs#
		s,^bench/run .*,& --rounds 1 --scale 0.02,"
}

# typed LINE: its status; what it prints is left in a file. perf top goes on until it is
# ended, as by Ctrl-C when it has shown something.
typed() {
	local begun=$SECONDS pid
	(cd "$work" && exec timeout -k 60 600 env --default-signal=INT bash -o pipefail -c "$1") \
		>"$work/.out" 2>&1 </dev/null &
	pid=$!
	if [[ $1 = *'perf top'* ]]; then
		until grep -q PerfTop "$work/.out" || ! kill -0 $pid || [ $((SECONDS - begun)) -gt 60 ]; do
			sleep 0.2
		done 2>/dev/null
		kill -INT $pid 2>/dev/null
		wait $pid
		grep -q PerfTop "$work/.out"
	else
		wait $pid
	fi
}

said() { { grep -m 2 -A 2 -E '^(FAIL|not ok)' "$work/.out" || tail -n 2 "$work/.out"; } | paste -sd' '; }

declare -A found	# why a line has failed, or nothing: the same one is typed once
command_of() { # DOCUMENT COMMAND
	local status=0 fails='' name="$1: ${2:0:72}" line
	case $(commands_listed | awk -F'\t' -v doc="$1" -v line="$2" '$1 == doc && $2 == line { print $3 }') in
	'') ;;
	fails) fails=1 ;;
	soak) [ -n "${SOAK:-}" ] || return ;;
	*) return ;;
	esac
	line=$(shorter <<<"$2")
	if [ -n "${found[$line]+once}" ]; then
		case_of "$name" "${found[$line]}"
		return
	fi
	typed "$line" || status=$?
	if [ -n "$fails" ]; then
		case_of "$name" "$(grep -q '^not ok' "$work/.out" || echo 'no case failed')"
		return
	fi
	found[$line]=$([ $status = 0 ] || echo "status $status: $(said)")
	case_of "$name" "${found[$line]}"
}

# Numbers of user mode stay; of others, of the kernel and of time, only that they are there.
layout() {
	sed -E 's/[[:blank:]]+$//; /:u$/!s/[0-9]+(\.[0-9]+)?/N/g; s/[[:blank:]]+/ /g; s/^ | $//g; /^$/d'
}

# "..." stands for lines that are not shown, and of the host's own perf only a part is.
transcript_of() { # DOCUMENT TRANSCRIPT
	local command name differ='[<>]'
	command=$(sed -n '1s/^\$ //p' <<<"$2")
	name="$1: \$ ${command:0:72}"
	if [[ $command == perf* && $(perf stat -e instructions true 2>&1) != *'not supported'* ]]; then
		echo "skip $name: this machine has counters, the one of the transcript has none"
		return
	fi
	[[ $command != perf* && $2 != *$'\n...\n'* ]] || differ='<'
	typed "$(shorter <<<"$command")" # its status is the program's
	case_of "$name" "$(diff <(sed '1d; /^\.\.\.$/d' <<<"$2" | layout) <(layout <"$work/.out") |
		grep "^$differ" | head -n 4 | paste -sd' ')"
}

# Commands for root of a KVM host, and of its guest: in the nested rig.
nested() {
	local kernel guest host
	if ! kernel=$(tools/guest-kernel bookworm 2>"$work/.out") ||
		! guest=$(tools/guest-module "$kernel" 2>"$work/.out") ||
		! host=$(tools/guest-module --host "$kernel" 2>"$work/.out"); then
		echo "skip nested: $(tail -n 1 "$work/.out")"
		return
	fi
	mkdir -p "$work/nested/build"/{modules,guest}
	cd "$work/nested" || exit 1
	ln -s "$VPMU_BUILD/vpmu" build/
	cp "$work/app" "$work/your-program" .
	cp "$guest" build/guest/vpmu_guest.ko
	cp "$guest" vpmu_guest.ko
	cp "$host" build/modules/vpmu_kvm.ko
	(cd "$VPMU_ROOT" && commands_listed host) >host.tsv
	(cd "$VPMU_ROOT" && commands_listed guest) >guest.tsv
	in_l1 nested --kernel bookworm --append kvm.enable_pmu=0 -- "$VPMU_ROOT/tests/vm/docs-l1.sh" host
	cd "$VPMU_ROOT" || exit 1
}

for doc in $(documents); do
	[[ $doc == *${1:-}* ]] || continue
	while IFS= read -r -d $'\f' shown; do
		transcript_of "$doc" "$shown"
	done < <(transcripts "$doc")
	while IFS= read -r line; do
		command_of "$doc" "$line"
	done < <(commands "$doc")
done
session=docs/pictures/session.svg
if [[ $session == *${1:-}* ]]; then
	# A time has its place and its width by its digits.
	times() { sed -E '/ seconds /s/[0-9.]+/N/g' "$@"; }
	tools/session >"$work/session" 2>"$work/.out"
	case_of "$session" "$(diff <(times $session) <(times "$work/session") | sed -n 's/^[<>] //p' |
		head -n 2 | paste -sd' ')"
fi
[ -z "${SOAK:-}${1:-}" ] || [[ nested != *${1:-}* ]] || nested
exit 0
