# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# bash completion for vpmu: verbs and options are what vpmu itself prints as its help.
# Those for zsh and fish execute this file with the words of a line, and read completions of
# the last one, one a line; "<file>" is for them to complete.

# Print the completions of an option's argument, "tcg|kvm", "FILE" or "MODEL" in the help.
_vpmu_argument() { # KIND
	case $1 in
	FILE* | DIR* | PATH) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	MODEL) mapfile -t COMPREPLY < <(compgen -W "Icelake-Server SapphireRapids GraniteRapids
		ClearwaterForest Skylake-Server Skylake-Client Cascadelake-Server Cooperlake Broadwell
		Haswell IvyBridge SandyBridge Westmere Nehalem Penryn Conroe Denverton Snowridge
		EPYC-Rome EPYC-Milan EPYC-Genoa" -- "$cur") ;;
	KIND) mapfile -t COMPREPLY < <(compgen -W 'arch pv pv,abi=2010 both none' -- "$cur") ;;
	POLICY) mapfile -t COMPREPLY < <(compgen -W 'direct shared mediated' -- "$cur") ;;
	CASE) mapfile -t COMPREPLY < <(compgen -W "$("$vpmu" contention --list 2>/dev/null |
		awk '{ print $1 }')" -- "$cur") ;;
	*'|'*) mapfile -t COMPREPLY < <(compgen -W "${1//|/ }" -- "$cur") ;;
	esac
}

_vpmu() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local vpmu=${COMP_WORDS[0]} verb=${COMP_WORDS[1]:-} help kind i
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ] || { [ "$verb" = help ] && [ "$COMP_CWORD" = 2 ]; }; then
		mapfile -t COMPREPLY < <(compgen -W "help $("$vpmu" --help 2>/dev/null |
			awk '/^  vpmu [a-z]+ +[^ -]/ { print $2 }')" -- "$cur")
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then
			# Complete the command's own arguments if bash-completion is
			# there.
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			else
				mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			fi
			return
		fi
	done
	help=$("$vpmu" "$verb" --help 2>/dev/null) || return
	if [[ $prev == -* ]]; then
		kind=$(awk -v o="$prev" '/^ +-/ { for (i = 1; i < NF && i < 4; i++)
			if ($i == o || $i == o ",") { sub(/^.*--[a-z-]+ ?/, ""); if (!/^ /) print $1 } }' <<<"$help")
		if [ -n "$kind" ]; then
			_vpmu_argument "$kind"
			return
		fi
	fi
	if [ "$verb $COMP_CWORD" = 'kvm 2' ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(sed -n 's/^.* vpmu kvm \([a-z]*\) .*/\1/p' <<<"$help")" -- "$cur")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(grep -oE '^ +(-., )?--[a-z-]+' <<<"$help" |
			grep -oE -- '--[a-z-]+')" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}

if [ "${BASH_SOURCE[0]}" != "$0" ]; then
	complete -o bashdefault -F _vpmu vpmu
	return
fi
compgen() {
	if [ "$1" = -f ]; then echo '<file>'; else builtin compgen "$@"; fi
}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_vpmu
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}"
