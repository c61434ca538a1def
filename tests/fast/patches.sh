#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 240
#
# qemu/patches as QEMU's maintainers take patches: git am finds an author, a date and the
# author's sign-off, the message is at most 76 columns wide, and checkpatch.pl of the source
# package says nothing.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/report.sh
. tests/report.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vpmu/qemu

# message PATCH: what is wrong with its head
message() {
	local author date
	git mailinfo "$work/message" "$work/diff" <"$1" >"$work/info" || echo "$1: git mailinfo fails"
	author=$(sed -n 's/^Author: //p' "$work/info") author+=" <$(sed -n 's/^Email: //p' "$work/info")>"
	date=$(sed -n 's/^Date: //p' "$work/info")
	[[ $author == ?*' <'?*@?*'>' ]] || echo "$1: no author"
	[ -n "$date" ] && date -d "$date" >/dev/null || echo "$1: no date: '$date'"
	sed '/^---$/,$d' "$work/message" >"$work/text"
	grep -qxF "Signed-off-by: $author" "$work/text" || echo "$1: not signed off by $author"
	grep -v '^Signed-off-by: ' "$work/text" |
		awk -v f="$1" 'length > 76 { print f ": " length " columns: " $0 }'
}
# A release that does not need a patch has an empty file for it.
mapfile -t patches < <(find qemu/patches -name '*.patch' -size +0 | sort)
for patch in "${patches[@]}"; do
	message "$patch"
done | report 'patches for git am'

# each patch is in a series, and each series has a cover letter and numbers without a gap
for series in qemu/patches/*/; do
	series=${series%/} name=${series##*/}
	grep -qw "^series.* $name" qemu/VERSION || echo "qemu/VERSION has no series $name"
	[ "$(sed -n 2p "$series/cover")" = '' ] && [ "$(wc -l <"$series/cover")" -ge 3 ] ||
		echo "$series/cover: needed: a subject, an empty line, a text"
	awk -v f="$series/cover" 'length > 78 { print f ": " length " columns: " $0 }' "$series/cover"
	find "$series" -maxdepth 1 -name '*.patch' -printf '%f\n' | cut -c 1-4 | sort >"$work/numbers"
	count=$(wc -l <"$work/numbers")
	seq -f %04g "$count" | cmp -s - "$work/numbers" || echo "$series: numbers are not 0001 and so on"
	grep -q "^| \`$name\` | $count | " docs/UPSTREAM.md || echo "docs/UPSTREAM.md: no $count patches of $name"
	for own in "$series"/*/*.patch; do
		[ -e "$own" ] || continue
		[ -e "$series/${own##*/}" ] || echo "$own: of no patch of the series"
		grep -q "^release $(basename "$(dirname "$own")") " qemu/VERSION ||
			echo "$own: of no release of qemu/VERSION"
	done
done | report 'series of patches'

# checkpatch.pl asks for an entry in MAINTAINERS for each new file. This directory has one.
asks_for_entry() { # PATCH
	awk '/^--- / { added = $2 == "/dev/null" } /^\+\+\+ b/ && added { print $2 }' "$1" | grep -v '^b/tests/tcg/x86_64/'
}

tarball=$(printf '%s\n' "$cache"/src/qemu_*.orig.tar.xz | sort -V | tail -n 1)
if [ ! -e "$tarball" ]; then
	echo "skip checkpatch: $cache/src has no QEMU source; needed: make qemu"
elif ! tar -xJOf "$tarball" --occurrence=1 --wildcards --no-wildcards-match-slash \
	'*/scripts/checkpatch.pl' >"$work/checkpatch.pl"; then
	echo "not ok checkpatch: ${tarball##*/} has no scripts/checkpatch.pl"
else
	for patch in "${patches[@]}"; do
		ignored='^total: '
		asks_for_entry "$patch" >"$work/added" || ignored+='|WARNING: added, moved or deleted file'
		perl "$work/checkpatch.pl" --no-tree -q --terse "$patch" 2>&1 | grep -vE "$ignored" || true
	done | report checkpatch
fi
