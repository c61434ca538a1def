#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""vpmu contention against tests/fast/contention.tsv, row by row.

Every cell and every case must have a row that looks at it, and the text output, with
and without --explain, must agree with --json.
"""
import itertools
import json
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
VPMU = os.path.join(os.environ.get('VPMU_BUILD', os.path.join(ROOT, 'build')), 'vpmu')
TABLE = os.path.join(ROOT, 'tests/fast/contention.tsv')
COLUMNS = 100


def contention(*args):
    return subprocess.run([VPMU, 'contention', *args], capture_output=True, text=True,
                          timeout=30, check=False)


def report(name, wrong):
    print(f'not ok {name}: {wrong}' if wrong else f'ok {name}')


def cell_name(cell):
    return '/'.join(cell[k] for k in ('policy', 'resource', 'incumbent', 'newcomer'))


def states(sides):
    return f"{sides['incumbent_state']} {sides['newcomer_state']}"


def triggers(back):
    return ' '.join(t for t, came in back.items() if came)


FIELDS = {
    'states': states,
    'loser': lambda cell: cell['loser'],
    'held': lambda cell: triggers(cell['back']['held']),
    'released': lambda cell: triggers(cell['back']['released']),
    'in_guest': lambda cell: states(cell['in_guest']),
    'in_host': lambda cell: states(cell['in_host']),
    'counting_guests': lambda cell: ' '.join(
        cell['counting_guests'][side] or '-' for side in ('incumbent', 'newcomer')),
}


def expand(name):
    """a+b/c: a/c and b/c."""
    return ['/'.join(p) for p in itertools.product(*(p.split('+') for p in name.split('/')))]


def rows():
    with open(TABLE) as f:
        for number, line in enumerate(f, 1):
            if line.strip() and not line.startswith('#'):
                name, field, expected, _ = line.rstrip('\n').split('\t')
                yield number, name, field, expected


def check_row(cells, cases, name, field, expected):
    for one in expand(name):
        if one in cells:
            found = FIELDS[field](cells[one])
        elif one in cases:
            found = cases[one]['result'].get(field)
        else:
            return f'there is no {one}'
        if found != expected:
            return f'{one} is "{found}", expected "{expected}"'
    return None


def check_complete(cells, cases):
    """Check that the table's names and fields are complete."""
    seen = {(one, field) for _, name, field, _ in rows() for one in expand(name)}
    for name in cells:
        if (name, 'states') not in seen or (name, 'loser') not in seen and \
                not name.startswith('mediated'):
            return f'no row looks at {name}'
    for name in cases:
        if not any(one == name for one, _ in seen):
            return f'no row looks at {name}'
    if len(cells) != 3 * 5 * 16:
        return f'{len(cells)} cells, expected 240'
    return None


def check_text(cells, cases):
    text = contention().stdout
    lines = text.splitlines()
    for line in lines:
        if len(line) > COLUMNS:
            return f'wider than {COLUMNS} columns: {line}'
    shown = [line for line in lines if line[2:4] in ('CP', 'TP', 'CF', 'TF') and line[:2] == '  ']
    wanted = [c for n, c in cells.items() if not n.startswith('direct/')]
    if len(shown) != len(wanted):
        return f'{len(shown)} lines for {len(wanted)} cells'
    for line, cell in zip(shown, wanted):
        words = line.replace('*', ' ').split()
        back = triggers(cell['back']['released']) or '-'
        if words[0] != cell['incumbent'] or cell['newcomer'] not in words[1:] or \
                cell['loser'] not in words or not line.endswith('  ' + back):
            return f'{cell_name(cell)} is shown as: {line}'
    for name in cases:
        if f'\n{name}: ' not in text:
            return f'{name} is not shown'
    return None


def check_explain(cells, cases):
    for name in list(cases) + list(cells)[::7]:
        text = contention('--explain', name)
        again = contention('--explain', name, '--json')
        if text.returncode or again.returncode:
            return f'--explain {name} fails: {text.stderr}{again.stderr}'
        one = json.loads(again.stdout)
        one = (one['cells'] + one['cases'])[0]
        known = cells.get(name) or cases[name]
        if not one['steps'] or any(one[key] != known[key] for key in known):
            return f'--explain {name} --json is not what --json says'
        if any(len(line) > COLUMNS for line in text.stdout.splitlines()):
            return f'--explain {name} is wider than {COLUMNS} columns'
    return None


def check_names(cells, cases):
    listed = [line.split()[0] for line in contention('--list').stdout.splitlines()]
    if sorted(listed) != sorted([*cells, *cases]):
        return '--list is not what --json has'
    for wrong, near in (('shared/gp/CP/XP', 'shared/gp/CP/'), ('counter-33', 'counter-3'),
                        ('shared/gp/CP/TP/', 'shared/gp/CP/TP'), ('mediate-vm', 'mediated-vm')):
        r = contention('--explain', wrong)
        if r.returncode != 125 or f'did you mean {near}' not in r.stderr or r.stdout:
            return f'--explain {wrong}: status {r.returncode}, {r.stderr or r.stdout}'
    for args in (['x'], ['--explain'], ['--explain', ''], ['--explain', '%s%n' * 99]):
        r = contention(*args)
        if r.returncode != 125 or r.stdout:
            return f'{args}: status {r.returncode}'
    return None


def main():
    if not os.path.exists(VPMU):
        print(f'skip contention: {VPMU} is not built')
        return
    r = contention('--json')
    if r.returncode:
        print(f'not ok json: status {r.returncode}, {r.stderr.strip()}')
        return
    table = json.loads(r.stdout)
    cells = {cell_name(c): c for c in table['cells']}
    cases = {c['id']: c for c in table['cases']}
    for number, name, field, expected in rows():
        report(f'line {number}: {name} {field}',
               check_row(cells, cases, name, field, expected))
    report('complete', check_complete(cells, cases))
    report('repeats', None if contention('--json').stdout == r.stdout else 'differs')
    report('text', check_text(cells, cases))
    report('explain', check_explain(cells, cases))
    report('names', check_names(cells, cases))


if __name__ == '__main__':
    sys.exit(main())
