#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The event tables, compared with those of other projects.

tests/fast/perfmon.tsv has what Intel's lists (github.com/intel/perfmon) say about
every event that our tables mention, tests/fast/libpfm4.tsv what libpfm4's tables say.
Names, encodings and counters must agree with both, as far as each knows the model;
with AMD's models, where libpfm4 has names of its own and no counters, encodings and
meanings must. tests/fast/models.tsv lists the differences, and their reasons; a listed
difference that no longer exists is an error as well.

models.py --update DIR      rewrites perfmon.tsv; DIR a checkout
models.py --update-pfm DIR  rewrites libpfm4.tsv; DIR its source, of Debian's package
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
MODELS = os.path.join(ROOT, 'lib/silicon/models')
LIST = os.path.join(ROOT, 'tests/fast/perfmon.tsv')
PFM_LIST = os.path.join(ROOT, 'tests/fast/libpfm4.tsv')
PFM_SOURCE = os.path.join(ROOT, 'tests/fast/pfm.c')
DIFFERENCES = os.path.join(ROOT, 'tests/fast/models.tsv')

# Each model with the lists of all CPUs that it stands for.
LISTS = {
    'bonnell': {'BNL': 'BNL/events/bonnell_core.json'},
    'broadwell': {'BDW': 'BDW/events/broadwell_core.json',
                  'BDX': 'BDX/events/broadwellx_core.json',
                  'BDW-DE': 'BDW-DE/events/broadwellde_core.json'},
    'goldmont': {'GLM': 'GLM/events/goldmont_core.json',
                 'GLP': 'GLP/events/goldmontplus_core.json'},
    'haswell': {'HSW': 'HSW/events/haswell_core.json',
                'HSX': 'HSX/events/haswellx_core.json'},
    'clearwater-forest': {'CWF': 'CWF/events/clearwaterforest_core.json'},
    'icelake-server': {'ICX': 'ICX/events/icelakex_core.json'},
    'ivy-bridge': {'IVB': 'IVB/events/ivybridge_core.json',
                   'IVT': 'IVT/events/ivytown_core.json'},
    'knights': {'KNL': 'KNL/events/knightslanding_core.json'},
    'nehalem': {'NHM-EP': 'NHM-EP/events/NehalemEP_core.json',
                'NHM-EX': 'NHM-EX/events/NehalemEX_core.json'},
    'sandy-bridge': {'SNB': 'SNB/events/sandybridge_core.json',
                     'JKT': 'JKT/events/Jaketown_core.json'},
    'sapphire-rapids': {'SPR': 'SPR/events/sapphirerapids_core.json',
                        'EMR': 'EMR/events/emeraldrapids_core.json',
                        'GNR': 'GNR/events/graniterapids_core.json'},
    'skylake-client': {'SKL': 'SKL/events/skylake_core.json'},
    'skylake-server': {'SKX': 'SKX/events/skylakex_core.json',
                       'CLX': 'CLX/events/cascadelakex_core.json'},
    'tremont': {'SNR': 'SNR/events/snowridgex_core.json',
                'EHL': 'EHL/events/elkhartlake_core.json'},
    'westmere': {'WSM-EP-DP': 'WSM-EP-DP/events/WestmereEP-DP_core.json',
                 'WSM-EP-SP': 'WSM-EP-SP/events/WestmereEP-SP_core.json',
                 'WSM-EX': 'WSM-EX/events/WestmereEX_core.json'},
}

# Models as libpfm4's tables call them.
PFM = {
    'bonnell': 'atom',
    'broadwell': 'bdw',
    'core-duo': 'coreduo',
    'core2': 'core',
    'goldmont': 'glm',
    'haswell': 'hsw',
    'icelake-server': 'icl',
    'ivy-bridge': 'ivb',
    'knights': 'knl',
    'nehalem': 'nhm',
    'sandy-bridge': 'snb',
    'sapphire-rapids': 'spr',
    'skylake-client': 'skl',
    'skylake-server': 'skl',
    'tremont': 'tmt',
    'westmere': 'wsm',
    'zen2': 'fam17h_zen2',
    'zen3': 'fam19h_zen3',
    'zen4': 'fam19h_zen4',
}

# Its names of AMD's events that we count.
PFM_COUNTED = {
    'LS_NOT_HALTED_CYC': 'CYCLES_NOT_IN_HALT',
    'LS_NOT_HALTED_P0_CYC.P0_FREQ_CYC': 'P0_FREQ_CYCLES_NOT_IN_HALT',
    'EX_RET_INSTR': 'RETIRED_INSTRUCTIONS',
    'EX_RET_BRN': 'RETIRED_BRANCH_INSTRUCTIONS',
    'EX_RET_BRN_TKN': 'RETIRED_TAKEN_BRANCH_INSTRUCTIONS',
    'EX_RET_BRN_FAR': 'RETIRED_FAR_CONTROL_TRANSFERS',
    'EX_RET_NEAR_RET': 'RETIRED_NEAR_RETURNS',
    'EX_RET_IND_BRCH_INSTR': 'RETIRED_INDIRECT_BRANCH_INSTRUCTIONS',
    'EX_RET_COND': 'RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS',
    'EX_RET_UNCOND_BRNCH_INSTR': 'RETIRED_UNCONDITIONAL_BRANCH_INSTRUCTIONS',
}

MASKS = {'GP8': 0xff, 'GP6': 0x3f, 'GP4': 0x0f, 'GP2': 0x03, 'EVEN6': 0x15}
ROW = re.compile(r'\b(?:ROW|MEANT|CLOCK|TOLD2?|WHEN|TOPDOWN|NAMED2?)\((0x\w+), (0x\w+), (?:(0x\w+), )?'
                 r'(?:CMASK[^"]*)?"([^"]+)", ([^)]*)\)')
COUNTED = re.compile(r'\b(?:ROW|MEANT|CLOCK)\(0x\w+, 0x\w+, "([^"]+)"')


def rows(model):
    """(name, select, unit mask with UnitMask2 above it, GP counters) of each row."""
    with open(os.path.join(MODELS, model + '.c')) as f:
        source = f.read()
    for select, umask, umask2, name, rest in ROW.findall(source):
        mask = [a for a in re.split(r',\s*', rest) if a in MASKS or a.startswith('0x')]
        fixed_only = rest.startswith('2, 0,')
        yield name, int(select, 0), int(umask, 0) | int(umask2 or '0', 0) << 8, 0 if fixed_only else \
            MASKS.get(mask[0]) or int(mask[0], 0)


def counters(text):
    """GP counters of "0,1,2,3"; none for "Fixed counter 2"."""
    return 0 if 'Fixed' in text else sum(1 << int(n) for n in text.split(','))


def update(checkout):
    with open(LIST, 'w') as out:
        print('# From github.com/intel/perfmon by tests/fast/models.py --update.', file=out)
        print('# list\tname\tselect\tunit mask\tGP counters', file=out)
        for model, lists in LISTS.items():
            wanted = {(select, umask) for _, select, umask, _ in rows(model)}
            for label, path in lists.items():
                with open(os.path.join(checkout, path)) as f:
                    events = json.load(f)
                events = events['Events'] if isinstance(events, dict) else events
                lines = set()
                for e in events:
                    umask = int(e['UMask'].split(',')[0], 0) | \
                        int(e.get('UMaskExt', '0'), 0) << 8
                    for select in (int(s, 0) for s in e['EventCode'].split(',')):
                        if (select, umask) in wanted:
                            lines.add((select, umask, e['EventName'],
                                       counters(e['Counter'])))
                for select, umask, name, mask in sorted(lines):
                    print(f'{label}\t{name}\t{select:02x}\t{umask:02x}\t{mask:02x}', file=out)


def update_pfm(source):
    found = {}
    with tempfile.TemporaryDirectory() as tmp:
        for vendor in 'INTEL', 'AMD':
            subprocess.run(['gcc', '-w', f'-D{vendor}', f'-I{source}/lib', f'-I{source}/include',
                            PFM_SOURCE, '-o', f'{tmp}/pfm'], check=True)
            out = subprocess.run([f'{tmp}/pfm'], check=True, text=True, stdout=subprocess.PIPE)
            for line in out.stdout.splitlines():
                pmu, event, umask_name, select, umask, mask = line.split('\t')
                found.setdefault((pmu, int(select, 16)), []).append(
                    (event if umask_name == '-' else f'{event}.{umask_name}',
                     int(umask, 16), mask))
    lines = set()
    for model, pmu in PFM.items():
        for _, select, umask, _ in rows(model):
            its = found.get((pmu, select), [])
            same = [e for e in its if e[1] == umask]
            for name, its_umask, mask in same or [e for e in its if not e[1] & ~umask]:
                lines.add((pmu, select, its_umask, name, mask))
    with open(PFM_LIST, 'w') as out:
        print("# From libpfm4's source by tests/fast/models.py --update-pfm.", file=out)
        print('# PMU\tname\tselect\tunit mask\tGP counters', file=out)
        for pmu, select, umask, name, mask in sorted(lines):
            print(f'{pmu}\t{name}\t{select:02x}\t{umask:02x}\t{mask}', file=out)


def table_of(path):
    with open(path) as f:
        return [line.rstrip('\n').split('\t') for line in f if line.strip() and line[0] != '#']


class Differences:
    """models.tsv: source, models, event, what it has, why; each must happen."""
    def __init__(self):
        self.known = {}
        for source, models, name, theirs, _ in table_of(DIFFERENCES):
            for model in models.split(','):
                self.known[source, model, name, theirs] = False

    def new(self, source, model, name, theirs):
        if (source, model, name, theirs) in self.known:
            self.known[source, model, name, theirs] = True
            return False
        return True

    def stale(self):
        return [' '.join(key) for key, happened in self.known.items() if not happened]


def report(what, count, wrong):
    if count and not wrong:
        print(f'ok {what}: {count} events')
    else:
        print(f'not ok {what}:', ', '.join(wrong) or 'no rows')
    return bool(wrong) or not count


def number(model):
    """GP counters of a model."""
    with open(os.path.join(MODELS, model + '.c')) as f:
        return int(re.search(r'\.n_gp = (\d+)', f.read()).group(1))


def combined(listed, label, name, select, umask):
    """Counters where a unit mask is made of several of the event of that name."""
    parts = [(u, mask) for (l, s, u), found in listed.items() if (l, s) == (label, select)
             and not u & ~umask for its, mask in found
             if name.startswith(its.split('.')[0] + '.')]
    union = 0
    for part, _ in parts:
        union |= part
    return [(name, mask) for _, mask in parts] if union == umask else []


def theirs_of(found, name, mask, all_counters):
    """A source's entry if it differs from our name and counters, or None if it agrees."""
    if not found:
        return 'nothing'
    named = [its_mask for its, its_mask in found if its == name]
    if not named:
        return min(its for its, _ in found)
    masks = {its_mask & all_counters for its_mask in named}
    return None if mask in masks else f'counters {min(masks):02x}'


def check_source(source, label, model, listed, differences):
    """Intel's models: names, encodings and counters."""
    table = list(rows(model))
    wrong = []
    for name, select, umask, mask in table:
        found = listed.get((label, select, umask)) or \
            combined(listed, label, name, select, umask)
        theirs = theirs_of(found, name, mask, (1 << number(model)) - 1)
        if theirs and differences.new(source, model, name, theirs):
            wrong.append(f'{name} {select:02x}/{umask:02x} on counters {mask:02x}: {theirs}')
    return report(f'{model} {source} {label}', len(table), wrong)


def check_amd(pmu, model, listed, differences):
    """AMD's: encodings, its names of what is counted, and the rule of its counters."""
    with open(os.path.join(MODELS, model + '.c')) as f:
        counted = set(COUNTED.findall(f.read()))
    table = list(rows(model))
    wrong = []
    for name, select, umask, mask in table:
        its = {(n, u) for (p, s, u), found in listed.items() if (p, s) == (pmu, select)
               for n, _ in found if not u & ~umask}
        union = 0
        for _, its_umask in its:
            union |= its_umask
        theirs = 'nothing' if not its or union != umask else None
        if name in counted and not theirs:
            names = {n.split('.')[0] for n, _ in its}
            theirs = None if PFM_COUNTED.get(name) in names else min(names)
        if theirs and differences.new('libpfm4', model, name, theirs):
            wrong.append(f'{name} {select:03x}/{umask:02x}: {theirs}')
        if mask != (0x15 if select == 0x03 else 0x3f):
            wrong.append(f'{name} on counters {mask:02x}')
    return report(f'{model} libpfm4 {pmu}', len(table), wrong)


def listed_in(path):
    listed = {}
    for label, name, select, umask, mask in table_of(path):
        listed.setdefault((label, int(select, 16), int(umask, 16)), []).append(
            (name, None if mask == '-' else int(mask, 16)))
    return listed


def check():
    perfmon, pfm, differences = listed_in(LIST), listed_in(PFM_LIST), Differences()
    failed = False
    for model, lists in LISTS.items():
        for label in lists:
            failed |= check_source('perfmon', label, model, perfmon, differences)
    for model, pmu in PFM.items():
        if model.startswith('zen'):
            failed |= check_amd(pmu, model, pfm, differences)
        else:
            failed |= check_source('libpfm4', pmu, model, pfm, differences)
    every = {f[:-2] for f in os.listdir(MODELS) if f.endswith('.c')}
    failed |= report('each model has a second source', len(every),
                     sorted(m for m in every - set(LISTS) - set(PFM)
                            if not m.startswith('generic')))
    failed |= report('differences', len(differences.known), differences.stale())
    return failed


if len(sys.argv) == 3 and sys.argv[1] == '--update':
    update(sys.argv[2])
elif len(sys.argv) == 3 and sys.argv[1] == '--update-pfm':
    update_pfm(sys.argv[2])
else:
    sys.exit(check())
