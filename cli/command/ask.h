/* Ask: a question of people (why does a pod wait, what if) put to the extender that runs: its options, its
 * leases, its ledger. Where none can be asked, the caller works it out from the store, and says why.
 *
 * It is asked at the address that was given (--extender, else REMUDA_EXTENDER), by plain HTTP; else, on a
 * cluster, by a port that the API server forwards to the replica that leads, with the rights of whoever asks:
 * the Lease LEADER_EXTENDER says which pod, and at which port of it. It takes 45 seconds at the longest: for
 * the Lease ten, and as long again where the API server asks for patience, ten for the port, fifteen to
 * answer.
 */
#pragma once

#include "base/options.h"
#include "cli/command/cluster_arguments.h"

#define ASK_WHO_BYTES 640

struct ask_arguments {
        const char *extender, *namespace_;
};

/* Rows for the command's own option table; `options_` has a member `ask` of struct ask_arguments. */
#define ASK_ARGUMENTS_ROWS(options_)                                                                         \
        { .name = "extender",                                                                                \
          .type = OPTION_STRING,                                                                             \
          .offset = offsetof(options_, ask.extender),                                                        \
          .value = "ADDR:PORT|none",                                                                         \
          .help = "whom to ask, or nobody but the store; else the one that leads" },                         \
        {                                                                                                    \
                .name = "extender-namespace", .type = OPTION_STRING,                                         \
                .offset = offsetof(options_, ask.namespace_), .value = "NS", .default_ = "remuda-system",    \
                .help = "where the one that leads runs"                                                      \
        }

enum { ASK_E_STORE = 1 };

struct ask_question {
        const char *path;   /* "/v1/VERB", with query */
        const json_t *body; /* POST; NULL = GET */
        const char *wanted; /* a member that every answer has */
};

/* ask_extender() - @ret_who: for the answer's "asked": who has answered, or that it is the store, and why not
 * the extender Return: 0 and a new reference; ASK_E_STORE: work it out, from the store; -ENOENT, -EBADMSG:
 * what the extender itself says of the question; from a given address also what made no answer. */
int ask_extender(const struct ask_arguments *arguments, const struct cluster_arguments *cluster,
                 const struct ask_question *question, json_t **ret, char ret_who[ASK_WHO_BYTES],
                 struct err *err);
