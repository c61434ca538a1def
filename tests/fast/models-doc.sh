#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# docs/MODELS.md: its table is what vpmu list says, and its example of a new model is
# found and sound when it is added as the text says; out of order it is not.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${VPMU_BUILD:-$PWD/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# cell LINE N
cell() { cut -d'|' -f"$(($2 + 1))" <<<"$1" | tr -d ' '; }

tables=0
while IFS= read -r line; do
	name=$(cell "$line" 1)
	want="$(cell "$line" 3) $(cell "$line" 4) $(cell "$line" 5) $(cell "$line" 6)"
	found=$("$build/vpmu" list --cpu "$name" --json | python3 -c '
import json, sys
j = json.load(sys.stdin)
print(j["version"], j["counters"], j["fixed"], j["width_bits"])')
	tables=$((tables + 1))
	[ "$found" = "$want" ] || echo "not ok table $name: vpmu list has $found, the document $want"
done < <(grep -E '^\| [a-z0-9-]+ \| .* \| [0-9] \| [0-9] \|' docs/MODELS.md)
models=$("$build/vpmu" list --cpu none 2>&1 | sed 's/.*there are //; s/,//g' | wc -w)
if [ "$tables" = "$models" ]; then
	echo "ok table: $tables models"
else
	echo "not ok table: $tables models, but $models known to vpmu list"
fi

cp -r lib include "$work/"
sed -n '/^```c$/,/^```$/{/^```/d; p}' docs/MODELS.md >"$work/lib/silicon/models/silvermont.c"
sed -i '/^extern .*vpmu_model_generic;/i extern const struct vpmu_model vpmu_model_silvermont;' \
	"$work/lib/silicon/models/models.h"
sed -i '/&vpmu_model_generic,/i \	\&vpmu_model_silvermont,' "$work/lib/silicon/model.c"
cat >"$work/main.c" <<END
#include <stdio.h>
#include <vpmu/model.h>

int main(void)
{
	const struct vpmu_model *m = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 77);
	size_t bad;
	const char *wrong = vpmu_model_check(m, &bad);

	printf("%s: %s\n", m->name, wrong ? wrong : "sound");
	return 0;
}
END
check() { # NAME WANT
	local found
	found=$(gcc -std=c11 -Wall -Wextra -Werror -I"$work/include" -o "$work/main" "$work/main.c" \
		"$work"/lib/silicon/{model,event}.c "$work"/lib/silicon/models/*.c 2>&1 && "$work/main")
	if [ "$found" = "$2" ]; then echo "ok $1"; else echo "not ok $1: $found"; fi
}
check example 'silvermont: sound'
sed -i 's/0xc4, 0x7e/0xc4, 0xfe/' "$work/lib/silicon/models/silvermont.c"
check 'out of order' 'silvermont: not sorted, or twice'
