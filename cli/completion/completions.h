/* Completions: how an unfinished command line of `remuda` can go on, by the tables of commands and options
 * alone; where only what is in a store or on a machine can say, whose names are wanted.
 *
 * Pure but for the heap. What is printed is the protocol of cobra's programs, which kubectl speaks with its
 * plugins: CANDIDATE[<tab>what it is] a line, then `:` and a sum of directives. */
#pragma once

#include "base/text.h"
#include "cli/command/command.h"
#include "cli/completion/options_cursor.h"

enum completions_directive {
        COMPLETIONS_FILES = 0,    /* files, where there is no candidate */
        COMPLETIONS_NO_SPACE = 2, /* the candidate goes on */
        COMPLETIONS_NO_FILES = 4, /* nothing but the candidates */
        COMPLETIONS_FOLDERS = 16, /* folders, where there is no candidate */
};

enum completions_names {
        COMPLETIONS_NONE,
        COMPLETIONS_NODES,
        COMPLETIONS_PODS,      /* of the namespace that is named */
        COMPLETIONS_QUALIFIED, /* NAMESPACE/NAME of pods */
        COMPLETIONS_JOBS,
        COMPLETIONS_NAMESPACES,
        COMPLETIONS_DEVICES, /* ids */
        COMPLETIONS_RESOURCES,
        COMPLETIONS_MODELS,     /* networks that are known by name */
        COMPLETIONS_SUBFOLDERS, /* of "dir:PATH" */
};

struct completions {
        struct options_cursor cursor; /* program == NULL: the line has not come to a command with options */
        struct text lines;            /* completions_free() */
        unsigned directive;
        enum completions_names names; /* what the caller finds, and adds */
        const char *typed;            /* what they begin with */
        const char *before;           /* what stands before each, part of `typed`: "pod/" */
        size_t count, unfinished;
};

/* completions_find() - @words: behind the program's name; the last is unfinished. They are borrowed. */
void completions_find(const struct command *table, const char *const *words, size_t count,
                      struct completions *ret);

/* completions_add() - `before` and @name, where it begins with what is typed. A name that a shell or a
 * terminal might take for more than a name (nothing but letters, digits, '.', '_', ':', '/', '@', '+' and '-'
 * is taken) is left out: who has such names types them. */
void completions_add(struct completions *completions, const char *name);

/* completions_end() - the last line, when all are added. */
void completions_end(struct completions *completions);
void completions_free(struct completions *completions);
