/* The fields of a TrainingJob: a table, and the few that have a shape of their own. */
#include "job/spec/job_yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "job/spec/labels.h"

enum field_kind { FIELD_CHOICE, FIELD_BOOL, FIELD_UINT, FIELD_INT, FIELD_REAL, FIELD_TEXT, FIELD_CUSTOM };

/* One row a field: where it goes, what it may be, and what it is, for the message that refuses a value. */
struct field {
        const char *name;
        enum field_kind kind;
        size_t offset;
        size_t size_bytes; /* FIELD_TEXT: of the field */
        double min,
                max; /* FIELD_UINT, FIELD_INT, FIELD_REAL; min > 0 for a FIELD_TEXT that must not be empty */
        const char *const *choices;
        int choice_count;
        int (*decode)(const json_t *value, const char *path, void *into, struct err *err); /* FIELD_CUSTOM */
        const char *help;
};

static int decode_fields(const json_t *object, const char *path, const struct field *fields, size_t count,
                         void *into, struct err *err);

#define PATH_BYTES 256

static void join(char path[PATH_BYTES], const char *parent, const char *name)
{
        if (parent[0] == '\0')
                (void) text_format(path, PATH_BYTES, "%.120s", name);
        else
                (void) text_format(path, PATH_BYTES, "%.120s.%.120s", parent, name);
}

/* The value as a person wrote it, cut to a line. */
static const char *shown(const json_t *value, char buffer[64])
{
        char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

        (void) text_copy(buffer, 64, dump == NULL ? "?" : dump);
        free(dump);
        return buffer;
}

static int refuse(const struct field *field, const char *path, const json_t *value, struct err *err)
{
        struct text choices = { .max_bytes = 256 };
        char buffer[64];

        switch (field->kind) {
        case FIELD_CHOICE:
                for (int i = 0; i < field->choice_count; i++)
                        text_printf(&choices, "%s%s", i == 0 ? "" : ", ", field->choices[i]);
                err_set(err, -EINVAL, "%s: %s is none of %s; %s", path, shown(value, buffer),
                        choices.data == NULL ? "" : choices.data, field->help);
                break;
        case FIELD_BOOL:
                err_set(err, -EINVAL, "%s: %s is neither true nor false; %s", path, shown(value, buffer),
                        field->help);
                break;
        case FIELD_UINT:
        case FIELD_INT:
                err_set(err, -EINVAL, "%s: %s is not a whole number in %.0f..%.0f; %s", path,
                        shown(value, buffer), field->min, field->max, field->help);
                break;
        case FIELD_REAL:
                err_set(err, -EINVAL, "%s: %s is not a number in %g..%g; %s", path, shown(value, buffer),
                        field->min, field->max, field->help);
                break;
        case FIELD_TEXT:
                err_set(err, -EINVAL, "%s: %s is not text of %d to %zu bytes without line ends; %s", path,
                        shown(value, buffer), field->min > 0 ? 1 : 0, field->size_bytes - 1, field->help);
                break;
        case FIELD_CUSTOM:
                err_set(err, -EINVAL, "%s: %s is not understood; %s", path, shown(value, buffer),
                        field->help);
                break;
        }
        text_free(&choices);
        return -EINVAL;
}

/* Text becomes arguments, variables and file names: no control characters, so also no NUL and no line end. */
static const char *clean_text(const json_t *value)
{
        const char *s = json_string_value(value);

        if (s == NULL || strlen(s) != json_string_length(value))
                return NULL;
        for (const char *p = s; *p != '\0'; p++)
                if ((unsigned char) *p < 0x20 || *p == 0x7f)
                        return NULL;
        return s;
}

static int decode_choice(const json_t *value, const struct field *field, int *into)
{
        const char *s = clean_text(value);

        for (int i = 0; s != NULL && i < field->choice_count; i++)
                if (strcmp(s, field->choices[i]) == 0) {
                        *into = i;
                        return 0;
                }
        return -EINVAL;
}

static int decode_number(const json_t *value, const struct field *field, void *into)
{
        double number = json_number_value(value);

        if (!(field->kind == FIELD_REAL ? json_is_number(value) : json_is_integer(value)) ||
            !(number >= field->min) || !(number <= field->max))
                return -EINVAL;
        if (field->kind == FIELD_REAL)
                *(double *) into = number;
        else if (field->kind == FIELD_INT)
                *(int64_t *) into = json_integer_value(value);
        else
                *(uint64_t *) into = (uint64_t) json_integer_value(value);
        return 0;
}

static int decode_text(const json_t *value, const struct field *field, char *into)
{
        const char *s = clean_text(value);

        if (s == NULL || strlen(s) >= field->size_bytes || (field->min > 0 && s[0] == '\0'))
                return -EINVAL;
        (void) text_copy(into, field->size_bytes, s);
        return 0;
}

static int decode_field(const json_t *value, const char *path, const struct field *field, void *base,
                        struct err *err)
{
        void *into = (char *) base + field->offset;
        int r = -EINVAL;

        switch (field->kind) {
        case FIELD_CUSTOM:
                r = field->decode(value, path, base, err);
                return r == 1 ? refuse(field, path, value, err) : r;
        case FIELD_CHOICE:
                r = decode_choice(value, field, into);
                break;
        case FIELD_BOOL:
                if (json_is_boolean(value)) {
                        *(bool *) into = json_is_true(value);
                        return 0;
                }
                break;
        case FIELD_TEXT:
                r = decode_text(value, field, into);
                break;
        case FIELD_UINT:
        case FIELD_INT:
        case FIELD_REAL:
                r = decode_number(value, field, into);
                break;
        }
        return r < 0 ? refuse(field, path, value, err) : 0;
}

static int no_such_field(const char *parent, const char *name, const struct field *fields, size_t count,
                         struct err *err)
{
        struct text known = { .max_bytes = 400 };
        char path[PATH_BYTES];

        for (size_t i = 0; i < count; i++)
                text_printf(&known, "%s%s", i == 0 ? "" : ", ", fields[i].name);
        join(path, parent, name);
        err_set(err, -EINVAL, "%s: no such field; there are %s", path,
                known.data == NULL ? "none" : known.data);
        text_free(&known);
        return -EINVAL;
}

static int decode_fields(const json_t *object, const char *path, const struct field *fields, size_t count,
                         void *into, struct err *err)
{
        const char *name;
        json_t *value;

        if (!json_is_object(object)) {
                char buffer[64];

                return err_set(err, -EINVAL,
                               "%s: %s is not a mapping of fields; write `name: value` lines below it", path,
                               shown(object, buffer));
        }
        json_object_foreach((json_t *) object, name, value)
        {
                char field_path[PATH_BYTES];
                size_t i = 0;
                int r;

                while (i < count && strcmp(fields[i].name, name) != 0)
                        i++;
                if (i == count)
                        return no_such_field(path, name, fields, count, err);
                join(field_path, path, name);
                r = decode_field(value, field_path, &fields[i], into, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_strings(const json_t *value, size_t max, char ***ret, size_t *ret_count, struct err *err)
{
        size_t count = json_array_size(value);

        if (!json_is_array(value) || count > max)
                return 1;
        for (size_t i = 0; i < count; i++)
                if (json_string_value(json_array_get(value, i)) == NULL ||
                    strlen(json_string_value(json_array_get(value, i))) !=
                            json_string_length(json_array_get(value, i)))
                        return 1;
        *ret = calloc(count + 1, sizeof(**ret));
        if (*ret == NULL)
                return err_set(err, -ENOMEM, "no memory for the job");
        for (size_t i = 0; i < count; i++) {
                (*ret)[i] = strdup(json_string_value(json_array_get(value, i)));
                if ((*ret)[i] == NULL)
                        return err_set(err, -ENOMEM, "no memory for the job");
                *ret_count = i + 1;
        }
        return 0;
}

#define CHOICES(names)        .choices = (names), .choice_count = (int) ARRAY_SIZE(names)
#define TEXT_AT(type, member) .offset = offsetof(type, member), .size_bytes = sizeof(((type *) 0)->member)

/* clang-format off */
static const struct field role_fields[] = {
        { "vendor",   FIELD_TEXT, TEXT_AT(struct job_role, vendor),  .min = 1, .help = "such as nvidia, huawei or cpu" },
        { "runtime",  FIELD_TEXT, TEXT_AT(struct job_role, runtime), .min = 1, .help = "such as cuda, cann, rocm or cpu" },
        { "model",    FIELD_TEXT, TEXT_AT(struct job_role, model),   .min = 1, .help = "a device model, or A|B; `remuda devices` lists them" },
        { "group",    FIELD_TEXT, TEXT_AT(struct job_role, group),   .min = 1, .help = "a device group; `remuda devices` lists them" },
        { "chips",    FIELD_UINT, offsetof(struct job_role, chips),     .min = 1, .max = JOB_CHIPS_MAX, .help = "the number of chips" },
        { "minChips", FIELD_UINT, offsetof(struct job_role, min_chips), .min = 1, .max = JOB_CHIPS_MAX, .help = "the fewest chips that will do" },
};
/* clang-format on */

static int decode_role(const json_t *value, const char *path, struct job_role *role, struct err *err)
{
        int r;

        *role = (struct job_role){ 0 };
        r = decode_fields(value, path, role_fields, ARRAY_SIZE(role_fields), role, err);
        if (r < 0)
                return r;
        if (role->chips == 0)
                return err_set(err, -EINVAL, "%s.chips: missing; give the number of chips", path);
        if (role->min_chips == 0)
                role->min_chips = role->chips;
        return 0;
}

static int decode_workers(const json_t *value, const char *path, void *into, struct err *err)
{
        struct job *job = into;
        size_t count = json_array_size(value);

        if (!json_is_array(value) || count == 0 || count > JOB_ROLES_MAX)
                return 1;
        job->workers = calloc(count, sizeof(*job->workers));
        if (job->workers == NULL)
                return err_set(err, -ENOMEM, "no memory for the job");
        for (size_t i = 0; i < count; i++) {
                char entry[PATH_BYTES];
                int r;

                (void) text_format(entry, sizeof(entry), "%s[%zu]", path, i);
                r = decode_role(json_array_get(value, i), entry, &job->workers[i], err);
                if (r < 0)
                        return r;
                job->worker_count = i + 1;
        }
        return 0;
}

static int decode_servers(const json_t *value, const char *path, void *into, struct err *err)
{
        struct job *job = into;

        job->has_servers = true;
        job->servers = (struct job_role){ 0 };
        return decode_role(value, path, &job->servers, err);
}

static int decode_segments(const json_t *value, const char *path, void *into, struct err *err)
{
        struct job *job = into;
        const char *s = json_string_value(value);
        size_t count = json_array_size(value);

        (void) path;
        if (s != NULL && (strcmp(s, "auto") == 0 || strcmp(s, "none") == 0)) {
                job->segments = s[0] == 'a' ? JOB_SEGMENTS_AUTO : JOB_SEGMENTS_NONE;
                return 0;
        }
        if (!json_is_array(value) || count == 0 || count > JOB_SEGMENTS_MAX)
                return 1;
        job->segment_list = calloc(count, sizeof(*job->segment_list));
        if (job->segment_list == NULL)
                return err_set(err, -ENOMEM, "no memory for the job");
        for (size_t i = 0; i < count; i++) {
                const json_t *index = json_array_get(value, i);

                if (!json_is_integer(index) || json_integer_value(index) < 0 ||
                    json_integer_value(index) > 1000000)
                        return 1;
                job->segment_list[i] = (uint64_t) json_integer_value(index);
                job->segment_count = i + 1;
        }
        job->segments = JOB_SEGMENTS_LIST;
        return 0;
}

static int decode_depends_on(const json_t *value, const char *path, void *into, struct err *err)
{
        struct job *job = into;
        size_t count = json_array_size(value);

        (void) path;
        if (!json_is_array(value) || count > JOB_DEPENDENCIES_MAX)
                return 1;
        job->depends_on = calloc(count + 1, sizeof(*job->depends_on));
        if (job->depends_on == NULL)
                return err_set(err, -ENOMEM, "no memory for the job");
        for (size_t i = 0; i < count; i++) {
                const char *name = clean_text(json_array_get(value, i));

                if (name == NULL || !text_copy(job->depends_on[i], JOB_NAME_BYTES, name))
                        return 1;
                job->dependency_count = i + 1;
        }
        return 0;
}

static int decode_command(const json_t *value, const char *path, void *into, struct err *err)
{
        struct job_program *program = into;

        (void) path;
        return decode_strings(value, JOB_ARGS_MAX, &program->command, &program->command_count, err);
}

static int decode_programs(const json_t *value, const char *path, void *into, struct err *err)
{
        /* clang-format off */
        static const struct field fields[] = {
                { "image",   FIELD_TEXT,   TEXT_AT(struct job_program, image), .min = 1, .help = "a container image" },
                { "command", FIELD_CUSTOM, .decode = decode_command, .help = "give a list of strings, the absolute path of the program first" },
        };
        /* clang-format on */
        struct job *job = into;
        const char *runtime;
        json_t *member;

        if (!json_is_object(value) || json_object_size(value) > JOB_PROGRAMS_MAX)
                return 1;
        job->programs = calloc(json_object_size(value) + 1, sizeof(*job->programs));
        if (job->programs == NULL)
                return err_set(err, -ENOMEM, "no memory for the job");
        json_object_foreach((json_t *) value, runtime, member)
        {
                struct job_program *program = &job->programs[job->program_count++];
                char entry[PATH_BYTES];
                int r;

                join(entry, path, runtime);
                if (!text_copy(program->runtime, sizeof(program->runtime), runtime))
                        return err_set(err, -EINVAL, "%s: not the name of a runtime; at most %d letters",
                                       entry, JOB_RUNTIME_BYTES - 1);
                r = decode_fields(member, entry, fields, ARRAY_SIZE(fields), program, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_args(const json_t *value, const char *path, void *into, struct err *err)
{
        struct job *job = into;

        (void) path;
        job->has_args = true;
        return decode_strings(value, JOB_ARGS_MAX, &job->args, &job->arg_count, err);
}

static int decode_data(const json_t *value, const char *path, void *into, struct err *err)
{
        /* clang-format off */
        static const struct field fields[] = {
                { "path",        FIELD_TEXT,   TEXT_AT(struct job, data.path), .min = 1, .help = "the folder that holds the data" },
                { "claim",       FIELD_TEXT,   TEXT_AT(struct job, data.claim), .min = 1, .help = "a PersistentVolumeClaim that pods mount at the path" },
                { "format",      FIELD_CHOICE, offsetof(struct job, data.format), CHOICES(job_format_names), .help = "how the data is written" },
                { "preprocess",  FIELD_TEXT,   TEXT_AT(struct job, data.preprocess), .help = "steps of the trainer, such as resize:14x14,normalise" },
                { "distribute",  FIELD_CHOICE, offsetof(struct job, data.distribute), CHOICES(job_distribute_names), .help = "read by every worker, or sent by the manager" },
                { "order",       FIELD_CHOICE, offsetof(struct job, data.order), CHOICES(job_order_names), .help = "how shards are cut" },
                { "pollSeconds", FIELD_UINT,   offsetof(struct job, data.poll_seconds), .max = 86400, .help = "how often new files are looked for; 0 = never" },
        };
        /* clang-format on */
        struct job *job = into;
        int r = decode_fields(value, path, fields, ARRAY_SIZE(fields), job, err);

        job->data.given = true;
        if (r == 0 && job->data.path[0] == '\0')
                return err_set(err, -EINVAL, "%s.path: missing; give the folder that holds the data", path);
        return r;
}

static int decode_checkpoint(const json_t *value, const char *path, void *into, struct err *err)
{
        /* clang-format off */
        static const struct field fields[] = {
                { "path",       FIELD_TEXT, TEXT_AT(struct job, checkpoint.path), .min = 1, .help = "the folder that checkpoints go to" },
                { "claim",      FIELD_TEXT, TEXT_AT(struct job, checkpoint.claim), .min = 1, .help = "a PersistentVolumeClaim that pods mount at the path" },
                { "everySteps", FIELD_UINT, offsetof(struct job, checkpoint.every_steps), .min = 1, .max = 1e9, .help = "steps from one checkpoint to the next" },
        };
        /* clang-format on */
        struct job *job = into;

        job->checkpoint.given = true;
        return decode_fields(value, path, fields, ARRAY_SIZE(fields), job, err);
}

static int decode_restart(const json_t *value, const char *path, void *into, struct err *err)
{
        /* clang-format off */
        static const struct field fields[] = {
                { "max",         FIELD_UINT, offsetof(struct job, restart.max), .max = 1000, .help = "how many faults are repaired" },
                { "migrate",     FIELD_BOOL, offsetof(struct job, restart.migrate), .help = "may failed ranks move to other chips?" },
                { "hangSeconds", FIELD_UINT, offsetof(struct job, restart.hang_seconds), .min = 1, .max = 86400, .help = "seconds without progress that are a hang" },
        };
        /* clang-format on */
        struct job *job = into;

        if (!job->restart.given)
                job->restart.max = 3;
        job->restart.given = true;
        return decode_fields(value, path, fields, ARRAY_SIZE(fields), job, err);
}

static int decode_tls(const json_t *value, const char *path, void *into, struct err *err)
{
        /* clang-format off */
        static const struct field fields[] = {
                { "secretName", FIELD_TEXT, TEXT_AT(struct job, tls.secret), .min = 1, .help = "a Secret of the job's namespace with tls.crt, tls.key and ca.crt" },
                { "serverName", FIELD_TEXT, TEXT_AT(struct job, tls.server_name), .min = 1, .help = "the name that its certificate has" },
        };
        /* clang-format on */
        struct job *job = into;
        int r = decode_fields(value, path, fields, ARRAY_SIZE(fields), job, err);

        if (r == 0 && job->tls.secret[0] == '\0')
                return err_set(err, -EINVAL,
                               "%s.secretName: missing; name a Secret with tls.crt, tls.key and ca.crt, or "
                               "leave tls "
                               "out: keys are then made for the job",
                               path);
        return r;
}

/* clang-format off */
static const struct field spec_fields[] = {
        { "urgency",           FIELD_CHOICE, offsetof(struct job, urgency),     CHOICES(job_urgency_names),   .help = "how soon it must run" },
        { "preemptible",       FIELD_BOOL,   offsetof(struct job, preemptible), .help = "may it lose its chips to an emergency?" },
        { "equalNodes",        FIELD_BOOL,   offsetof(struct job, equal_nodes), .help = "must all nodes be of one configuration?" },
        { "placement",         FIELD_CHOICE, offsetof(struct job, placement),   CHOICES(job_placement_names), .help = "how chips are chosen" },
        { "priority",          FIELD_INT,    offsetof(struct job, priority),    .min = -1e9, .max = 1e9, .help = "larger goes first among jobs that wait" },
        { "dependsOn",         FIELD_CUSTOM, .decode = decode_depends_on, .help = "give a list of at most 32 names of jobs" },
        { "strategy",          FIELD_CHOICE, offsetof(struct job, strategy),    CHOICES(job_strategy_names),  .help = "how the workers learn together" },
        { "staleness",         FIELD_UINT,   offsetof(struct job, staleness),   .max = 1e6, .help = "clocks that a ps-ssp worker may be ahead" },
        { "microbatches",      FIELD_UINT,   offsetof(struct job, microbatches), .min = 1, .max = 65536, .help = "parts of a batch in the pipeline of a split" },
        { "model",             FIELD_TEXT,   TEXT_AT(struct job, model),        .min = 1, .help = "mlp, cnn or text" },
        { "seed",              FIELD_UINT,   offsetof(struct job, seed),        .max = 9007199254740992.0, .help = "of every random choice" },
        { "learningRate",      FIELD_REAL,   offsetof(struct job, learning_rate), .min = 1e-12, .max = 1e6, .help = "such as 0.1" },
        { "globalBatch",       FIELD_UINT,   offsetof(struct job, global_batch), .min = 1, .max = 1 << 24, .help = "samples of one step over all workers" },
        { "epochs",            FIELD_UINT,   offsetof(struct job, epochs),      .min = 1, .max = 1e6, .help = "times that every sample is used" },
        { "shards",            FIELD_CHOICE, offsetof(struct job, shards),      CHOICES(job_shards_names),    .help = "work by speed, or the same for all" },
        { "segments",          FIELD_CUSTOM, .decode = decode_segments, .help = "give auto, none, or a list of last tensor indices such as [3, 7]" },
        { "neighbourExchange", FIELD_REAL,   offsetof(struct job, neighbour_exchange), .max = 1, .help = "share of its samples that a worker passes on" },
        { "workers",           FIELD_CUSTOM, .decode = decode_workers, .help = "give a list of 1 to 64 entries such as {runtime: cpu, chips: 2}" },
        { "servers",           FIELD_CUSTOM, .decode = decode_servers, .help = "give one entry such as {runtime: cpu, chips: 1}" },
        { "programs",          FIELD_CUSTOM, .decode = decode_programs, .help = "give {RUNTIME: {image, command}}, at most 32" },
        { "args",              FIELD_CUSTOM, .decode = decode_args, .help = "give a list of at most 256 strings" },
        { "data",              FIELD_CUSTOM, .decode = decode_data, .help = "give {path: FOLDER}" },
        { "checkpoint",        FIELD_CUSTOM, .decode = decode_checkpoint, .help = "give {path: FOLDER, everySteps: 100}" },
        { "restart",           FIELD_CUSTOM, .decode = decode_restart, .help = "give {max: 3}" },
        { "tls",               FIELD_CUSTOM, .decode = decode_tls, .help = "give {secretName: NAME}" },
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
        /* clang-format off */
        static const struct field fields[] = {
                { "name",      FIELD_TEXT, TEXT_AT(struct job, name),       .min = 1, .help = "small letters, digits and '-'" },
                { "namespace", FIELD_TEXT, TEXT_AT(struct job, namespace_), .help = "small letters, digits and '-'" },
        };
        /* clang-format on */

        if (metadata == NULL)
                return err_set(err, -EINVAL, "metadata.name: missing; name the job, such as fashion");
        if (!json_is_object(metadata))
                return err_set(err, -EINVAL, "metadata: a mapping is needed, such as {name: fashion}");
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                const json_t *value = json_object_get(metadata, fields[i].name);
                char path[PATH_BYTES];
                int r;

                join(path, "metadata", fields[i].name);
                r = value == NULL ? 0 : decode_field(value, path, &fields[i], job, err);
                if (r < 0)
                        return r;
        }
        return check_labels(metadata, err);
}

static int check_word(const json_t *object, const char *field, const char *want, struct err *err)
{
        const json_t *value = json_object_get(object, field);
        char buffer[64];

        if (value == NULL)
                return err_set(err, -EINVAL, "%s: missing; write `%s: %s`", field, field, want);
        if (!json_is_string(value) || strcmp(json_string_value(value), want) != 0)
                return err_set(err, -EINVAL, "%s: %s is not '%s'; write `%s: %s`", field,
                               shown(value, buffer), want, field, want);
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
        r = decode_fields(json_object_get(object, "spec"), "spec", spec_fields, ARRAY_SIZE(spec_fields), job,
                          err);
        return r < 0 ? r : job_check(job, err);
}

int job_decode(const json_t *object, struct job *ret, struct err *err)
{
        int r;

        job_init(ret);
        r = decode_object(object, ret, err);
        if (r < 0)
                job_free(ret);
        return r;
}

int job_parse(const char *bytes, size_t size_bytes, struct job *ret, struct err *err)
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
        r = job_decode(object, ret, err);
        json_decref(object);
        return r;
}
