/* The fields of a TrainingJob, a row each (job/spec/field.h), and the few that have a shape of their own. */
#include "job/spec/job_yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "job/spec/field.h"
#include "job/spec/labels.h"

static bool is_runtime(const char *text)
{
        return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(text) && text[0] != '-';
}

static bool is_program_runtime(const char *text)
{
        return is_runtime(text) && text[0] != '\0' && strlen(text) < JOB_RUNTIME_BYTES;
}

static bool is_dns_name(const char *text)
{
        return job_name_dns_valid(text, strlen(text));
}

/* As a kubelet reads it: letters, digits and "._-/:@" with a letter or digit first. */
static bool is_image(const char *text)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";

        return strspn(text, letters) == strlen(text) && strchr("._-/:@", text[0]) == NULL;
}

/* clang-format off */
#define SMALL_LETTERS "small letters, digits and '-'"
static const struct field_rule
        name_rule = { job_name_valid, "is not a name; 1 to 63 " SMALL_LETTERS ", beginning and ending with a letter or digit" },
        namespace_rule = { job_name_valid, "is not the name of a namespace; 1 to 63 " SMALL_LETTERS },
        parent_rule = { job_name_valid, "is not the name of a job; 1 to 63 " SMALL_LETTERS },
        claim_rule = { job_name_valid, "is not the name of a PersistentVolumeClaim; 1 to 63 " SMALL_LETTERS },
        group_rule = { job_name_valid, "is not the name of a device group; `remuda devices` lists them" },
        vendor_rule = { is_runtime, "is not the name of a vendor; such as nvidia or cpu" },
        runtime_rule = { is_runtime, "is not the name of a runtime; " SMALL_LETTERS ", such as cuda or cpu" },
        program_rule = { is_program_runtime, "not the name of a runtime; at most 15 " SMALL_LETTERS ", such as cuda or cpu" },
        image_rule = { is_image, "is not the name of an image; such as registry.example/train:1" },
        secret_rule = { is_dns_name, "is not the name of a Secret; small letters, digits, '-' and '.', such as fashion-tls" },
        server_name_rule = { is_dns_name, "is not a DNS name; give the one that the certificate in the Secret has, such as manager" };

static const struct field metadata_fields[] = {
        { "name",      FIELD_TEXT, FIELD_AT(struct job, name),       .min = 1, .rule = &name_rule, .missing = "name the job, such as fashion", .help = SMALL_LETTERS },
        { "namespace", FIELD_TEXT, FIELD_AT(struct job, namespace_), .rule = &namespace_rule, .help = SMALL_LETTERS },
        { .name = NULL },
};

static const struct field role_fields[] = {
        { "vendor",   FIELD_TEXT, FIELD_AT(struct job_role, vendor),  .min = 1, .rule = &vendor_rule, .help = "such as nvidia, huawei or cpu" },
        { "runtime",  FIELD_TEXT, FIELD_AT(struct job_role, runtime), .min = 1, .rule = &runtime_rule, .help = "such as cuda, cann, rocm or cpu" },
        { "model",    FIELD_TEXT, FIELD_AT(struct job_role, model),   .min = 1, .help = "a device model, or A|B; `remuda devices` lists them" },
        { "group",    FIELD_TEXT, FIELD_AT(struct job_role, group),   .min = 1, .rule = &group_rule, .help = "a device group; `remuda devices` lists them" },
        { "chips",    FIELD_UINT, offsetof(struct job_role, chips),     .min = 1, .max = JOB_CHIPS_MAX, .missing = "give the number of chips", .help = "the number of chips" },
        { "minChips", FIELD_UINT, offsetof(struct job_role, min_chips), .min = 1, .max = JOB_CHIPS_MAX, .help = "the fewest chips that will do" },
        { .name = NULL },
};
/* clang-format on */

static int finish_role(const char *path, struct job_role *role, struct err *err)
{
        if (role->min_chips == 0)
                role->min_chips = role->chips;
        if (role->vendor[0] == '\0' && role->runtime[0] == '\0' && role->model[0] == '\0' &&
            role->group[0] == '\0')
                return err_set(err, -EINVAL,
                               "%s: says nothing of the chips; give vendor, runtime, model or group", path);
        if (role->min_chips > role->chips)
                return err_set(err, -EINVAL, "%s.minChips: %llu is more than chips, %llu; give at most that",
                               path, (unsigned long long) role->min_chips, (unsigned long long) role->chips);
        return 0;
}

static int finish_worker(const json_t *value, const char *path, void *base, struct err *err)
{
        (void) value;
        return finish_role(path, base, err);
}

static int finish_servers(const json_t *value, const char *path, void *base, struct err *err)
{
        struct job *job = base;

        (void) value;
        return finish_role(path, &job->servers, err);
}

static int decode_segments(const json_t *value, const char *path, void *into, struct err *err)
{
        struct job *job = into;
        static const struct field index = { "", FIELD_UINT, .max = 1000000 };
        static const struct field list[] = {
                { "", FIELD_LIST, FIELD_LIST_OF(struct job, segment_list, segment_count), .min = 1,
                  .max = JOB_SEGMENTS_MAX, .element = &index },
        };
        const char *s = json_string_value(value);
        int r;

        if (s != NULL && (strcmp(s, "auto") == 0 || strcmp(s, "none") == 0)) {
                job->segments = s[0] == 'a' ? JOB_SEGMENTS_AUTO : JOB_SEGMENTS_NONE;
                return 0;
        }
        r = field_decode_value(value, path, list, job, err);
        if (r == 0)
                job->segments = JOB_SEGMENTS_LIST;
        return r;
}

/* clang-format off */
static const struct field
        parent_field = { "", FIELD_TEXT, .size_bytes = JOB_NAME_BYTES, .min = 1, .rule = &parent_rule },
        string_field = { "", FIELD_STRING, .help = "" },
        role_field = { "", FIELD_OBJECT, .fields = role_fields, .decode = finish_worker };
static const struct field program_fields[] = {
        { "image",   FIELD_TEXT,   FIELD_AT(struct job_program, image), .min = 1, .rule = &image_rule, .help = "a container image" },
        { "command", FIELD_LIST, FIELD_LIST_OF(struct job_program, command, command_count), .max = JOB_ARGS_MAX, .element = &string_field, .help = "give a list of strings, the absolute path of the program first" },
        { .name = NULL },
};
static const struct field program_field = { "", FIELD_OBJECT, .fields = program_fields };
static const struct field data_fields[] = {
        { "path",        FIELD_TEXT,   FIELD_AT(struct job, data.path), .min = 1, .missing = "give the folder that holds the data", .help = "the folder that holds the data" },
        { "claim",       FIELD_TEXT,   FIELD_AT(struct job, data.claim), .min = 1, .rule = &claim_rule, .help = "a PersistentVolumeClaim that pods mount at the path" },
        { "format",      FIELD_CHOICE, offsetof(struct job, data.format), FIELD_CHOICES(job_format_names), .help = "how the data is written" },
        { "preprocess",  FIELD_TEXT,   FIELD_AT(struct job, data.preprocess), .help = "steps of the trainer, such as resize:14x14,normalise" },
        { "distribute",  FIELD_CHOICE, offsetof(struct job, data.distribute), FIELD_CHOICES(job_distribute_names), .help = "read by every worker, or sent by the manager" },
        { "order",       FIELD_CHOICE, offsetof(struct job, data.order), FIELD_CHOICES(job_order_names), .help = "how shards are cut" },
        { "pollSeconds", FIELD_UINT,   offsetof(struct job, data.poll_seconds), .max = 86400, .help = "how often new files are looked for; 0 = never" },
        { .name = NULL },
};
static const struct field checkpoint_fields[] = {
        { "path",       FIELD_TEXT, FIELD_AT(struct job, checkpoint.path), .min = 1, .help = "the folder that checkpoints go to" },
        { "claim",      FIELD_TEXT, FIELD_AT(struct job, checkpoint.claim), .min = 1, .rule = &claim_rule, .help = "a PersistentVolumeClaim that pods mount at the path" },
        { "everySteps", FIELD_UINT, offsetof(struct job, checkpoint.every_steps), .min = 1, .max = 1e9, .help = "steps from one checkpoint to the next" },
        { .name = NULL },
};
static const struct field restart_fields[] = {
        { "max",         FIELD_UINT, offsetof(struct job, restart.max), .max = 1000, .help = "how many faults are repaired" },
        { "migrate",     FIELD_BOOL, offsetof(struct job, restart.migrate), .help = "may failed ranks move to other chips?" },
        { "hangSeconds", FIELD_UINT, offsetof(struct job, restart.hang_seconds), .min = 1, .max = 86400, .help = "seconds without progress that are a hang" },
        { .name = NULL },
};
static const struct field tls_fields[] = {
        { "secretName", FIELD_TEXT, FIELD_AT(struct job, tls.secret), .min = 1, .rule = &secret_rule, .missing = "name a Secret with tls.crt, tls.key and ca.crt, or leave tls out: keys are then made for the job", .help = "a Secret of the job's namespace with tls.crt, tls.key and ca.crt" },
        { "serverName", FIELD_TEXT, FIELD_AT(struct job, tls.server_name), .min = 1, .rule = &server_name_rule, .help = "the name that its certificate has" },
        { .name = NULL },
};
static const struct field spec_fields[] = {
        { "urgency",           FIELD_CHOICE, offsetof(struct job, urgency),     FIELD_CHOICES(job_urgency_names),   .help = "how soon it must run" },
        { "preemptible",       FIELD_BOOL,   offsetof(struct job, preemptible), .help = "may it lose its chips to an emergency?" },
        { "equalNodes",        FIELD_BOOL,   offsetof(struct job, equal_nodes), .help = "must all nodes be of one configuration?" },
        { "placement",         FIELD_CHOICE, offsetof(struct job, placement),   FIELD_CHOICES(job_placement_names), .help = "how chips are chosen" },
        { "priority",          FIELD_INT,    offsetof(struct job, priority),    .min = -1e9, .max = 1e9, .help = "larger goes first among jobs that wait" },
        { "dependsOn",         FIELD_LIST,   FIELD_LIST_OF(struct job, depends_on, dependency_count), .max = JOB_DEPENDENCIES_MAX, .element = &parent_field, .help = "give a list of at most 32 names of jobs" },
        { "strategy",          FIELD_CHOICE, offsetof(struct job, strategy),    FIELD_CHOICES(job_strategy_names),  .help = "how the workers learn together" },
        { "staleness",         FIELD_UINT,   offsetof(struct job, staleness),   .max = 1e6, .help = "clocks that a ps-ssp worker may be ahead" },
        { "microbatches",      FIELD_UINT,   offsetof(struct job, microbatches), .min = 1, .max = 65536, .help = "parts of a batch in the pipeline of a split" },
        { "model",             FIELD_TEXT,   FIELD_AT(struct job, model),        .min = 1, .help = "mlp, cnn or text" },
        { "seed",              FIELD_UINT,   offsetof(struct job, seed),        .max = 9007199254740992.0, .help = "of every random choice" },
        { "learningRate",      FIELD_REAL,   offsetof(struct job, learning_rate), .min = 1e-12, .max = 1e6, .help = "such as 0.1" },
        { "globalBatch",       FIELD_UINT,   offsetof(struct job, global_batch), .min = 1, .max = 1 << 24, .help = "samples of one step over all workers" },
        { "epochs",            FIELD_UINT,   offsetof(struct job, epochs),      .min = 1, .max = 1e6, .help = "times that every sample is used" },
        { "shards",            FIELD_CHOICE, offsetof(struct job, shards),      FIELD_CHOICES(job_shards_names),    .help = "work by speed, or the same for all" },
        { "segments",          FIELD_CUSTOM, .decode = decode_segments, .help = "give auto, none, or a list of last tensor indices such as [3, 7]" },
        { "neighbourExchange", FIELD_REAL,   offsetof(struct job, neighbour_exchange), .max = 1, .help = "share of its samples that a worker passes on" },
        { "workers",           FIELD_LIST,   FIELD_LIST_OF(struct job, workers, worker_count), .min = 1, .max = JOB_ROLES_MAX, .element = &role_field, .missing = "list at least one, such as {runtime: cpu, chips: 2}", .help = "give a list of 1 to 64 entries such as {runtime: cpu, chips: 2}" },
        { "servers",           FIELD_OBJECT, FIELD_AT(struct job, servers), .fields = role_fields, .given = offsetof(struct job, has_servers), .decode = finish_servers, .help = "give one entry such as {runtime: cpu, chips: 1}" },
        { "programs",          FIELD_MAP,    FIELD_LIST_OF(struct job, programs, program_count), .max = JOB_PROGRAMS_MAX, .element = &program_field, .rule = &program_rule, .help = "give {RUNTIME: {image, command}}, at most 32" },
        { "args",              FIELD_LIST,   FIELD_LIST_OF(struct job, args, arg_count), .max = JOB_ARGS_MAX, .element = &string_field, .given = offsetof(struct job, has_args), .help = "give a list of at most 256 strings" },
        { "data",              FIELD_OBJECT, .fields = data_fields, .given = offsetof(struct job, data.given), .help = "give {path: FOLDER}" },
        { "checkpoint",        FIELD_OBJECT, .fields = checkpoint_fields, .given = offsetof(struct job, checkpoint.given), .help = "give {path: FOLDER, everySteps: 100}" },
        { "restart",           FIELD_OBJECT, .fields = restart_fields, .given = offsetof(struct job, restart.given), .help = "give {max: 3}" },
        { "tls",               FIELD_OBJECT, .fields = tls_fields, .help = "give {secretName: NAME}" },
        { .name = NULL },
};
/* clang-format on */

/* The job has no use for them here; a cluster would refuse the same. */
static int check_labels(const json_t *metadata, struct err *err)
{
        const json_t *labels = json_object_get(metadata, "labels");
        const json_t *annotations = json_object_get(metadata, "annotations");
        int r = json_is_null(labels) || labels == NULL ? 0
                                                       : labels_check(labels, "metadata.labels", false, err);

        if (r == 0 && annotations != NULL && !json_is_null(annotations))
                r = labels_check(annotations, "metadata.annotations", true, err);
        return r;
}

static int decode_metadata(const json_t *metadata, struct job *job, struct err *err)
{
        int r;

        if (metadata != NULL && !json_is_object(metadata))
                return err_set(err, -EINVAL, "metadata: a mapping is needed, such as {name: fashion}");
        if (metadata == NULL)
                return err_set(err, -EINVAL, "metadata.name: missing; %s", metadata_fields[0].missing);
        r = field_decode(metadata, "metadata", metadata_fields, true, job, err);
        return r < 0 ? r : check_labels(metadata, err);
}

static int check_word(const json_t *object, const char *field, const char *want, struct err *err)
{
        const json_t *value = json_object_get(object, field);
        char buffer[FIELD_SHOWN_BYTES];

        if (value == NULL)
                return err_set(err, -EINVAL, "%s: missing; write `%s: %s`", field, field, want);
        if (!json_is_string(value) || strcmp(json_string_value(value), want) != 0)
                return err_set(err, -EINVAL, "%s: %s is not '%s'; write `%s: %s`", field,
                               field_shown(value, buffer), want, field, want);
        return 0;
}

static int decode_object(const json_t *object, struct job *job, struct err *err)
{
        static const char *const known[] = { "apiVersion", "kind", "metadata", "spec", "status" };
        const char *name;
        json_t *value;
        int r;

        if (!json_is_object(object))
                return err_set(err, -EINVAL, "a TrainingJob is needed: apiVersion, kind, metadata, spec");
        r = check_word(object, "apiVersion", "remuda.dev/v1alpha1", err);
        if (r == 0)
                r = check_word(object, "kind", "TrainingJob", err);
        if (r < 0)
                return r;
        json_object_foreach((json_t *) object, name, value)
        {
                size_t i = 0;

                while (i < ARRAY_SIZE(known) && strcmp(known[i], name) != 0)
                        i++;
                if (i == ARRAY_SIZE(known))
                        return err_set(err, -EINVAL,
                                       "%.100s: no such field; a job has apiVersion, kind, metadata and spec",
                                       name);
        }
        r = decode_metadata(json_object_get(object, "metadata"), job, err);
        if (r < 0)
                return r;
        if (json_object_get(object, "spec") == NULL)
                return err_set(err, -EINVAL, "spec: missing; it says what is trained, on which chips");
        r = field_decode(json_object_get(object, "spec"), "spec", spec_fields, false, job, err);
        return r < 0 ? r : job_check(job, err);
}

int job_yaml_decode(const json_t *object, struct job *ret, struct err *err)
{
        int r;

        job_init(ret);
        r = decode_object(object, ret, err);
        if (r < 0)
                job_free(ret);
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
