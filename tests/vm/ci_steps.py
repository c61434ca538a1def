#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Execute the commands of action.yml, templates/*.yml, a workflow and a Kubernetes Job as a runner would.

    ci_steps.py github|gitlab|kubernetes|workflow FILE [INPUT=VALUE...]

What a runner gives by its environment (GITHUB_*, CI_*, RUNNER_TEMP, JOB_COMPLETION_INDEX) is the
caller's. Steps of the cache are left out: nothing is in it. An expression that is not known here
is an error. The exit status is that of the first failure; of an action the outputs are printed.

Each job of a workflow, for each value of its matrix, has a workspace of its own in RUNNER_TEMP.
There actions/checkout lays a copy of the current directory, and of OWNER/vpmu a link to
GITHUB_ACTION_PATH, where the action is, too. Artifacts go from job to job.
"""
import os
import re
import shutil
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


def fill(text, known):
    return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda m: known[m[1]], str(text))


def wanted(step, known, status):
    """Does a step run, after a failure, too, or only if a value is the one that it names?"""
    condition = step.get("if", "")
    if condition == "always()":
        return True
    for term in condition.split(" && ") if condition else []:
        name, operator, text = re.fullmatch(r"(\S+) (==|!=) '(.*)'", term).groups()
        if (known[name] == text) != (operator == "=="):
            return False
    return not status


def execute(step, known, cwd):
    with tempfile.TemporaryDirectory() as files:
        env = {n: fill(v, known) for n, v in step.get("env", {}).items()}
        for name in "GITHUB_OUTPUT", "GITHUB_PATH":
            env[name] = os.path.join(files, name)
            open(env[name], "w", encoding="utf-8").close()
        status = run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"], fill(step["run"], known), env,
                     os.path.join(cwd, fill(step.get("working-directory", "."), known)))
        with open(env["GITHUB_OUTPUT"], encoding="utf-8") as f:
            for line in f.read().splitlines():
                name, value = line.split("=", 1)
                known[f"steps.{step['id']}.outputs.{name}"] = value
        with open(env["GITHUB_PATH"], encoding="utf-8") as f:
            for line in f.read().splitlines():
                os.environ["PATH"] = line + ":" + os.environ["PATH"]
    return status


def composite(path, words, cwd="."):
    """The exit status of an action, and its outputs."""
    with open(path, encoding="utf-8") as f:
        action = yaml.safe_load(f)
    known = {f"inputs.{n}": v for n, v in given(words, action["inputs"]).items()}
    known["steps.cache.outputs.cache-hit"] = "false"
    if action["runs"]["using"] != "composite":
        sys.exit("not a composite action")
    status = 0
    for step in action["runs"]["steps"]:
        if not wanted(step, known, status):
            continue
        if "uses" not in step:
            status = execute(step, known, cwd)
        elif not step["uses"].startswith("actions/cache/"):
            sys.exit(f"{step['uses']}: not known here")
        else:
            for value in step["with"].values():
                fill(value, known)
    return status, {n: fill(about["value"], known) for n, about in action["outputs"].items()}


def github(path, words):
    status, outputs = composite(path, words)
    for name, value in outputs.items():
        print(f"{name}={value}")
    return status


def use(step, known, cwd, artifacts):
    """A step of a workflow that uses an action."""
    name = step["uses"].split("@")[0]
    options = {n: fill(v, known) for n, v in step.get("with", {}).items()}
    status = 0
    if name == "OWNER/vpmu":
        status, outputs = composite(os.path.join(os.environ["GITHUB_ACTION_PATH"], "action.yml"),
                                    [f"{n}={v}" for n, v in options.items()], cwd)
        known.update({f"steps.{step.get('id')}.outputs.{n}": v for n, v in outputs.items()})
    elif name == "actions/checkout" and options.get("repository") == "OWNER/vpmu":
        os.symlink(os.environ["GITHUB_ACTION_PATH"], os.path.join(cwd, options["path"]))
    elif name == "actions/checkout" and not options:
        shutil.copytree(".", cwd, dirs_exist_ok=True)
    elif name == "actions/upload-artifact":
        os.makedirs(os.path.join(artifacts, options["name"]))
        shutil.copy(options["path"], os.path.join(artifacts, options["name"]))
    elif name == "actions/download-artifact":
        shutil.copytree(artifacts, os.path.join(cwd, options["path"]))
    else:
        sys.exit(f"{step['uses']}: not known here")
    return status


def workflow(path, _):
    with open(path, encoding="utf-8") as f:
        jobs = yaml.safe_load(f)["jobs"]
    top = tempfile.mkdtemp(dir=os.environ["RUNNER_TEMP"])
    programs = os.environ["PATH"]
    failed = 0
    for name, job in jobs.items():
        if job.get("needs", name) not in list(jobs)[:list(jobs).index(name) + 1]:
            sys.exit(f"{name}: a job that it needs comes later")
        if not wanted(job, {}, failed):
            continue
        matrix = job.get("strategy", {}).get("matrix", {"": [""]})
        ((variable, values),) = matrix.items()
        for value in values:
            known = {f"matrix.{variable}": str(value)}
            cwd = tempfile.mkdtemp(dir=top)
            status = 0
            for step in job["steps"]:
                if wanted(step, known, status):
                    ended = use(step, known, cwd, os.path.join(top, "artifacts")) if "uses" in step \
                        else execute(step, known, cwd)
                    status = status or ended
            print(f"{name} {value}".strip(), "ended with", status)
            failed = failed or status
            os.environ["PATH"] = programs
    return failed


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


KINDS = {"github": github, "gitlab": gitlab, "kubernetes": kubernetes, "workflow": workflow}
sys.exit(KINDS[sys.argv[1]](sys.argv[2], sys.argv[3:]))
