#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The examples do what docs/EMBEDDING.md and examples/demo.S say of them.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${VPMU_BUILD:-$PWD/build}

want='PMI after instruction 1000; LVTPC masks itself
counter 0: 1500'
if found=$("$build/examples/embed" 2>&1) && [ "$found" = "$want" ]; then
	echo 'ok embed'
else
	echo "not ok embed: printed: $(tr '\n' '|' <<<"$found")"
fi

want="alone: count 1000, enabled 1000, running 1000
with the host's eight: count 1000, enabled 4000, running 1000, lost: about 4000
alone again: count 2000, enabled 5000, running 2000: about 5000"
if found=$("$build/examples/share" 2>&1) && [ "$found" = "$want" ]; then
	echo 'ok share'
else
	echo "not ok share: printed: $(tr '\n' '|' <<<"$found")"
fi

lines=$(wc -l <examples/embed.c)
if [ "$lines" -lt 80 ]; then
	echo 'ok embed is short'
else
	echo "not ok embed is short: $lines lines, EMBEDDING.md promises fewer than 80"
fi

if [ "$(uname -m)" != x86_64 ]; then
	echo "skip demo: machine is $(uname -m), needed x86_64"
elif "$build/examples/demo"; then
	echo 'ok demo'
else
	echo "not ok demo: exit status $?"
fi
