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
#include "store/kubernetes/kube_reach.h"
#include "store/store.h"

#define LOAD_USEC   60000000u
#define SILENT_USEC 5000000u  /* then it is said that nothing has come */
#define DEAD_USEC   20000000u /* then nothing will, from who has refused */

/* How many of the characters are a number of milliseconds? */
static size_t duration_length(const char *text)
{
        size_t digits = strspn(text, "0123456789");

        return text_starts_with(text + digits, " ms") || text_starts_with(text + digits, " milliseconds")
                       ? digits
                       : 0;
}

/* Each kind is listed by itself and tried again every second: what they all meet is said once, however many
 * milliseconds it took. Another number is other news: 503 is not 401. */
static bool is_news(struct cluster_arguments_opened *opened, const char *sentence)
{
        const char *why = text_starts_with(sentence, "list ") ? strstr(sentence, ": ") : NULL;
        char key[256];
        size_t size = 0;

        if (why == NULL)
                return true;
        while (why[0] != '\0' && size < sizeof(key) - 1) {
                why += duration_length(why);
                if (why[0] != '\0')
                        key[size++] = *why++;
        }
        key[size] = '\0';
        if (name_numbers_get(&opened->said, key) != 0)
                return false;
        (void) name_numbers_set(&opened->said, key, 1);
        return true;
}

static void print_trouble(void *userdata, const char *sentence)
{
        struct cluster_arguments_opened *opened = userdata;
        int refusal = kube_reach_refusal(sentence);

        if (opened->watching != NULL) { /* it was there: it will be again */
                if (kube_reach_is_lost(sentence))
                        watching_trouble(opened->watching, sentence);
                else
                        fprintf(stderr, "remuda: %s\n", sentence);
                return;
        }
        opened->refused = true;
        if (opened->refusal.code != 0)
                return;
        if (opened->is_cluster &&
            refusal < 0) { /* the next kind is refused as well: it is said once, at the end */
                (void) err_set(&opened->refusal, refusal, "the API server: %s", sentence);
                (void) sd_event_exit(opened->loop, refusal);
        } else if (is_news(opened, sentence)) {
                if (kube_reach_is_none(sentence))
                        text_printf(&opened->none, "remuda: %s\n", sentence);
                else
                        fprintf(stderr, "remuda: %s\n", sentence);
        }
}

static void on_silent(void *userdata)
{
        const struct cluster_arguments_opened *opened = userdata;

        if (!opened->heard)
                fprintf(stderr, "remuda: the store '%s' has told nothing yet; it has %u seconds more\n",
                        opened->store, ((opened->refused ? DEAD_USEC : LOAD_USEC) - SILENT_USEC) / 1000000);
}

static void on_dead(void *userdata)
{
        const struct cluster_arguments_opened *opened = userdata;

        if (!opened->heard && opened->refused)
                (void) sd_event_exit(opened->loop, -ETIMEDOUT);
}

/* Who has told something, or says nothing wrong, is given the whole time: an API server under load takes up
 * to a minute for its first answer. */
static int load(struct cluster_arguments_opened *opened, const struct cluster_options *options,
                struct err *err)
{
        struct cluster_options all = *options;
        sd_event_source *silent = NULL, *dead = NULL;
        int r = loop_after(opened->loop, SILENT_USEC, on_silent, opened, &silent);

        all.reads_templates = true;
        if (r == 0)
                r = loop_after(opened->loop, DEAD_USEC, on_dead, opened, &dead);
        r = r < 0 ? err_set(err, r, "no timer: %s", strerrordesc_np(-r))
                  : cluster_load(opened->loop, &all, LOAD_USEC, &opened->cluster, err);
        if (r < 0 && opened->refusal.code != 0)
                *err = opened->refusal; /* the reason of the others, too */
        else if (opened->none.data != NULL)
                fputs(opened->none.data, stderr);
        sd_event_source_disable_unref(silent);
        sd_event_source_disable_unref(dead);
        return r;
}

/* What was decided for jobs is leased here as in the extender. */
static void on_observed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct cluster_arguments_opened *opened = userdata;

        opened->heard = true;
        if (kind == STORE_TRAINING_JOB)
                job_lease_observe(opened->cluster, key, object);
        if (opened->arguments->observed != NULL)
                opened->arguments->observed(opened->arguments->userdata, kind, key, object);
}

static void on_told(void *userdata, const char *node, const struct inventory *inventory)
{
        const struct cluster_arguments *a = ((struct cluster_arguments_opened *) userdata)->arguments;

        if (a->told != NULL)
                a->told(a->userdata, node, inventory);
}

static void on_changed(void *userdata)
{
        const struct cluster_arguments_opened *opened = userdata;

        if (opened->watching != NULL)
                watching_changed(opened->watching);
        if (opened->arguments->changed != NULL)
                opened->arguments->changed(opened->arguments->userdata);
}

/* Of a kind there may be nothing to observe. */
static void on_kind_synced(void *userdata, enum store_kind kind)
{
        (void) kind;
        ((struct cluster_arguments_opened *) userdata)->heard = true;
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
                                           .changed = on_changed,
                                           .trouble = print_trouble,
                                           .told = on_told,
                                           .observed = on_observed,
                                           .kind_synced = on_kind_synced,
                                           .userdata = ret };
        const char *namespaces = a->emergency_namespaces == NULL ? "" : a->emergency_namespaces;
        const char *classes = a->emergency_classes == NULL ? "" : a->emergency_classes;
        int r;

        *ret = (struct cluster_arguments_opened){ .store = a->store, .arguments = a };
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
        ret->is_cluster = store_directory(a->store) == NULL;
        r = ret->is_cluster ? kube_reach(a->kubeconfig, err) : 0;
        if (r == 0)
                r = loop_new(&ret->loop, err);
        return r < 0 ? r : load(ret, &options, err);
}

void cluster_arguments_close(struct cluster_arguments_opened *opened)
{
        cluster_close(opened->cluster);
        sd_event_unref(opened->loop);
        free(opened->words);
        program_table_free(&opened->programs);
        name_numbers_free(&opened->said);
        text_free(&opened->none);
        *opened = (struct cluster_arguments_opened){ 0 };
}
