# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by tests/fast/docs.sh and tests/vm/t-docs.sh, in the source tree: what the
# documents tell to type. Lines of blocks marked sh are commands, lines of other blocks
# that begin with "$ " are commands with what they print below.

documents() { echo README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/*.md; }

# commands DOCUMENT: of its sh blocks, one per line, without comments
commands() {
	sed -n '/^```sh$/,/^```$/p' "$1" | sed '/^```/d; s/  *#.*//; /^$/d'
}

# transcripts DOCUMENT: each with a form feed after it, a continued command in one line
transcripts() {
	awk '/^```/ { if (shown) printf "\f"; inside = !fence && $0 == "```"; fence = !fence; shown = 0; next }
		inside && /^\$ / { if (shown) printf "\f"; shown = 1 }
		shown && sub(/ *\\$/, " ") { sub(/^ +/, ""); printf "%s", $0; joined = 1; next }
		shown { if (joined) sub(/^ +/, ""); joined = 0; print }' "$1"
}

# commands_listed [HOW]: the rows of documents.tsv, all or those of that kind
commands_listed() {
	awk -F'\t' -v how="${1:-}" '!/^#/ && NF && (how == "" || $3 == how)' tests/documents.tsv
}
