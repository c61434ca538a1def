#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# vpmu lost where there are no losses to read: 77 is its own status only if there is no command
# whose status it could be.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
vpmu=${VPMU_BUILD:-$PWD/build}/vpmu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

said=$("$vpmu" lost 2>&1)
status=$?
if [ $status = 0 ] || [[ $said == *'only root'* ]]; then
	echo 'skip lost: this is a guest of vpmu, whose losses can be read'
	exit 0
fi
case_of 'without a command' "$([[ $status = 77 && $said == 'vpmu: '* ]] || echo "status $status, $said")"
for command in true false 'exit 77'; do
	said=$("$vpmu" lost -- sh -c "touch $work/ran; $command" 2>&1)
	status=$?
	case_of "with $command" "$([[ $status = 125 && $said == *'; the command was not run' && ! -e $work/ran ]] ||
		echo "status $status, $said")"
done
# shellcheck disable=SC2154 # of case.sh
exit "$failed"
