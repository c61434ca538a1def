#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Which release of QEMU qemu/build takes when the archive no longer has the preferred one, or has a
# newer version that the patches do not apply to. The mirror is one that has nothing.
set -uo pipefail

root=${VPMU_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# shellcheck source=tests/case.sh
. "$root/tests/case.sh"
export XDG_CACHE_HOME=$work/base
unset VPMU_QEMU VPMU_QEMU_RELEASE VPMU_QEMU_SRC
umask 022
cache=$work/base/vpmu/qemu

mkdir -p tree/tools tree/kvm/module
cp -r "$root"/{qemu,lib,include,host,meson.build,meson_options.txt} tree/
cp -r "$root/kvm/vmm" tree/kvm/
cp "$root/kvm/module/vpmu-kvm-module.h" tree/kvm/module/
cp "$root"/tools/{cache,series}.sh tree/tools/
cat >tree/tools/debian <<'END'
#!/bin/sh
echo "$*" >>"$XDG_CACHE_HOME/asked"
exit 1
END
chmod +x tree/tools/debian
build() { timeout 60 tree/qemu/build "$@"; }
mapfile -t names < <(sed -n 's/^release \([^ ]*\).*/\1/p' tree/qemu/VERSION)
mapfile -t versions < <(sed -n 's/^release .* //p' tree/qemu/VERSION)

entry() { # INDEX: the directory that a release's build has
	local name
	name=$(VPMU_QEMU_RELEASE=${names[$1]} bash -x tree/qemu/build --print 2>&1 |
		grep -oE 'patched-[0-9a-z._-]+-' | head -n 1)
	echo "$cache/$name${versions[$1]}+ds-1"
}
first=$(entry 0) second=$(entry 1)
have() { # DIR...: the cache has these builds, and nothing else
	rm -rf base
	mkdir -p base "$cache"
	: >base/asked
	local dir
	for dir; do
		mkdir -p "$dir/bin"
		echo 'libseccomp' >"$dir/bin/qemu-system-x86_64"
		chmod +x "$dir/bin/qemu-system-x86_64"
	done
}
# qemu/build prints DIR, or fails if that is ''; its messages have WORDS, or there are none if those
# are ''; and the mirror has been asked ASKED times since the last call of have.
gives() { # NAME DIR WORDS ASKED [OPTION]...
	local name=$1 dir=$2 words=$3 asked=$4 out rc err
	shift 4
	out=$(build "$@" 2>err)
	rc=$?
	err=$(<err)
	case_of "$name" "$(
		[ "$out" = "$dir" ] || echo "printed '$out', wanted '$dir'"
		[ $rc = $((${#dir} == 0)) ] || echo "status $rc"
		if [ -n "$words" ]; then
			[[ $err == *"$words"* ]] || echo "said '$err', wanted '$words'"
		elif [ -n "$err" ]; then echo "said '$err'"; fi
		[ "$(wc -l <base/asked)" = "$asked" ] || echo "asked the mirror $(wc -l <base/asked) times, not $asked"
	)"
}

have "$second"
gives 'the archive has the second' "$second" "taking QEMU ${names[1]}" 1 --exact
gives 'and the next time' "$second" '' 1
gives 'and to look' "$second" '' 1 --print
touch -d '2 days ago' "$cache/absent-${names[0]}"
gives 'two days later' "$second" "taking QEMU ${names[1]}" 2
mkdir -p "$first/bin"
cp "$second/bin/qemu-system-x86_64" "$first/bin/"
gives 'a build of the first' "$first" '' 2

have "$second"
VPMU_QEMU_RELEASE=${names[0]} gives 'the first by its name' '' 'cannot be fetched' 1
gives 'a tree to work in' '' "VPMU_QEMU_RELEASE=${names[1]} is another" 2 --builddir "$work/own"
gives 'nothing is kept of that' "$second" "taking QEMU ${names[1]}" 3

have "$cache/patched-0-$(sed -E 's/.*patched-[^-]*-(.*)-[^-]*-[^-]*$/\1/' <<<"$second")-9"
older=$(echo "$cache"/patched-0-*)
gives 'no release, an older build' "$older" 'using the older build' 2
gives 'no release and --exact' '' "QEMU ${names[1]} cannot be fetched" 4 --exact
have
gives 'no release and no build' '' "QEMU ${names[1]} cannot be fetched" 2

# A point release that moves what a patch changes.
have "$second"
mkdir -p src/qemu-1/debian/source "$cache"/{src,firmware} "$cache/meson/usr/lib/python3/dist-packages/mesonbuild"
(
	cd src/qemu-1 || exit 1
	echo "${names[0]}.99" >VERSION
	echo '3.0 (native)' >debian/source/format
	printf 'Source: qemu\nMaintainer: Nobody <nobody@example.org>\n\nPackage: qemu\nArchitecture: any\n' >debian/control
	printf 'qemu (%s.99) unstable; urgency=low\n\n  * .\n\n -- Nobody <nobody@example.org>  %s\n' \
		"${names[0]}" 'Thu, 01 Jan 2026 00:00:00 +0000' >debian/changelog
	dpkg-source -b . >/dev/null 2>&1
)
mv src/qemu_* "$cache/src/"
gives 'a version that patches do not apply to' "$second" "does not apply to QEMU ${names[0]}.99" 0
gives 'and again' "$second" "taking QEMU ${names[1]}" 0
gives 'and --exact' '' "does not apply to QEMU ${names[0]}.99" 0 --exact
case_of 'nothing is left' "$(find "$cache" -maxdepth 1 -name '*.??????' ! -name 'patched-*')"
# shellcheck disable=SC2154 # of case.sh
exit "$failed"
