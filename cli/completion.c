/* remuda completion SHELL: a script for a shell. It has no words of its own: it asks `remuda __complete`
 * (complete.c) for each line, so that it is as old or new as the program. What that prints is taken as text,
 * line by line; nothing is evaluated. */
#include <stdio.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/version.h"
#include "cli/command/commands.h"

static const struct option_spec specs[] = { { 0 } };

const struct option_program command_completion_options = {
        .name = "remuda completion",
        .operands = "bash|zsh|fish",
        .operands_min = 1,
        .operands_max = 1,
        .summary = "Prints a script by which a shell completes the commands, options, values and names of "
                   "remuda.",
        .after = "  source <(remuda completion bash)      for this shell; also zsh\n"
                 "  remuda completion fish | source\n"
                 "`make install` and the packages put the scripts where shells find them. See "
                 "remuda-completion(1).\n",
        .specs = specs,
};

/* Bash cuts words at ':' and '=', and replaces the last piece alone; `kept` is what stands before it in its
 * word. */
static const char bash[] =
        "# Completion of remuda for bash; made by `remuda completion bash`.\n"
        "_remuda() {\n"
        "        local rest=${COMP_LINE:0:COMP_POINT} words=() kept='' piece word line directive='' i\n"
        "        for ((i = 0; i <= COMP_CWORD; i++)); do\n"
        "                piece=${rest#\"${rest%%[![:space:]]*}\"}\n"
        "                word=${COMP_WORDS[i]}\n"
        "                [ \"$i\" -lt \"$COMP_CWORD\" ] || word=$piece\n"
        "                if [ \"$i\" -gt 0 ] && [ \"${#piece}\" = \"${#rest}\" ]; then\n"
        "                        kept=${words[${#words[@]} - 1]}\n"
        "                        words[${#words[@]} - 1]+=$word\n"
        "                else\n"
        "                        kept=\n"
        "                        words+=(\"$word\")\n"
        "                fi\n"
        "                rest=${piece:${#word}}\n"
        "        done\n"
        "        case $word in [:=]) kept+=$word ;; esac\n"
        "        COMPREPLY=()\n"
        "        while IFS= read -r line; do\n"
        "                case $line in\n"
        "                :*) directive=$line ;;\n"
        "                *) line=${line%%$'\\t'*} COMPREPLY+=(\"${line#\"$kept\"}\") ;;\n"
        "                esac\n"
        "        done < <(command remuda __complete \"${words[@]:1}\" 2>/dev/null)\n"
        "        case $directive in\n"
        "        :0) compopt -o default ;;\n"
        "        :16) compopt -o dirnames ;;\n"
        "        :2 | :6) compopt -o nospace ;;\n"
        "        esac 2>/dev/null\n"
        "}\n"
        "complete -F _remuda remuda\n";

static const char zsh[] =
        "#compdef remuda\n"
        "# Completion of remuda for zsh; made by `remuda completion zsh`.\n"
        "_remuda() {\n"
        "        local -a lines values shown\n"
        "        local line value directive=\n"
        "        lines=(\"${(@f)$(command remuda __complete \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" "
        "2>/dev/null)}\")\n"
        "        for line in \"${lines[@]}\"; do\n"
        "                value=${line%%$'\\t'*}\n"
        "                case $line in\n"
        "                :*) directive=$line ;;\n"
        "                *$'\\t'*) values+=(\"$value\") shown+=(\"${(r:24:)value} ${line#*$'\\t'}\") ;;\n"
        "                ?*) values+=(\"$value\") shown+=(\"$value\") ;;\n"
        "                esac\n"
        "        done\n"
        "        case $directive in\n"
        "        :2 | :6) compadd -S '' -l -d shown -a values ;;\n"
        "        *) (( ${#values} )) && compadd -l -d shown -a values ;;\n"
        "        esac\n"
        "        (( ${#values} )) && return\n"
        "        compset -P '--*='\n"
        "        case $directive in\n"
        "        :0) _files ;;\n"
        "        :16) _files -/ ;;\n"
        "        esac\n"
        "}\n"
        "if [ \"${funcstack[1]}\" = _remuda ]; then _remuda \"$@\"; else compdef _remuda remuda; fi\n";

static const char fish[] =
        "# Completion of remuda for fish; made by `remuda completion fish`.\n"
        "function __remuda_complete\n"
        "        command -sq remuda; or return\n"
        "        set -l words (commandline -opc)\n"
        "        set -l token (commandline -ct)\n"
        "        set -l directive\n"
        "        set -l found\n"
        "        for line in (command remuda __complete $words[2..-1] \"$token\" 2>/dev/null)\n"
        "                switch $line\n"
        "                        case ':*'\n"
        "                                set directive $line\n"
        "                        case '*'\n"
        "                                set found yes\n"
        "                                printf '%s\\n' $line\n"
        "                end\n"
        "        end\n"
        "        set -q found[1]; and return\n"
        "        set -l kept (string match -r -- '^--[^=]*=' $token)\n"
        "        set -l rest (string replace -r -- '^--[^=]*=' '' $token)\n"
        "        switch \"$directive\"\n"
        "                case ':0'\n"
        "                        printf '%s\\n' \"$kept\"(__fish_complete_path \"$rest\")\n"
        "                case ':16'\n"
        "                        printf '%s\\n' \"$kept\"(__fish_complete_directories \"$rest\" '')\n"
        "        end\n"
        "end\n"
        "complete -c remuda -f -a '(__remuda_complete)'\n";

int command_completion(int argc, char **argv)
{
        static const struct {
                const char *shell, *script;
        } scripts[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
        struct {
                char none;
        } options;
        size_t operands;
        int r = options_start(&command_completion_options, REMUDA_VERSION, argc, argv, &options, &operands,
                              stdout, stderr);

        if (r >= 0)
                return r;
        for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
                if (strcmp(scripts[i].shell, argv[1]) == 0)
                        return fputs(scripts[i].script, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILED
                                                                                           : EXIT_DONE;
        fprintf(stderr, "remuda completion: no script for '%s'; there are bash, zsh and fish\n", argv[1]);
        return EXIT_USAGE;
}
