/* Settings: what the configuration file and the comma lists of the command line say, as the rules and
 * policies that they stand for. */
#pragma once

#include "job/spec/program_table.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/server/server_options.h"
#include "store/leader.h"

#define SETTINGS_LIST_MAX 64

/* Owns its strings. */
struct settings {
        char *emergency_namespaces[SETTINGS_LIST_MAX], *emergency_classes[SETTINGS_LIST_MAX];
        char *managed_resources[SETTINGS_LIST_MAX], *pull_secrets[SETTINGS_LIST_MAX];
        char *namespaces[SETTINGS_LIST_MAX]; /* sorted, none twice */
        size_t namespace_count;
        size_t emergency_namespace_count, emergency_class_count, managed_resource_count, pull_secret_count;
        struct program_table programs;
        struct rules rules;
};

int settings_read(const struct server_options *options, struct settings *ret, struct err *err);
void settings_free(struct settings *settings);

/* settings_cluster() - how a cluster is opened by them; no callbacks. Borrows both. */
struct cluster_options settings_cluster(const struct settings *settings,
                                        const struct server_options *options);

/* settings_leader() - how a leader of that name is opened by them; no callbacks. Borrows both. */
struct leader_options settings_leader(const struct server_options *options, const char *name);
