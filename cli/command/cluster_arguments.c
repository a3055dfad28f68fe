/* The extender's own settings as a command is given them, and the cluster loaded by them. */
#include "cli/command/cluster_arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/program_file.h"
#include "base/text.h"
#include "io/loop.h"
#include "job/plan/job_lease.h"
#include "scheduler-extender/decide/overflow.h"

#define LOAD_USEC 60000000u

static void print_trouble(void *userdata, const char *sentence)
{
        (void) userdata;
        fprintf(stderr, "remuda: %s\n", sentence);
}

/* What was decided for jobs is leased here as in the extender. */
static void on_observed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        const struct cluster_arguments_opened *opened = userdata;

        if (kind == STORE_TRAINING_JOB)
                job_lease_observe(opened->cluster, key, object);
}

/* Cuts "a,b" in place of a copy. Return: how many words. */
static size_t cut(char *text, const char **words, size_t max)
{
        size_t count = 0;

        while (text != NULL && *text != '\0' && count < max) {
                char *comma = strchrnul(text, ',');
                bool last = *comma == '\0';

                *comma = '\0';
                if (*text != '\0')
                        words[count++] = text;
                text = last ? NULL : comma + 1;
        }
        return count;
}

int cluster_arguments_open(const struct cluster_arguments *a, struct cluster_arguments_opened *ret,
                           struct err *err)
{
        struct cluster_options options = { .store = a->store,
                                           .kubeconfig = a->kubeconfig,
                                           .trouble = print_trouble,
                                           .observed = on_observed,
                                           .userdata = ret };
        const char *namespaces = a->emergency_namespaces == NULL ? "" : a->emergency_namespaces;
        const char *classes = a->emergency_classes == NULL ? "" : a->emergency_classes;
        int r;

        *ret = (struct cluster_arguments_opened){ 0 };
        options.rules = (struct rules){ .lend_reserve = a->lend_reserve,
                                        .takes = a->take_from_regular ? LEDGER_PODS_TAKES_PREEMPTIBLE
                                                                      : LEDGER_PODS_TAKES_BORROWERS,
                                        .lease_usec = RULES_LEASE_SECONDS * UINT64_C(1000000),
                                        .lease_share_percent = RULES_LEASE_SHARE_PERCENT,
                                        .hold_usec = RULES_HOLD_SECONDS * UINT64_C(1000000) };
        if (placement_parse(a->placement, &options.rules.placement) < 0 ||
            overflow_parse(a->overflow, &options.rules.overflow, &options.rules.overflow_percent) < 0)
                return err_set(err, -EINVAL,
                               "--overflow: must be none, single-to-multi, multi-to-single or both, with an "
                               "optional "
                               ":PERCENT, not '%s'",
                               a->overflow);
        ret->words = malloc(strlen(namespaces) + strlen(classes) + 2);
        if (ret->words == NULL)
                return err_set(err, -ENOMEM, "no memory");
        memcpy(ret->words, namespaces, strlen(namespaces) + 1);
        memcpy(ret->words + strlen(namespaces) + 1, classes, strlen(classes) + 1);
        options.policy.emergency_class_count = cut(ret->words + strlen(namespaces) + 1, ret->classes, 64);
        options.policy.emergency_namespace_count = cut(ret->words, ret->namespaces, 64);
        options.policy.emergency_namespaces = ret->namespaces;
        options.policy.emergency_classes = ret->classes;
        r = a->programs == NULL ? 0 : program_file_load(a->programs, &ret->programs, err);
        if (r < 0)
                return r;
        options.programs = &ret->programs;
        r = loop_new(&ret->loop, err);
        return r < 0 ? r : cluster_load(ret->loop, &options, LOAD_USEC, &ret->cluster, err);
}

void cluster_arguments_close(struct cluster_arguments_opened *opened)
{
        cluster_close(opened->cluster);
        sd_event_unref(opened->loop);
        free(opened->words);
        program_table_free(&opened->programs);
        *opened = (struct cluster_arguments_opened){ 0 };
}
