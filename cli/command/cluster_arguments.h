/* Cluster options: the options that `nodes`, `explain` and `whatif` share, and the cluster they open. */
#pragma once

#include "base/options.h"
#include "base/text.h"
#include "cli/command/watching.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/ledger/name_numbers.h"

struct cluster_arguments {
        const char *store, *kubeconfig, *placement, *overflow, *emergency_namespaces, *emergency_classes,
                *programs;
        bool lend_reserve, take_from_regular;

        /* not on the command line: who goes on looking is told as struct cluster_options has it, also while
         * the cluster is loaded; NULL = nobody is */
        void (*told)(void *userdata, const char *node, const struct inventory *inventory);
        void (*observed)(void *userdata, enum store_kind kind, const char *key, const json_t *object);
        void (*changed)(void *userdata);
        void *userdata;
};

/* Rows for the command's own option table; `options_` has a member `cluster` of struct cluster_arguments. */
#define CLUSTER_ARGUMENTS_ROWS(options_)                                                                     \
        { .name = "store",                                                                                   \
          .type = OPTION_STRING,                                                                             \
          .offset = offsetof(options_, cluster.store),                                                       \
          .value = "dir:PATH|kubernetes",                                                                    \
          .default_ = "kubernetes",                                                                          \
          .help = "the cluster, live or saved" },                                                            \
                { .name = "kubeconfig",                                                                      \
                  .type = OPTION_STRING,                                                                     \
                  .offset = offsetof(options_, cluster.kubeconfig),                                          \
                  .value = "FILE",                                                                           \
                  .help = "for --store kubernetes" },                                                        \
                { .name = "placement",                                                                       \
                  .type = OPTION_CHOICE,                                                                     \
                  .offset = offsetof(options_, cluster.placement),                                           \
                  .value = "packed|uniform|largest-free|fastest",                                            \
                  .default_ = "packed",                                                                      \
                  .help = "as the extender was given it" },                                                  \
                { .name = "overflow",                                                                        \
                  .type = OPTION_STRING,                                                                     \
                  .offset = offsetof(options_, cluster.overflow),                                            \
                  .value = "DIRECTION[:PERCENT]",                                                            \
                  .default_ = "none",                                                                        \
                  .help = "as the extender was given it" },                                                  \
                { .name = "emergency-namespaces",                                                            \
                  .type = OPTION_STRING,                                                                     \
                  .offset = offsetof(options_, cluster.emergency_namespaces),                                \
                  .value = "A,B",                                                                            \
                  .help = "as the extender was given it" },                                                  \
                { .name = "emergency-classes",                                                               \
                  .type = OPTION_STRING,                                                                     \
                  .offset = offsetof(options_, cluster.emergency_classes),                                   \
                  .value = "A,B",                                                                            \
                  .help = "PriorityClasses that make an emergency" },                                        \
                { .name = "programs",                                                                        \
                  .type = OPTION_STRING,                                                                     \
                  .offset = offsetof(options_, cluster.programs),                                            \
                  .value = "FILE",                                                                           \
                  .help = "program table, as the extender was given it" },                                   \
                { .name = "lend-reserve",                                                                    \
                  .type = OPTION_BOOL,                                                                       \
                  .offset = offsetof(options_, cluster.lend_reserve),                                        \
                  .help = "as the extender was given it" },                                                  \
        {                                                                                                    \
                .name = "take-from-regular", .type = OPTION_BOOL,                                            \
                .offset = offsetof(options_, cluster.take_from_regular),                                     \
                .help = "as the extender was given it"                                                       \
        }

struct cluster_arguments_opened {
        sd_event *loop;
        struct cluster *cluster;
        char *words; /* the comma lists, cut */
        struct program_table programs;
        const char *namespaces[64], *classes[64];
        const char *store;
        const struct cluster_arguments *arguments; /* that it was opened by; borrowed */
        bool heard;   /* it has told of an object, or that there is none of a kind */
        bool refused; /* it has told of trouble */
        bool is_cluster;
        struct text none;   /* kinds that there is taken to be nothing of: told when the others have come */
        struct err refusal; /* it will not be told a kind by any try; code 0 = none */
        struct name_numbers said;
        struct watching *watching; /* told of changes and of trouble from now on; NULL = nobody watches */
};

/* cluster_arguments_open() - load the cluster; ages are not judged. cluster_arguments_close() in any case. A
 * store that refuses and tells nothing is given up after twenty seconds, another that does not tell all after
 * a minute. A cluster whose API
 * server does not answer, or refuses a kind, is given up at once (store/kubernetes/kube_reach.h).
 * Return: 0 or a negative errno with *err. */
int cluster_arguments_open(const struct cluster_arguments *arguments, struct cluster_arguments_opened *ret,
                           struct err *err);
void cluster_arguments_close(struct cluster_arguments_opened *opened);
