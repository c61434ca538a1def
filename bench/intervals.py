# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What rounds say about a ratio: its geometric mean, and the interval that has the true one in
95 of 100 cases, by Student's distribution of the logarithms."""
import math
import statistics

# The 97.5 % quantiles of Student's distribution for 1 to 29 degrees of freedom; for more, the
# normal distribution's 1.96 is at most 4 % too small.
STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
           2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
           2.060, 2.056, 2.052, 2.048, 2.045]


def interval(ratios):
    """{"ratio", "low", "high"} of @ratios, one a round; one round alone has no interval."""
    logs = [math.log(r) for r in ratios]
    mean, n = statistics.fmean(logs), len(logs)
    if n < 2:
        return {"ratio": math.exp(mean), "low": None, "high": None}
    quantile = STUDENT[n - 2] if n - 2 < len(STUDENT) else 1.96
    half = quantile * statistics.stdev(logs) / math.sqrt(n)
    return {"ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half)}


def judge(r, target):
    """Met or missed by the whole interval, else undecided."""
    if r["high"] is not None and round(r["high"], 3) <= target:
        return "met"
    return "missed" if r["low"] is not None and round(r["low"], 3) > target else "undecided"
