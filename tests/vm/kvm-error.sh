#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# On a machine with /dev/kvm, or in an L1: vpmu run ends when KVM gives up on its guest,
# and says so. The guest's kernel is build/bare/astray.
set -uo pipefail
cat >qemu-astray <<END
#!/bin/bash
args=("\$@")
for i in "\${!args[@]}"; do
	[ "\${args[i]}" != -kernel ] || args[i + 1]=$VPMU_BUILD/bare/astray
done
exec "$VPMU_QEMU/bin/qemu-system-x86_64" "\${args[@]}"
END
chmod 755 qemu-astray
out=$(VPMU_QEMU=$PWD/qemu-astray timeout -k 5 120 "$VPMU_BUILD/vpmu" run --accel kvm \
	--cpu qemu64 --pmu none --kernel "${1:-bookworm}" -- true 2>&1)
status=$?
if [ $status = 125 ] && [[ $out == *'run state is internal-error'*'KVM internal error'*'leave --accel kvm away'* ]]; then
	echo 'ok kvm-error'
else
	echo "not ok kvm-error: status $status: $(head -c 300 <<<"$out" | tr '\n' ' ')"
fi
