#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
# timeout: 600
# shellcheck disable=SC2016 # $ is for the guest
#
# A guest of vpmu run reaches only the caller's files on its host, and nothing of the
# host's kernel, even as a root of the guest that gets at the host's root below its own
# mounts.
set -uo pipefail
# shellcheck source=tests/vm/guest.sh
. "$(dirname "$0")/guest.sh"
vpmu=$VPMU_BUILD/vpmu
work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
id=4321
export SECRET=of-the-host-$$

# A mount in the guest covers it; it is visible at /mnt. HOST: a process of the caller's.
seen='mount --bind / /mnt || exit 1
read_host() { dd if="/mnt$1" iflag=direct bs=4096 count=8 status=none 2>/dev/null | tr "\0" "\n"; }
for pid in $HOST $(readlink /mnt/proc/self); do
	read_host /proc/$pid/environ | grep "^SECRET="
	read_host /proc/$pid/maps | head -n 1
	read_host /proc/$pid/cmdline | head -n 1
done
read_host /sys/kernel/uevent_seqnum
cat /mnt/proc/version /mnt/sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null
ls /mnt/proc /mnt/sys /mnt/dev/pts /mnt/sys/fs/cgroup 2>/dev/null
echo end'

# as_root, as_user COMMAND...: on the host
as_root() { "$@"; }
as_user() { setpriv --reuid="$id" --regid="$id" --clear-groups "$@"; }

# guest WHO OPTION... -- COMMAND...
guest() {
	local who=$1
	shift
	HOME=$work/$who "$who" timeout -k 5 120 "$vpmu" run "$@" 2>&1
}
same() { case_of "$1" "$([ "$2" = "$3" ] || echo "found '$(head -c 300 <<<"$2" | paste -sd' ')'")"; }

users=(as_root)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/vpmu
mkdir as_root as_user
unset XDG_CACHE_HOME
if [ "$(id -u)" = 0 ] && as_user test -x "$vpmu" -a -x "$work"; then
	users+=(as_user)
	cp -aL "$VPMU_QEMU" qemu
	chmod -R a+rX,go-w qemu
	export VPMU_QEMU=$work/qemu
else
	echo "skip as_user: it takes root, and a build that user $id can reach"
fi
for who in "${users[@]}"; do
	mkdir -p "$who/.cache/vpmu" "$who/w"
	cp -a "$cache"/kernel-* "$who/.cache/vpmu/"
	echo home >"$who/file"
done
chown -R "$id:$id" as_user 2>/dev/null

for who in "${users[@]}"; do
	out=$(cd "$who/w" && export HOST=$BASHPID && exec 3< <(guest "$who" --root -- sh -c "$seen") && cat <&3)
	same "$who: nothing of the host's kernel" "$out" end
	out=$(cd "$who/w" && guest "$who" -- sh -c 'echo x >f && cat f ../file && ls -d /usr/bin/env /proc/self /sys/kernel &&
		test -w /dev/null && touch /tmp/t /run 2>/dev/null; ls /tmp/t')
	same "$who: its own files" "$out" $'x\nhome\n/proc/self\n/sys/kernel\n/usr/bin/env\n/tmp/t'
	same "$who: written" "$(cat "$who/w/f" 2>&1)" x
done

# QEMU's own filter, in a guest that boots and in one from its snapshot.
for how in 1 0; do
	HOME=$work/as_root VPMU_SNAPSHOT=$how "$vpmu" run -- sh -c 'echo ready; sleep 100' >ready &
	pid=$!
	for ((i = 0; i < 600; i++)); do grep -qs ready ready && break; sleep 0.1; done
	qemu=$(pgrep -P "$pid")
	same "seccomp, VPMU_SNAPSHOT=$how" "$(sed -n 's/^Seccomp:\t//p; s/^NoNewPrivs:\t/nnp /p' "/proc/$qemu/status" | paste -sd' ')" 'nnp 1 2'
	kill "$pid"
	wait "$pid" 2>/dev/null
	rm -f ready
done

# File systems of the user's below "/" stay; one of the kernel's there does not.
if unshare -m true 2>/dev/null; then
	out=$(HOME=$work/as_root unshare -m sh -c '
		mkdir -p sub/tmp sub/tmp2 sub/proc chroot/proc && mount -t tmpfs none sub/tmp && mount -t tmpfs none /mnt &&
		mount -t proc none sub/proc && mount -t proc none chroot/proc && echo one >sub/tmp/f && echo two >/mnt/f &&
		cd sub/tmp && "$0" run -- sh -c "cat f /mnt/f; echo made >made; ls ../proc/1 2>&1 | grep -c denied" && cat made &&
		cd ../../chroot && "$0" run -- sh -c "touch here; cat proc/version 2>&1 | grep -c denied"' "$vpmu" 2>&1)
	same 'mounts below the root' "$out" $'one\ntwo\n1\nmade\n1'
else
	echo 'skip mounts below the root: unshare -m is not permitted here'
fi

# A directory above that can be searched and not read.
if [ ${#users[@]} = 2 ]; then
	mkdir -p closed/open/w closed/open/other
	echo there >closed/open/other/file
	chown -R "$id:$id" closed/open/w
	chmod 711 closed closed/open
	out=$(cd closed/open/w && guest as_user -- sh -c 'pwd; echo x >f; cat ../other/file; ls .. 2>&1 | grep -c denied')
	same 'a parent of mode 0711' "$out" "$work/closed/open/w"$'\nthere\n1'
	same 'a parent of mode 0711: written' "$(cat closed/open/w/f 2>&1)" x
fi
# A root of the guest takes the control channel from its init, and says what is not so.
cat >liar.py <<'END'
import ctypes, glob, os, struct, sys, time
port = [os.path.basename(os.path.dirname(n)) for n in glob.glob("/sys/class/virtio-ports/*/name")
        if open(n).read() == "vpmu.control\n"][0]
fd = [int(f) for f in os.listdir("/proc/1/fd") if os.readlink("/proc/1/fd/" + f).endswith("/" + port)][0]
call = ctypes.CDLL(None).syscall
fd = call(438, call(434, 1, 0), fd, 0)  # pidfd_getfd of pidfd_open
what = {
    "length": struct.pack("=II", 6, 0xffffffff),
    "bytes": struct.pack("=IIiIQQQQ", 8, 40, 0, 0, 1 << 40, 0, 0, 0),
    "again": struct.pack("=II", 2, 0) * 3 + struct.pack("=IIiIQQQQ", 8, 40, 7 << 8, 0, 0, 0, 0, 0) * 2,
}[sys.argv[1]]
os.write(fd, what)
time.sleep(1000)
END
for how in 'length:125:announced a message of 4294967295 bytes' \
	'bytes:125:of 1099511627776 bytes of standard output' 'again:7:'; do
	IFS=: read -r what status words <<<"$how"
	out=$(guest as_root --root -- python3 liar.py "$what" </dev/null)
	rc=$?
	case_of "a hostile init: $what" "$([[ $rc = "$status" && $out == *"$words"* ]] || echo "status $rc, $out")"
done
# shellcheck disable=SC2154 # of case.sh
exit "$failed"
