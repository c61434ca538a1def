# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by tests that look for findings. report NAME: a case from those on stdin, one a
# line.
report() {
	local findings
	findings=$(cat)
	if [ -z "$findings" ]; then
		echo "ok $1"
	else
		echo "not ok $1: $(head -n 1 <<<"$findings")"
		echo "$findings"
	fi
}
