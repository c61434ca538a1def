# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The programs whose time bench/run takes: six that stand for what users run.

At a scale of 1 each of them takes 1 to 4 seconds of a guest's CPU (docs/BENCHMARKS.md), so that
all but the compiler's time is not that of translation. Their files are the same on every machine, but for
the programs of the distribution that read them.
"""
import os
import random
import subprocess

AWK = ('BEGIN { for (i = 0; i < 64; i++) w[i] = i "x";'
       ' for (i = 0; i < %d; i++) { if (++j == 64) j = 0; n += length(w[j] i) }'
       ' print n }')
FORKS = 'i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done; echo $i'
FUNCTION = """
static int keys_%(n)d[64];
int find_%(n)d(const int *from, int count, int key)
{
\tint low = 0, high = count;
\twhile (low < high) {
\t\tint middle = low + (high - low) / 2;
\t\tswitch ((from[middle] > key) - (from[middle] < key)) {
\t\tcase 0: return keys_%(n)d[middle & 63] + %(n)d;
\t\tcase 1: high = middle; break;
\t\tdefault: low = middle + 1;
\t\t}
\t}
\tfor (int i = 0; i < 64; i++)
\t\tkeys_%(n)d[i] = (keys_%(n)d[(i + %(n)d) & 63] ^ key) * %(odd)d + (i %% 3 ? low : -high);
\treturn -1;
}
"""


def fibonacci_steps(scale):
    """The change of Fibonacci's index that makes the work @scale times as much."""
    steps = 0
    while scale >= 1.6:
        scale, steps = scale / 1.618, steps + 1
    while scale <= 0.63:
        scale, steps = scale * 1.618, steps - 1
    return steps


def file_of(folder, name, content):
    """@name, of what @content() returns unless it is there."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(content())
        os.rename(path + ".new", path)
    return name


def text(words):
    """Lines of made-up words, the short ones more often, as in a language."""
    rng = random.Random(words)
    vocabulary = sorted(("".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 11)))
                         for _ in range(4000)), key=len)
    chosen = [vocabulary[int(len(vocabulary) * rng.random() ** 3)] for _ in range(words)]
    return "\n".join(" ".join(chosen[i:i + 12]) for i in range(0, words, 12)) + "\n"


def compress(folder, scale):
    words = max(1000, round(1200000 * scale))
    name = file_of(folder, f"text-{words}", lambda: text(words))
    return ["gzip", "-9", "-k", "-f", name]


def interpreter(_folder, scale):
    return ["awk", AWK % max(1, round(1200000 * scale))]


def recursion(_folder, scale):
    return ["./work", "calls", str(40 + fibonacci_steps(scale))]


def chase(_folder, scale):
    return ["./work", "chase", str(max(1000, round(4000000 * scale)))]


def forks(_folder, scale):
    return ["sh", "-c", FORKS % max(1, round(500 * scale))]


def compiles(folder, scale):
    """The compiler proper: what drives it looks for it beside itself, and is copied."""
    count = max(1, round(25 * scale))
    name = file_of(folder, f"functions-{count}.i", lambda: "".join(
        FUNCTION % {"n": n, "odd": 2 * n + 1} for n in range(count)))
    compiler = subprocess.run([os.environ.get("CC", "cc"), "-print-prog-name=cc1"],
                              capture_output=True, text=True, check=False).stdout.strip()
    return [compiler if os.path.isabs(compiler) else "cc1",
            "-quiet", "-O2", name, "-o", "/dev/null"]


# By name: the command for a folder and a scale.
WORKLOADS = {
    "compress": compress, "awk": interpreter, "calls": recursion, "chase": chase,
    "forks": forks, "compile": compiles,
}
