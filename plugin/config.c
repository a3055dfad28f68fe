#include "plugin/config.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

void plugin_config_default(struct plugin_config *ret)
{
        memset(ret, 0, sizeof(*ret));
        (void) text_copy(ret->plugins_registry, sizeof(ret->plugins_registry),
                         "/var/lib/kubelet/plugins_registry");
}

/* One key of an object: a string into a field, or a named number. */
struct key {
        const char *name;
        char *field;
        size_t field_bytes;
};

static int read_strings(const json_t *object, const char *where, const struct key *keys, size_t count,
                        const char *others, struct err *err)
{
        const char *name;
        json_t *value;

        if (!json_is_object(object))
                return err_set(err, -EINVAL, "%s must be a mapping", where);
        json_object_foreach((json_t *) object, name, value)
        {
                size_t i = 0;

                while (i < count && strcmp(keys[i].name, name) != 0)
                        i++;
                if (i == count) {
                        /* `others` lists the keys that the caller reads itself, each between blanks */
                        char wanted[80];

                        (void) text_format(wanted, sizeof(wanted), " %s ", name);
                        if (strstr(others, wanted) != NULL)
                                continue;
                        return err_set(err, -EINVAL, "%s has no key '%s'", where, name);
                }
                if (!json_is_string(value))
                        return err_set(err, -EINVAL, "%s: '%s' must be a string", where, name);
                if (!text_copy(keys[i].field, keys[i].field_bytes, json_string_value(value)))
                        return err_set(err, -EINVAL, "%s: '%s' is longer than %zu bytes", where, name,
                                       keys[i].field_bytes - 1);
        }
        return 0;
}

static int parse_rule(const json_t *object, size_t number, struct resource_rule *rule, struct err *err)
{
        struct key keys[] = {
                { "group", rule->group, sizeof(rule->group) },
                { "vendor", rule->vendor, sizeof(rule->vendor) },
                { "model", rule->model, sizeof(rule->model) },
                { "resource", rule->resource, sizeof(rule->resource) },
        };
        const json_t *replicas = json_object_get(object, "replicas");
        char where[48];
        int r;

        (void) text_format(where, sizeof(where), "resources.rules[%zu]", number);
        r = read_strings(object, where, keys, ARRAY_SIZE(keys), " replicas ", err);
        if (r < 0)
                return r;
        if (rule->resource[0] != '\0' && resource_name_check(rule->resource, err) < 0)
                return err_wrap(err, -EINVAL, "%s", where);
        if (replicas == NULL)
                return rule->resource[0] != '\0'
                               ? 0
                               : err_set(err, -EINVAL, "%s needs 'resource' or 'replicas'", where);
        if (!json_is_integer(replicas) || json_integer_value(replicas) < 1 ||
            json_integer_value(replicas) > REPLICAS_MAX)
                return err_set(err, -EINVAL, "%s: 'replicas' must be a whole number from 1 to %d", where,
                               REPLICAS_MAX);
        rule->replicas = (unsigned) json_integer_value(replicas);
        return 0;
}

static int parse_rules(const json_t *list, struct resource_map *map, struct err *err)
{
        if (list == NULL)
                return 0;
        if (!json_is_array(list))
                return err_set(err, -EINVAL, "resources.rules must be a list");
        if (json_array_size(list) > RESOURCE_RULES_MAX)
                return err_set(err, -EINVAL, "resources.rules has more than %d rules", RESOURCE_RULES_MAX);
        for (size_t i = 0; i < json_array_size(list); i++) {
                int r = parse_rule(json_array_get(list, i), i, &map->rules[i], err);

                if (r < 0)
                        return r;
        }
        map->rule_count = json_array_size(list);
        return 0;
}

static int parse_resources(const json_t *object, struct resource_map *map, struct err *err)
{
        static const char *const names[] = { "vendor", "model", "group" };
        char by[16] = "vendor";
        struct key keys[] = { { "by", by, sizeof(by) } };
        int r;

        if (object == NULL)
                return 0;
        if (json_is_array(object)) /* `resources:` may be the list of rules itself */
                return parse_rules(object, map, err);
        r = read_strings(object, "resources", keys, ARRAY_SIZE(keys), " rules ", err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], by) == 0) {
                        map->by = (enum resource_by) i;
                        return parse_rules(json_object_get(object, "rules"), map, err);
                }
        return err_set(err, -EINVAL, "resources.by must be vendor, model or group, not '%s'", by);
}

static int check_absolute(const char *key, const char *path, struct err *err)
{
        return path[0] == '\0' || path[0] == '/'
                       ? 0
                       : err_set(err, -EINVAL, "plugin.%s must be an absolute path, not '%s'", key, path);
}

static int parse_cdi(const json_t *object, struct plugin_config *config, struct err *err)
{
        struct key keys[] = { { "directory", config->cdi_directory, sizeof(config->cdi_directory) } };
        const json_t *names = json_object_get(object, "names");
        int r;

        if (object == NULL)
                return 0;
        r = read_strings(object, "plugin.cdi", keys, ARRAY_SIZE(keys), " names ", err);
        if (r < 0)
                return r;
        if (names != NULL && !json_is_boolean(names))
                return err_set(err, -EINVAL, "plugin.cdi: 'names' must be true or false");
        config->cdi_names = json_is_true(names);
        if (config->cdi_names && config->cdi_directory[0] == '\0')
                return err_set(
                        err, -EINVAL,
                        "plugin.cdi: names without a spec file cannot be resolved; set 'directory', for "
                        "example to /var/run/cdi");
        return check_absolute("cdi.directory", config->cdi_directory, err);
}

static int parse_plugin(const json_t *object, struct plugin_config *config, struct err *err)
{
        char registration[16] = "kubelet";
        struct key keys[] = {
                { "registration", registration, sizeof(registration) },
                { "pluginsRegistry", config->plugins_registry, sizeof(config->plugins_registry) },
                { "deviceRoot", config->device_root, sizeof(config->device_root) },
                { "launchSocket", config->launch_socket_directory, sizeof(config->launch_socket_directory) },
        };
        int r;

        if (object == NULL)
                return 0;
        r = read_strings(object, "plugin", keys, ARRAY_SIZE(keys), " cdi ", err);
        if (r < 0)
                return r;
        if (strcmp(registration, "kubelet") != 0 && strcmp(registration, "watcher") != 0)
                return err_set(err, -EINVAL, "plugin.registration must be kubelet or watcher, not '%s'",
                               registration);
        config->watcher = strcmp(registration, "watcher") == 0;
        if ((r = check_absolute("pluginsRegistry", config->plugins_registry, err)) < 0 ||
            (r = check_absolute("deviceRoot", config->device_root, err)) < 0 ||
            (r = check_absolute("launchSocket", config->launch_socket_directory, err)) < 0)
                return r;
        return parse_cdi(json_object_get(object, "cdi"), config, err);
}

int plugin_config_parse(const json_t *root, struct plugin_config *ret, struct err *err)
{
        struct plugin_config config;
        int r;

        plugin_config_default(&config);
        r = parse_resources(json_object_get(root, "resources"), &config.resources, err);
        if (r < 0)
                return r;
        r = parse_plugin(json_object_get(root, "plugin"), &config, err);
        if (r < 0)
                return r;
        *ret = config;
        return 0;
}
