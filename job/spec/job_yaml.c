/* The fields of a TrainingJob, a row each (base/json/json_table.h), and the few that have a shape of their
 * own. */
#include "job/spec/job_yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/device_class.h"
#include "base/cleanup.h"
#include "base/json/json_written.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "job/spec/labels.h"

static bool is_vendor(const char *text)
{
        return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text) && text[0] != '-';
}

static bool is_dns_name(const char *text)
{
        return object_name_dns_valid(text, strlen(text));
}

/* As a kubelet reads it: letters, digits and "._-/:@" with a letter or digit first. */
static bool is_image(const char *text)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";

        return strspn(text, letters) == strlen(text) && strchr("._-/:@", text[0]) == NULL;
}

/* clang-format off */
#define SMALL_LETTERS "small letters, digits and '-'"
static const struct json_table_rule
        name_rule = { object_name_label_valid, "is not a name; 1 to 63 " SMALL_LETTERS ", beginning and ending with a letter or digit" },
        namespace_rule = { object_name_label_valid, "is not the name of a namespace; 1 to 63 " SMALL_LETTERS },
        parent_rule = { object_name_label_valid, "is not the name of a job; 1 to 63 " SMALL_LETTERS },
        claim_rule = { object_name_label_valid, "is not the name of a PersistentVolumeClaim; 1 to 63 " SMALL_LETTERS },
        group_rule = { object_name_label_valid, "is not the name of a device group; `remuda devices` lists them" },
        vendor_rule = { is_vendor, "is not the name of a vendor; such as nvidia or cpu" },
        runtime_rule = { job_role_runtime_valid, "is not the name of a runtime; " SMALL_LETTERS ", such as cuda or cpu" },
        program_rule = { job_role_runtime_valid, "not the name of a runtime; at most 15 " SMALL_LETTERS ", such as cuda or cpu" },
        image_rule = { is_image, "is not the name of an image; such as registry.example/train:1" },
        class_rule = { is_dns_name, "is not the name of a PriorityClass; small letters, digits, '-' and '.', such as research" },
        device_class_rule = { is_dns_name, "is not the name of a DeviceClass; small letters, digits, '-' and '.', such as remuda-cuda" },
        secret_rule = { is_dns_name, "is not the name of a Secret; small letters, digits, '-' and '.', such as fashion-tls" },
        server_name_rule = { is_dns_name, "is not a DNS name; give the one that the certificate in the Secret has, such as manager" };

static const struct json_table_row role_rows[] = {
        { "vendor",   JSON_TABLE_CHARS, JSON_TABLE_AT(struct job_role, vendor),  .min = 1, .rule = &vendor_rule, .help = "such as nvidia, huawei or cpu" },
        { "runtime",  JSON_TABLE_CHARS, JSON_TABLE_AT(struct job_role, runtime), .min = 1, .rule = &runtime_rule, .help = "such as cuda, cann, rocm or cpu" },
        { "model",    JSON_TABLE_CHARS, JSON_TABLE_AT(struct job_role, model),   .min = 1, .help = "a device model, or A|B; `remuda devices` lists them" },
        { "group",    JSON_TABLE_CHARS, JSON_TABLE_AT(struct job_role, group),   .min = 1, .rule = &group_rule, .help = "a device group; `remuda devices` lists them" },
        { "chips",    JSON_TABLE_UINT, JSON_TABLE_AT(struct job_role, chips),     .min = 1, .max = JOB_CHIPS_MAX, .required = true, .mend = "give the number of chips", .help = "the number of chips" },
        { "minChips", JSON_TABLE_UINT, JSON_TABLE_AT(struct job_role, min_chips), .min = 1, .max = JOB_CHIPS_MAX, .help = "the fewest chips that will do" },
        { "deviceClass", JSON_TABLE_CHARS, JSON_TABLE_AT(struct job_role, device_class), .min = 1, .rule = &device_class_rule, .help = "a DeviceClass, such as remuda-cuda" },
        { "template", JSON_TABLE_OBJECT, JSON_TABLE_AT(struct job_role, template), .table = &job_template_table, .given = offsetof(struct job_role, template.given), .help = "give {env: [], resources: {}, shmSize: 8Gi}" },
        { .name = NULL },
};
/* clang-format on */

static int check_role(const struct json_field *at, void *object, struct err *err)
{
        struct json_field fewest = json_field_get(at, "minChips"), class = json_field_get(at, "deviceClass");
        struct job_role *role = object;

        if (role->min_chips == 0)
                role->min_chips = role->chips;
        if (role->vendor[0] == '\0' && role->runtime[0] == '\0' && role->model[0] == '\0' &&
            role->group[0] == '\0')
                return json_field_error(at, err,
                                        "says nothing of the chips; give vendor, runtime, model or group");
        if (role->min_chips > role->chips)
                return json_field_error(&fewest, err, "%llu is more than chips, %llu; give at most that",
                                        (unsigned long long) role->min_chips,
                                        (unsigned long long) role->chips);
        if (!device_class_allows(role->device_class, role->vendor, role->runtime))
                return json_field_error(&class, err,
                                        "'%.100s' are no chips of %s; name the class of those that the entry "
                                        "asks for, such as " DEVICE_CLASS_PREFIX "%s",
                                        role->device_class,
                                        role->vendor[0] != '\0' ? role->vendor : role->runtime,
                                        role->vendor[0] != '\0' ? role->vendor : role->runtime);
        return 0;
}

/* "auto" and "none" beside a list: what the word stands for, @list else. */
static int decode_words(const struct json_field *at, const struct json_table *rows, const int words[2],
                        int list, int *ret, struct job *job, struct err *err)
{
        const char *s = json_string_value(at->value);

        *ret = list;
        if (s == NULL || (strcmp(s, "auto") != 0 && strcmp(s, "none") != 0))
                return json_table_decode_at(rows, at->in, job, err);
        *ret = words[s[0] != 'a'];
        return 0;
}

static int decode_segments(const struct json_field *at, void *object, struct err *err)
{
        static const struct json_table_row index = { "", JSON_TABLE_UINT, .size_bytes = sizeof(uint64_t),
                                                     .max = 1000000 };
        static const struct json_table_row list[] = {
                { "segments", JSON_TABLE_LIST, JSON_TABLE_AT(struct job, segment_list),
                  .count = offsetof(struct job, segment_count), .min = 1, .max = JOB_SEGMENTS_MAX,
                  .element = &index,
                  .help = "give auto, none, or a list of last tensor indices such as [3, 7]" },
                { .name = NULL },
        };
        static const struct json_table table = { .rows = list, .size_bytes = sizeof(struct job) };
        struct job *job = object;

        return decode_words(at, &table, (int[]){ JOB_SEGMENTS_AUTO, JOB_SEGMENTS_NONE }, JOB_SEGMENTS_LIST,
                            &job->segments, job, err);
}

static int decode_replicas(const struct json_field *at, void *object, struct err *err)
{
        static const struct json_table_row number[] = {
                { "replicas", JSON_TABLE_UINT, JSON_TABLE_AT(struct job, replicas), .min = 1,
                  .max = JOB_REPLICAS_MAX, .help = "give auto, or a number of pipelines, 1 to 256" },
                { .name = NULL },
        };
        static const struct json_table table = { .rows = number, .size_bytes = sizeof(struct job) };
        const char *s = json_string_value(at->value);
        struct job *job = object;

        if (s == NULL || strcmp(s, "auto") != 0)
                return json_table_decode_at(&table, at->in, job, err);
        job->replicas = 0;
        return 0;
}

static int decode_groups(const struct json_field *at, void *object, struct err *err)
{
        static const struct json_table_row workers = { "", JSON_TABLE_UINT, .size_bytes = sizeof(uint64_t),
                                                       .min = 1, .max = JOB_LEVELS_MAX };
        static const struct json_table_row list[] = {
                { "groups", JSON_TABLE_LIST, JSON_TABLE_AT(struct job, levels.workers),
                  .count = offsetof(struct job, levels.count), .min = 1, .max = JOB_LEVELS_MAX,
                  .element = &workers,
                  .help = "give auto, none, or a list of the workers of each group such as [4, 4]" },
                { .name = NULL },
        };
        static const struct json_table table = { .rows = list, .size_bytes = sizeof(struct job) };
        struct job *job = object;

        return decode_words(at, &table, (int[]){ JOB_LEVELS_AUTO, JOB_LEVELS_NONE }, JOB_LEVELS_LIST,
                            &job->levels.kind, job, err);
}

#define STAGE_HELP "give the first and the last layer, both included, such as \"0:5\""

/* "0:5" */
static int decode_layers(const struct json_field *at, void *object, struct err *err)
{
        struct job_split_stage *stage = object;
        const char *word = json_string_value(at->value), *colon = word == NULL ? NULL : strchr(word, ':');
        char first[24];

        if (colon == NULL || (size_t) (colon - word) >= sizeof(first))
                return json_field_error(at, err, "are no layers; " STAGE_HELP);
        memcpy(first, word, (size_t) (colon - word));
        first[colon - word] = '\0';
        if (text_parse_uint64(first, &stage->first) < 0 || text_parse_uint64(colon + 1, &stage->last) < 0 ||
            stage->last >= JOB_LAYERS_MAX)
                return json_field_error(at, err, "'%.40s' are no layers below %d; " STAGE_HELP, word,
                                        JOB_LAYERS_MAX);
        if (stage->last < stage->first)
                return json_field_error(at, err, "'%.40s' end before they begin; " STAGE_HELP, word);
        return 0;
}

/* clang-format off */
#define ON(member) JSON_TABLE_AT(struct job_split_chips, member)
static const struct json_table_row on_rows[] = {
        { "vendor",  JSON_TABLE_CHARS, ON(vendor),  .min = 1, .rule = &vendor_rule,  .help = "such as nvidia, huawei or cpu" },
        { "runtime", JSON_TABLE_CHARS, ON(runtime), .min = 1, .rule = &runtime_rule, .help = "such as cuda, cann, rocm or cpu" },
        { "model",   JSON_TABLE_CHARS, ON(model),   .min = 1, .help = "a device model, or A|B; `remuda devices` lists them" },
        { "group",   JSON_TABLE_CHARS, ON(group),   .min = 1, .rule = &group_rule, .help = "a device group; `remuda devices` lists them" },
        { .name = NULL },
};
static const struct json_table on_table = { .rows = on_rows, .size_bytes = sizeof(struct job_split_chips), .strict = true };
static const struct json_table_row stage_rows[] = {
        { "layers", JSON_TABLE_CUSTOM, .decode = decode_layers, .required = true, .mend = STAGE_HELP, .help = STAGE_HELP },
        { "on",     JSON_TABLE_OBJECT, JSON_TABLE_AT(struct job_split_stage, on), .table = &on_table, .help = "give {runtime: cuda}, or vendor, model, group" },
        { .name = NULL },
};
static const struct job_split_stage no_stage;
static const struct json_table stage_table = { .rows = stage_rows, .size_bytes = sizeof(struct job_split_stage), .strict = true, .initial = &no_stage };
/* clang-format on */

/* The job has no use for them here; a cluster would refuse the same. */
static int check_labels(const struct json_field *at, void *job, struct err *err)
{
        (void) job;
        return labels_check(at->value, "metadata.labels", false, err);
}

static int check_annotations(const struct json_field *at, void *job, struct err *err)
{
        (void) job;
        return labels_check(at->value, "metadata.annotations", true, err);
}

/* clang-format off */
static const struct json_table_row
        parent_row = { "", JSON_TABLE_CHARS, .size_bytes = JOB_NAME_BYTES, .min = 1, .rule = &parent_rule },
        string_row = { "", JSON_TABLE_STRING, .size_bytes = sizeof(char *) };
static const struct job_role no_role;
static const struct json_table role_table = { .rows = role_rows, .size_bytes = sizeof(struct job_role), .strict = true, .initial = &no_role, .check = check_role };
static const struct json_table_row program_rows[] = {
        { "image",   JSON_TABLE_CHARS,   JSON_TABLE_AT(struct job_program, image), .min = 1, .rule = &image_rule, .help = "a container image" },
        { "command", JSON_TABLE_LIST, JSON_TABLE_AT(struct job_program, command), .count = offsetof(struct job_program, command_count), .max = JOB_ARGS_MAX, .element = &string_row, .help = "give a list of strings, the absolute path of the program first" },
        { .name = NULL },
};
static const struct json_table program_table = { .rows = program_rows, .size_bytes = sizeof(struct job_program), .strict = true, .key = offsetof(struct job_program, runtime), .key_bytes = JOB_RUNTIME_BYTES };
static const struct json_table_row pull_secret_rows[] = {
        { "name", JSON_TABLE_CHARS, .size_bytes = JOB_DNS_BYTES, .min = 1, .rule = &secret_rule, .required = true, .mend = "name the Secret", .help = "a Secret of the job's namespace" },
        { .name = NULL },
};
static const struct json_table pull_secret_table = { .rows = pull_secret_rows, .size_bytes = JOB_DNS_BYTES, .strict = true };
#define AT(member) JSON_TABLE_AT(struct job, member)
static const struct json_table_row data_rows[] = {
        { "path",        JSON_TABLE_CHARS,   AT(data.path), .min = 1, .required = true, .mend = "give the folder that holds the data", .help = "the folder that holds the data" },
        { "claim",       JSON_TABLE_CHARS,   AT(data.claim), .min = 1, .rule = &claim_rule, .help = "a PersistentVolumeClaim that pods mount at the path" },
        { "format",      JSON_TABLE_CHOICE, AT(data.format), .names = job_format_names, .help = "how the data is written" },
        { "preprocess",  JSON_TABLE_CHARS,   AT(data.preprocess), .help = "steps of the trainer, such as resize:14x14,normalise" },
        { "distribute",  JSON_TABLE_CHOICE, AT(data.distribute), .names = job_distribute_names, .help = "read by every worker, sent by the manager, or read once for a shard that is kept" },
        { "order",       JSON_TABLE_CHOICE, AT(data.order), .names = job_order_names, .help = "how shards are cut" },
        { "pollSeconds", JSON_TABLE_UINT,   AT(data.poll_seconds), .max = 86400, .help = "how often new files are looked for; 0 = never" },
        { .name = NULL },
};
static const struct json_table_row checkpoint_rows[] = {
        { "path",       JSON_TABLE_CHARS, AT(checkpoint.path), .min = 1, .help = "the folder that checkpoints go to" },
        { "claim",      JSON_TABLE_CHARS, AT(checkpoint.claim), .min = 1, .rule = &claim_rule, .help = "a PersistentVolumeClaim that pods mount at the path" },
        { "everySteps", JSON_TABLE_UINT, AT(checkpoint.every_steps), .min = 1, .max = 1000000000, .help = "steps from one checkpoint to the next" },
        { .name = NULL },
};
static const struct json_table_row restart_rows[] = {
        { "max",         JSON_TABLE_UINT, AT(restart.max), .max = 1000, .help = "how many faults are repaired" },
        { "migrate",     JSON_TABLE_BOOL, AT(restart.migrate), .help = "may failed ranks move to other chips?" },
        { "resplit",     JSON_TABLE_BOOL, AT(restart.resplit), .help = "may layers of a split move when a stage has become slow?" },
        { "hangSeconds", JSON_TABLE_UINT, AT(restart.hang_seconds), .min = 1, .max = 86400, .help = "seconds without progress that are a hang" },
        { .name = NULL },
};
static const struct json_table_row tls_rows[] = {
        { "secretName", JSON_TABLE_CHARS, AT(tls.secret), .min = 1, .rule = &secret_rule, .required = true, .mend = "name a Secret with tls.crt, tls.key and ca.crt, or leave tls out: keys are then made for the job", .help = "a Secret of the job's namespace with tls.crt, tls.key and ca.crt, the manager's" },
        { "groupSecretName", JSON_TABLE_CHARS, AT(tls.group_secret), .min = 1, .rule = &secret_rule, .required = true, .mend = "name a second Secret, whose certificate is made for clients: who takes a group's key must not be able to pose as the manager", .help = "the same of the device groups" },
        { "serverName", JSON_TABLE_CHARS, AT(tls.server_name), .min = 1, .rule = &server_name_rule, .help = "the name that the manager's certificate has" },
        { "groupName", JSON_TABLE_CHARS, AT(tls.group_name), .min = 1, .rule = &server_name_rule, .help = "the name that the groups' certificate has" },
        { .name = NULL },
};
#define PART(rows_) .size_bytes = sizeof(struct job), .table = &(const struct json_table){ .rows = (rows_), .size_bytes = sizeof(struct job), .strict = true }
static const struct json_table_row spec_rows[] = {
        { "urgency",           JSON_TABLE_CHOICE, AT(urgency),     .names = job_urgency_names,   .help = "how soon it must run" },
        { "preemptible",       JSON_TABLE_BOOL,   AT(preemptible), .help = "may it lose its chips to an emergency?" },
        { "disruption",        JSON_TABLE_CHOICE, AT(disruption),  .names = job_disruption_names, .help = "may its pods be evicted, as by kubectl drain?" },
        { "minNetworkMbps",    JSON_TABLE_UINT,   AT(min_network_mbps), .max = 100000000, .help = "megabits a second that each node's fastest network does at least" },
        { "equalNodes",        JSON_TABLE_BOOL,   AT(equal_nodes), .help = "must all nodes be of one configuration?" },
        { "placement",         JSON_TABLE_CHOICE, AT(placement),   .names = job_placement_names, .help = "how chips are chosen" },
        { "priority",          JSON_TABLE_INT,    AT(priority),    .min = -1000000000, .max = 1000000000, .help = "larger goes first among jobs that wait" },
        { "priorityClassName", JSON_TABLE_CHARS,  AT(priority_class), .min = 1, .rule = &class_rule, .help = "a PriorityClass of the cluster" },
        { "dependsOn",         JSON_TABLE_LIST,   AT(depends_on), .count = offsetof(struct job, dependency_count), .max = JOB_DEPENDENCIES_MAX, .element = &parent_row, .help = "give a list of at most 32 names of jobs" },
        { "strategy",          JSON_TABLE_CHOICE, AT(strategy),    .names = job_strategy_names,  .help = "how the workers learn together" },
        { "staleness",         JSON_TABLE_UINT,   AT(staleness),   .max = 1000000, .help = "clocks that a ps-ssp worker may be ahead" },
        { "microbatches",      JSON_TABLE_UINT,   AT(microbatches), .min = 1, .max = 65536, .help = "parts of a batch in the pipeline of a split" },
        { "replicas",          JSON_TABLE_CUSTOM, .decode = decode_replicas, .help = "give auto, or a number of pipelines, 1 to 256" },
        { "stages",            JSON_TABLE_LIST,   AT(stages), .count = offsetof(struct job, stage_count), .max = JOB_LAYERS_MAX, .table = &stage_table, .help = "give a list of at most 512 entries such as {layers: \"0:5\", \"on\": {runtime: cuda}}" },
        { "profile",           JSON_TABLE_OBJECT, AT(profile), .table = &job_split_profile_table, .help = "give {layers: []}, of `remuda plan model NAME --as split`, or {configMapKeyRef: {name, key}}, or leave it out" },
        { "model",             JSON_TABLE_CHARS,   AT(model),        .min = 1, .given = offsetof(struct job, has_model), .help = "mlp, cnn, resnet or text" },
        { "seed",              JSON_TABLE_UINT,   AT(seed),        .max = 9007199254740992, .given = offsetof(struct job, has_seed), .help = "of every random choice" },
        { "learningRate",      JSON_TABLE_DOUBLE,   AT(learning_rate), .least = 1e-12, .most = 1e6, .help = "such as 0.1" },
        { "globalBatch",       JSON_TABLE_UINT,   AT(global_batch), .min = 1, .max = 1 << 24, .help = "samples of one step over all workers" },
        { "epochs",            JSON_TABLE_UINT,   AT(epochs),      .min = 1, .max = 1000000, .given = offsetof(struct job, has_epochs), .help = "times that every sample is used" },
        { "shards",            JSON_TABLE_CHOICE, AT(shards),      .names = job_shards_names,    .help = "work by speed, or the same for all" },
        { "segments",          JSON_TABLE_CUSTOM, .decode = decode_segments, .help = "give auto, none, or a list of last tensor indices such as [3, 7]" },
        { "groups",            JSON_TABLE_CUSTOM, .decode = decode_groups, .help = "give auto, none, or a list of the workers of each group such as [4, 4]" },
        { "neighbourExchange", JSON_TABLE_DOUBLE,   AT(neighbour_exchange), .most = 1, .help = "share of its samples that a worker passes on" },
        { "workers",           JSON_TABLE_LIST,   AT(workers), .count = offsetof(struct job, worker_count), .min = 1, .max = JOB_ROLES_MAX, .table = &role_table, .required = true, .mend = "list at least one, such as {runtime: cpu, chips: 2}", .help = "give a list of 1 to 64 entries such as {runtime: cpu, chips: 2}" },
        { "servers",           JSON_TABLE_OBJECT, AT(servers), .table = &role_table, .given = offsetof(struct job, has_servers), .help = "give one entry such as {runtime: cpu, chips: 1}" },
        { "programs",          JSON_TABLE_MAP,    AT(programs), .count = offsetof(struct job, program_count), .max = JOB_PROGRAMS_MAX, .table = &program_table, .rule = &program_rule, .help = "give {RUNTIME: {image, command}}, at most 32" },
        { "imagePullSecrets",  JSON_TABLE_LIST,   AT(pull_secrets), .count = offsetof(struct job, pull_secret_count), .max = 16, .table = &pull_secret_table, .help = "give a list of at most 16 such as {name: my-registry}" },
        { "args",              JSON_TABLE_LIST,   AT(args), .count = offsetof(struct job, arg_count), .max = JOB_ARGS_MAX, .element = &string_row, .given = offsetof(struct job, has_args), .help = "give a list of at most 256 strings" },
        { "data",              JSON_TABLE_OBJECT, PART(data_rows), .given = offsetof(struct job, data.given), .help = "give {path: FOLDER}" },
        { "checkpoint",        JSON_TABLE_OBJECT, PART(checkpoint_rows), .given = offsetof(struct job, checkpoint.given), .help = "give {path: FOLDER, everySteps: 100}" },
        { "restart",           JSON_TABLE_OBJECT, PART(restart_rows), .given = offsetof(struct job, restart.given), .help = "give {max: 3}" },
        { "tls",               JSON_TABLE_OBJECT, PART(tls_rows), .help = "give {secretName: NAME}" },
        { "suspend",           JSON_TABLE_BOOL,   AT(suspend), .help = "is it to have no pods and no chips for now?" },
        { "ttlSecondsAfterFinished", JSON_TABLE_UINT, AT(ttl_seconds), .max = INT32_MAX, .given = offsetof(struct job, has_ttl), .help = "seconds after its end when the job is deleted; left out, it is kept" },
        { "runAsUser",         JSON_TABLE_UINT,   AT(run_as_user),  .max = INT32_MAX, .help = "the user id of the job's pods" },
        { "runAsGroup",        JSON_TABLE_UINT,   AT(run_as_group), .max = INT32_MAX, .help = "the group id of the job's pods and of what they mount" },
        { .name = NULL },
};
static const struct json_table_row metadata_rows[] = {
        { "name",      JSON_TABLE_CHARS, AT(name),       .min = 1, .rule = &name_rule, .required = true, .mend = "name the job, such as fashion", .help = SMALL_LETTERS },
        { "namespace", JSON_TABLE_CHARS, AT(namespace_), .rule = &namespace_rule, .help = SMALL_LETTERS },
        { "labels",      JSON_TABLE_CUSTOM, .decode = check_labels },
        { "annotations", JSON_TABLE_CUSTOM, .decode = check_annotations },
        { .name = NULL },
};

static const struct json_table metadata_table = { .rows = metadata_rows, .size_bytes = sizeof(struct job) };
static const struct json_table_row job_rows[] = {
        { "apiVersion", JSON_TABLE_UNREAD, .help = "" },
        { "kind",       JSON_TABLE_UNREAD, .help = "" },
        { "metadata",   JSON_TABLE_UNREAD, .help = "" },
        { "spec",       JSON_TABLE_OBJECT, PART(spec_rows), .required = true, .mend = "it says what is trained, on which chips", .help = "" },
        { "status",     JSON_TABLE_UNREAD, .help = "" },
        { .name = NULL },
};
static const struct json_table job_table = { .rows = job_rows, .size_bytes = sizeof(struct job), .strict = true };
/* clang-format on */

static int decode_metadata(const struct json_field *root, struct job *job, struct err *err)
{
        struct json_field at = json_field_get(root, "metadata");

        if (at.value == NULL)
                return err_set(err, -EINVAL, "metadata.name: missing; %s", metadata_rows[0].mend);
        if (!json_is_object(at.value))
                return json_field_error(&at, err, "a mapping is needed, such as {name: fashion}");
        return json_table_decode_at(&metadata_table, &at, job, err);
}

static int check_word(const json_t *object, const char *field, const char *want, struct err *err)
{
        const json_t *value = json_object_get(object, field);
        char buffer[JSON_WRITTEN_SHOWN_BYTES];

        if (value == NULL)
                return err_set(err, -EINVAL, "%s: missing; write `%s: %s`", field, field, want);
        if (!json_is_string(value) || strcmp(json_string_value(value), want) != 0)
                return err_set(err, -EINVAL, "%s: %s is not '%s'; write `%s: %s`", field,
                               json_written_shown(value, buffer), want, field, want);
        return 0;
}

static int decode_object(const json_t *object, struct job *job, struct err *err)
{
        struct json_field root = json_field_root(object);
        int r;

        if (!json_is_object(object))
                return err_set(err, -EINVAL, "a TrainingJob is needed: apiVersion, kind, metadata, spec");
        r = check_word(object, "apiVersion", "remuda.dev/v1alpha1", err);
        if (r == 0)
                r = check_word(object, "kind", "TrainingJob", err);
        if (r == 0)
                r = decode_metadata(&root, job, err);
        if (r == 0)
                r = json_table_decode(&job_table, object, job, err);
        return r == 0 ? job_check(job, err) : r;
}

int job_yaml_decode(const json_t *object, struct job *ret, struct err *err)
{
        int r;

        job_init(ret);
        r = decode_object(object, ret, err);
        if (r < 0)
                job_free(ret);
        if (r == -EBADMSG) {
                r = -EINVAL;
                if (err != NULL)
                        err->code = r;
        }
        return r;
}

int job_yaml_parse(const char *bytes, size_t size_bytes, struct job *ret, struct err *err)
{
        json_t *object = NULL;
        int r;

        job_init(ret);
        if (size_bytes > JOB_FILE_MAX_BYTES)
                return err_set(err, -E2BIG, "larger than %zu bytes; a job is a short text",
                               JOB_FILE_MAX_BYTES);
        r = yaml_parse(bytes, size_bytes, &object, err);
        if (r < 0)
                return r;
        r = job_yaml_decode(object, ret, err);
        json_decref(object);
        return r;
}
