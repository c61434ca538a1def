# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# Sourced by tools/guest-kernel, whose apt functions it uses: a compiler of another Debian,
# and what else building a module executes, on a system that cannot execute it. The
# programs are unpacked, and each is replaced by a script that starts it by the loader and
# with the libraries of its own Debian. It takes no privilege.

compiler_of() {		# compiler_of HEADERS: the gcc-N that they name
	sed -n 's/.*)\(gcc-[0-9]*\)$/\1/p' "$1/.kernelvariables" 2>/dev/null | head -n 1
}

# The directory's first program, as an example of those that kbuild executes.
runs_here() {		# runs_here DIR
	local program
	program=$(find "$1" -type f -path '*/basic/fixdep' -print -quit)
	[ -z "$program" ] || ! ldd "$program" 2>&1 | grep -q 'not found'
}

# The libraries among the packages and among what these depend on. Those that programs
# are compiled with are none of them.
libraries_of() {	# libraries_of PACKAGE...
	local todo=("$@") found=' ' name
	while [ ${#todo[@]} -gt 0 ]; do
		name=${todo[0]}
		todo=("${todo[@]:1}")
		case $name in
		*-dev | libcc1-* | *[!a-z0-9.+-]*) continue ;;
		lib* | zlib1g) ;;
		*) continue ;;
		esac
		[[ $found != *" $name "* ]] || continue
		echo "$name"
		found+="$name "
		mapfile -t -O ${#todo[@]} todo < <(depends "$name")
	done
}

# wrap ROOT FILE...: each that is an ELF file becomes a script beside it
wrap() {
	local root=$1 libs loader file
	shift
	libs=$root/usr/lib/x86_64-linux-gnu
	loader=$libs/ld-linux-x86-64.so.2
	[ -x "$loader" ] || loader=$root/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
	libs+=:$root/lib/x86_64-linux-gnu
	for file; do
		[ "$(head -c 4 "$file" | tr -d '\177')" = ELF ] || continue
		mv "$file" "$file.elf"
		# shellcheck disable=SC2016 # in the script
		printf '#!/bin/sh\nexec "%s" --library-path "%s" --argv0 "$0" "%s" "$@"\n' \
			"$loader" "$libs" "$file.elf" >"$file"
		chmod 755 "$file"
	done
}

# prepare_toolchain DIR HEADERS SUITE LIBRARY...: DIR/bin, with what HEADERS need and this
# system lacks; nothing where it has all. The libraries are those of kbuild's programs.
prepare_toolchain() {
	local dir=$1 headers=$2 suite=${3%-backports} root=$1/toolchain
	local compiler v='' packages=() libraries=("${@:4}") deb
	compiler=$(compiler_of "$headers")
	if [ -n "$compiler" ] && ! command -v "$compiler" >/dev/null; then
		v=${compiler#gcc-}
		packages=("gcc-$v-x86-64-linux-gnu" "cpp-$v-x86-64-linux-gnu"
			binutils-x86-64-linux-gnu)
	elif runs_here "$dir/usr/lib"; then
		return
	fi
	open_archive "$suite" "$dir" "$compiler, with which the kernel was built," \
		"install $compiler"
	if [ -n "$v" ]; then
		# Until Debian 12 the native one has no package of its own.
		[ -n "$(record "${packages[0]}")" ] || packages=("gcc-$v" "cpp-$v" "${packages[2]}")
		[ -n "$(record "${packages[0]}")" ] ||
			die "$suite has no $compiler, with which the kernel was built:" \
				"install it, or take another --kernel"
		mapfile -t -O ${#libraries[@]} libraries < <(depends "${packages[1]}"
			depends "${packages[2]}")
	fi
	mapfile -t -O ${#packages[@]} packages < <(libraries_of "${libraries[@]}")
	say "fetching ${v:+$compiler and }libraries from $suite, which this system lacks" \
		"($(megabytes "${packages[@]}") MB)"
	mkdir "$root" "$dir/bin"
	download "$root" "${packages[@]}"
	for deb in "$root"/*.deb; do
		dpkg-deb -x "$deb" "$root"
		rm "$deb"
	done
	wrap_toolchain "$dir" "$v"
}

wrap_toolchain() {	# wrap_toolchain DIR VERSION
	local dir=$1 v=$2 root=$1/toolchain programs name gcc
	mapfile -t programs < <(find "$dir/usr/lib" -type f -perm -100)
	wrap "$root" "${programs[@]}"
	[ -n "$v" ] || return 0
	gcc=$(find "$root/usr" -path "*/gcc/x86_64-linux-gnu/$v/cc1" -printf '%h' -quit)
	[ -n "$gcc" ] || die "there is no cc1 in the packages of gcc-$v (no space left?)"
	wrap "$root" "$gcc"/{cc1,collect2} "$root"/usr/bin/x86_64-linux-gnu-{"gcc-$v",as,ld.bfd}
	# gcc looks for these beside cc1.
	ln -s "$root/usr/bin/x86_64-linux-gnu-as" "$gcc/as"
	ln -s "$root/usr/bin/x86_64-linux-gnu-ld.bfd" "$gcc/ld"
	ln -s "$gcc/as" "$dir/bin/x86_64-linux-gnu-as"
	ln -s "$gcc/ld" "$dir/bin/x86_64-linux-gnu-ld"
	for name in "gcc-$v" "x86_64-linux-gnu-gcc-$v"; do
		# shellcheck disable=SC2016 # in the script
		printf '#!/bin/sh\nexec "%s" -B"%s" "$@"\n' "$root/usr/bin/x86_64-linux-gnu-gcc-$v" \
			"$gcc/" >"$dir/bin/$name"
		chmod 755 "$dir/bin/$name"
	done
}
