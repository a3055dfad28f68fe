/* Rows of stages and profiles, and the rules that follow from several of their fields. */
#include "job/spec/job_split.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "job/spec/job_role.h"

#define BYTES_MAX ((int64_t) 1 << 53)

static bool is_dns_name(const char *text)
{
        return object_name_dns_valid(text, strlen(text));
}

static bool is_key(const char *text)
{
        return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] ==
               '\0';
}

/* Here or elsewhere: of two nobody could say which one counts. */
static int check_profile(const struct json_field *at, void *object, struct err *err)
{
        const struct job_split_profile *profile = object;

        if (profile->layer_count == 0 && profile->map.name[0] == '\0')
                return json_field_error(at, err,
                                        "layers: missing; list the model's layers, or give configMapKeyRef");
        if (profile->layer_count > 0 && profile->map.name[0] != '\0')
                return json_field_error(at, err, "has layers and configMapKeyRef; leave one of the two out");
        return 0;
}

/* clang-format off */
#define LAYER(member) JSON_TABLE_AT(struct job_split_layer, member)
static const struct json_table_row
        ms_row = { "", JSON_TABLE_DOUBLE, JSON_TABLE_AT(struct job_split_ms, ms), .least = 0, .most = 1e12, .help = "milliseconds" };
static const struct json_table ms_table = { .size_bytes = sizeof(struct job_split_ms), .key = offsetof(struct job_split_ms, key), .key_bytes = JOB_LAYER_KEY_BYTES };
static const struct json_table_row layer_rows[] = {
        { "name",             JSON_TABLE_CHARS,  LAYER(name), .min = 1, .help = "of the layer" },
        { "ms",               JSON_TABLE_MAP,    LAYER(ms), .table = &ms_table, .element = &ms_row, .count = offsetof(struct job_split_layer, ms_count), .max = JOB_LAYER_KEYS_MAX, .help = "give milliseconds by device model, vendor or runtime, such as {cuda: 1.5, cpu: 9}" },
        { "multiply_adds",    JSON_TABLE_DOUBLE, LAYER(multiply_adds), .most = 1e18, .help = "of one sample, forward" },
        { "memory_bytes",     JSON_TABLE_UINT,   LAYER(memory_bytes), .max = BYTES_MAX, .help = "of its parameters, their gradients and the optimiser's state" },
        { "params_bytes",     JSON_TABLE_UINT,   LAYER(params_bytes), .max = BYTES_MAX, .help = "of its parameters alone" },
        { "activation_bytes", JSON_TABLE_UINT,   LAYER(activation_bytes), .max = BYTES_MAX, .help = "of its output" },
        { "held_bytes",       JSON_TABLE_UINT,   LAYER(held_bytes), .max = BYTES_MAX, .help = "of all that it keeps from its forward to its backward pass" },
        { .name = "rows", .kind = JSON_TABLE_UNREAD }, /* of `remuda plan split --rows` */
        { .name = NULL },
};
static const struct job_split_layer no_layer;
static const struct json_table layer_table = { .rows = layer_rows, .size_bytes = sizeof(struct job_split_layer), .strict = true, .initial = &no_layer };
#define MAP(member) JSON_TABLE_AT(struct job_split_profile, map.member)
#define MAP_HELP "name the ConfigMap, and the key in its data, such as {name: layers, key: profile.json}"
static const struct json_table_rule
        map_rule = { is_dns_name, "is not the name of a ConfigMap; small letters, digits, '-' and '.', such as layers" },
        key_rule = { is_key, "is no key of a ConfigMap; letters, digits, '-', '_' and '.', such as profile.json" };
static const struct json_table_row map_rows[] = {
        { "name", JSON_TABLE_CHARS, MAP(name), .min = 1, .rule = &map_rule, .required = true, .mend = MAP_HELP, .help = "a ConfigMap of the job's namespace" },
        { "key",  JSON_TABLE_CHARS, MAP(key), .min = 1, .rule = &key_rule, .required = true, .mend = MAP_HELP, .help = "a key of its data" },
        { .name = NULL },
};
static const struct json_table map_table = { .rows = map_rows, .size_bytes = sizeof(struct job_split_profile), .strict = true };
#define PROFILE_ROWS(required_) \
        { "samples", JSON_TABLE_UINT, JSON_TABLE_AT(struct job_split_profile, samples), .min = 1, .max = 1 << 24, .help = "that its times and activations are of" }, \
        { "layers",  JSON_TABLE_LIST, JSON_TABLE_AT(struct job_split_profile, layers), .count = offsetof(struct job_split_profile, layer_count), .min = 1, .max = JOB_LAYERS_MAX, .table = &layer_table, .required = (required_), .mend = "list the model's layers", .help = "give a list of 1 to 512 entries such as {name: fc, ms: {cpu: 3}, memory_bytes: 8192, activation_bytes: 1024}" }
static const struct json_table_row profile_rows[] = {
        PROFILE_ROWS(false),
        { "configMapKeyRef", JSON_TABLE_OBJECT, .size_bytes = sizeof(struct job_split_profile), .table = &map_table, .help = MAP_HELP },
        { .name = NULL },
};
static const struct json_table_row file_rows[] = {
        PROFILE_ROWS(true),
        { .name = "devices", .kind = JSON_TABLE_UNREAD }, { .name = "schedule", .kind = JSON_TABLE_UNREAD },
        { .name = "microbatches", .kind = JSON_TABLE_UNREAD }, { .name = "name", .kind = JSON_TABLE_UNREAD },
        { .name = "comment", .kind = JSON_TABLE_UNREAD }, { .name = "estimate", .kind = JSON_TABLE_UNREAD },
        { .name = NULL },
};
static const struct job_split_profile no_profile = { .samples = 1 };
const struct json_table job_split_profile_table = { .rows = profile_rows, .size_bytes = sizeof(struct job_split_profile), .strict = true, .initial = &no_profile, .check = check_profile };
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct job_split_profile), .strict = true, .initial = &no_profile };
/* clang-format on */

int job_split_decode(const json_t *json, struct job_split_profile *ret, struct err *err)
{
        int r;

        *ret = no_profile;
        r = json_table_decode(&file_table, json, ret, err);
        if (r < 0)
                job_split_profile_free(ret);
        return r;
}

void job_split_profile_free(struct job_split_profile *profile)
{
        json_table_free(&job_split_profile_table, profile);
        *profile = no_profile;
}

int job_split_check(const struct job_split_stage *stages, size_t count, size_t layer_count, struct err *err)
{
        for (size_t i = 0; i < count; i++) {
                if (i > 0 && stages[i].first <= stages[i - 1].last)
                        return err_set(
                                err, -EINVAL,
                                "spec.stages[%zu].layers: %llu:%llu begin before layer %llu, where the "
                                "stages before them end; list stages in the order of their layers",
                                i, (unsigned long long) stages[i].first, (unsigned long long) stages[i].last,
                                (unsigned long long) stages[i - 1].last + 1);
                if (layer_count > 0 && stages[i].last >= layer_count)
                        return err_set(err, -EINVAL,
                                       "spec.stages[%zu].layers: %llu:%llu, the model has %zu layers; give a "
                                       "last layer up to %zu",
                                       i, (unsigned long long) stages[i].first,
                                       (unsigned long long) stages[i].last, layer_count, layer_count - 1);
        }
        return 0;
}

bool job_split_takes(const struct job_split_stage *stage, const struct job_split_chips *chip)
{
        const struct job_split_chips *on = &stage->on;

        return (on->vendor[0] == '\0' || strcmp(on->vendor, chip->vendor) == 0) &&
               (on->runtime[0] == '\0' || strcmp(on->runtime, chip->runtime) == 0) &&
               (on->model[0] == '\0' || job_role_model_matches(on->model, chip->model)) &&
               (on->group[0] == '\0' || strcmp(on->group, chip->group) == 0);
}
