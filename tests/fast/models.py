#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The event tables against the vendor's own lists.

tests/fast/perfmon.tsv is what Intel's lists (github.com/intel/perfmon) say about
every event select that our tables mention; `models.py --update DIR`, DIR a
checkout, writes it anew. Names, encodings and counters must agree.
"""
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
MODELS = os.path.join(ROOT, 'lib/silicon/models')
LIST = os.path.join(ROOT, 'tests/fast/perfmon.tsv')

# Each model with the lists of all CPUs that it stands for.
LISTS = {
    'icelake-server': {'ICX': 'ICX/events/icelakex_core.json'},
    'sapphire-rapids': {'SPR': 'SPR/events/sapphirerapids_core.json',
                        'EMR': 'EMR/events/emeraldrapids_core.json'},
    'skylake-server': {'SKX': 'SKX/events/skylakex_core.json',
                       'CLX': 'CLX/events/cascadelakex_core.json'},
}

# In no list, with the reason why it is in our table.
ELSEWHERE = {
    ('ICX', 'INST_RETIRED.PREC_DIST', 0xc0, 0x01):
        "Linux, arch/x86/events/intel/core.c: the old encoding, still in its constraints",
}

MASKS = {'GP8': 0xff, 'GP4': 0x0f}
ROW = re.compile(r'\b(?:ROW|CLOCK|TOLD|NAMED)\((0x\w+), (0x\w+), "([^"]+)", ([^)]*)\)')
FILTERS = ('MSRIndex', 'CounterMask', 'EdgeDetect', 'Invert')


def rows(model):
    """(name, select, unit mask, GP counters) of each row of a model's file."""
    with open(os.path.join(MODELS, model + '.c')) as f:
        source = f.read()
    for select, umask, name, rest in ROW.findall(source):
        mask = [a for a in rest.split(', ') if a in MASKS or a.startswith('0x')]
        fixed_only = rest.startswith('2, 0,')
        yield name, int(select, 0), int(umask, 0), 0 if fixed_only else \
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
                    events = json.load(f)['Events']
                lines = set()
                for e in events:
                    umask = int(e['UMask'].split(',')[0], 0)
                    for select in (int(s, 0) for s in e['EventCode'].split(',')):
                        if (select, umask) in wanted:
                            lines.add((select, umask, e['EventName'],
                                       counters(e['Counter'])))
                for select, umask, name, mask in sorted(lines):
                    print(f'{label}\t{name}\t{select:02x}\t{umask:02x}\t{mask:02x}', file=out)


def check():
    listed = set()
    with open(LIST) as f:
        for line in f:
            if not line.startswith('#'):
                label, name, select, umask, mask = line.rstrip('\n').split('\t')
                listed.add((label, name, int(select, 16), int(umask, 16), int(mask, 16)))
    failed = False
    for model, lists in LISTS.items():
        table = list(rows(model))
        for label in lists:
            wrong = [f'{name} {select:02x}/{umask:02x} on counters {mask:02x}'
                     for name, select, umask, mask in table
                     if (label, name, select, umask, mask) not in listed
                     and (label, name, select, umask) not in ELSEWHERE]
            if not table or wrong:
                print(f'not ok {model} {label}:', ', '.join(wrong) or 'no rows')
                failed = True
            else:
                print(f'ok {model} {label}: {len(table)} events')
    return failed


if len(sys.argv) == 3 and sys.argv[1] == '--update':
    update(sys.argv[2])
else:
    sys.exit(check())
