#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 180
#
# The files of make install are enough for a program in C and in C++: headers, pkg-config,
# CMake's find_package, the shared library under its version, which exports what the headers declare and nothing
# else, and the manual of each public function.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
build=${VPMU_BUILD:-$PWD/build}
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT

if ! DESTDIR=$dest meson install -C "$build" --no-rebuild --quiet >"$dest/log" 2>&1; then
	echo "not ok install: $(tail -n 1 "$dest/log")"
	exit 1
fi
pc=$(find "$dest" -name vpmu.pc)
lib=$(dirname "$(find "$dest" -name 'libvpmu.so.0')")
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$dest LD_LIBRARY_PATH=$lib
version=$("$build/vpmu" --version | cut -d' ' -f2)
case_of version "$([ "$(pkg-config --modversion vpmu)" = "$version" ] || pkg-config --modversion vpmu)"
case_of 'shared library' "$([[ $(readelf -d "$lib/libvpmu.so.$version") == *'soname: [libvpmu.so.0]'* ]] ||
	echo 'no SONAME of libvpmu.so.0')"

# Pre-processed, so that macros and comments are gone; defined there is not declared.
declared() {
	local header
	for header in include/vpmu/*.h; do
		cc -std=c11 -E -P -Iinclude "$header"
	done | tr '\n' ' ' | sed -E 's,\<(enum|struct) vpmu_[a-z0-9_]+,x,g' | sed 's/[;{}]/\n/g' | grep -vE '\<static\>|\<typedef\>' |
		grep -oE '^ *extern .*\<vpmu_[a-z0-9_]+|^ *[A-Za-z_][A-Za-z0-9_ ]*[ *]vpmu_[a-z0-9_]+ *[(]' |
		sed 's/ *(*$//; s/.*[ *]//' | sort -u
}
case_of 'exported symbols' "$(diff <(declared) <(nm -D --defined-only "$lib/libvpmu.so.0" |
	awk '{ print $3 }' | sed 's/@.*//' | grep -vx VPMU_0 | sort -u) | grep '^[<>]' | head -n 5 | paste -sd' ')"
case_of 'versioned symbols' "$(nm -D --defined-only "$lib/libvpmu.so.0" | grep vpmu_ | grep -v '@@VPMU_0' | head -n 1)"

# The example alone, as docs/EMBEDDING.md says.
read -ra flags < <(pkg-config --cflags --libs vpmu)
cp examples/embed.c "$dest/"
case_of 'embed.c compiles' "$(cc -std=c11 -Wall -Wextra -Werror "$dest/embed.c" -o "$dest/embed" "${flags[@]}" 2>&1 | head -n 3)"
case_of 'embed.c is linked with the library' "$([[ $(ldd "$dest/embed") == *'libvpmu.so.0 => '* ]] || ldd "$dest/embed" | paste -sd' ')"
case_of 'embed.c runs' "$([ "$("$dest/embed" | tail -n 1)" = 'counter 0: 1500' ] || "$dest/embed" 2>&1 | tail -n 1)"

# The other example needs the source tree's engine, as that page says, and no other file of it.
cp examples/share.c "$dest/"
share() { cc -std=c11 -D_GNU_SOURCE -Wall -Werror "$dest/share.c" "$@" -o "$dest/share" "${flags[@]}" 2>&1 | head -n 3; }
case_of 'share.c needs an engine' "$([[ $(share) == *'script.h: No such file'* ]] || echo 'it compiles without one')"
case_of 'share.c compiles' "$(share -Ihost/script host/script/script.c)"
case_of 'share.c runs' "$(diff <("$dest/share" 2>&1) <(sed -n '/^alone: count/,/^```/p' docs/EMBEDDING.md | grep -v '^`') | head -n 3)"

# A VMM on KVM, as docs/VMM.md says.
read -ra kvm < <(pkg-config --cflags --libs vpmu-kvm)
cp examples/kvm-doorbell.c "$dest/"
case_of 'kvm-doorbell.c compiles' "$(cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "$dest/kvm-doorbell.c" -o "$dest/kvm-doorbell" "${kvm[@]}" 2>&1 | head -n 3)"

# CMake builds the same programs.
if command -v cmake >/dev/null; then
	mkdir "$dest/cmake"
	cat >"$dest/cmake/CMakeLists.txt" <<-END
	cmake_minimum_required(VERSION 3.12)
	project(test C)
	find_package(vpmu ${version%.*} REQUIRED)
	add_executable(embed $dest/embed.c)
	target_link_libraries(embed vpmu::vpmu)
	add_executable(kvm-doorbell $dest/kvm-doorbell.c)
	target_compile_definitions(kvm-doorbell PRIVATE _GNU_SOURCE)
	target_link_libraries(kvm-doorbell vpmu::vpmu-kvm)
	END
	by_cmake() {
		rm -rf "$dest/cmake/build"
		cmake -S "$dest/cmake" -B "$dest/cmake/build" -Dvpmu_DIR="$lib/cmake/vpmu" &&
			cmake --build "$dest/cmake/build"
	}
	case_of 'by CMake' "$(by_cmake >"$dest/log" 2>&1 || grep -m 1 -A 3 -i error "$dest/log" | paste -sd' ')"
	case_of 'embed.c runs, by CMake' "$([ "$("$dest/cmake/build/embed" | tail -n 1)" = 'counter 0: 1500' ] || echo no)"
	for wrong in 9.0 0.0; do
		sed -i "s/vpmu [0-9.]* REQ/vpmu $wrong REQ/" "$dest/cmake/CMakeLists.txt"
		case_of "CMake does not take it for $wrong" "$(by_cmake >"$dest/log" 2>&1 && echo taken)"
	done
else
	echo 'skip by CMake: not installed'
fi

cat >"$dest/prog.cc" <<'END'
#include <iostream>
#include <string>
#include <vpmu/vpmu.hpp>

int main()
{
	const vpmu_model *model = vpmu_model_find(VPMU_VENDOR_INTEL, 6, 106);
	const vpmu_event_def *event = vpmu_event_find(model, 0xc0, -1);
	std::cout << std::string(model->name) << " " << event->name << "\n";
}
END
case_of 'C++ compiles' "$(c++ -std=c++17 -Wall -Wextra -Werror "$dest/prog.cc" -o "$dest/prog" "${flags[@]}" 2>&1 | head -n 3)"
case_of 'C++ runs' "$([ "$("$dest/prog")" = 'icelake-server INST_RETIRED.ANY_P' ] || "$dest/prog" 2>&1)"

missing=$(declared | grep -vE '_ops$|^vpmu_arch_event$|^vpmu_lbr_(select|ctl)$' | while read -r name; do
	grep -qrE "^vpmu_.*\\b$name\\b.*[\\]- " "$dest"/*/*/share/man/man3 || echo "$name"
done | head -n 3)
case_of 'a page for each function' "$missing"
for file in bash-completion/completions/vpmu zsh/site-functions/_vpmu fish/vendor_completions.d/vpmu.fish; do
	case_of "$file" "$([ -n "$(find "$dest" -path "*/share/$file")" ] || echo missing)"
done
