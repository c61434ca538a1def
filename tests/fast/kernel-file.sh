#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# A kernel's file for vpmu run --kernel comes from anywhere: what it says of itself leads
# to no path outside of the cache. vpmu check notices one in the cache that was truncated.
set -uo pipefail

root=${VPMU_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
vpmu=${VPMU_BUILD:-$root/build}/vpmu
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# shellcheck source=tests/case.sh
. "$root/tests/case.sh"

# kernel RELEASE: an ELF file with that banner
kernel() { printf '\177ELF\2\1 Linux version %s (a@b) #1\n' "$1" >vmlinux; }

# attempt OPTION...: as a user whose home is empty; prints what is outside of the cache then
attempt() {
	rm -rf home
	mkdir home
	HOME=$work/home XDG_CACHE_HOME='' VPMU_QEMU=/bin/true \
		"$vpmu" run --kernel vmlinux "$@" -- true >log 2>&1
	rc=$?
	find home public -mindepth 1 ! -path 'home/.cache*' -newer before
}

# refused NAME OPTION...
refused() {
	local name=$1 found
	shift
	touch before
	found=$(attempt "$@" | paste -sd' ')
	case_of "$name: nothing outside of the cache" "$found"
	attempt "$@" >/dev/null
	case_of "$name: said" "$([[ $rc = 125 && $(cat log) == *"Linux version in $work/vmlinux is "*"$shown"* ]] ||
		echo "status $rc, $(tail -n 1 log)")"
	case_of "$name: nothing of it in the cache" \
		"$(find home/.cache -name 'kernel-file*' -o -name '*bash_profile*' | head -n 1)"
}

up=$(printf '../%.0s' {1..20})
mkdir -p public/kernel
echo 'touch owned' >public/.bash_profile
: >public/modules.dep

# The modules are linked below CACHE/vpmu/tmp.X/tree/lib/modules/RELEASE.
shown=../../..
kernel "$up${work#/}/home"
refused 'a release that leads up' --modules "$work/public"

# Without --modules the same name is looked for below /lib/modules, where it goes through the
# link to as many directories as it leaves again. From the cache on it leads to the home.
path=$work/public/link
back=$(tr -cd / <<<"$path" | sed 's,/,/..,g')
mkdir -p "public/deep$(sed 's,\.\.,d,g' <<<"$back")"
ln -s "deep$(sed 's,\.\.,d,g' <<<"$back")" public/link
cp -r public/.bash_profile public/modules.dep public/kernel public/deep/
kernel "../../../../../..$path$back"
refused 'a release that leads through a link'
for shown in "$(printf '\033[2Jx')" .hidden -x a/b "$(printf 'a%.0s' {1..65})"; do
	kernel "$shown"
	case $shown in $'\033'*) shown='\E[2Jx' ;; esac
	refused "a release '$shown'"
done

# Names of the kind that users' own kernels have.
for shown in 6.1.0-32-amd64 6.6.1-microsoft-standard-WSL2 6.8-rc1+ 5.4.17-2136.el8uek.x86_64 6.1~a_b; do
	kernel "$shown"
	touch before
	case_of "$shown: nothing outside of the cache" "$(attempt --dry-run)"
	case_of "$shown: taken" "$([ "$(cat home/.cache/vpmu/kernel-file-*/release 2>&1)" = "$shown" ] || cat log)"
done

# Any program is an ELF file, of the size that its headers have.
rm vmlinux
cat "$(type -P sleep)" - <<<'Linux version 6.1.0 (a@b) #1' >vmlinux
attempt --dry-run >/dev/null
entry=$(echo home/.cache/vpmu/kernel-file-*)
check() { HOME=$work/home XDG_CACHE_HOME='' VPMU_QEMU=/bin/true "$vpmu" check --no-guest --kernel vmlinux | grep 'guest kernel'; }
out=$(check)
case_of 'a whole kernel' "$([[ $out == 'PASS '* ]] || echo "$out")"
for size in $(($(stat -c %s vmlinux) - 200)) 1000 10 0; do
	truncate -s "$size" "$entry/vmlinux"
	out=$(check)
	case_of "$size bytes of a kernel" "$([[ $out == 'FAIL '*"$entry/vmlinux "*"; rm -r $work/$entry, "* ]] &&
		[[ $size -lt 64 || $out == *" has $size bytes, "* ]] || echo "$out")"
done
rm "$entry/vmlinux"
out=$(check)
case_of 'an entry without a kernel' "$([[ $out == 'FAIL '*"vmlinux: No such file"* ]] || echo "$out")"

# Its headers are fetched from a suite that its origin names; a file's path is none.
mkdir -p entry out
echo 6.1.0 >entry/release
printf '/tmp/x from trixie\n' >entry/origin
out=$(PATH=/usr/bin:/bin "$root/tools/guest-kernel" --headers out entry 2>&1)
case_of 'a path is no suite' "$([[ $out == *"not Debian's"* ]] || echo "$out")"
echo ../../x >entry/release
out=$("$root/tools/guest-module" "$work/entry" 2>&1)
case_of 'a release in an entry' "$([[ $out == *entry/release\ is\ ../../x,* ]] || echo "$out")"
# shellcheck disable=SC2154 # of case.sh
exit "$failed"
