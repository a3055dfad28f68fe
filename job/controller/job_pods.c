/* The Secret and the pods of a job, written as the API server takes them. */
#include "job/controller/job_pods.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/tls/tls_keys.h"
#include "job/controller/claims/job_claim.h"
#include "job/controller/job_keys.h"
#include "job/controller/pod_template.h"
#include "job/plan/manager_plan.h"
#include "job/spec/job_role.h"
#include "scheduler-extender/wire/pod_json.h"

#define LAUNCHER       "/remuda/remuda-launch"
#define POD_FOLDER     "/etc/remuda-pod"
#define JOB_FOLDER     "/etc/remuda-job"
#define TLS_FOLDER     "/etc/remuda-tls" /* of the job's own Secret */
#define GROUP_WAIT_SEC "86400"           /* for a manager: chips may be waited for, and a fault be repaired */
#define WORLD_WAIT_SEC "900"             /* for the groups: images are pulled meanwhile */

static void put(json_t *object, const char *name, json_t *value)
{
        (void) json_object_set_new(object, name, value);
}

static void add(json_t *array, json_t *value)
{
        (void) json_array_append_new(array, value);
}

static void put_number_text(json_t *object, const char *name, uint64_t number)
{
        put(object, name, json_sprintf("%llu", (unsigned long long) number));
}

static const struct job_program *own_program(const struct job *job, const char *runtime)
{
        for (size_t i = 0; i < job->program_count; i++)
                if (strcmp(job->programs[i].runtime, runtime) == 0)
                        return &job->programs[i];
        return NULL;
}

static const char *image_of(const struct job *job, const char *runtime,
                            const struct job_pods_options *options)
{
        const struct job_program *own = own_program(job, runtime);

        if (own != NULL && own->image[0] != '\0')
                return own->image;
        return options->job_image == NULL ? "" : options->job_image;
}

static int check_runtime(const struct job *job, const char *runtime, const struct job_pods_options *options,
                         struct err *err)
{
        const struct job_program *own = own_program(job, runtime);

        if (image_of(job, runtime, options)[0] == '\0')
                return err_set(
                        err, -EINVAL,
                        "spec.programs.%s.image: missing; name the container image that holds the program "
                        "(remuda-controller --job-image can name one for all)",
                        runtime);
        if ((own == NULL || own->command_count == 0) &&
            (options->programs == NULL || program_table_find(options->programs, runtime) == NULL))
                return err_set(
                        err, -EINVAL,
                        "spec.programs.%s.command: missing, and the program table (remuda-controller "
                        "--programs) has no row '%s'; give the program's absolute path and its arguments",
                        runtime, runtime);
        if (own != NULL && own->command_count > 0 && own->command[0][0] != '/')
                return err_set(
                        err, -EINVAL,
                        "spec.programs.%s.command: '%.100s' is not an absolute path; give the program's "
                        "path in the image",
                        runtime, own->command[0]);
        return 0;
}

int job_pods_check(const struct job *job, const struct job_state *state,
                   const struct job_pods_options *options, struct err *err)
{
        int r = 0;

        for (size_t i = 0; i < state->group_count && r == 0; i++)
                if ((r = check_runtime(job, state->groups[i].runtime, options, err)) == 0)
                        r = pod_template_check(job, &state->groups[i], err);
        for (size_t i = 0; i < state->group_count && r == 0; i++)
                r = job_claim_check(job, &state->groups[i], err);
        return r;
}

/* A row of the group's program table: the job's own command, else the administrator's row. */
static struct program_table_row table_row(const struct job_program *own, const struct program_table_row *row)
{
        struct program_table_row entry = row == NULL ? (struct program_table_row){ .path = NULL } : *row;

        if (own != NULL && own->command_count > 0) {
                (void) text_copy(entry.runtime, sizeof(entry.runtime), own->runtime);
                entry.path = own->command[0];
                entry.args = own->command + 1;
                entry.arg_count = own->command_count - 1;
                entry.sha256[0] = '\0';
                entry.inherits = true; /* its image sets LD_LIBRARY_PATH and the like for it */
        }
        return entry;
}

static json_t *programs_of(const struct job *job, const struct program_table *given)
{
        size_t count = given == NULL ? 0 : given->count;
        CLEANUP(free_p)
        struct program_table_row *rows = calloc(count + job->program_count + 1, sizeof(*rows));
        struct program_table table = { .programs = rows };

        for (size_t i = 0; rows != NULL && i < count; i++)
                rows[table.count++] =
                        table_row(own_program(job, given->programs[i].runtime), &given->programs[i]);
        for (size_t i = 0; rows != NULL && i < job->program_count; i++)
                if (job->programs[i].command_count > 0 &&
                    program_table_find(&table, job->programs[i].runtime) == NULL)
                        rows[table.count++] = table_row(&job->programs[i], NULL);
        return rows == NULL ? NULL : program_table_encode(&table);
}

json_t *job_pods_metadata(const char *name, const struct job_pods_owner *owner, const char *role)
{
        return json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:{}, s:[{s:s, s:s, s:s, s:s, s:b, s:b}]}", "name",
                         name, "namespace", owner->namespace_, "labels", "app.kubernetes.io/managed-by",
                         "remuda", POD_LABEL_JOB, owner->name, JOB_LABEL_ROLE, role, "annotations",
                         "ownerReferences", "apiVersion", "remuda.dev/v1alpha1", "kind", "TrainingJob",
                         "name", owner->name, "uid", owner->uid, "controller", 1, "blockOwnerDeletion", 1);
}

json_t *job_pods_secret(const struct job *job, const struct job_pods_owner *owner,
                        const struct job_pods_options *options, const char *name,
                        const struct job_pods_secrets *secrets)
{
        json_t *table = programs_of(job, options->programs);
        CLEANUP(free_p) char *programs = json_dumps(table, JSON_INDENT(1));

        json_decref(table);
        if (programs == NULL)
                return NULL;
        return json_pack("{s:s, s:s, s:o, s:s, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s}}", "apiVersion", "v1",
                         "kind", "Secret", "metadata", job_pods_metadata(name, owner, "secret"), "type",
                         "remuda.dev/job", "stringData", "token", secrets->token, "programs.yaml", programs,
                         "ca.crt", secrets->keys->ca, "manager.crt", secrets->keys->pairs[0].certificate,
                         "manager.key", secrets->keys->pairs[0].key, "group.crt",
                         secrets->keys->pairs[1].certificate, "group.key", secrets->keys->pairs[1].key);
}

static void mount(json_t *volumes, json_t *mounts, const char *name, const char *path, bool read_only,
                  json_t *volume)
{
        put(volume, "name", json_string(name));
        add(volumes, volume);
        add(mounts, json_pack("{s:s, s:s, s:b}", "name", name, "mountPath", path, "readOnly", read_only));
}

static void mount_data(const struct job *job, json_t *volumes, json_t *mounts)
{
        const char *checkpoint = manager_plan_checkpoint(job);

        if (job->data.claim[0] != '\0')
                mount(volumes, mounts, "data", job->data.path, true,
                      json_pack("{s:{s:s, s:b}}", "persistentVolumeClaim", "claimName", job->data.claim,
                                "readOnly", 1));
        if (job->checkpoint.claim[0] != '\0')
                mount(volumes, mounts, "checkpoint", checkpoint, false,
                      json_pack("{s:{s:s}}", "persistentVolumeClaim", "claimName", job->checkpoint.claim));
        else if (checkpoint[0] == '/')
                mount(volumes, mounts, "checkpoint", checkpoint, false, json_pack("{s:{}}", "emptyDir"));
}

/* What the profile `restricted` of Pod Security asks of a pod and of each of its containers. Nothing of the
 * launcher or of a device's file needs more; a job may name its user, and root is refused where it must be.
 */
static json_t *confine_pod(const struct job *job)
{
        return json_pack("{s:I, s:I, s:I, s:b, s:{s:s}}", "runAsUser", (json_int_t) job->run_as_user,
                         "runAsGroup", (json_int_t) job->run_as_group, "fsGroup",
                         (json_int_t) job->run_as_group, "runAsNonRoot", job->run_as_user != 0,
                         "seccompProfile", "type", "RuntimeDefault");
}

static json_t *confine_container(void)
{
        return json_pack("{s:b, s:{s:[s]}}", "allowPrivilegeEscalation", 0, "capabilities", "drop", "ALL");
}

/* The launcher comes from our own image into every other one: it is static. */
static json_t *launcher_container(const struct job_pods_options *options)
{
        return json_pack("{s:s, s:s, s:s, s:[s, s, s], s:[{s:s, s:s}], s:o, s:o}", "name", "launcher",
                         "image", options->launcher_image, "imagePullPolicy", "IfNotPresent", "command",
                         "/usr/bin/remuda-launch", "--copy-to", LAUNCHER, "volumeMounts", "name", "remuda",
                         "mountPath", "/remuda", "resources", pod_template_resources(NULL), "securityContext",
                         confine_container());
}

/* Of the job's Secret a pod sees what it needs, and never the other side's key. */
static json_t *own_part(const char *secret, bool manager)
{
        return json_pack("{s:{s:s, s:i, s:[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}, {s:s, s:s}, {s:s, s:s}]}}",
                         "secret", "secretName", secret, "defaultMode", 0444, "items", "key", "token", "path",
                         "token", "key", "programs.yaml", "path", "programs.yaml", "key", "ca.crt", "path",
                         "ca.crt", "key", manager ? "manager.crt" : "group.crt", "path", "tls.crt", "key",
                         manager ? "manager.key" : "group.key", "path", "tls.key");
}

/* The cluster's, then the job's; each once: the API server keeps them by name. */
static json_t *pull_secrets(const struct job *job, const struct job_pods_options *options)
{
        json_t *names = json_object(), *list = json_array(), *value;
        const char *name;

        for (size_t i = 0; i < options->pull_secret_count; i++)
                put(names, options->pull_secrets[i], json_true());
        for (size_t i = 0; i < job->pull_secret_count; i++)
                put(names, job->pull_secrets[i], json_true());
        json_object_foreach(names, name, value) add(list, json_pack("{s:s}", "name", name));
        json_decref(names);
        return list;
}

static json_t *pod_of(const struct job *job, json_t *metadata, const struct job_pods_options *options,
                      const char *keys, bool manager, const char *hostname, json_t *main_container,
                      json_t *volumes)
{
        json_t *mounts = json_object_get(main_container, "volumeMounts"), *spec;
        char field[128], secret[JOB_POD_NAME_BYTES];

        job_keys_secret(keys, secret);
        put(json_object_get(metadata, "annotations"), JOB_ANNOTATION_KEYS, json_string(keys));

        (void) text_format(field, sizeof(field), "metadata.annotations['%s']",
                           manager ? JOB_ANNOTATION_PLAN : JOB_ANNOTATION_MANAGER);
        mount(volumes, mounts, "remuda", "/remuda", true, json_pack("{s:{}}", "emptyDir"));
        mount(volumes, mounts, "tmp", "/tmp", false, json_pack("{s:{}}", "emptyDir"));
        mount(volumes, mounts, "remuda-pod", POD_FOLDER, true,
              json_pack("{s:{s:[{s:s, s:{s:s}}]}}", "downwardAPI", "items", "path",
                        manager ? "plan" : "manager", "fieldRef", "fieldPath", field));
        mount(volumes, mounts, "remuda-job", JOB_FOLDER, true, own_part(secret, manager));
        put(main_container, "securityContext", confine_container());
        spec = json_pack("{s:s, s:s, s:b, s:b, s:s, s:i, s:[o], s:[o], s:o, s:o}", "restartPolicy", "Never",
                         "schedulerName", options->scheduler_name, "automountServiceAccountToken", 0,
                         "enableServiceLinks", 0, "hostname", hostname, "terminationGracePeriodSeconds",
                         (int) options->grace_sec, "initContainers", launcher_container(options),
                         "containers", main_container, "volumes", volumes, "securityContext",
                         confine_pod(job));
        put(spec, "imagePullSecrets", pull_secrets(job, options));
        if (job->priority_class[0] != '\0')
                put(spec, "priorityClassName", json_string(job->priority_class));
        return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "Pod", "metadata", metadata,
                         "spec", spec);
}

static void add_words(json_t *array, const char *const *words, size_t count)
{
        for (size_t i = 0; i < count; i++)
                add(array, json_string(words[i]));
}

/* By which manager and groups know each other, and how both log; of --tls-status the controller asks, which
 * reads no Secret. */
static void take_part(const struct job *job, const struct job_pods_options *options, bool manager,
                      json_t *command)
{
        static const char token[] = JOB_FOLDER "/token",
                          *const made[] = { JOB_FOLDER "/tls.crt", JOB_FOLDER "/tls.key",
                                            JOB_FOLDER "/ca.crt" },
                          *const given[] = { TLS_FOLDER "/tls.crt", TLS_FOLDER "/tls.key",
                                             TLS_FOLDER "/ca.crt" };
        bool own = job->tls.secret[0] != '\0';
        const char *const *files = own ? given : made;
        const char *const all[] = { "--token-file", token,
                                    "--tls-cert",   files[0],
                                    "--tls-key",    files[1],
                                    "--tls-ca",     files[2],
                                    "--tls-name",   own ? job->tls.server_name : JOB_TLS_NAME };
        const char *const managers[] = { "--tls-group-name", own ? job->tls.group_name : JOB_TLS_GROUP_NAME,
                                         "--tls-status", JOB_FOLDER };
        const char *const logs[] = { "--log-format", options->log_format, "--log-level", options->log_level };

        add_words(command, all, ARRAY_SIZE(all));
        if (manager)
                add_words(command, managers, ARRAY_SIZE(managers));
        if (options->log_format != NULL)
                add_words(command, logs, ARRAY_SIZE(logs));
}

static void mount_tls(const struct job *job, bool manager, json_t *volumes, json_t *mounts)
{
        if (job->tls.secret[0] != '\0')
                mount(volumes, mounts, "remuda-tls", TLS_FOLDER, true,
                      json_pack("{s:{s:s, s:i}}", "secret", "secretName",
                                manager ? job->tls.secret : job->tls.group_secret, "defaultMode", 0444));
}

static json_t *words(const char *first, ...) __attribute__((sentinel));
static json_t *words(const char *first, ...)
{
        json_t *array = json_array();
        va_list values;

        va_start(values, first);
        for (const char *word = first; word != NULL; word = va_arg(values, const char *))
                add(array, json_string(word));
        va_end(values);
        return array;
}

static json_t *group_metadata(const struct job *job, const struct job_state *state,
                              const struct job_group *group, const struct job_pods_owner *owner)
{
        char name[JOB_POD_NAME_BYTES], number[40];
        json_t *metadata, *labels, *annotations;

        job_group_pod_name(owner->name, group, name);
        metadata = job_pods_metadata(name, owner, job_role_names[group->server]);
        labels = json_object_get(metadata, "labels");
        annotations = json_object_get(metadata, "annotations");
        put(labels, JOB_LABEL_SUBTASK, json_string(group->name));
        put_number_text(labels, POD_LABEL_GANG_SIZE, state->group_count);
        put(labels, POD_LABEL_URGENCY, json_string(job_urgency_names[job->urgency]));
        if (job->preemptible)
                put(labels, POD_LABEL_PREEMPTIBLE, json_string("true"));
        if (job->min_network_mbps > 0)
                put_number_text(labels, POD_LABEL_MIN_NETWORK, job->min_network_mbps);
        if (group->model[0] != '\0')
                put(annotations, POD_ANNOTATION_MODELS, json_string(group->model));
        put(annotations, POD_ANNOTATION_PLACEMENT, json_string(job_placement_names[job->placement]));
        (void) text_format(number, sizeof(number), "%.17g", group->weight);
        put(annotations, POD_ANNOTATION_WEIGHT, json_string(number));
        put_number_text(annotations, POD_ANNOTATION_BATCH_SHARE, group->batch);
        if (!group->server)
                put(annotations, POD_ANNOTATION_SPEED_SOURCE, json_string(chip_speed_names[group->source]));
        return metadata;
}

/* The plan chose the node: kube-scheduler and our own filter check it, and nothing else is tried. */
static json_t *only_on(const char *node)
{
        return json_pack("{s:{s:{s:[{s:[{s:s, s:s, s:[s]}]}]}}}", "nodeAffinity",
                         "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "matchFields",
                         "key", "metadata.name", "operator", "In", "values", node);
}

json_t *job_pods_group(const struct job *job, const struct job_state *state, const struct job_group *group,
                       const struct job_pods_owner *owner, const struct job_pods_options *options,
                       const char *keys)
{
        json_t *volumes = json_array(), *mounts = json_array(), *container, *pod;
        json_t *command;
        char chips[16], ranks[16];

        (void) text_format(chips, sizeof(chips), "%u", group->chips);
        (void) text_format(ranks, sizeof(ranks), "%u", group->ranks);
        mount_data(job, volumes, mounts);
        mount_tls(job, false, volumes, mounts);
        command = words(LAUNCHER, "--join-file", POD_FOLDER "/manager", "--group", group->name, "--runtime",
                        group->runtime, "--chips", ranks, "--programs", JOB_FOLDER "/programs.yaml",
                        "--work-dir", "/tmp/remuda-work", "--wait-seconds", GROUP_WAIT_SEC, NULL);
        take_part(job, options, false, command);
        container = json_pack("{s:s, s:s, s:s, s:s, s:o, s:{s:{s:s}}, s:[{s:s, s:s}, {s:s, s:s}], s:o}",
                              "name", "main", "image", image_of(job, group->runtime, options),
                              "imagePullPolicy", "IfNotPresent", "terminationMessagePolicy",
                              "FallbackToLogsOnError", "command", command, "resources", "limits",
                              group->resource, chips, "env", "name", "REMUDA_VENDOR", "value", group->vendor,
                              "name", "REMUDA_JOB", "value", owner->name, "volumeMounts", mounts);
        pod_template_apply(job, group, container, volumes);
        pod = pod_of(job, group_metadata(job, state, group, owner), options, keys, false, group->name,
                     container, volumes);
        put(json_object_get(pod, "spec"), "affinity", only_on(group->node));
        pod_template_place(job, group, pod);
        job_claim_ask(job, group, owner, pod);
        return pod;
}

json_t *job_pods_manager(const struct job *job, const struct job_state *state,
                         const struct job_pods_owner *owner, const struct job_pods_options *options,
                         const char *keys, const char *status_token)
{
        json_t *volumes = json_array(), *mounts = json_array(), *metadata, *container, *command, *pod;
        json_t *plan = manager_plan(job, state, status_token);
        CLEANUP(free_p) char *text = NULL;
        char name[JOB_POD_NAME_BYTES], address[32];

        text = json_dumps(plan, JSON_COMPACT);
        json_decref(plan);
        if (text == NULL)
                return NULL;
        job_state_manager_pod_name(owner->name, state->world, name);
        metadata = job_pods_metadata(name, owner, "manager");
        put(json_object_get(metadata, "annotations"), JOB_ANNOTATION_PLAN, json_string(text));
        (void) text_format(address, sizeof(address), "$(POD_IP):%d", JOB_MANAGER_PORT);
        mount_tls(job, true, volumes, mounts);
        command = words(LAUNCHER, "--manage", address, "--plan", POD_FOLDER "/plan", "--result",
                        "/dev/termination-log", "--wait-seconds", WORLD_WAIT_SEC, NULL);
        take_part(job, options, true, command);
        container =
                json_pack("{s:s, s:s, s:s, s:s, s:o, s:[{s:s, s:{s:{s:s}}}], s:o, s:o}", "name", "main",
                          "image", image_of(job, state->groups[0].runtime, options), "imagePullPolicy",
                          "IfNotPresent", "terminationMessagePolicy", "FallbackToLogsOnError", "command",
                          command, "env", "name", "POD_IP", "valueFrom", "fieldRef", "fieldPath",
                          "status.podIP", "volumeMounts", mounts, "resources", pod_template_resources(NULL));
        pod = pod_of(job, metadata, options, keys, true, "manager", container, volumes);
        pod_template_place(job, NULL, pod);
        return pod;
}
