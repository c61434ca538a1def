#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1200
# takes: 100
#
# make bundle: unpacked in a directory with a blank in its name, in a root file system that
# has busybox and no library at all, by a user without any right, vpmu and its perf count
# exactly. So they do in an image that buildah makes of the Containerfile, or after its steps where
# there is no buildah, and in the steps of action.yml and of GitLab's component. SOAK=1: programs
# of another C library and of a newer Debian, too.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
work=$(mktemp -d "$TMPDIR/bundle.XXXXXX")
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
if ! bundle=$(XZ_DEFAULTS=-0 "$VPMU_ROOT/tools/bundle" "$work" 2>"$work/log"); then
	echo "not ok bundle: $(tail -n 1 "$work/log")"
	exit 1
fi
echo 'ok bundle'
name=$(basename "$bundle" .tar.xz)
case_of 'a licence for each part' "$(tar -tf "$bundle" | grep -c 'share/doc/vpmu/licenses/.' | sed '/^[1-9][0-9]/d'
	tar -xOf "$bundle" "$name/share/doc/vpmu/SOURCES" | grep -q '^glibc 2' || echo 'SOURCES names no glibc')"
case_of 'a wrapper without the path of this tree' "$(tar -xOf "$bundle" "$name/lib/vpmu/qemu/bin/qemu-system-x86_64" | grep "$VPMU_ROOT")"

# A runner executes action.yml and GitLab's component with it, where nothing can be installed or
# built: that apt-get, git and make fail.
if ! python3 -c 'import yaml' 2>/dev/null; then
	echo 'skip runners: no YAML in Python: apt-get install python3-yaml'
else
	mkdir "$work"/{ci,runner,programs}
	printf '#!/bin/sh\nexit 1\n' | tee "$work"/programs/{apt-get,git,make} >/dev/null
	chmod +x "$work"/programs/*
	printf 'demo: %s\n' "$VPMU_BUILD/examples/demo" >"$work/ci/bench"
	printf '%s\n' '# vpmu bench: demo' '41020005,,instructions:u,0,100.00,,' >"$work/ci/bench.baseline"
	sum=$(sha256sum <"$bundle" | cut -d' ' -f1)
	steps() { # KIND FILE INPUT=VALUE...
		(cd "$work/ci" && unset VPMU_QEMU && PATH=$work/programs:$PATH XDG_CACHE_HOME=$work/cache GITHUB_ACTION_PATH=$VPMU_ROOT \
			GITHUB_STEP_SUMMARY=$work/ci/summary RUNNER_TEMP=$work/runner TMPDIR=$work/runner CI_PROJECT_DIR=$work/ci \
			"$VPMU_ROOT/tests/vm/ci_steps.py" "$@" file=bench) >"$work/log" 2>&1 </dev/null
	}
	steps github "$VPMU_ROOT/action.yml" "bundle=file://$bundle" "sha256=$sum"
	case_of 'action' "$([ $? = 0 ] && grep -q '| demo: instructions:u | 41020005 | 41020005 |' "$work/ci/summary" || cat "$work/log")"
	steps github "$VPMU_ROOT/action.yml" "bundle=../${bundle##*/}" "sha256=${sum//[0-4]/5}"
	status=$?
	case_of 'action, another checksum' "$([ $status = 1 ] && grep -q '/bundle: FAILED$' "$work/log" || cat "$work/log")"
	steps gitlab "$VPMU_ROOT/templates/bench.yml" "bundle=../${bundle##*/}" "sha256=$sum" build=:
	case_of 'component' "$([ $? = 0 ] && grep -q '| demo: instructions:u | 41020005 | 41020005 |' "$work/ci/vpmu.md" || cat "$work/log")"
	rm -rf "$work"/{cache,runner}
fi

busybox=$(command -v busybox)
if [ -z "$busybox" ] || ldd "$busybox" >/dev/null 2>&1; then
	echo 'skip another C library: needed is package busybox-static'
	exit 0
fi
if ! unshare -m true 2>/dev/null; then
	echo 'skip another C library: unshare -m does not work here; it needs root'
	exit 0
fi

# root DIR: what a container has, with busybox for all programs.
root() {
	mkdir -p "$1"/{bin,proc,dev,tmp,work,home,opt,usr/local/bin}
	cp "$busybox" "$1/bin/busybox"
	chroot "$1" /bin/busybox --install -s /bin
	touch "$1"/dev/{null,zero,urandom}
	chmod 1777 "$1/tmp"
	cp "$VPMU_BUILD/examples/demo" "$1/work/app"
	chown -R 65534:65534 "$1/work" "$1/home"
}

# inside DIR COMMAND...: runs it there for a user without rights, who can gain none.
inside() {
	# shellcheck disable=SC2016 # expanded there
	timeout -k 5 250 unshare -m --pid --fork sh -c '
		mount -t proc proc "$1/proc" && for i in null zero urandom; do mount --bind /dev/$i "$1/dev/$i"; done || exit 99
		dir=$1
		shift
		exec setpriv --no-new-privs chroot --userspec=65534:65534 "$dir" /bin/sh -c "
			cd /work && export HOME=/home PATH=/usr/local/bin:/bin && unset VPMU_QEMU XDG_CACHE_HOME && exec \"\$@\"" sh "$@"
		' sh "$@" </dev/null 2>&1
}
counts() { # NAME OUTPUT
	case_of "$1" "$([ "$(grep -c '^41020005,' <<<"$2")" = 1 ] || tail -n 3 <<<"$2" | paste -sd' ')"
}

root "$work/root"
mkdir "$work/root/opt/a b"
tar -C "$work/root/opt/a b" -xf "$bundle"
vpmu="/opt/a b/$name/bin/vpmu"
counting=(perf stat "-x," -e instructions:u ./app)
case_of 'no library' "$(find "$work/root" -path "$work/root/opt" -prune -o -name '*.so*' -print)"
counts 'first run' "$(inside "$work/root" "$vpmu" run -- "${counting[@]}")"
counts 'second run' "$(inside "$work/root" "$vpmu" run -- "${counting[@]}")"
counts 'paravirtual' "$(inside "$work/root" "$vpmu" run --pmu pv -- "${counting[@]}")"
counts 'repeated' "$(inside "$work/root" "$vpmu" run --repeat -- "${counting[@]}")"
out=$(inside "$work/root" "$vpmu" run -- sh -c 'perf record -q -o p -e instructions:u -c 41020 ./app && perf script -i p -F comm | sort | uniq -c')
case_of 'samples' "$([ "$(tr -s ' ' <<<"$out")" = ' 1000 app ' ] || echo "$out")"
out=$(inside "$work/root" "$vpmu" check)
case_of 'vpmu check' "$([[ $out = *'PASS  guest counts'* ]] || echo "$out")"
mv "$work/root/opt/a b" "$work/root/opt/moved"
counts 'moved' "$(inside "$work/root" "/opt/moved/$name/bin/vpmu" run -- "${counting[@]}")"
# A perf that refuses the guest's kernel, as Ubuntu's does, is not found first.
# shellcheck disable=SC2016 # of that script
printf '#!/bin/sh\necho "no perf for $(uname -r)" >&2\nexit 2\n' >"$work/root/bin/perf"
chmod 755 "$work/root/bin/perf"
counts 'instead of a perf that refuses' "$(inside "$work/root" "/opt/moved/$name/bin/vpmu" run -- "${counting[@]}")"
rm -rf "$work/root"

# The image.
root "$work/image"
step() { sed -n "s/^$1 //p" "$VPMU_ROOT/Containerfile"; }
in_image() { # COMMAND...: its entry with these
	inside "$work/image" "$(step ENTRYPOINT | tr -d '[]"')" "$@"
}
if command -v buildah >/dev/null; then
	image=(buildah --root "$work/store" --runroot "$work/store-run" --storage-driver vfs)
	container=$("${image[@]}" from scratch) && {
		"${image[@]}" copy "$container" "$work/image" / && "${image[@]}" commit "$container" localhost/base
		"${image[@]}" bud --isolation chroot --build-arg BASE=localhost/base --build-arg "BUNDLE=$name.tar.xz" \
			--network host -t vpmu -f "$VPMU_ROOT/Containerfile" "$work"
	} &>"$work/log"
	container=$("${image[@]}" from localhost/vpmu 2>>"$work/log")
	case_of 'an image is built' "$([ -n "$container" ] || tail -n 1 "$work/log")"
	entry=$("${image[@]}" inspect --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.WorkingDir}}' "$container")
	case_of 'its entry and its directory' "$([ "$entry" = '[vpmu] /work' ] || echo "$entry")"
	in_image() {
		timeout -k 5 250 "${image[@]}" run --isolation chroot --user 65534:65534 --cap-drop all -e HOME=/home \
			-v "$work/image/work:/work" "$container" -- vpmu "$@" </dev/null 2>&1
	}
else
	echo 'skip an image is built: needed is package buildah'
	add=$(step ADD)
	tar -C "$work/image/${add##* }" -xf "$bundle"
	chroot "$work/image" /bin/sh -c "$(step RUN)"
fi
counts 'an image counts' "$(in_image run -- "${counting[@]}")"
rm -rf "$work/image" "$work"/store*
[ -n "${SOAK:-}" ] || exit 0

# packages SUITE NAME...: unpacked in $work/SUITE
packages() {
	mkdir "$work/$1" && "$VPMU_ROOT/tools/guest-kernel" --unpack "$work/$1" "$@" 2>"$work/log"
}

# musl's loader and library, and a program for them.
if packages bookworm musl musl-dev; then
	root "$work/musl"
	mkdir "$work/musl/lib"
	cp "$work/bookworm/lib/x86_64-linux-musl/libc.so" "$work/musl/lib/ld-musl-x86_64.so.1" 2>/dev/null ||
		cp "$work/bookworm/usr/lib/x86_64-linux-musl/libc.so" "$work/musl/lib/ld-musl-x86_64.so.1"
	lib=$work/bookworm/usr/lib/x86_64-linux-musl
	cat >"$work/app.c" <<-'END'
	#include <stdio.h>
	int main(void)
	{
		unsigned turns = 1000000;

		__asm__ volatile("0: dec %0; jnz 0b" : "+r"(turns));
		return printf("%u\n", turns) < 0;
	}
	END
	gcc -O1 -nostdinc -isystem "$work/bookworm/usr/include/x86_64-linux-musl" -nostdlib -no-pie \
		-Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1 -o "$work/musl/work/app" \
		"$lib/crt1.o" "$lib/crti.o" "$work/app.c" -L"$lib" -lc "$lib/crtn.o" ||
		echo 'not ok programs: the one for musl does not compile'
	tar -C "$work/musl/opt" -xf "$bundle"
	musl() { inside "$work/musl" "/opt/$name/bin/vpmu" run --repeat -- perf stat -x, -e instructions:u ./app; }
	first=$(musl) second=$(musl)
	case_of "musl's program" "$([[ $first =~ ^0.(200[0-9]{4}), ]] && [ "$first" = "$second" ] || echo "$first; $second")"
	rm -rf "$work/musl"
else
	echo "skip musl: $(tail -n 1 "$work/log")"
fi

# Debian 13's library and Python.
if packages trixie libc6 python3.13-minimal libpython3.13-minimal zlib1g libexpat1 util-linux; then
	root "$work/newer"
	cp -a "$work/trixie/." "$work/newer/"
	for i in lib lib64; do [ -e "$work/newer/$i" ] || ln -s usr/$i "$work/newer/$i"; done
	tar -C "$work/newer/opt" -xf "$bundle"
	cat >"$work/newer/work/app.py" <<-'END'
	def other(n):
	    return sum(range(n))
	def turn(n):
	    total = 0
	    for i in range(n):
	        total ^= i
	    return total
	other(200000)
	turn(50000)
	END
	echo 'python: /usr/bin/python3.13 app.py' >"$work/newer/work/file"
	bench() { inside "$work/newer" "/opt/$name/bin/vpmu" bench "$@" file; }
	bench --update --functions >"$work/log"
	case_of "a newer Debian's Python" "$(grep -q ' _PyEval_EvalFrameDefault (-)' "$work/newer/work/file.functions" || cat "$work/log")"
	sed -i 's/total ^= i/total ^= i; total += 1/' "$work/newer/work/app.py"
	out=$(bench)
	case_of 'its function that grew' "$([[ $out = *'grew     python: instructions:u: _PyEval_EvalFrameDefault, by'* ]] || echo "$out")"
else
	echo "skip a newer Debian: $(tail -n 1 "$work/log")"
fi
exit 0
