#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 300
#
# tools/guest-kernel finds Debian's kernels whichever way their packages are split, and
# asks the network for nothing that can be no kernel. In place of an archive stand
# records in the form of Packages, tiny packages, and programs named like apt's. Without a
# keyring of Debian it names the package that has one, and so does tools/debian.
set -uo pipefail

root=${VPMU_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
vpmu=${VPMU_BUILD:-$root/build}/vpmu
work=$(realpath "$(mktemp -d)")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# shellcheck source=tests/case.sh
. "$root/tests/case.sh"
for command in dpkg-deb depmod modprobe python3; do
	PATH=$PATH:/usr/sbin:/sbin command -v $command >/dev/null ||
		{ echo "skip kernel-packages: found no $command, which unpacks a kernel"; exit 0; }
done
export XDG_CACHE_HOME=$work/base
unset VPMU_KERNEL
umask 022
cache=$work/base/vpmu

# ---- the archive: Packages and the packages, by suite

mkdir -p bin archive
cat >bin/apt-get <<-'END'
	#!/bin/bash
	# update, download NAME..., indextargets; --: the options of a private configuration
	verb='' names=()
	while [ $# -gt 0 ]; do
		case $1 in
		-o)
			[[ $2 != Dir::Etc::sourcelist=* ]] || list=${2#*=}
			shift
			;;
		--format) shift ;;
		-*) ;;
		*) if [ -z "$verb" ]; then verb=$1; else names+=("$1"); fi ;;
		esac
		shift
	done
	case $verb in
	indextargets) echo asked >>"$WORK/lists" ;;
	update)
		echo update >>"$WORK/network"
		suite=$(sed -n 's/^deb [^]]*\] [^ ]* \([^ ]*\) main$/\1/p' "$list")
		echo "$suite" >"$WORK/suite"
		[ -d "$WORK/archive/$suite" ]
		;;
	download)
		for name in "${names[@]}"; do
			echo "$name" >>"$WORK/network"
			cp "$WORK/archive/$(cat "$WORK/suite")/${name}_"*.deb . || exit 100
		done
		;;
	esac
END
cat >bin/apt-cache <<-'END'
	#!/bin/bash
	# show PACKAGE, the last argument
	awk -v RS= -v want="Package: ${*: -1}" '
		{ split($0, lines, "\n") }
		lines[1] == want { print $0 "\n" }' "$WORK/archive/$(cat "$WORK/suite")/Packages"
END
chmod +x bin/*
printf '#!/bin/sh\n' >bin/apt-config # the system has no sources
chmod +x bin/apt-config
export WORK=$work PATH=$work/bin:$PATH

record() { # SUITE PACKAGE DEPENDS: Packages' record of a package that is in no pool
	mkdir -p "archive/$1"
	printf 'Package: %s\nVersion: 1\nSize: 1234567\n%s\n' "$2" "${3:+Depends: $3
}" >>"archive/$1/Packages"
}

deb() { # SUITE PACKAGE DEPENDS: of what is in tree/
	local suite=$1 package=$2
	record "$@"
	mkdir -p tree/DEBIAN
	printf 'Package: %s\nVersion: 1\nArchitecture: amd64\nMaintainer: a\nDescription: b\n' \
		"$package" >tree/DEBIAN/control
	dpkg-deb --root-owner-group -b tree "archive/$suite/${package}_1_amd64.deb" >/dev/null
	rm -rf tree
}

# A bzImage with an ELF file's first bytes inside.
bzimage() {
	python3 - "$1" <<-'END'
		import gzip, struct, sys
		payload = gzip.compress(b"\x7fELF" + bytes(60))
		head = bytearray(1024)
		head[0x1f1] = 1
		head[0x202:0x206] = b"HdrS"
		struct.pack_into("<II", head, 0x248, 0, len(payload))
		open(sys.argv[1], "wb").write(head + payload)
	END
}

# list_builtin FILE [MODULE...]: the list of those that the guest needs, less the others
list_builtin() {
	local file=$1 name
	shift
	for name in virtio/virtio_pci char/virtio_console 9p/9pnet_virtio 9p/9p overlayfs/overlay; do
		[[ " $* " == *" ${name##*/} "* ]] || echo "kernel/$name.ko"
	done >"$file"
}

# whole SUITE RELEASE [MODULE...]: the kernel in one package, as until 6.18, without MODULE
whole() {
	local suite=$1 release=$2
	shift 2
	mkdir -p tree/boot "tree/lib/modules/$release/kernel/fs/9p"
	: >"tree/lib/modules/$release/kernel/fs/9p/Kconfig"
	bzimage "tree/boot/vmlinuz-$release"
	list_builtin "tree/lib/modules/$release/modules.builtin" "$@"
	deb "$suite" "linux-image-$release" 'kmod, initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool'
}

# parts SUITE RELEASE [MODULE...]: as since 6.19
parts() {
	local suite=$1 release=$2 dir=tree/usr/lib/modules/$2
	shift 2
	deb "$suite" "linux-image-$release" "dracut | linux-initramfs-tool, linux-base-$release (= 1), linux-binary-$release (= 1), linux-modules-$release (= 1)"
	mkdir -p "$dir"
	bzimage "$dir/vmlinuz"
	deb "$suite" "linux-binary-$release" "linux-base-$release (= 1)"
	mkdir -p "$dir/kernel/fs/9p"
	: >"$dir/kernel/fs/9p/Kconfig"
	deb "$suite" "linux-modules-$release" "kmod, linux-base-$release (= 1)"
	mkdir -p "$dir"
	list_builtin "$dir/modules.builtin" "$@"
	deb "$suite" "linux-base-$release" ''
}

record bookworm linux-image-amd64 'linux-image-6.1.0-56-amd64 (= 6.1.192-2)'
whole bookworm 6.1.0-56-amd64
whole bookworm 6.1.0-49-amd64
record bookworm linux-image-rt-amd64 'linux-image-6.1.0-56-rt-amd64 (= 6.1.192-2)'
whole bookworm 6.1.0-56-rt-amd64
record bookworm linux-image-cloud-amd64 'linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)'
whole bookworm 6.1.0-56-cloud-amd64 9p 9pnet_virtio
record trixie-backports linux-image-amd64 'linux-base-amd64 (= 1), linux-image-7.3.4+deb13-amd64 (= 1), linux-modules-amd64 (= 1)'
parts trixie-backports 7.3.4+deb13-amd64
record trixie-backports linux-image-rt-amd64 'linux-base-rt-amd64 (= 1), linux-image-7.3.4+deb13-rt-amd64 (= 1)'
parts trixie-backports 7.3.4+deb13-rt-amd64 virtio_console
parts trixie-backports 7.2.12+deb13-amd64
record trixie linux-image-amd64 'linux-image-6.12.0/../../../x-amd64 (= 1)'
record forky linux-image-amd64 'linux-image-7.2-amd64 (= 1)'
deb forky linux-image-7.2-amd64 'linux-binary-../../x-7.2-amd64 (= 1)'
record sid linux-image-amd64 'linux-base-amd64 (= 1)'

# ---- cases

# ask NAME: sets $status, $said and $dir
ask() {
	: >network
	dir=$("$root/tools/guest-kernel" "$@" 2>said)
	status=$?
	said=$(cat said)
}

taken() { # NAME RELEASE SUITE DOWNLOAD...: of the packages' names, without linux- and release
	local name=$1 release=$2 suite=$3 why='' fetched
	shift 3
	ask "$name"
	[ $status = 0 ] || why="status $status, $(tail -n 1 <<<"$said")"
	[ -n "$why" ] || [ "$(cat "$dir/release")" = "$release" ] || why="release $(cat "$dir/release")"
	[ -n "$why" ] || [ "$(cat "$dir/origin")" = "linux-image-$release from $suite" ] ||
		why="origin $(cat "$dir/origin")"
	[ -n "$why" ] || [ "$(head -c 4 "$dir/vmlinux")" = $'\177ELF' ] || why='no ELF file'
	fetched=$(grep -v update network | sed "s/^linux-//; s/-$release\$//" | sort | paste -sd' ')
	[ -n "$why" ] || [ "$fetched" = "$*" ] || why="fetched $fetched"
	case_of "$name" "$why"
	ask "$name"
	case_of "$name once more, from the cache" "$([ "$status" = 0 ] && [ ! -s network ] || echo "$status, $(cat network)")"
}

# refused NAME WORDS [NETWORK]: where NETWORK is empty it is not asked
refused() {
	ask "$1"
	case_of "$1 is refused" "$([[ $status = 125 && $said == *"$2"* ]] || echo "status $status, $said")"
	case_of "$1 leaves nothing in the cache" \
		"$(find "$cache" -mindepth 1 ! -name 'kernel*' ! -path '*/kernel-*/*' 2>/dev/null | head -n 1)"
	[ -n "${3:-}" ] || case_of "$1 asks no network" "$(head -n 1 network)"
}

for name in nosuch bookworm/nosuch bookworm/ bookworm/rt/x /rt 'bookworm rt' 'bookworm/rt x' 7.3 ../x \
		7.3.4+deb13-i386 '7.3/../x-amd64' -amd64 "6.1.0-$(printf '1%.0s' {1..60})-amd64"; do
	case $name in
	6.1*) refused "$name" 'at most 64 letters' ;;
	-*) refused "$name" Usage: ;;
	*) refused "$name" 'Needed is a file; or a suite' ;;
	esac
done

ask --print trixie-backports/rt
case_of 'only looked for' "$([[ $status = 1 && $dir == "$cache/kernel-trixie-backports-rt."* && ! -s network ]] ||
	echo "status $status, $dir, $(cat network)")"
out=$(VPMU_QEMU=/bin/true "$vpmu" run --kernel trixie-backports/rt --dry-run -- true 2>&1)
case_of 'a dry run fetches nothing' "$([[ $? = 0 && $out == *"kernel is not fetched yet"*"-kernel $cache/kernel-trixie-backports-rt."*/vmlinux* &&
	! -s network && ! -e $cache ]] || echo "$out; $(cat network)")"
mkdir sid
out=$(VPMU_QEMU=/bin/true "$vpmu" run --kernel sid --dry-run -- true 2>&1)
case_of 'a directory is no kernel' "$([[ $out == *"/kernel-sid."* ]] || echo "$out")"
out=$(VPMU_QEMU=/bin/true "$vpmu" run --kernel nosuch --dry-run -- true 2>&1)
case_of 'a dry run of what can be no kernel' "$([[ $? = 125 && $out == *'there is no kernel nosuch'* ]] || echo "$out")"

taken bookworm 6.1.0-56-amd64 bookworm image
taken bookworm/rt 6.1.0-56-rt-amd64 bookworm image
taken 6.1.0-49-amd64 6.1.0-49-amd64 bookworm image
taken trixie-backports 7.3.4+deb13-amd64 trixie-backports base binary image modules
taken 7.2.12+deb13-amd64 7.2.12+deb13-amd64 trixie-backports base binary image modules
taken 6.1.0-56-amd64 6.1.0-56-amd64 bookworm # nothing: the suite's is the same
rm -f lists
ask --print bookworm
# That takes apt most of a second, in each run.
case_of 'apt is not asked for what is cached' "$([ ! -e lists ] || cat lists)"
case_of 'found by --print' "$([[ $status = 0 && -e $dir/vmlinux ]] || echo "$status, $dir")"
case_of 'five are kept' "$([ "$(find "$cache" -maxdepth 1 -type d -name 'kernel-*' | wc -l)" = 5 ] || ls "$cache")"

refused bookworm/cloud 'kernel 6.1.0-56-cloud-amd64 of bookworm cannot be used: it has no 9pnet_virtio 9p, ' network
refused bookworm/cloud 'take --kernel bookworm or bookworm/rt' network
refused trixie-backports/rt 'has no virtio_console, ' network
refused trixie 'depends on is linux-image-6.12.0/../../../x-amd64, ' network
refused forky 'depends on is linux-binary-../../x-7.2-amd64, ' network
refused sid 'no linux-image-amd64 in sid' network
refused 6.99.0-1-amd64 'no suite has linux-image-6.99.0-1-amd64 (could not be reached: bookworm-backports)' network

# ---- without a keyring, on a system that may have one

cure='no keyring of Debian can be read: apt-get install debian-archive-keyring'
# keyless COMMAND...: sets $status and $said
keyless() {
	said=$(unshare -rm sh -c 'mount -t tmpfs none /usr/share/keyrings && "$@"' sh "$@" 2>&1)
	status=$?
}
keyless true
if [ $status = 0 ]; then
	for name in testing 6.99.0-1-amd64; do
		keyless "$root/tools/guest-kernel" "$name"
		case_of "no keyring for $name" "$([[ $status = 125 && $said == *", and $cure."* ]] || echo "$status, $said")"
	done
	keyless "$root/tools/debian" -s testing deb hello debs
	case_of 'no keyring for tools/debian' \
		"$([[ $status = 1 && $said == *"(tried: none), and $cure" ]] || echo "$status, $said")"
else
	echo "skip no keyring: /usr/share/keyrings cannot be hidden: $said"
fi
if [ -r /usr/share/keyrings/debian-archive-keyring.gpg ]; then
	ask testing
	case_of 'a keyring that is there is not missed' "$([[ $status = 125 && $said != *keyring* ]] || echo "$status, $said")"
fi

# ---- headers that want a compiler, and programs for another libc

program() { mkdir -p "$(dirname "tree/$1")" && cp "$(type -P "$2")" "tree/$1"; }
if [ "$(uname -m)" != x86_64 ]; then
	echo "skip toolchain: a compiler of another Debian is for x86_64; this is $(uname -m)"
	# shellcheck disable=SC2154 # of case.sh
	exit "$failed"
fi
headers=tree/usr/src/linux-headers-7.3.4+deb13-amd64
mkdir -p "$headers"
echo 'include /usr/src/linux-headers-7.3.4+deb13-common/Makefile' >"$headers/Makefile"
# shellcheck disable=SC2016 # make's
echo 'CC = $(if $(X),y) $(CROSS_COMPILE)gcc-99' >"$headers/.kernelvariables"
deb trixie-backports linux-headers-7.3.4+deb13-amd64 'gcc-99-for-host, linux-headers-7.3.4+deb13-common (= 1), linux-kbuild-7.3.4+deb13'
mkdir -p tree
deb trixie-backports linux-headers-7.3.4+deb13-common linux-kbuild-7.3.4+deb13
program usr/lib/linux-kbuild-7.3.4+deb13/scripts/basic/fixdep true
program usr/lib/linux-kbuild-7.3.4+deb13/scripts/mod/modpost echo
deb trixie-backports linux-kbuild-7.3.4+deb13 'pahole, libc6 (>= 2.38)'
program usr/bin/x86_64-linux-gnu-gcc-99 echo
deb trixie gcc-99-x86-64-linux-gnu 'cpp-99-x86-64-linux-gnu (= 99), libcc1-0, libgcc-99-dev, libc6 (>= 2.38)'
program usr/libexec/gcc/x86_64-linux-gnu/99/cc1 true
program usr/libexec/gcc/x86_64-linux-gnu/99/collect2 true
deb trixie cpp-99-x86-64-linux-gnu 'libc6 (>= 2.38)'
program usr/bin/x86_64-linux-gnu-as true
program usr/bin/x86_64-linux-gnu-ld.bfd echo
deb trixie binutils-x86-64-linux-gnu 'libc6 (>= 2.38)'
mkdir -p tree/usr/lib/x86_64-linux-gnu
cp -L "$(ldd "$(type -P echo)" | awk '/libc\.so/ { print $3 }')" /lib64/ld-linux-x86-64.so.2 \
	tree/usr/lib/x86_64-linux-gnu/
deb trixie libc6 ''
mkdir -p entry out
echo 7.3.4+deb13-amd64 >entry/release
echo linux-image-7.3.4+deb13-amd64 from trixie-backports >entry/origin
: >network
kdir=$("$root/tools/guest-kernel" --headers out entry 2>said)
case_of 'headers are where they say' "$([[ $? = 0 && $kdir = $work/out/usr/src/linux-headers-7.3.4+deb13-amd64 &&
	$(cat "$kdir/Makefile") = "include $work/out/"* ]] || tail -n 1 said)"
fetched=$(grep -v update network | sed 's/^linux-//; s/-x86-64-linux-gnu$//; s/-7.3.4+deb13.*//' | paste -sd' ')
case_of 'their compiler is fetched' \
	"$([ "$fetched" = 'headers headers kbuild gcc-99 cpp-99 binutils libc6' ] || echo "$fetched")"
gcc=$work/out/toolchain/usr/libexec/gcc/x86_64-linux-gnu/99
case_of 'it runs, and finds its parts' "$([ "$(out/bin/gcc-99 'a b')" = "-B$gcc/ a b" ] || out/bin/gcc-99 x 2>&1)"
case_of 'kbuild runs' "$([ "$(out/usr/lib/linux-kbuild-7.3.4+deb13/scripts/mod/modpost a 'b  c')" = 'a b  c' ] || echo no)"
case_of 'the linker is the other one' "$([ "$(PATH=$PWD/out/bin x86_64-linux-gnu-ld x)" = x ] || echo no)"
# shellcheck disable=SC2154 # of case.sh
exit "$failed"
