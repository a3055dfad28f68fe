/* The configuration file and the comma lists of the command line, as the rules and policies they stand for.
 */
#include "scheduler-extender/server/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/object_name.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "io/read_file.h"
#include "store/leader.h"
#include "store/store.h"

#define CONFIG_MAX_BYTES ((size_t) 1 << 20)

static int add_word(char **list, size_t *count, const char *word, size_t bytes)
{
        if (*count == SETTINGS_LIST_MAX)
                return -E2BIG;
        list[*count] = strndup(word, bytes);
        if (list[*count] == NULL)
                return -ENOMEM;
        (*count)++;
        return 0;
}

static int split_words(const char *text, char **list, size_t *count)
{
        int r = 0;

        while (text != NULL && *text != '\0' && r == 0) {
                const char *end = strchrnul(text, ',');

                if (end > text)
                        r = add_word(list, count, text, (size_t) (end - text));
                text = *end == ',' ? end + 1 : end;
        }
        return r;
}

static int read_list(const struct json_field *root, const char *name, char **list, size_t *count,
                     struct err *err)
{
        struct json_field array;
        int r = json_field_array(root, name, SETTINGS_LIST_MAX, &array, err);

        if (r != 0)
                return r < 0 ? r : 0;
        for (size_t i = 0; i < json_field_count(&array); i++) {
                struct json_field at = json_field_at(&array, i);

                if (!json_is_string(at.value))
                        return json_field_error(&at, err, "must be a string");
                r = add_word(list, count, json_string_value(at.value), json_string_length(at.value));
                if (r < 0)
                        return json_field_error(&at, err, "too many entries");
        }
        return 0;
}

static int read_config(const char *path, struct settings *settings, struct err *err)
{
        static const char *const known[] = { "emergencyPriorityClasses", "emergencyNamespaces",
                                             "managedResources", NULL };
        CLEANUP(free_p) char *bytes = NULL;
        json_t *json = NULL;
        struct json_field root;
        size_t size = 0;
        int r = read_file(path, CONFIG_MAX_BYTES, &bytes, &size, err);

        if (r < 0)
                return err_wrap(err, r, "--config");
        r = yaml_parse(bytes, size, &json, err);
        root = json_field_root(json);
        if (r == 0)
                r = json_field_is_object(&root, err);
        if (r == 0)
                r = json_field_only(&root, known, JSON_FIELD_UNKNOWN, err);
        if (r == 0)
                r = read_list(&root, "emergencyPriorityClasses", settings->emergency_classes,
                              &settings->emergency_class_count, err);
        if (r == 0)
                r = read_list(&root, "emergencyNamespaces", settings->emergency_namespaces,
                              &settings->emergency_namespace_count, err);
        if (r == 0)
                r = read_list(&root, "managedResources", settings->managed_resources,
                              &settings->managed_resource_count, err);
        json_decref(json);
        return r < 0 ? err_wrap(err, -EINVAL, "--config '%s'", path) : 0;
}

static int read_rules(const struct server_options *options, struct rules *ret, struct err *err)
{
        *ret = (struct rules){
                .stale_after_usec = (uint64_t) options->stale_after_sec * 1000000,
                .lend_reserve = options->lend_reserve,
                .takes = options->no_evict            ? LEDGER_PODS_TAKES_NOBODY
                         : options->take_from_regular ? LEDGER_PODS_TAKES_PREEMPTIBLE
                                                      : LEDGER_PODS_TAKES_BORROWERS,
                .lease_usec = (uint64_t) options->lease_seconds * 1000000,
                .grace_usec = (uint64_t) options->eviction_grace_sec * 1000000,
                .lease_share_percent = options->lease_share,
                .hold_usec = (uint64_t) options->hold_seconds * 1000000,
                .placement = PLACEMENT_PACKED,
        };
        if (options->no_evict && options->take_from_regular)
                return err_set(
                        err, -EINVAL,
                        "--take-from-regular: nobody is evicted with --no-evict; leave one of them out");
        if (options->placement != NULL && placement_parse(options->placement, &ret->placement) < 0)
                return err_set(err, -EINVAL, "--placement: '%s' is none", options->placement);
        if (options->overflow != NULL &&
            overflow_parse(options->overflow, &ret->overflow, &ret->overflow_percent) < 0)
                return err_set(err, -EINVAL,
                               "--overflow: must be none, single-to-multi, multi-to-single or both, with an "
                               "optional :PERCENT in 0..100, not '%s'",
                               options->overflow);
        return 0;
}

static int read_pull_secrets(const char *text, struct settings *ret, struct err *err)
{
        if (split_words(text, ret->pull_secrets, &ret->pull_secret_count) < 0)
                return err_set(err, -EINVAL, "--job-pull-secrets: more than %d names", SETTINGS_LIST_MAX);
        for (size_t i = 0; i < ret->pull_secret_count; i++)
                if (!object_name_dns_valid(ret->pull_secrets[i], strlen(ret->pull_secrets[i])))
                        return err_set(err, -EINVAL,
                                       "--job-pull-secrets: '%.100s' is not the name of a Secret; small "
                                       "letters, digits, '-' and '.', such as my-registry",
                                       ret->pull_secrets[i]);
        return 0;
}

static int compare_words(const void *a, const void *b)
{
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static void drop_repeated(char **list, size_t *count)
{
        size_t kept = 0;

        qsort(list, *count, sizeof(*list), compare_words);
        for (size_t i = 0; i < *count; i++)
                if (kept > 0 && strcmp(list[kept - 1], list[i]) == 0)
                        free(list[i]);
                else
                        list[kept++] = list[i];
        *count = kept;
}

/* Nothing is everywhere; a list in which there is no name is a mistake, which must not be everywhere. */
static int read_namespaces(const struct server_options *options, struct settings *ret, struct err *err)
{
        const char *text = options->namespaces;

        if (text == NULL || text[0] == '\0')
                return 0;
        if (store_directory(options->store) != NULL)
                return err_set(err, -EINVAL,
                               "--namespaces: only with --store kubernetes; a directory has no rights "
                               "to be without");
        if (split_words(text, ret->namespaces, &ret->namespace_count) < 0)
                return err_set(err, -EINVAL, "--namespaces: more than %d names; leave it out to work in all",
                               SETTINGS_LIST_MAX);
        if (ret->namespace_count == 0)
                return err_set(err, -EINVAL, "--namespaces: '%.40s' names none; such as team-a,team-b", text);
        for (size_t i = 0; i < ret->namespace_count; i++)
                if (!object_name_dns_valid(ret->namespaces[i], strlen(ret->namespaces[i])) ||
                    strchr(ret->namespaces[i], '.') != NULL || strlen(ret->namespaces[i]) > 63)
                        return err_set(
                                err, -EINVAL,
                                "--namespaces: '%.100s' is not the name of a namespace; small letters, "
                                "digits and '-', such as team-a",
                                ret->namespaces[i]);
        drop_repeated(ret->namespaces, &ret->namespace_count);
        return 0;
}

/* A device is free where no claim has it: of which all have to be seen. */
static int check_planned_claims(const struct server_options *options, const struct settings *settings,
                                struct err *err)
{
        if (options->planned_claims == NULL || strcmp(options->planned_claims, "on") != 0)
                return 0;
        if (settings->namespace_count > 0)
                return err_set(
                        err, -EINVAL,
                        "--planned-claims on: not with --namespaces, for claims of other namespaces may "
                        "have the same devices; leave one of both out");
        if (store_directory(options->store) != NULL)
                return err_set(err, -EINVAL,
                               "--planned-claims on: only with --store kubernetes, whose scheduler "
                               "binds their pods");
        return 0;
}

int settings_read(const struct server_options *options, struct settings *ret, struct err *err)
{
        int r;

        *ret = (struct settings){ 0 };
        r = read_rules(options, &ret->rules, err);
        if (r == 0 && split_words(options->emergency_namespaces, ret->emergency_namespaces,
                                  &ret->emergency_namespace_count) < 0)
                r = err_set(err, -EINVAL, "--emergency-namespaces: more than %d names", SETTINGS_LIST_MAX);
        if (r == 0)
                r = read_pull_secrets(options->job_pull_secrets, ret, err);
        if (r == 0)
                r = read_namespaces(options, ret, err);
        if (r == 0)
                r = check_planned_claims(options, ret, err);
        if (r == 0 && options->config != NULL)
                r = read_config(options->config, ret, err);
        if (r == 0 && options->programs != NULL)
                r = program_file_load(options->programs, &ret->programs, err);
        return r;
}

void settings_free(struct settings *settings)
{
        for (size_t i = 0; i < settings->emergency_namespace_count; i++)
                free(settings->emergency_namespaces[i]);
        for (size_t i = 0; i < settings->namespace_count; i++)
                free(settings->namespaces[i]);
        for (size_t i = 0; i < settings->pull_secret_count; i++)
                free(settings->pull_secrets[i]);
        for (size_t i = 0; i < settings->emergency_class_count; i++)
                free(settings->emergency_classes[i]);
        for (size_t i = 0; i < settings->managed_resource_count; i++)
                free(settings->managed_resources[i]);
        program_table_free(&settings->programs);
}

struct cluster_options settings_cluster(const struct settings *s, const struct server_options *options)
{
        return (struct cluster_options){
                .store = options->store,
                .kubeconfig = options->kubeconfig,
                .namespaces = (const char *const *) s->namespaces,
                .namespace_count = s->namespace_count,
                .rules = s->rules,
                .policy = { .emergency_namespaces = (const char *const *) s->emergency_namespaces,
                            .emergency_namespace_count = s->emergency_namespace_count,
                            .emergency_classes = (const char *const *) s->emergency_classes,
                            .emergency_class_count = s->emergency_class_count },
                .managed_resources = (const char *const *) s->managed_resources,
                .managed_resource_count = s->managed_resource_count,
                .programs = options->programs != NULL ? &s->programs : NULL,
                .judge_age = true,
                .commit_usec = leader_commit_usec(options->leader_lease_sec),
        };
}

struct leader_options settings_leader(const struct server_options *options, const char *name)
{
        return (struct leader_options){ .store = options->store,
                                        .kubeconfig = options->kubeconfig,
                                        .name = name,
                                        .namespace_ = options->leader_namespace,
                                        .identity = options->identity,
                                        .lease_sec = options->leader_lease_sec };
}
