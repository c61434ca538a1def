#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# tools/setup takes of each package's names the first that the archive has, Debian's or
# Ubuntu's, and without apt it names the bundle. Programs named like apt's and dpkg's stand in
# place of a system: they install nothing.
set -uo pipefail

root=${VPMU_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# shellcheck source=tests/case.sh
. "$root/tests/case.sh"

mkdir bin bare
cat >bin/apt-get <<-'END'
	#!/bin/bash
	while [[ $1 == -* ]]; do shift; done
	[ "$1" = install ] || exit 0
	printf '%s\n' "${@:2}" >"$WORK/asked"
	! grep -qvxF -f "$WORK/archive" "$WORK/asked"
	END
cat >bin/apt-cache <<-'END'
	#!/bin/bash
	grep -qxF -- "${!#}" "$WORK/archive"
	END
cat >bin/dpkg-query <<-'END'
	#!/bin/bash
	! grep -qxF -- "${!#}" "$WORK/installed" || echo -n installed
	END
printf '#!/bin/sh\necho "${ID_OF_USER:-0}"\n' >bin/id
chmod +x bin/*
export WORK=$work

# names N: that one of each package's names, or its last where it has fewer
names() {
	awk -v which="$1" 'NF && !/^#/ { n = split($1, name, "|"); print name[which < n ? which : n] }' \
		"$root/tools/packages"
}
# set_up: sets $status and $said, and leaves in the file "asked" what would be installed
set_up() {
	: >asked
	said=$(PATH=$work/bin:$PATH "$root/tools/setup" 2>&1)
	status=$?
}

: >installed
names 1 >debian
sed 's/^linux-perf$/linux-tools-generic/; s/^linux-headers-amd64$/linux-headers-generic/' debian >ubuntu
for archive in debian ubuntu; do
	cp $archive archive
	set_up
	case_of "all of $archive" "$(if [ $status = 0 ]; then diff asked $archive; else echo "$status, $said"; fi | paste -sd' ')"
done
grep -vx debian-archive-keyring ubuntu >installed
set_up
case_of 'a keyring where there is none' "$([ $status = 0 ] && [ "$(cat asked)" = debian-archive-keyring ] || cat asked)"
names 9 >installed
cp debian archive
set_up
case_of 'nothing where other names are installed' "$([ $status = 0 ] && [ ! -s asked ] || paste -sd' ' asked)"
sed -i '/^linux-tools-generic$/d' installed
cp ubuntu archive
said=$(ID_OF_USER=1 PATH=$work/bin:$PATH "$root/tools/setup" 2>&1)
case_of 'a user reads the name of this system' "$([[ $? = 1 && $said == *'not installed: linux-tools-generic'$'\n'* ]] || echo "$said")"
sed -i '/^linux-tools-generic$/d' archive
set_up
case_of 'a name that no archive has is no silent omission' \
	"$([ $status = 1 ] && grep -qx linux-perf asked || echo "$status, $said")"

for program in dirname readlink; do ln -s "$(type -P $program)" bare/; done
said=$(PATH=$work/bare "$root/tools/setup" 2>&1)
case_of 'without apt' "$([[ $? = 1 && $said == *'make bundle'*docs/BUNDLE.md* ]] || echo "$said")"
# shellcheck disable=SC2154 # of case.sh
exit "$failed"
