# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# In an L1 with a PMU (nested-l1.sh sources this): counts in L1 and in an L2.
#
#   nested-counts.sh SELFTEST CPUS
programs=$VPMU_BUILD/guest
selftest=$1
cpus=$2

mv /dev/kvm /dev/elsewhere
said=$("$VPMU_BUILD/vpmu" run --accel kvm true 2>&1)
status=$?
mv /dev/elsewhere /dev/kvm
if [ $status = 125 ] && [[ $said == *'/dev/kvm: No such file'* ]]; then
	echo 'ok without /dev/kvm'
else
	echo "not ok without /dev/kvm: status $status: $said"
fi

# The outcome when L1 counts too, and the sums of its guest-only and host-only events.
"$selftest" --json >kvm.json && echo 'ok selftest' || echo "not ok selftest: status $?"

list=()
for source in "$VPMU_ROOT"/tests/guest/*.S; do
	list+=("$programs/$(basename "$source" .S)")
done
address() { nm "$programs/sample" | sed -n "s/^0*\([0-9a-f]*\) . $1$/\1/p"; }

# Before Linux 6.7 vcpu_enter_guest() looks at KVM_REQ_NMI ahead of KVM_REQ_PMI, which
# makes an NMI of an overflow: an interrupt of L2's that is pending then comes first,
# and the NMI at its first instruction, in the kernel.
late=
[ "$(printf '%s\n' 6.7 "$(uname -r)" | sort -V | head -n 1)" = 6.7 ] || late=ffffffff

# L2's perf names its driver; L1's KVM its exits for nested paging and for CPUID.
driver='Fam17h+ core perfctr, AMD PMU driver' exit_paging=npf exit_cpuid=cpuid
if [ "$vendor" = intel ]; then
	driver='Intel PMU driver' exit_paging=EPT_VIOLATION exit_cpuid=CPUID
fi

cat >l2.sh <<'END'
programs=$1 instruction=$2 branch=$3 late=$4 driver=$5
shift 5
dmesg | grep -q 'Hypervisor detected: KVM' && echo 'ok KVM' || echo 'not ok KVM'
dmesg | grep -q "$driver" && echo 'ok driver' ||
	echo "not ok driver: $(dmesg | grep 'Performance Events')"
"$programs/count" "$@"
"$programs/count" -s "$programs/step"
sample() { # EVENT PERIOD ADDRESS
	chrt -f 1 perf record -q -e "$1:u" -c "$2" -o /tmp/data "$programs/sample" 2>/dev/null
	perf script -i /tmp/data -G -F ip 2>/dev/null |
		awk -v at="$3" -v late="$4" -v want="$5" -v name="samples of $1, $2" '
		NF { n++; if ($1 == at) good++; else if (late && index($1, late) == 1) good++
			else wrong = $1 }
		END { if (n == want && good == n) print "ok " name ": " n
			else print "not ok " name ": " n ", expected " want "; at " wrong }'
}
sample instructions 100000 "$instruction" "$late" 30
sample instructions 10000 "$instruction" "$late" 300
sample branches 10000 "$branch" "$late" 120
perf stat -x, -e instructions:u,branches:u "$programs/loop" 2>stat.csv
[ "$(cut -d, -f1 stat.csv | tr '\n' ' ')" = '200004 100001 ' ] && echo 'ok perf stat' ||
	echo "not ok perf stat: $(cut -d, -f1 stat.csv | tr '\n' ' ')"
echo "$(nproc) CPUs" >from-l2
END
# KVM's vPMU is perf events of L1, which perf would throttle, and samples would be missing.
lifted l2 L2 --smp "$cpus" -- sh ./l2.sh "$programs" "$(address instruction)" "$(address branch)" \
	"$late" "$driver" "${list[@]}"

# The whole of a guest's life, seen from L1.
modes='{instructions:uGH,instructions:uG,instructions:uH}'
perf kvm stat record -q -a -o /tmp/kvm.data -- perf stat -x, -o exits.csv -a -e kvm:kvm_exit \
	perf stat -x, -o modes.csv -e "$modes" -- \
	bash -c '. "$0/tests/vm/nested-l1.sh"; l2_run short.log -- sh -c "exit 42"; echo $? >status' \
	"$VPMU_ROOT" >kvm-stat.log 2>&1
[ "$(cat status)" = 42 ] && echo 'ok status' || echo "not ok status: $(cat status)"
clean "short/L2's log" short.log

# Each exit but the last of each CPU is followed by an entry.
perf kvm -i /tmp/kvm.data stat report --event=vmexit >report 2>&1
exits=$(awk -F, '/kvm_exit/ { print $1 }' exits.csv)
seen=$(sed -n 's/^Total Samples:\([0-9]*\).*/\1/p' report)
if [ -n "$seen" ] && [ "$seen" -le "$exits" ] && [ "$seen" -ge $((exits - cpus)) ] &&
	grep -q " $exit_paging " report && grep -q " $exit_cpuid " report; then
	echo "ok perf kvm stat: $seen exits"
else
	echo "not ok perf kvm stat: '$seen' of $exits exits: $(tail -n 1 kvm-stat.log)"
fi
awk -F, '/instructions/ { n[++i] = $1 } END {
	if (i == 3 && n[2] > 0 && n[3] > 0 && n[1] == n[2] + n[3])
		print "ok guest and host: " n[2] " + " n[3]
	else
		print "not ok guest and host: " n[1] " is not " n[2] " + " n[3] }' modes.csv
