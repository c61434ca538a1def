#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1200
# takes: 150
#
# make bundle: unpacked in a directory with a blank in its name, in a root file system that
# has busybox and no library at all, by a user without any right, vpmu and its perf count
# exactly, and give a guest a network and KVM without modprobe. They count in a user namespace, in a
# root like NixOS's, after docs/BUNDLE.md's commands on this machine, in an image of the
# Containerfile, or after its steps where there is no podman, and in the steps of action.yml and of
# GitLab's component. SOAK=1: programs of another C library and of a newer Debian, too. Lines that
# begin with "times" are for that page's table.
set -uo pipefail
# shellcheck disable=SC1091 # beside this file
. "$(dirname "$(readlink -f "$0")")/guest.sh"
# shellcheck source-path=SCRIPTDIR source=../documents.sh
. "$VPMU_ROOT/tests/documents.sh"
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
	grep -q '^glibc 2' < <(tar -xOf "$bundle" "$name/share/doc/vpmu/SOURCES") || echo 'SOURCES names no glibc')"
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
	case_of 'action' "$([ $? = 0 ] && grep -q '| demo: instructions:u | 41020005 | 41020005 |' "$work/ci/summary" || shown "$work/log")"
	steps github "$VPMU_ROOT/action.yml" "bundle=../${bundle##*/}" "sha256=${sum//[0-4]/5}"
	status=$?
	case_of 'action, another checksum' "$([ $status = 1 ] && grep -q '/bundle: FAILED$' "$work/log" || shown "$work/log")"
	steps gitlab "$VPMU_ROOT/templates/bench.yml" "bundle=../${bundle##*/}" "sha256=$sum" build=:
	case_of 'component' "$([ $? = 0 ] && grep -q '| demo: instructions:u | 41020005 | 41020005 |' "$work/ci/vpmu.md" || shown "$work/log")"
	rm -rf "$work"/{cache,runner}
fi

counts() { # NAME OUTPUT
	case_of "$1" "$([ "$(grep -cE '^ *41020005(,| )' <<<"$2")" = 1 ] || tail -n 3 <<<"$2" | paste -sd' ')"
}
tenths() { echo $((${EPOCHREALTIME/[.,]/} / 100000)); }
since() { # TENTHS: "N.N s" later
	local n=$(($(tenths) - $1))
	echo "$((n / 10)).$((n % 10)) s"
}

# Type the page's commands, except for those that make the bundle and the image.
mkdir -p "$work"/typed/{work,home}
cp "$bundle" "$work/typed/work/"
cp "$VPMU_BUILD/examples/demo" "$work/typed/work/your-program"
drop=()
if [ "$(id -u)" = 0 ]; then
	chown -R 65534:65534 "$work/typed"
	drop=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)
fi
times='times: this Debian'
typed() {
	local start
	start=$(tenths)
	out=$(cd "$work/typed/work" && timeout -k 5 250 "${drop[@]}" env -i HOME="$work/typed/home" \
		PATH=/usr/bin:/bin bash -c "$1" 2>&1 </dev/null) ||
		out="status $?: $out"
	times+=", $(since "$start")"
}
while IFS= read -r line; do
	case $line in
	make* | podman*) ;;
	tar*)
		typed "$line"
		case_of "\$ $line" "$out"
		;;
	*)
		typed "$line"
		counts "\$ $line" "$out"
		typed "$line"
		;;
	esac
done < <(cd "$VPMU_ROOT" && commands docs/BUNDLE.md)
echo "$times"
rm -rf "$work/typed"

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
	mkdir -p "$1"/{bin,usr/local/bin}
	cp "$busybox" "$1/bin/busybox"
	chroot "$1" /bin/busybox --install -s /bin
	common "$1" "$VPMU_BUILD/examples/demo"
}
common() { # DIR PROGRAM
	mkdir -p "$1"/{proc,dev,tmp,work,home,opt}
	touch "$1"/dev/{null,zero,urandom}
	chmod 1777 "$1/tmp"
	cp "$2" "$1/work/app"
	chown -R 65534:65534 "$1/work" "$1/home"
}

# inside DIR COMMAND...: runs it there for a user without rights, who can gain none.
nobody='chroot --userspec=65534:65534' path=/usr/local/bin:/bin
inside() {
	# shellcheck disable=SC2016 # expanded there
	BY=$nobody PATH_THERE=$path timeout -k 5 250 unshare -m --pid --fork sh -c '
		mount -t proc proc "$1/proc" && for i in null zero urandom; do mount --bind /dev/$i "$1/dev/$i"; done || exit 99
		dir=$1
		shift
		exec setpriv --no-new-privs $BY "$dir" /bin/sh -c "
			cd /work && export HOME=/home PATH=\$PATH_THERE && unset VPMU_QEMU XDG_CACHE_HOME && exec \"\$@\"" sh "$@"
		' sh "$@" </dev/null 2>&1
}
counting=(perf stat "-x," -e instructions:u ./app)

# begun NAME DIR BUNDLE COMMAND...: from nothing to what the command prints.
begun() {
	local row="times: $1" dir=$2 vpmu=$3/$name/bin/vpmu start
	start=$(tenths)
	tar -C "$dir$3" -xf "$bundle"
	row+=", $(since "$start")"
	shift 3
	for run in 1 2; do
		start=$(tenths)
		inside "$dir" "$vpmu" run -- "$@" >"$work/out$run"
		row+=", $(since "$start")"
	done
	echo "$row"
}

root "$work/root"
mkdir "$work/root/opt/a b"
vpmu="/opt/a b/$name/bin/vpmu"
begun 'no library' "$work/root" '/opt/a b' "${counting[@]}"
case_of 'no library' "$(find "$work/root" -path "$work/root/opt" -prune -o -name '*.so*' -print)"
counts 'first run' "$(cat "$work/out1")"
counts 'second run' "$(cat "$work/out2")"
counts 'paravirtual' "$(inside "$work/root" "$vpmu" run --pmu pv -- "${counting[@]}")"
counts 'repeated' "$(inside "$work/root" "$vpmu" run --repeat -- "${counting[@]}")"
out=$(inside "$work/root" "$vpmu" run -- sh -c 'perf record -q -o p -e instructions:u -c 41020 ./app && perf script -i p -F comm | sort | uniq -c')
case_of 'samples' "$([ "$(tr -s ' ' <<<"$out")" = ' 1000 app ' ] || echo "$out")"
out=$(inside "$work/root" "$vpmu" check)
case_of 'vpmu check' "$([[ $out = *'PASS  guest counts'* ]] || echo "$out")"

# There is no modprobe for the modules of these two.
case_of 'no modprobe' "$(ls "$work/root/sbin" "$work/root/usr/sbin" 2>/dev/null)"
timeout 300 python3 -c 'import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
s.accept()[0].sendall(b"from the host\n")' >"$work/port" &
server=$!
until [ -s "$work/port" ] || ! kill -0 $server; do sleep 0.1; done 2>/dev/null
out=$(inside "$work/root" "$vpmu" run --network -- nc 10.0.2.2 "$(cat "$work/port")")
case_of 'network' "$([ "$out" = 'from the host' ] || echo "$out")"
kill $server 2>/dev/null
for cpu in SapphireRapids EPYC-Genoa; do
	out=$(inside "$work/root" "$vpmu" run --nested --cpu $cpu -- vpmu run --accel kvm -- cat /proc/version)
	case_of "a guest of a guest, $cpu" "$([[ $out = 'Linux version '* ]] || echo "$out")"
done

mv "$work/root/opt/a b" "$work/root/opt/moved"
counts 'moved' "$(inside "$work/root" "/opt/moved/$name/bin/vpmu" run -- "${counting[@]}")"
# A perf that refuses the guest's kernel, as Ubuntu's does, is not found first.
# shellcheck disable=SC2016 # of that script
printf '#!/bin/sh\necho "no perf for $(uname -r)" >&2\nexit 2\n' >"$work/root/bin/perf"
chmod 755 "$work/root/bin/perf"
counts 'instead of a perf that refuses' "$(inside "$work/root" "/opt/moved/$name/bin/vpmu" run -- "${counting[@]}")"
rm -rf "$work/root"

# As in a container of a user without rights, who is root there.
if setpriv --reuid 65534 --regid 65534 --clear-groups unshare -r true 2>"$work/log"; then
	root "$work/rootless"
	nobody='--reuid 65534 --regid 65534 --clear-groups unshare -r chroot' begun 'user namespace' "$work/rootless" /opt "${counting[@]}"
	counts 'user namespace' "$(cat "$work/out1")"
	rm -rf "$work/rootless"
else
	echo "skip user namespace: $(tail -n 1 "$work/log")"
fi

# A program that a C library runs: two million instructions, and those of the library.
cat >"$work/turns.c" <<'END'
#include <stdio.h>
int main(void)
{
	unsigned turns = 1000000;

	__asm__ volatile("0: dec %0; jnz 0b" : "+r"(turns));
	return printf("%u\n", turns) < 0;
}
END

# This root is like NixOS's: it has no /lib64, /bin has only sh, programs and their loader are
# in the store, and PATH goes through a link in /run.
store=/nix/store/0123456789abcdfghijklmnpqrsvwxyz
mkdir -p "$work/nix"{/bin,/usr/bin,/run,"$store"-{glibc/lib,busybox/bin,system}}
cp "$busybox" "$work/nix$store-busybox/bin/"
chroot "$work/nix" "$store-busybox/bin/busybox" --install -s "$store-busybox/bin"
ln -s "$store-busybox/bin/sh" "$work/nix/bin/sh"
ln -s "$store-busybox/bin/env" "$work/nix/usr/bin/env"
ln -s "$store-busybox" "$work/nix$store-system/sw"
ln -s "$store-system" "$work/nix/run/current-system"
cp -L /lib64/ld-linux-x86-64.so.2 "$(ldd "$BASH" | sed -n 's/.*libc.so.6 => \([^ ]*\) .*/\1/p')" "$work/nix$store-glibc/lib/"
gcc -O1 -no-pie -Wl,-dynamic-linker,$store-glibc/lib/ld-linux-x86-64.so.2,-rpath,$store-glibc/lib \
	-o "$work/app" "$work/turns.c" || echo 'not ok programs: the one for NixOS does not compile'
common "$work/nix" "$work/app"
path=/run/current-system/sw/bin begun 'like NixOS' "$work/nix" /opt sh -c 'perf stat -x, -e instructions:u ./app'
case_of 'like NixOS' "$([[ $(cat "$work/out2") =~ ^0.2[01][0-9]{5}, ]] || tail -n 3 "$work/out2" | paste -sd' ')"
rm -rf "$work/nix"

# The image: the page's commands, on a base of that name that has no library.
root "$work/image"
step() { sed -n "s/^$1 //p" "$VPMU_ROOT/Containerfile"; }
in_image() { # COMMAND...: its entry with these
	inside "$work/image" "$(step ENTRYPOINT | tr -d '[]"')" "$@"
}
page() { (cd "$VPMU_ROOT" && commands docs/BUNDLE.md) | grep "^podman $1"; }
if command -v podman >/dev/null && command -v buildah >/dev/null; then
	export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf BUILDAH_ISOLATION=chroot
	printf '[containers]\nnetns = "host"\n' >"$CONTAINERS_CONF"
	printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$work"/store{,-run} >"$CONTAINERS_STORAGE_CONF"
	mkdir -p "$work/tree/build/bundle"
	cp "$VPMU_ROOT/Containerfile" "$work/tree/"
	cp "$bundle" "$work/tree/build/bundle/"
	printf 'FROM scratch\nCOPY . /\n' >"$work/base"
	base=$(step ARG | sed -n 's/^BASE=//p')
	podman build -q -t "$base" -f "$work/base" "$work/image" &>"$work/log"
	start=$(tenths)
	(cd "$work/tree" && timeout -k 5 250 bash -c "$(page build)") &>"$work/log"
	times="times: image, $(since "$start")"
	container=$(buildah from localhost/vpmu 2>>"$work/log")
	case_of "\$ $(page build)" "$([ -n "$container" ] || tail -n 1 "$work/log")"
	entry=$(buildah inspect --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.WorkingDir}}' "$container")
	case_of 'its entry and its directory' "$([ "$entry" = '[vpmu] /work' ] || echo "$entry")"
	if podman run --rm "$base" true &>"$work/log"; then
		counts "\$ $(page run)" "$(cd "$work/image/work" && timeout -k 5 250 bash -c "$(page run)" 2>&1 </dev/null)"
	else
		echo "skip \$ $(page run): podman: $(tail -n 1 "$work/log")"
	fi
	in_image() {
		timeout -k 5 250 buildah run --isolation chroot --user 65534:65534 --cap-drop all -e HOME=/home \
			-v "$work/image/work:/work" "$container" -- vpmu "$@" </dev/null 2>&1
	}
else
	echo 'skip an image is built: needed are packages podman and buildah'
	add=$(step ADD)
	start=$(tenths)
	tar -C "$work/image/${add##* }" -xf "$bundle"
	chroot "$work/image" /bin/sh -c "$(step RUN)"
	times="times: image, $(since "$start")"
fi
for run in 1 2; do
	start=$(tenths)
	in_image run -- "${counting[@]}" >"$work/out$run"
	times+=", $(since "$start")"
done
echo "$times"
counts 'an image counts' "$(cat "$work/out1")"
rm -rf "$work/image" "$work"/store* "$work/tree"
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
	gcc -O1 -nostdinc -isystem "$work/bookworm/usr/include/x86_64-linux-musl" -nostdlib -no-pie \
		-Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1 -o "$work/musl/app" \
		"$lib/crt1.o" "$lib/crti.o" "$work/turns.c" -L"$lib" -lc "$lib/crtn.o" ||
		echo 'not ok programs: the one for musl does not compile'
	common "$work/musl" "$work/musl/app"
	begun musl "$work/musl" /opt perf stat -x, -e instructions:u ./app
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
	begun 'Debian 13' "$work/newer" /opt perf stat -x, -e instructions:u /usr/bin/python3.13 -c 'print(1)'
	case_of 'Debian 13' "$([[ $(cat "$work/out1") =~ ^1.[0-9]{7,}, ]] || tail -n 3 "$work/out1" | paste -sd' ')"
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
	case_of "a newer Debian's Python" "$(grep -q ' _PyEval_EvalFrameDefault (-)' "$work/newer/work/file.functions" || shown "$work/log")"
	sed -i 's/total ^= i/total ^= i; total += 1/' "$work/newer/work/app.py"
	out=$(bench)
	case_of 'its function that grew' "$([[ $out = *'grew     python: instructions:u: _PyEval_EvalFrameDefault, by'* ]] || echo "$out")"
else
	echo "skip a newer Debian: $(tail -n 1 "$work/log")"
fi
exit 0
