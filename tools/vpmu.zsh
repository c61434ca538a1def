#compdef vpmu
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# zsh completion for vpmu. Installed as _vpmu; the words are those of bash's, beside it.

local file=${functions_source[_vpmu]:A:h}/../../bash-completion/completions/vpmu
local -a found
local end=${words[(i)--]}

# The command after -- has a completion of its own.
if (( end < CURRENT )); then
	shift $end words
	(( CURRENT -= end ))
	_normal
	return
fi
found=("${(@f)$(bash "$file" "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
if [[ $found[1] = '<file>' ]]; then
	_files
else
	compadd -- $found
fi
