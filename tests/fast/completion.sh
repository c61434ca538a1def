#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Test bash completion, by the function that bash would call; every verb has its help and
# a man page that has each of its options.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
build=${VPMU_BUILD:-$PWD/build}
# shellcheck disable=SC1091 # in the tree
. tools/vpmu.bash

completes() { # NAME WANTED WORD...: the last word is the one to complete
	local name=$1 want=$2 found
	shift 2
	COMP_WORDS=("$build/vpmu" "$@") COMP_CWORD=$# COMPREPLY=()
	_vpmu
	found="${COMPREPLY[*]}"
	case_of "$name" "$([ "$found" = "$want" ] || echo "found '$found', not '$want'")"
}
completes verb 'timeline' ti
completes 'verb of help' 'decode' help de
completes option '--host-event' run --ho
completes 'a socket' 'tools/timeline.html' run --qmp tools/timeline.h
completes words 'tcg kvm' run --accel ''
completes policy 'shared' run --policy sh
completes model 'EPYC-Rome EPYC-Milan EPYC-Genoa' run --cpu EPYC
completes 'a case' 'counter-3' contention --explain counter-3
completes 'a verb of kvm' 'metrics' kvm m
completes 'an option of metrics' '--from' kvm metrics --f
completes file 'tools/timeline.html' timeline tools/timeline.h

for verb in $("$build/vpmu" --help | awk '/^  vpmu [a-z]+ +[^ -]/ { print $2 }'); do
	help=$("$build/vpmu" help "$verb" 2>&1) && [[ $help == "Usage: vpmu $verb"* ]]
	case_of "help $verb" "$([ $? = 0 ] || head -n 1 <<<"$help")"
	page=$(sed 's/\\-/-/g' "man/vpmu-$verb.1" 2>&1)
	missing=''
	while read -r option; do
		[[ $option == --help ]] || grep -qF -- "$option" <<<"$page" || missing+="$option "
	done < <(grep -oE '^ +(-., )?--[a-z-]+' <<<"$help" | grep -oE -- '--[a-z-]+')
	case_of "page of $verb" "${missing:+man/vpmu-$verb.1 lacks $missing}"
	case_of "page of $verb is listed" "$(grep -q "vpmu-$verb (1)" man/vpmu.1 || echo 'not in man/vpmu.1')"
done
