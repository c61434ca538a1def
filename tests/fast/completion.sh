#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# timeout: 180
#
# Test bash completion, by the function that bash would call, and those of zsh and fish, as
# they are installed, where these shells are; every verb has its help and a man page that has
# each of its options.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/case.sh
. tests/case.sh
build=${VPMU_BUILD:-$PWD/build}
# shellcheck disable=SC1091 # in the tree
. tools/vpmu.bash

completes() { # NAME WANTED WORD...: the last word is the one to complete
	local name=$1 want=$2 found
	shift 2
	COMP_WORDS=("$build/vpmu" "$@") COMP_CWORD=$# COMPREPLY=()
	_vpmu
	found="${COMPREPLY[*]}"
	case_of "$name" "$([ "$found" = "$want" ] || echo "found '$found', not '$want'")"
}
completes verb 'timeline' ti
completes 'verb of help' 'decode' help de
completes option '--host-event' run --ho
completes 'a socket' 'tools/timeline.html' run --qmp tools/timeline.h
completes words 'tcg kvm' run --accel ''
completes policy 'shared' run --policy sh
completes model 'EPYC-Rome EPYC-Milan EPYC-Genoa' run --cpu EPYC
completes 'a case' 'counter-3' contention --explain counter-3
completes 'a verb of kvm' 'metrics' kvm m
completes 'an option of metrics' '--from' kvm metrics --f
completes file 'tools/timeline.html' timeline tools/timeline.h

# Other shells complete the same lines; behind each stands the line with its last word completed.
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT
DESTDIR=$dest meson install -C "$build" --no-rebuild --quiet >"$dest/log" 2>&1
share=$(dirname "$(find "$dest" -name bash-completion -print -quit)")
mkdir "$dest/home" "$dest/bin"
ln -s /bin/true "$dest/bin/vpmu-test-program"
ln -s "$build/vpmu" "$dest/bin/vpmu"
cat >"$dest/lines" <<'END'
vpmu ti	vpmu timeline
vpmu help de	vpmu help decode
vpmu run --ho	vpmu run --host-event
vpmu run --accel t	vpmu run --accel tcg
vpmu run --policy sh	vpmu run --policy shared
vpmu run --smp 2 --policy dir	vpmu run --smp 2 --policy direct
vpmu kvm metrics --f	vpmu kvm metrics --from
vpmu timeline tools/timeline.h	vpmu timeline tools/timeline.html
vpmu run -- vpmu-test-p	vpmu run -- vpmu-test-program
END

# Both ask bash's file, as a program. A command after -- is theirs, and so are files.
while IFS=$'\t' read -r typed wanted; do
	[[ $typed != *' -- '* ]] || continue
	read -ra words <<<"$typed"
	wanted=${wanted##* }
	[[ $wanted != */* ]] || wanted='<file>'
	found=$(PATH=$dest/bin:$PATH bash "$share/bash-completion/completions/vpmu" "${words[@]}" 2>&1 | xargs)
	case_of "as a program: $typed" "$([ "$found" = "$wanted" ] || echo "found '$found', not '$wanted'")"
done <"$dest/lines"

# A line, a tabulator and Enter on zsh's terminal, where vpmu prints its arguments.
cat >"$dest/zsh.py" <<'END'
import os, pty, re, select, sys, time

pid, terminal = pty.fork()
if pid == 0:
    os.execvp("zsh", ["zsh", "-d", "-i"])

def answer(line):
    """What is between < and > in the answer, within 30 seconds."""
    os.write(terminal, line.encode())
    text, end = "", time.monotonic() + 30
    while time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
            found = re.search("<got ([^>]*)>", text)
            if found:
                return found[1].strip()
    return f"no answer in {text[-200:]!r}"

answer("print '<''got it>'\n")
for line in open(sys.argv[1]):
    typed, wanted = line.rstrip("\n").split("\t")
    found = answer(f"{typed}\t\n")
    print(f"ok zsh: {typed}" if found == wanted else f"not ok zsh: {typed}: found '{found}', not '{wanted}'")
END
cat >"$dest/home/.zshrc" <<'END'
fpath=($SITE_FUNCTIONS $fpath)
autoload -Uz compinit
compinit -u -D
vpmu() { print -r -- "<got vpmu $*>" }
END
if command -v zsh >/dev/null; then
	SITE_FUNCTIONS=$share/zsh/site-functions HOME=$dest/home ZDOTDIR=$dest/home PATH=$dest/bin:$PATH \
		TERM=dumb python3 "$dest/zsh.py" "$dest/lines"
else
	echo 'skip zsh: not installed'
fi
if command -v fish >/dev/null; then
	while IFS=$'\t' read -r typed wanted; do
		found=$(XDG_DATA_DIRS=$share HOME=$dest/home PATH=$dest/bin:$PATH fish -c 'complete -C $argv' "$typed" 2>&1 | cut -f1)
		case_of "fish: $typed" "$([ "$found" = "${wanted##* }" ] || echo "found '$found', not '${wanted##* }'")"
	done <"$dest/lines"
else
	echo 'skip fish: not installed'
fi

for verb in $("$build/vpmu" --help | awk '/^  vpmu [a-z]+ +[^ -]/ { print $2 }'); do
	help=$("$build/vpmu" help "$verb" 2>&1) && [[ $help == "Usage: vpmu $verb"* ]]
	case_of "help $verb" "$([ $? = 0 ] || head -n 1 <<<"$help")"
	page=$(sed 's/\\-/-/g' "man/vpmu-$verb.1" 2>&1)
	missing=''
	while read -r option; do
		[[ $option == --help ]] || grep -qF -- "$option" <<<"$page" || missing+="$option "
	done < <(grep -oE '^ +(-., )?--[a-z-]+' <<<"$help" | grep -oE -- '--[a-z-]+')
	case_of "page of $verb" "${missing:+man/vpmu-$verb.1 lacks $missing}"
	case_of "page of $verb is listed" "$(grep -q "vpmu-$verb (1)" man/vpmu.1 || echo 'not in man/vpmu.1')"
done
