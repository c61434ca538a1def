#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# vpmu kvm metrics, from copies of the module's statistics (t-kvm.sh has the module): numbers,
# the form of OpenMetrics, a file that is replaced as a whole or not at all; and the dashboard
# and alerts of examples/metrics name no other metric.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
vpmu=${VPMU_BUILD:-$PWD/build}/vpmu
examples=$PWD/examples/metrics
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# One process has two VMs; a newer module may have another word.
cat >vms <<'END'
vms 3 of 256, counters 7 of 4096, events refused 2
total calls 120 services 45 overflows 30 nmis 28 lost 9 filtered 1 uncounted 2 throttles 3 rdmsr 50 wrmsr 60 rdpmc 4
vm 4711
  vcpu 0 calls 12 services 4 news 5 overflows 10 nmis 9 lost 3 filtered 1 uncounted 0 throttles 2 rdmsr 0 wrmsr 0 rdpmc 0
  vcpu 1 calls 8 services 1 overflows 0 nmis 0 lost 0 filtered 0 uncounted 2 throttles 0 rdmsr 0 wrmsr 0 rdpmc 0
  event 1 type 0 config 0x1 vcpu 0 lost throttled count 41020005 overflows 0 enabled 10 running 5
  event 2 type 4 config 0xc0 count 0 overflows 0 enabled 0 running 0
vm 4711
  vcpu 0 calls 1 services 0 overflows 0 nmis 0 lost 0 filtered 0 uncounted 0 throttles 0 rdmsr 0 wrmsr 0 rdpmc 0
  event 1 type 0 config 0x1 vcpu 0 lost count 5 overflows 0 enabled 10 running 5
vm 4712 architectural
  vcpu 0 calls 0 services 7 overflows 2 nmis 1 lost 4 filtered 0 uncounted 0 throttles 0 rdmsr 50 wrmsr 60 rdpmc 4
END
sed -n '1p; 2s/ [1-9][0-9]*/ 0/gp' vms >idle

"$vpmu" kvm metrics --from vms >all
case_of status "$([ $? = 0 ] || cat all)"
case_of 'numbers of all VMs' "$(grep -v pid= all | grep -v '^#' | sed 's/^vpmu_kvm_//' | diff - <(cat <<'END'
up 1
vms 3
vms_limit 256
counters 7
counters_limit 4096
events_refused_total 2
hypercalls_total 120
register_accesses_total{instruction="rdmsr"} 50
register_accesses_total{instruction="wrmsr"} 60
register_accesses_total{instruction="rdpmc"} 4
services_total 45
overflows_total 30
nmis_total 28
losses_total{reason="lost"} 9
losses_total{reason="filtered"} 1
losses_total{reason="not_counted"} 2
throttles_total 3
vcpus 4
events 3
events_lost 2
events_throttled 1
END
))"
case_of 'numbers of a VMM' "$(grep 'pid="4711"' all | grep -v register |
	sed 's/^vpmu_kvm_vm_//; s/pid="4711",pmu="paravirtual"//; s/{}//; s/{,/{/' | diff - <(cat <<'END'
hypercalls_total 21
services_total 5
overflows_total 10
nmis_total 9
losses_total{reason="lost"} 3
losses_total{reason="filtered"} 1
losses_total{reason="not_counted"} 2
throttles_total 2
vcpus 3
events 3
events_lost 2
events_throttled 1
END
))"
case_of 'the kind of PMU' "$(grep -qxF \
	'vpmu_kvm_vm_register_accesses_total{pid="4712",pmu="architectural",instruction="wrmsr"} 60' all || grep 4712 all)"

# form FILE: what is not as OpenMetrics has it
form() {
	python3 - "$1" <<'END'
import re, sys
text = open(sys.argv[1]).read()
if not text.endswith("\n# EOF\n") or "\n\n" in text:
    print("it does not end with # EOF, or has an empty line")
families, series, kind = set(), set(), None
for line in text.splitlines()[:-1]:
    if m := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge)", line):
        family, kind, samples = *m.groups(), 0
        if family in families or family.endswith("_total"):
            print("family again, or with the suffix of a sample:", line)
        families.add(family)
    elif m := re.fullmatch(r"# HELP ([a-z_]+) [A-Zv].*\.", line):
        if m[1] != family or samples:
            print("not below its TYPE:", line)
    elif m := re.fullmatch(r'([a-z_]+)(\{[a-z]+="[a-z_0-9]+"(,[a-z]+="[a-z_0-9]+")*\})? \d+', line):
        samples += 1
        if m[1] != family + ("_total" if kind == "counter" else "") or (m[1], m[2]) in series:
            print("not of its family, or a second one:", line)
        series.add((m[1], m[2]))
    else:
        print("unknown:", line)
END
}
case_of form "$(form all)"
"$vpmu" kvm metrics --from idle >none
case_of 'form without a VM' "$(form none; grep -m 1 _vm_ none)"

# fails NAME STATUS WORDS COMMAND...
fails() {
	local name=$1 want=$2 words=$3 status=0
	shift 3
	"$@" >out 2>&1 || status=$?
	case_of "$name" "$([ $status = "$want" ] && grep -qF "$words" out || echo "status $status: $(tail -n 1 out)")"
}
sed 2d vms >old
fails 'an older module' 125 'is older than this command' "$vpmu" kvm metrics --from old
fails 'another file' 125 'not what vpmu_kvm.ko writes' "$vpmu" kvm metrics --from all
fails 'no such file' 125 'missing: No such file' "$vpmu" kvm metrics --from missing
fails 'an option of another verb' 125 'Usage: vpmu kvm' "$vpmu" kvm -o out save 1 file
fails 'full standard output' 125 'standard output: No space left' sh -c '"$1" kvm metrics --from vms >/dev/full' sh "$vpmu"
if [ -e /sys/module/vpmu_kvm ]; then
	echo 'skip no module: vpmu_kvm.ko is loaded here'
elif [ "$(id -u)" != 0 ]; then
	echo 'skip no module: only root sees that'
else
	fails 'no module' 77 'insmod vpmu_kvm.ko' "$vpmu" kvm metrics -o down.prom
	case_of 'no module, its file' "$([ "$(grep -v '^#' down.prom)" = 'vpmu_kvm_up 0' ] && form down.prom || cat down.prom 2>&1)"
fi

# A collector reads what was there, or all of the new text.
mkdir prom
(umask 077 && "$vpmu" kvm metrics --from vms -o prom/vpmu.prom)
case_of 'a file' "$(cmp all prom/vpmu.prom 2>&1 && [ "$(stat -c %a prom/vpmu.prom)" = 644 ] || stat -c 'mode %a' prom/vpmu.prom 2>&1)"
exec 7<prom/vpmu.prom
"$vpmu" kvm metrics -o prom/vpmu.prom --from idle
case_of 'an old file is not written to' "$({ cmp all - <&7; cmp none prom/vpmu.prom; } 2>&1)"
fails 'no room' 125 'vpmu.prom: File too large; it is as it was' \
	bash -c 'trap "" XFSZ; ulimit -f 1; "$0" kvm metrics -o prom/vpmu.prom --from vms' "$vpmu"
fails 'no directory' 125 'nowhere/vpmu.prom: a file beside it: No such file' "$vpmu" kvm metrics -o nowhere/vpmu.prom --from vms
case_of 'nothing else is left' "$(cmp none prom/vpmu.prom 2>&1; find prom -type f ! -name vpmu.prom)"

# Alerts and dashboard.
sed -n 's/^\(vpmu_[a-z_]*\).*/\1/p' all | sort -u >known
for file in alerts.yml grafana.json; do
	named=$(grep -oE 'vpmu_kvm_[a-z_]+' "$examples/$file" | sort -u)
	case_of "$file: metrics" "$([ "$(wc -l <<<"$named")" -ge 8 ] || echo "names ${named:-none}"; comm -23 <(echo "$named") known)"
done
case_of 'grafana.json: form' "$(python3 - "$examples/grafana.json" 2>&1 <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
spots = set()
for p in d["panels"]:
    g = p["gridPos"]
    cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
    if cells & spots or g["x"] + g["w"] > 24:
        print(p["title"], "overlaps, or is too wide")
    spots |= cells
    if not p["targets"] or any(not t["expr"] for t in p["targets"]):
        print(p["title"], "shows nothing")
END
)"
if ! python3 -c 'import yaml' 2>/dev/null; then
	echo 'skip alerts.yml: form: no YAML in Python: apt-get install python3-yaml'
else
	case_of 'alerts.yml: form' "$(python3 - "$examples/alerts.yml" 2>&1 <<'END'
import sys, yaml
for group in yaml.safe_load(open(sys.argv[1]))["groups"]:
    for rule in group["rules"]:
        if not (isinstance(rule["alert"], str) and isinstance(rule["expr"], str) and rule["annotations"]["summary"]):
            print(rule)
END
)"
fi
