# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#
# fish completion for vpmu. The words are those of bash's, which is installed beside it.

set -g __vpmu_bash (status dirname)/../../bash-completion/completions/vpmu

function __vpmu_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # The command after -- has a completion of its own.
    if contains -- -- $words
        complete -C (commandline -cp | string replace -r '^.*? -- +' '')
        return
    end
    for word in (bash $__vpmu_bash $words "$current" 2>/dev/null)
        if test "$word" = '<file>'
            __fish_complete_path $current
        else
            echo $word
        end
    end
end

complete -c vpmu -f -a '(__vpmu_complete)'
