# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by tests that print their own lines.

# shellcheck disable=SC2034 # read by who sources this
failed=0
# case_of NAME WHY: "ok NAME", or with a reason "not ok NAME: WHY", and $failed is 1.
case_of() {
	if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1: $2" && failed=1; fi
}

# shown FILE...: what is in them, for a case's WHY: never nothing
shown() {
	cat "$@" 2>&1
	[ -s "$1" ] || echo "$1 is empty, or missing"
}
