/* The table of the agent's configuration, and the line of the file that an error is about. */
#include "agent/config/agent_config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/discovery/discovery_config.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "job/spec/program_table.h"

#define WORD        "abcdefghijklmnopqrstuvwxyz0123456789-"
#define SECOND_USEC UINT64_C(1000000)
#define DAY_SEC     86400

static int decode_pool(const struct json_field *at, void *field, struct err *err)
{
        char *pool = field;
        int r = json_field_as_text(at, pool, sizeof(((struct agent_config *) NULL)->pool), err);

        if (r == 0 && (pool[0] == '\0' || strspn(pool, WORD) != strlen(pool)))
                r = json_field_error(at, err, "must be a word of a-z, 0-9 and '-', not '%s'", pool);
        return r;
}

static int decode_level(const struct json_field *at, void *field, struct err *err)
{
        static const char *const names[] = { "ignore", "degraded", "unhealthy", NULL };
        static const enum finding_level levels[] = { FINDING_GOOD, FINDING_DEGRADED, FINDING_BAD };
        unsigned choice = 0;
        int r = json_field_as_choice(at, names, &choice, err);

        if (r == 0)
                *(enum finding_level *) field = levels[choice];
        return r;
}

static int check_repair(const struct json_field *at, void *object, struct err *err)
{
        const struct agent_config_repair *repair = object;
        struct json_field path = json_field_get(at, "path");

        if (repair->path[0] == '/')
                return 0;
        return json_field_error(&path, err, "'%s' is not absolute; begin it with '/'", repair->path);
}

static const char *const compat_names[] = {
        [COMPAT_NONE] = "none", [COMPAT_DCGM] = "dcgm", [COMPAT_OTEL] = "otel", NULL
};

bool agent_config_compat_parse(const char *word, enum agent_config_compat *ret)
{
        for (unsigned i = 0; compat_names[i] != NULL; i++)
                if (strcmp(compat_names[i], word) == 0) {
                        *ret = (enum agent_config_compat) i;
                        return true;
                }
        return false;
}

static const char *const log_formats[] = { "text", "json", NULL }, *const log_levels[] = { "info", "warning",
                                                                                           "error", NULL };

/* One of the words, which is kept as it is. */
static int decode_word(const struct json_field *at, const char *const *words, char *field, size_t field_bytes,
                       struct err *err)
{
        unsigned choice = 0;
        int r = json_field_as_choice(at, words, &choice, err);

        if (r == 0)
                (void) text_copy(field, field_bytes, words[choice]);
        return r;
}

static int decode_log_format(const struct json_field *at, void *field, struct err *err)
{
        return decode_word(at, log_formats, field, sizeof(((struct agent_config *) NULL)->log_format), err);
}

static int decode_log_level(const struct json_field *at, void *field, struct err *err)
{
        return decode_word(at, log_levels, field, sizeof(((struct agent_config *) NULL)->log_level), err);
}

/* clang-format off */
#define KEY(type, member) .key = offsetof(type, member), .key_bytes = sizeof(((type *) NULL)->member)

#define AT(member) JSON_TABLE_AT(struct agent_config_rule, member)
static const struct json_table_row level_row = { "", JSON_TABLE_CUSTOM, AT(level), .decode = decode_level };
static const struct json_table level_table = { .size_bytes = sizeof(struct agent_config_rule), KEY(struct agent_config_rule, rule) };
#undef AT

#define AT(member) JSON_TABLE_AT(struct agent_config_library, member)
static const struct json_table_row library_row = { "", JSON_TABLE_CHARS, AT(path) };
static const struct json_table library_table = { .size_bytes = sizeof(struct agent_config_library), KEY(struct agent_config_library, vendor) };
#undef AT

#define AT(member) JSON_TABLE_AT(struct agent_config_repair, member)
static const struct agent_config_repair once_a_day = { .max_per_day = 1 };
static const struct json_table_row arg_row = { "", JSON_TABLE_CHARS, .size_bytes = REPAIR_ARG_BYTES };
static const struct json_table_row repair_rows[] = {
        { "path",              JSON_TABLE_CHARS, AT(path), .required = true },
        { "args",              JSON_TABLE_ARRAY, AT(args), .element = &arg_row, .count = offsetof(struct agent_config_repair, arg_count) },
        { "maxPerDay",         JSON_TABLE_UINT,  AT(max_per_day), .min = 1, .max = 1440 },
        { .name = NULL },
};
static const struct json_table repair_table = {
        .rows = repair_rows, .size_bytes = sizeof(struct agent_config_repair), .strict = true, KEY(struct agent_config_repair, vendor),
        .initial = &once_a_day, .check = check_repair,
};
#undef AT

#define AT(member)    JSON_TABLE_AT(struct agent_config, member)
#define COUNT(member) .count = offsetof(struct agent_config, member)
#define PART(rows_)   (const struct json_table){ .rows = (rows_), .size_bytes = sizeof(struct agent_config), .strict = true }
static const struct json_table_row health_rows[] = {
        { "recoveryProbes",    JSON_TABLE_UINT, AT(health.recovery_probes), .min = 1, .max = 1000 },
        { "recoverySeconds",   JSON_TABLE_UINT, AT(health.recovery_usec), .max = DAY_SEC, .scale = SECOND_USEC },
        { "flapChanges",       JSON_TABLE_UINT, AT(health.flap_changes), .min = 1, .max = HEALTH_FLAP_CHANGES_MAX },
        { "flapSeconds",       JSON_TABLE_UINT, AT(health.flap_window_usec), .min = 1, .max = DAY_SEC, .scale = SECOND_USEC },
        { "quarantineSeconds", JSON_TABLE_UINT, AT(health.quarantine_usec), .min = 1, .max = DAY_SEC, .scale = SECOND_USEC },
        { "probeSeconds",      JSON_TABLE_UINT, AT(probe_sec), .min = 1, .max = 3600 },
        { "rules",             JSON_TABLE_MAP,  AT(rule_levels), .table = &level_table, .element = &level_row,
          COUNT(rule_level_count), .max = RULE_LEVELS_MAX },
        { .name = NULL },
};
static const struct json_table_row probe_rows[] = {
        { "enabled",           JSON_TABLE_BOOL, AT(probes_enabled) },
        { "seconds",           JSON_TABLE_UINT, AT(probes_sec), .min = 1, .max = 3600 },
        { "deadlineSeconds",   JSON_TABLE_UINT, AT(probes_deadline_sec), .min = 1, .max = 60 },
        { "libraries",         JSON_TABLE_MAP,  AT(libraries), .table = &library_table, .element = &library_row,
          COUNT(library_count), .max = VENDOR_SETTINGS_MAX },
        { .name = NULL },
};
static const struct json_table_row launch_rows[] = {
        { "group",             JSON_TABLE_CHARS, AT(launch_group) },
        { "programs",          JSON_TABLE_CHARS, AT(programs_path) },
        { .name = NULL },
};
static const struct json_table health_table = PART(health_rows), probe_table = PART(probe_rows), launch_table = PART(launch_rows);
#define WHOLE .size_bytes = sizeof(struct agent_config)
static const struct json_table_row root_rows[] = {
        { .name = "apiVersion", .kind = JSON_TABLE_UNREAD },
        { .name = "kind", .kind = JSON_TABLE_UNREAD },
        { .name = "metadata", .kind = JSON_TABLE_UNREAD },
        { "nodeClass",         JSON_TABLE_CHOICE, AT(node_class), .names = node_class_names },
        { "pool",              JSON_TABLE_CUSTOM, AT(pool), .decode = decode_pool },
        { .name = "exclude", .kind = JSON_TABLE_UNREAD }, /* discovery_config.h */
        { "health",            JSON_TABLE_OBJECT, WHOLE, .table = &health_table },
        { "probes",            JSON_TABLE_OBJECT, WHOLE, .table = &probe_table },
        { "repair",            JSON_TABLE_MAP,    AT(repairs), .table = &repair_table, COUNT(repair_count), .max = VENDOR_SETTINGS_MAX },
        { "launch",            JSON_TABLE_OBJECT, WHOLE, .table = &launch_table },
        { "nodeFeatureFile",   JSON_TABLE_CHARS,  AT(node_feature_file) },
        { "compat",            JSON_TABLE_CHOICE, AT(compat), .names = compat_names },
        { "logFormat",         JSON_TABLE_CUSTOM, AT(log_format), .decode = decode_log_format },
        { "logLevel",          JSON_TABLE_CUSTOM, AT(log_level), .decode = decode_log_level },
        { .name = "discovery", .kind = JSON_TABLE_UNREAD }, /* discovery_config.h */
        { .name = "resources", .kind = JSON_TABLE_UNREAD }, /* the plugin's, as the next */
        { .name = "plugin", .kind = JSON_TABLE_UNREAD },
        { .name = "offer", .kind = JSON_TABLE_UNREAD },
        { .name = NULL },
};
static const struct json_table root_table = PART(root_rows);
/* clang-format on */

static void set_defaults(struct agent_config *c)
{
        *c = (struct agent_config){ .node_class = NODE_CLASS_ANY,
                                    .health = HEALTH_RULES_DEFAULT,
                                    .probe_sec = 10,
                                    .probes_enabled = true,
                                    .probes_sec = 10,
                                    .probes_deadline_sec = 5 };
        (void) text_copy(c->pool, sizeof(c->pool), "regular");
        (void) text_copy(c->log_format, sizeof(c->log_format), log_formats[0]);
        (void) text_copy(c->log_level, sizeof(c->log_level), log_levels[0]);
        (void) text_copy(c->launch_group, sizeof(c->launch_group), "remuda");
        (void) text_copy(c->programs_path, sizeof(c->programs_path), PROGRAM_TABLE_PATH);
}

void agent_config_free(struct agent_config *c)
{
        if (c == NULL)
                return;
        json_table_free(&root_table, c);
        discovery_config_free(&c->discovery);
        json_decref(c->root);
        set_defaults(c);
}

/* Where a line begins with the key (after blanks, "- ", "{" or a comma): the offset after it, or NULL. */
static const char *find_key(const char *from, const char *end, const char *key, size_t key_bytes)
{
        for (const char *s = from; s + key_bytes < end; s++) {
                const char *after = s + key_bytes;

                if (memcmp(s, key, key_bytes) != 0 ||
                    (s > from && (isalnum((unsigned char) s[-1]) || s[-1] == '-')))
                        continue;
                while (after < end && (*after == ' ' || *after == '"' || *after == '\''))
                        after++;
                if (after < end && *after == ':')
                        return after;
        }
        return NULL;
}

int agent_config_at(const char *name, const char *bytes, size_t size_bytes, struct err *err)
{
        const char *at = bytes, *end = bytes + size_bytes, *colon;
        unsigned line = 1;

        if (err == NULL)
                return -EBADMSG;
        colon = strchr(err->msg, ':');
        for (const char *key = err->msg; colon != NULL && key < colon;) {
                size_t n = strcspn(key, ".[:");
                const char *found = n > 0 ? find_key(at, end, key, n) : NULL;

                if (found != NULL)
                        at = found;
                key += n;
                key += strspn(key, ".[]0123456789");
        }
        for (const char *s = bytes; s < at; s++)
                line += *s == '\n';
        return err_wrap(err, -EBADMSG, "%s:%u", name, line);
}

int agent_config_parse(const char *name, const char *bytes, size_t size_bytes, struct agent_config *ret,
                       struct err *err)
{
        int r;

        set_defaults(ret);
        if (bytes == NULL)
                size_bytes = 0;
        if (size_bytes > AGENT_CONFIG_MAX_BYTES)
                return err_set(err, -E2BIG, "%s: larger than %zu bytes", name, AGENT_CONFIG_MAX_BYTES);
        r = yaml_parse(bytes != NULL ? bytes : "", size_bytes, &ret->root, err);
        if (r < 0)
                return err_wrap(err, r, "%s", name);
        r = json_table_decode(&root_table, ret->root, ret, err);
        if (r == 0)
                r = discovery_config_decode(ret->root, &ret->discovery, err);
        if (r < 0) {
                agent_config_free(ret);
                return r == -ENOMEM ? r : agent_config_at(name, bytes, size_bytes, err);
        }
        return 0;
}

enum finding_level agent_config_level(const struct agent_config *c, const char *rule,
                                      enum finding_level level)
{
        for (size_t i = 0; i < c->rule_level_count; i++)
                if (strcmp(c->rule_levels[i].rule, rule) == 0)
                        return c->rule_levels[i].level;
        return level;
}

const char *agent_config_library(const struct agent_config *c, const char *vendor)
{
        for (size_t i = 0; i < c->library_count; i++)
                if (strcmp(c->libraries[i].vendor, vendor) == 0)
                        return c->libraries[i].path;
        return NULL;
}

const struct agent_config_repair *agent_config_repair(const struct agent_config *c, const char *vendor)
{
        for (size_t i = 0; i < c->repair_count; i++)
                if (strcmp(c->repairs[i].vendor, vendor) == 0)
                        return &c->repairs[i];
        return NULL;
}
