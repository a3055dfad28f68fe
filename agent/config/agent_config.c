#include "agent/config/agent_config.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "base/yaml/yaml_json.h"

static void set_defaults(struct agent_config *c)
{
        *c = (struct agent_config){ .node_class = NODE_CLASS_ANY,
                                    .health = HEALTH_RULES_DEFAULT,
                                    .probe_sec = 10,
                                    .probes_enabled = true,
                                    .probes_sec = 10,
                                    .probes_deadline_sec = 5 };
        (void) text_copy(c->pool, sizeof(c->pool), "regular");
        (void) text_copy(c->launch_group, sizeof(c->launch_group), "remuda");
        (void) text_copy(c->programs_path, sizeof(c->programs_path), "/etc/remuda/programs.yaml");
}

void agent_config_free(struct agent_config *c)
{
        if (c == NULL)
                return;
        free(c->excludes);
        free(c->rule_levels);
        free(c->repairs);
        json_decref(c->root);
        set_defaults(c);
}

/* The answers of json_field readers are 0, absent (fine here) or an error. */
#define READ(call)                                                                                           \
        do {                                                                                                 \
                int read_ = (call);                                                                          \
                if (read_ < 0)                                                                               \
                        return read_;                                                                        \
        } while (false)

static int parse_class(const struct json_field *root, struct agent_config *c, struct err *err)
{
        static const char *const names[] = { "any", "single", "multi", NULL };
        unsigned choice = c->node_class;

        READ(json_field_choice(root, "nodeClass", names, &choice, err));
        READ(node_class_parse(names[choice], &c->node_class));
        READ(json_field_text(root, "pool", c->pool, sizeof(c->pool), err));
        if (c->pool[0] == '\0' ||
            strspn(c->pool, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(c->pool)) {
                struct json_field pool = json_field_get(root, "pool");

                return json_field_error(&pool, err, "must be a word of a-z, 0-9 and '-', not '%s'", c->pool);
        }
        return 0;
}

static int parse_exclude(const struct json_field *at, struct exclude_rule *rule, struct err *err)
{
        static const char *const known[] = { "id", "pci", "vendor", "model", "numa", NULL };
        int64_t numa = -1;

        READ(json_field_is_object(at, err));
        READ(json_field_only(at, known, err));
        READ(json_field_text(at, "id", rule->id, sizeof(rule->id), err));
        READ(json_field_text(at, "pci", rule->pci, sizeof(rule->pci), err));
        READ(json_field_text(at, "vendor", rule->vendor, sizeof(rule->vendor), err));
        READ(json_field_text(at, "model", rule->model, sizeof(rule->model), err));
        READ(json_field_int64(at, "numa", 0, 4095, &numa, err));
        rule->numa = (int) numa;
        if (json_object_size(at->value) == 0)
                return json_field_error(at, err,
                                        "an empty rule would exclude everything; give id, pci, "
                                        "vendor, model or numa");
        return 0;
}

static int parse_excludes(const struct json_field *root, struct agent_config *c, struct err *err)
{
        struct json_field list;
        size_t n;

        READ(json_field_array(root, "exclude", EXCLUDES_MAX, &list, err));
        n = json_field_count(&list);
        c->excludes = calloc(n + 1, sizeof(*c->excludes));
        if (c->excludes == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu rules", n);
        for (size_t i = 0; i < n; i++) {
                struct json_field at = json_field_at(&list, i);

                READ(parse_exclude(&at, &c->excludes[i], err));
                c->exclude_count = i + 1;
        }
        return 0;
}

static int parse_rule_levels(const struct json_field *health, struct agent_config *c, struct err *err)
{
        static const char *const names[] = { "ignore", "degraded", "unhealthy", NULL };
        static const enum finding_level levels[] = { FINDING_GOOD, FINDING_DEGRADED, FINDING_BAD };
        struct json_field rules;
        const char *name;
        json_t *value;

        READ(json_field_object(health, "rules", &rules, err));
        if (json_object_size(rules.value) > RULE_LEVELS_MAX)
                return json_field_error(&rules, err, "holds more than %d rules", RULE_LEVELS_MAX);
        c->rule_levels = calloc(json_object_size(rules.value) + 1, sizeof(*c->rule_levels));
        if (c->rule_levels == NULL)
                return err_set(err, -ENOMEM, "no memory for the rules");
        json_object_foreach((json_t *) rules.value, name, value)
        {
                struct rule_level *level = &c->rule_levels[c->rule_level_count];
                unsigned choice = 0;

                if (!text_copy(level->rule, sizeof(level->rule), name))
                        return json_field_error(&rules, err, "'%.40s...' is no rule's name", name);
                READ(json_field_choice(&rules, name, names, &choice, err));
                level->level = levels[choice];
                c->rule_level_count++;
        }
        return 0;
}

static int parse_seconds(const struct json_field *in, const char *name, unsigned min, uint64_t *usec,
                         struct err *err)
{
        unsigned seconds = 0;
        int r = json_field_unsigned(in, name, min, 86400, &seconds, err);

        if (r == 0)
                *usec = (uint64_t) seconds * 1000000;
        return r < 0 ? r : 0;
}

static int parse_health(const struct json_field *root, struct agent_config *c, struct err *err)
{
        static const char *const known[] = {
                "recoveryProbes",    "recoverySeconds", "flapChanges", "flapSeconds",
                "quarantineSeconds", "probeSeconds",    "rules",       NULL
        };
        struct health_rules *h = &c->health;
        struct json_field health;

        READ(json_field_object(root, "health", &health, err));
        READ(json_field_only(&health, known, err));
        READ(json_field_unsigned(&health, "recoveryProbes", 1, 1000, &h->recovery_probes, err));
        READ(parse_seconds(&health, "recoverySeconds", 0, &h->recovery_usec, err));
        READ(json_field_unsigned(&health, "flapChanges", 1, HEALTH_FLAP_CHANGES_MAX, &h->flap_changes, err));
        READ(parse_seconds(&health, "flapSeconds", 1, &h->flap_window_usec, err));
        READ(parse_seconds(&health, "quarantineSeconds", 1, &h->quarantine_usec, err));
        READ(json_field_unsigned(&health, "probeSeconds", 1, 3600, &c->probe_sec, err));
        return parse_rule_levels(&health, c, err);
}

static int parse_libraries(const struct json_field *probes, struct agent_config *c, struct err *err)
{
        struct json_field libraries;
        const char *vendor;
        json_t *value;

        READ(json_field_object(probes, "libraries", &libraries, err));
        json_object_foreach((json_t *) libraries.value, vendor, value)
        {
                struct probe_library *library = &c->libraries[c->library_count];

                if (c->library_count == VENDOR_SETTINGS_MAX)
                        return json_field_error(&libraries, err, "holds more than %d", VENDOR_SETTINGS_MAX);
                if (!text_copy(library->vendor, sizeof(library->vendor), vendor))
                        return json_field_error(&libraries, err, "'%.24s...' is no vendor", vendor);
                READ(json_field_text(&libraries, vendor, library->path, sizeof(library->path), err));
                c->library_count++;
        }
        return 0;
}

static int parse_probes(const struct json_field *root, struct agent_config *c, struct err *err)
{
        static const char *const known[] = { "enabled", "seconds", "deadlineSeconds", "libraries", NULL };
        struct json_field probes;

        READ(json_field_object(root, "probes", &probes, err));
        READ(json_field_only(&probes, known, err));
        READ(json_field_bool(&probes, "enabled", &c->probes_enabled, err));
        READ(json_field_unsigned(&probes, "seconds", 1, 3600, &c->probes_sec, err));
        READ(json_field_unsigned(&probes, "deadlineSeconds", 1, 60, &c->probes_deadline_sec, err));
        return parse_libraries(&probes, c, err);
}

static int parse_repair(const struct json_field *at, const char *vendor, struct repair *repair,
                        struct err *err)
{
        static const char *const known[] = { "path", "args", "maxPerDay", NULL };
        struct json_field args;

        READ(json_field_is_object(at, err));
        READ(json_field_only(at, known, err));
        READ(json_field_require(at, "path", err));
        READ(json_field_text(at, "path", repair->path, sizeof(repair->path), err));
        if (repair->path[0] != '/') {
                struct json_field path = json_field_get(at, "path");

                return json_field_error(&path, err, "'%s' is not absolute; begin it with '/'", repair->path);
        }
        if (!text_copy(repair->vendor, sizeof(repair->vendor), vendor))
                return json_field_error(at, err, "is no vendor");
        repair->max_per_day = 1;
        READ(json_field_unsigned(at, "maxPerDay", 1, 1440, &repair->max_per_day, err));
        READ(json_field_array(at, "args", REPAIR_ARGS_MAX, &args, err));
        repair->arg_count = json_field_count(&args);
        for (size_t i = 0; i < repair->arg_count; i++) {
                struct json_field arg = json_field_at(&args, i);
                const char *text = json_string_value(arg.value);

                if (text == NULL || strlen(text) != json_string_length(arg.value) ||
                    !text_copy(repair->args[i], sizeof(repair->args[i]), text))
                        return json_field_error(&arg, err, "must be a string of less than %zu bytes",
                                                sizeof(repair->args[i]));
        }
        return 0;
}

static int parse_repairs(const struct json_field *root, struct agent_config *c, struct err *err)
{
        struct json_field repairs;
        const char *vendor;
        json_t *value;

        READ(json_field_object(root, "repair", &repairs, err));
        if (json_object_size(repairs.value) > VENDOR_SETTINGS_MAX)
                return json_field_error(&repairs, err, "holds more than %d", VENDOR_SETTINGS_MAX);
        c->repairs = calloc(json_object_size(repairs.value) + 1, sizeof(*c->repairs));
        if (c->repairs == NULL)
                return err_set(err, -ENOMEM, "no memory for the repairs");
        json_object_foreach((json_t *) repairs.value, vendor, value)
        {
                struct json_field at = json_field_get(&repairs, vendor);

                READ(parse_repair(&at, vendor, &c->repairs[c->repair_count], err));
                c->repair_count++;
        }
        return 0;
}

static int parse_launch(const struct json_field *root, struct agent_config *c, struct err *err)
{
        static const char *const known[] = { "group", "programs", NULL };
        struct json_field launch;

        READ(json_field_object(root, "launch", &launch, err));
        READ(json_field_only(&launch, known, err));
        READ(json_field_text(&launch, "group", c->launch_group, sizeof(c->launch_group), err));
        READ(json_field_text(&launch, "programs", c->programs_path, sizeof(c->programs_path), err));
        return 0;
}

static int parse_root(const struct json_field *root, struct agent_config *c, struct err *err)
{
        static const char *const known[] = { "apiVersion", "kind",      "metadata",        "nodeClass",
                                             "pool",       "exclude",   "health",          "probes",
                                             "repair",     "launch",    "nodeFeatureFile", "compat",
                                             "discovery",  "resources", "plugin",          NULL };
        static const char *const compats[] = { "none", "dcgm", NULL };
        unsigned compat = 0;

        READ(json_field_is_object(root, err));
        READ(json_field_only(root, known, err));
        READ(parse_class(root, c, err));
        READ(parse_excludes(root, c, err));
        READ(parse_health(root, c, err));
        READ(parse_probes(root, c, err));
        READ(parse_repairs(root, c, err));
        READ(parse_launch(root, c, err));
        READ(json_field_text(root, "nodeFeatureFile", c->node_feature_file, sizeof(c->node_feature_file),
                             err));
        READ(json_field_choice(root, "compat", compats, &compat, err));
        c->compat_dcgm = compat == 1;
        return 0;
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
        struct json_field root;
        json_t *object = NULL;
        int r;

        set_defaults(ret);
        if (bytes == NULL)
                size_bytes = 0;
        if (size_bytes > AGENT_CONFIG_MAX_BYTES)
                return err_set(err, -E2BIG, "%s: larger than %zu bytes", name, AGENT_CONFIG_MAX_BYTES);
        r = yaml_parse(bytes != NULL ? bytes : "", size_bytes, &object, err);
        if (r < 0)
                return err_wrap(err, r, "%s", name);
        ret->root = object;
        root = json_field_root(object);
        r = parse_root(&root, ret, err);
        if (r < 0) {
                agent_config_free(ret);
                return r == -ENOMEM ? r : agent_config_at(name, bytes, size_bytes, err);
        }
        return 0;
}

static bool matches(const char *pattern, const char *text)
{
        return pattern[0] == '\0' || fnmatch(pattern, text, 0) == 0;
}

bool agent_config_excludes(const struct agent_config *c, const struct device *d)
{
        for (size_t i = 0; i < c->exclude_count; i++) {
                const struct exclude_rule *rule = &c->excludes[i];

                if (matches(rule->id, d->id) && matches(rule->pci, d->pci) &&
                    matches(rule->vendor, d->vendor) && matches(rule->model, d->model) &&
                    (rule->numa < 0 || rule->numa == d->numa))
                        return true;
        }
        return false;
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

const struct repair *agent_config_repair(const struct agent_config *c, const char *vendor)
{
        for (size_t i = 0; i < c->repair_count; i++)
                if (strcmp(c->repairs[i].vendor, vendor) == 0)
                        return &c->repairs[i];
        return NULL;
}
