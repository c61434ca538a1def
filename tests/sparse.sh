# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by the tests that build a kernel module, before they do: the kernel's makefiles
# then show each file to sparse as well, which knows what is the user's, which byte order
# a number has, and who holds a lock. What it says is in the build's log.
if command -v sparse >/dev/null; then
	export KBUILD_CHECKSRC=2 CF=-Wsparse-error
fi

# sparse_case NAME LOG SOURCE...: a case, that it has seen each source and said nothing
sparse_case() {
	local name=$1 log=$2 source seen=0
	shift 2
	if ! command -v sparse >/dev/null; then
		echo "skip sparse $name: not installed: apt-get install sparse"
		return
	fi
	for source; do
		if grep -q "CHECK .*/${source##*/}\$" "$log"; then seen=$((seen + 1)); fi
	done
	if [ $seen != $# ]; then
		echo "not ok sparse $name: it saw $seen of $# files"
	elif grep -E '\.[ch]:[0-9]+:[0-9]+: (warning|error): ' "$log"; then
		echo "not ok sparse $name: see above"
	else
		echo "ok sparse $name"
	fi
}
