#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# The files for CI services: action.yml, GitLab's component and examples/ci parse, give only
# inputs that there are, agree on numbers, and cache what a run leaves, without snapshots, in an
# order by which a cache is found and saved. Their commands are executed by t-ci.sh.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
if ! python3 -c 'import yaml' 2>/dev/null; then
	echo 'skip ci: no YAML in Python: apt-get install python3-yaml'
	exit 0
fi
case_of inputs "$(python3 - 2>&1 <<'END'
import yaml

def load(path):
    return yaml.safe_load(open(path))

def check(where, given, declared):
    for name in given.keys() - declared.keys():
        print(f"{where}: {name}: there is no such input")
    for name, about in declared.items():
        if "default" not in about and name not in given:
            print(f"{where}: {name} is needed")

action = load("action.yml")
used = 0
for path in "github.yml", "github-matrix.yml":
    for job in load(f"examples/ci/{path}")["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("OWNER/vpmu@"):
                check(path, step["with"], action["inputs"])
                used += 1
head = yaml.safe_load(open("templates/bench.yml").read().split("\n---\n")[0])
for include in load("examples/ci/gitlab-ci.yml")["include"]:
    check("gitlab-ci.yml", include["inputs"], head["spec"]["inputs"])
    used += include["component"].count("/vpmu/bench@")
if used != 3:
    print(f"used {used} times, not 3")
END
)"
case_of 'parts of a whole' "$(python3 - 2>&1 <<'END'
import yaml
count = yaml.safe_load(open("examples/ci/github-matrix.yml"))["jobs"]["count"]
shards = count["strategy"]["matrix"]["shard"]
given = [s["with"]["shard"] for s in count["steps"] if "shard" in s.get("with", {})]
if shards != list(range(1, len(shards) + 1)) or given != ["${{ matrix.shard }}/%d" % len(shards)]:
    print("github-matrix.yml:", shards, given)
spec = yaml.safe_load(open("examples/ci/kubernetes.yml"))["spec"]
(pods,) = [e["value"] for e in spec["template"]["spec"]["containers"][0]["env"] if e["name"] == "PODS"]
if spec["completionMode"] != "Indexed" or not str(spec["completions"]) == str(spec["parallelism"]) == pods:
    print("kubernetes.yml: completions, parallelism and PODS are not the same")
END
)"
# It holds what tools, QEMU and modules leave: tools/guest-kernel, tools/guest-module, qemu/build;
# and no snapshot, which is sparse, has the size of the guest's memory, and is made again in seconds.
case_of cached "$(python3 - 2>&1 <<'END'
import fnmatch, yaml
steps = [s for s in yaml.safe_load(open("action.yml"))["runs"]["steps"] if "cache" in s.get("uses", "")]
lists = [s["with"]["path"].split() for s in steps]
if len(steps) != 2 or lists[0] != lists[1] or steps[0]["with"]["key"] != steps[1]["with"]["key"]:
    print("restore and save differ, so that nothing is ever found")
(job,) = yaml.safe_load(open("templates/bench.yml").read().split("\n---\n")[1]).values()
lists.append(job["cache"]["paths"])
for paths in lists:
    for name, want in (("kernel-6.1.0-1-amd64-0123", True), ("kernel-bookworm.5", True), ("qemu", True),
                       ("module-6.1.0-1-amd64-0123", True), ("snapshot-0123", False)):
        if any(fnmatch.fnmatch(name, p.rsplit("/", 1)[1]) for p in paths) != want:
            print(f"{name}: {'not in' if want else 'in'} {paths}")
END
)"
# A cache's version contains its compressor, which is zstd if that is installed when the cache is
# looked for and when it is saved. A count that has grown ends the job, so the cache is saved before.
case_of 'order of a cache' "$(python3 - 2>&1 <<'END'
import glob, yaml

def place(steps, key, *words):
    """The first step whose key has all words, or one that never comes."""
    return next((i for i, s in enumerate(steps) if all(w in s.get(key, "") for w in words)), len(steps))

def check(where, steps):
    look = place(steps, "uses", "actions/cache/restore@")
    if place(steps, "uses", "actions/cache@") < len(steps):
        print(f"{where}: actions/cache saves only if the job has succeeded")
    if look == len(steps):
        return False
    if place(steps, "run", "apt-get", "install", "zstd") > look:
        print(f"{where}: zstd is not installed before the cache is looked for")
    if place(steps, "uses", "actions/cache/save@") >= place(steps, "run", "vpmu", " bench "):
        print(f"{where}: the cache is not saved before commands are counted")
    return True

if not check("action.yml", yaml.safe_load(open("action.yml"))["runs"]["steps"]):
    print("action.yml: no cache is looked for")
kept = 0
for path in ["templates/bench.yml"] + sorted(glob.glob("examples/ci/*.yml")):
    for document in yaml.safe_load_all(open(path)):
        for name, job in document.get("jobs", {}).items():
            check(f"{path}: {name}", job["steps"])
        for name, job in document.items():
            if isinstance(job, dict) and "cache" in job:
                kept += 1
                if job["cache"].get("when") != "always":
                    print(f"{path}: {name}: the cache is saved only if no count has grown")
if kept != 1:
    print(f"{kept} jobs of GitLab have a cache, not 1")
END
)"
