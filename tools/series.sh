# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by qemu/build and linux/build, which make repositories and series of our patches.
# They have die.

# empty DIR: make it, and print it as an absolute path
empty() {
	[ -z "$(ls -A "$1" 2>/dev/null)" ] || die "$1 is not empty; needed is an empty or new directory"
	mkdir -p "$1" && cd "$1" && pwd
}

# base_commit PATCH BRANCH MESSAGE: commit the current directory as a new repository's first, in
# the name of the patch's author, who is the project and applies all.
base_commit() {
	local author
	author=$(sed -n '0,/^From: /s/^From: //p' "$1")
	export GIT_COMMITTER_NAME=${author% <*} GIT_COMMITTER_EMAIL=${author##*<}
	GIT_COMMITTER_EMAIL=${GIT_COMMITTER_EMAIL%>}
	# A collection of garbage in the background would write while a temporary tree is removed.
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gc.auto GIT_CONFIG_VALUE_0=0
	git init -q -b "$2"
	git add -A -f
	git commit -q --author="$author" -m "$3"
}
