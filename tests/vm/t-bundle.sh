#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 1200
# takes: 100
#
# make bundle: unpacked in a directory with a blank in its name, in a root file system that
# has busybox and no library at all, by a user without any right, vpmu and its perf count
# exactly. So they do after the steps of the Containerfile.
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

# The image: its steps, as a builder takes them.
root "$work/image"
step() { sed -n "s/^$1 //p" "$VPMU_ROOT/Containerfile"; }
add=$(step ADD)
# shellcheck disable=SC2016 # as it is written there
case_of 'an image adds the bundle' "$([ "${add% *}" = '$BUNDLE' ] || echo "$add")"
tar -C "$work/image/${add##* }" -xf "$bundle"
chroot "$work/image" /bin/sh -c "$(step RUN)"
entry=$(step ENTRYPOINT | tr -d '[]"')
case_of 'an image has its directory' "$([ "$(step WORKDIR)" = /work ] || step WORKDIR)"
counts 'an image counts' "$(inside "$work/image" "$entry" run -- "${counting[@]}")"
exit 0
