#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Execute the commands of action.yml, templates/*.yml and a Kubernetes Job as a runner would.

    ci_steps.py github|gitlab|kubernetes FILE [INPUT=VALUE...]

What a runner gives by its environment (GITHUB_*, CI_*, RUNNER_TEMP, JOB_COMPLETION_INDEX) is the
caller's. Steps of other actions, such as the cache's, are left out: nothing is in the cache. An
expression that is not known here is an error. The exit status is that of the first failure; of
an action the outputs are printed.
"""
import os
import re
import subprocess
import sys
import tempfile

import yaml


def given(words, declared):
    """The inputs' values, all of which are declared, and none is missing."""
    values = dict(w.split("=", 1) for w in words)
    for name in values:
        if name not in declared:
            sys.exit(f"{name}: there is no such input")
    for name, about in declared.items():
        if not about.get("description"):
            sys.exit(f"{name}: it has no description")
        if name not in values:
            if "default" not in about:
                sys.exit(f"{name}: this input is needed")
            values[name] = str(about["default"])
    return values


def run(shell, text, env=None, cwd=None):
    status = subprocess.run(shell + [text], env={**os.environ, **(env or {})}, cwd=cwd,
                            stdin=subprocess.DEVNULL, check=False).returncode
    if status:
        print(f"ended with {status}: {text.strip().splitlines()[-1]}")
    return status


def github(path, words):
    with open(path, encoding="utf-8") as f:
        action = yaml.safe_load(f)
    known = {f"inputs.{n}": v for n, v in given(words, action["inputs"]).items()}
    known["steps.cache.outputs.cache-hit"] = "false"

    def fill(text):
        return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda m: known[m[1]], str(text))

    if action["runs"]["using"] != "composite":
        sys.exit("not a composite action")
    status = 0
    for step in action["runs"]["steps"]:
        if "uses" in step:
            for value in step["with"].values():
                fill(value)
            continue
        if status:
            continue
        with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as out:
            env = {n: fill(v) for n, v in step.get("env", {}).items()}
            status = run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"], fill(step["run"]),
                         {**env, "GITHUB_OUTPUT": out.name}, fill(step.get("working-directory", ".")))
            for line in out.read().splitlines():
                name, value = line.split("=", 1)
                known[f"steps.{step['id']}.outputs.{name}"] = value
    for name, about in action["outputs"].items():
        print(f"{name}={fill(about['value'])}")
    return status


def gitlab(path, words):
    with open(path, encoding="utf-8") as f:
        head, body = f.read().split("\n---\n")
    values = given(words, yaml.safe_load(head)["spec"]["inputs"])
    body = re.sub(r"\$\[\[ *inputs\.(\w+) *\]\]", lambda m: values[m[1]], body)
    (job,) = yaml.safe_load(body).values()
    env = {n: os.path.expandvars(str(v)) for n, v in job["variables"].items()}
    return run(["bash", "-eo", "pipefail", "-c"], "\n".join(job["before_script"] + job["script"]), env)


def kubernetes(path, _):
    with open(path, encoding="utf-8") as f:
        spec = yaml.safe_load(f)["spec"]
    (box,) = spec["template"]["spec"]["containers"]
    env = {e["name"]: e["value"] for e in box["env"]}
    if spec["completionMode"] != "Indexed" or env["PODS"] != str(spec["completions"]):
        sys.exit("PODS is not the number of completions")
    env = {n: os.environ.get(n, v) for n, v in env.items()}
    return run(box["command"][:-1], box["command"][-1], env)


sys.exit({"github": github, "gitlab": gitlab, "kubernetes": kubernetes}[sys.argv[1]](sys.argv[2], sys.argv[3:]))
