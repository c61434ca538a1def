#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The event tables against the vendor's own lists.

tests/fast/perfmon.tsv is what Intel's lists (github.com/intel/perfmon) say about
every event select that our tables mention; `models.py --update DIR`, DIR a
checkout, writes it anew. Names, encodings and counters must agree.

AMD's are held against libpfm4 where that is installed (Debian: libpfm4): encodings,
and what those count that we count. It has names of its own, and no counters.
"""
import ctypes
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

# AMD's models as libpfm4 calls them.
PFM = {
    'zen2': 'amd64_fam17h_zen2',
    'zen3': 'amd64_fam19h_zen3',
    'zen4': 'amd64_fam19h_zen4',
}

# Its names of the events that we count, by the models that have them.
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

# What libpfm4 lacks or has otherwise, with the reason why it is in our tables.
PERF_CACHE = "Linux, arch/x86/events/amd/core.c: perf's cache events use it"
PMU_EVENTS = "Linux, tools/perf/pmu-events: every bit of the unit mask, also unused ones"
PFM_ELSEWHERE = {
    (0x40, 0x00): PERF_CACHE,
    (0x80, 0x00): PERF_CACHE,
    (0x81, 0x00): PERF_CACHE,
    (0x85, 0xff): PERF_CACHE,
    (0x43, 0xff): PMU_EVENTS,
    (0x44, 0xff): PMU_EVENTS,
    (0x4b, 0xff): PMU_EVENTS,
    (0x60, 0xf9): 'Linux, tools/perf/pmu-events; for Zen 3 libpfm4 lacks bit 0',
    (0x60, 0xff): 'Linux, arch/x86/events/amd/core.c: cache-references',
    (0xaa, 0xff): PMU_EVENTS,
    (0xfff, 0x00): 'Linux, arch/x86/events/amd/core.c: the upper half of a wide event',
}

MASKS = {'GP8': 0xff, 'GP6': 0x3f, 'GP4': 0x0f, 'EVEN6': 0x15}
ROW = re.compile(r'\b(?:ROW|MEANT|CLOCK|TOLD|NAMED)\((0x\w+), (0x\w+), "([^"]+)", ([^)]*)\)')
COUNTED = re.compile(r'\b(?:ROW|MEANT|CLOCK)\(0x\w+, 0x\w+, "([^"]+)"')
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


class PmuInfo(ctypes.Structure):
    """pfm_pmu_info_t"""
    _fields_ = [('name', ctypes.c_char_p), ('desc', ctypes.c_char_p),
                ('size', ctypes.c_size_t), ('pmu', ctypes.c_int), ('type', ctypes.c_int),
                ('nevents', ctypes.c_int), ('first_event', ctypes.c_int),
                ('max_encoding', ctypes.c_int), ('num_cntrs', ctypes.c_int),
                ('num_fixed_cntrs', ctypes.c_int), ('flags', ctypes.c_uint32)]


class EventInfo(ctypes.Structure):
    """pfm_event_info_t"""
    _fields_ = [('name', ctypes.c_char_p), ('desc', ctypes.c_char_p),
                ('equiv', ctypes.c_char_p), ('size', ctypes.c_size_t),
                ('code', ctypes.c_uint64), ('pmu', ctypes.c_int), ('dtype', ctypes.c_int),
                ('idx', ctypes.c_int), ('nattrs', ctypes.c_int),
                ('reserved', ctypes.c_int), ('flags', ctypes.c_uint32)]


class AttrInfo(ctypes.Structure):
    """pfm_event_attr_info_t"""
    _fields_ = [('name', ctypes.c_char_p), ('desc', ctypes.c_char_p),
                ('equiv', ctypes.c_char_p), ('size', ctypes.c_size_t),
                ('code', ctypes.c_uint64), ('type', ctypes.c_int), ('idx', ctypes.c_int),
                ('ctrl', ctypes.c_int), ('flags', ctypes.c_uint32),
                ('dfl', ctypes.c_uint64)]


PFM_PMU_MAX = 1000  # more than any libpfm4 has
PFM_ATTR_UMASK = 1


def pfm_events(lib, wanted):
    """{event select: (name, [unit masks])} of a PMU, empty if it is not known."""
    events = {}
    for number in range(PFM_PMU_MAX):
        pmu = PmuInfo(size=ctypes.sizeof(PmuInfo))
        if lib.pfm_get_pmu_info(number, ctypes.byref(pmu)) or pmu.name != wanted.encode():
            continue
        at = pmu.first_event
        while at != -1 and len(events) <= pmu.nevents:
            event = EventInfo(size=ctypes.sizeof(EventInfo))
            if lib.pfm_get_event_info(at, 0, ctypes.byref(event)):
                break
            masks = []
            for i in range(event.nattrs):
                attr = AttrInfo(size=ctypes.sizeof(AttrInfo))
                if not lib.pfm_get_event_attr_info(at, i, 0, ctypes.byref(attr)) \
                        and attr.type == PFM_ATTR_UMASK:
                    masks.append(attr.code)
            events[event.code] = event.name.decode(), masks
            at = lib.pfm_get_event_next(at)
    return events


def pfm_wrong(events, name, select, umask, counted):
    """Why libpfm4 does not have this row so, or None."""
    if (select, umask) in PFM_ELSEWHERE:
        return None
    if select not in events:
        return 'not known'
    its, masks = events[select]
    union = 0
    for mask in masks:
        if mask & ~umask == 0:
            union |= mask
    if union != umask:
        return f'{its} has no unit mask {umask:02x}'
    if counted and PFM_COUNTED.get(name) != its:
        return f'is its {its}'
    return None


def check_pfm():
    try:
        lib = ctypes.CDLL('libpfm.so.4')
    except OSError:
        print('skip AMD: no libpfm.so.4; package libpfm4 has it')
        return False
    if lib.pfm_initialize():
        print('skip AMD: libpfm4 does not start')
        return False
    failed = False
    for model, pmu in PFM.items():
        events = pfm_events(lib, pmu)
        if not events:
            print(f'skip {model}: libpfm4 has no {pmu}')
            continue
        with open(os.path.join(MODELS, model + '.c')) as f:
            counted = set(COUNTED.findall(f.read()))
        table = list(rows(model))
        wrong = [f'{name} {select:02x}/{umask:02x} {why}' for name, select, umask, _ in table
                 for why in [pfm_wrong(events, name, select, umask, name in counted)] if why]
        wrong += [f'{name} on counters {mask:02x}' for name, select, _, mask in table
                  if mask != (0x15 if select == 0x03 else 0x3f)]
        if not table or not counted or wrong:
            print(f'not ok {model} libpfm4:', ', '.join(wrong) or 'no rows')
            failed = True
        else:
            print(f'ok {model} libpfm4: {len(table)} events')
    return failed


if len(sys.argv) == 3 and sys.argv[1] == '--update':
    update(sys.argv[2])
else:
    sys.exit(check() | check_pfm())
