/* Cluster: the store's objects turned into a ledger, and pods turned into requests to it.
 *
 * Shared by the extender (a live ledger on its loop) and by the command line (one load, then requests). Owns
 * its store and its ledger. An object that cannot be read stops nothing: it is told to `trouble` and
 * `unreadable`, and its last account stands. A pod counts by what can be read of it, and where that is not
 * even its containers, as all the chips of its node. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "job/spec/program_table.h"
#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/ledger/ledger.h"
#include "scheduler-extender/wire/pod_json.h"
#include "store/store.h"

struct cluster;

struct cluster_options {
        const char *store, *kubeconfig;
        const char *const *namespaces; /* as struct store_options has them; borrowed */
        size_t namespace_count;
        struct rules rules;
        struct pod_json_policy policy; /* borrowed */
        const char *const
                *managed_resources; /* resources that count as chips besides the usual ones; borrowed */
        size_t managed_resource_count;
        const struct program_table *programs; /* borrowed; NULL = none */
        bool reads_classes;                   /* PriorityClasses are watched, too */
        bool reads_queues;                    /* and Kueue's Workloads and ResourceFlavors */
        bool reads_budgets;                   /* and disruption budgets, for `observed` */
        bool reads_templates;            /* and ResourceClaimTemplates: of claims that are still to be made */
        bool judge_age;                  /* false: nobody is stale (saved clusters) */
        void (*changed)(void *userdata); /* something in the ledger changed; may be NULL */
        /* what an agent tells, after the ledger has taken it; NULL = it is gone. May be NULL */
        void (*told)(void *userdata, const char *node, const struct inventory *inventory);
        /* a node's inventory says something else (or is gone), or it was heard of again; gained: it takes
         * more than before. And the labels of a Node object, NULL when it is gone. May be NULL */
        void (*node_changed)(void *userdata, const char *node, bool gained);
        void (*node_labels)(void *userdata, const char *node, const json_t *labels);
        void (*trouble)(void *userdata, const char *sentence); /* may be NULL */
        /* an object that cannot be read, or not wholly: said again when something else is wrong. May be NULL
         */
        void (*unreadable)(void *userdata, enum store_kind kind, const char *key, const char *sentence);
        /* cluster_refresh() is done; and what the ledger had wrong. May be NULL */
        void (*refreshed)(void *userdata);
        void (*drifted)(void *userdata, enum store_kind kind, const char *key, const char *sentence);
        bool (*may_commit)(void *userdata); /* this and the next as struct store_options has them */
        uint64_t commit_usec;
        /* an object of the store, after the ledger has taken it (NULL = it is gone); and: the first complete
         * list of a kind is in. May be NULL */
        void (*observed)(void *userdata, enum store_kind kind, const char *key, const json_t *object);
        void (*kind_synced)(void *userdata, enum store_kind kind);
        void *userdata;
};

int cluster_open(sd_event *loop, const struct cluster_options *options, struct cluster **ret,
                 struct err *err);
void cluster_close(struct cluster *cluster); /* accepts NULL */

/* cluster_load() - open, run the loop until the first complete lists are in, and return.
 * Return: 0; what store_open() says; -ETIMEDOUT after timeout_usec. */
int cluster_load(sd_event *loop, const struct cluster_options *options, uint64_t timeout_usec,
                 struct cluster **ret, struct err *err);

/* cluster_fork() - the same cluster with a copy of its ledger and no store, to try things on; close it before
 * the original. NULL when out of memory. */
struct cluster *cluster_fork(const struct cluster *cluster);

/* cluster_take() - an object as the store would tell it: Node, NodeAccelerators, Pod or TrainingJob.
 * Return: 0; -EBADMSG (it is wrong); -ENOTSUP (another kind). */
int cluster_take(struct cluster *cluster, const json_t *object, struct err *err);

struct ledger *cluster_ledger(struct cluster *cluster);
struct store *cluster_store(struct cluster *cluster);
const struct rules *cluster_rules(const struct cluster *cluster);
const struct ledger_program *cluster_programs(const struct cluster *cluster, size_t *ret_count);

/* cluster_is_emergency() - is a job of that namespace one? By its class, or by its urgency where the policy
 * lets the namespace say so. */
bool cluster_is_emergency(const struct cluster *cluster, const char *namespace_, const struct job *job);

/* cluster_class_value() - what a PriorityClass is worth; "" = the cluster's default one, else 0.
 * Return: 0; -ENOENT: there is no such class; -EAGAIN: they are not read yet. */
int cluster_class_value(const struct cluster *cluster, const char *name, int64_t *ret);

/* What accounts stand on: nothing is decided while one of these is not read, or old. TrainingJobs: what was
 * decided for them is leased. Claims: what they hold is not free. */
#define CLUSTER_NEEDED_KINDS                                                                                 \
        (1u << STORE_NODE | 1u << STORE_POD | 1u << STORE_INVENTORY | 1u << STORE_TRAINING_JOB |             \
         1u << STORE_RESOURCE_SLICE | 1u << STORE_RESOURCE_CLAIM)
bool cluster_is_ready(const struct cluster *cluster); /* the first complete lists of these are in */

/* cluster_unreadable() - objects of a kind that cannot be read (wholly) at present. *ret_example: the key of
 * one, or "". */
size_t cluster_unreadable(const struct cluster *cluster, enum store_kind kind, const char **ret_example);

/* cluster_refresh() - read the whole store anew and compare: the audit of the ledger, and what a new leader
 * does before it commits. */
void cluster_refresh(struct cluster *cluster);

/* cluster_every_second() - between two answers: which nodes are silent now (scheduler-extender/ledger/
 * liveness.h), and which names are used no more (ledger_names.h)? */
void cluster_every_second(struct cluster *cluster);
