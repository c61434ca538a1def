#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 240
#
# The documents' pictures, as Chromium draws them, in the light and in the dark: each text
# is within the box that it stands in, apart from other texts, and legible. They load nothing,
# run nothing, and README shows them. t-docs.sh records the session again.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# This script stands behind the picture, in a page of its own, and says what is wrong.
cat >"$work/script" <<'END'
<script>
const box = e => e.getBoundingClientRect(), rects = [...document.querySelectorAll("rect")];
const texts = [...document.querySelectorAll("svg > text")], wrong = [];
const light = colour => {
	const [r, g, b] = colour.match(/\d+/g).map(c => (c / 255 <= 0.04045 ? c / 255 / 12.92 :
		((c / 255 + 0.055) / 1.055) ** 2.4));
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contains = (a, b, margin) => a.left + margin <= b.left && a.right - margin >= b.right &&
	a.top <= b.top && a.bottom >= b.bottom;
for (const text of texts) {
	const b = box(text), middle = new DOMRect((b.left + b.right) / 2, (b.top + b.bottom) / 2, 0, 0);
	const inside = rects.filter(r => contains(box(r), middle, 0)).pop();
	if (!inside || !contains(box(inside), b, 8)) {
		wrong.push(`out of its box: ${text.textContent}`);
		continue;
	}
	const [dark, bright] = [text, inside].map(e => light(getComputedStyle(e).fill)).sort((p, q) => p - q);
	if ((bright + 0.05) / (dark + 0.05) < 4.5)
		wrong.push(`faint: ${text.textContent}`);
	if (texts.some(t => t !== text && box(t).left < b.right && box(t).right > b.left &&
			box(t).top < b.bottom - 4 && box(t).bottom - 4 > b.top))
		wrong.push(`over another: ${text.textContent}`);
}
document.body.dataset.found = `${getComputedStyle(rects[0]).fill} ${texts.length > 9} ${wrong}`;
</script></body></html>
END

drawn() { # PICTURE COLOUR: what is wrong with it; Chromium's numbers of the colours are 0, 1
	local number=1 ground found
	[ "$2" = light ] || number=0
	tests/dom "$work/page.html" "--blink-settings=preferredColorScheme=$number" >"$work/dom" || {
		cat "$work/dom"
		return 77
	}
	found=$(sed -n 's/.*data-found="\([^"]*\)".*/\1/p' "$work/dom")
	ground=$(sed -n 's/.*--ground: #\([0-9a-f]*\);.*/\1/p' "$1" | sed -n "$((2 - number))p" |
		sed -E 's/^(.)(.)(.)$/\1\1\2\2\3\3/')
	printf -v ground 'rgb(%d, %d, %d) true ' "0x${ground:0:2}" "0x${ground:2:2}" "0x${ground:4:2}"
	[ "$found" = "$ground" ] || echo "found $found, not $ground"
}

for picture in docs/pictures/*.svg; do
	name=${picture##*/}
	case_of "$name is XML" "$(python3 -c 'import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])' "$picture" 2>&1 | tail -n 1)"
	case_of "$name stands alone" "$(sed 's,xmlns="http://www.w3.org/2000/svg",,; s/url(#[a-z]*)//' "$picture" |
		grep -oiE -m 1 '<script|\<on[a-z]+=|(src|href)=|https?:|@import|@font-face|url\(')"
	case_of "$name is in README, with words" "$(grep -qE "^!\[.{20,}\]\($picture\)$" README.md || echo 'not there')"
	{
		echo '<!DOCTYPE html><html><head><meta name="color-scheme" content="light dark"></head><body>'
		sed 's/ viewBox=/ width="100%"&/' "$picture"
		cat "$work/script"
	} >"$work/page.html"
	for colour in light dark; do
		status=0
		why=$(drawn "$picture" $colour) || status=$?
		if [ $status = 77 ]; then
			echo "skip $name in the $colour: $why"
		else
			case_of "$name in the $colour" "$why"
		fi
	done
done
