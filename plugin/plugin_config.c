/* The tables of the plugin's two keys. */
#include "plugin/plugin_config.h"

#include <string.h>

#include "agent/vendor/vendor_selectors.h"
#include "base/json/json_table.h"
#include "base/text.h"

#define CLAIMS_FOLDER "/var/run/cdi"

bool plugin_config_offers_plugin(const struct plugin_config *config)
{
        return config->offer != PLUGIN_CONFIG_DRA && config->offer != PLUGIN_CONFIG_PLANNED;
}

const char *plugin_config_claims_folder(const struct plugin_config *config, const char *option)
{
        if (option != NULL)
                return option;
        return config->cdi_directory[0] != '\0' ? config->cdi_directory : CLAIMS_FOLDER;
}

void plugin_config_default(struct plugin_config *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->offer = PLUGIN_CONFIG_UNSAID;
        (void) text_copy(ret->plugins_registry, sizeof(ret->plugins_registry),
                         "/var/lib/kubelet/plugins_registry");
}

static int check_rule(const struct json_field *at, void *object, struct err *err)
{
        const struct resource_map_rule *rule = object;
        struct err why = { 0 };

        if (rule->resource[0] != '\0' && resource_map_check_name(rule->resource, &why) < 0)
                return json_field_error(at, err, "%s", why.msg);
        if (rule->resource[0] == '\0' && rule->replicas == 0)
                return json_field_error(at, err, "needs 'resource' or 'replicas'");
        return 0;
}

static int check_absolute(const struct json_field *in, const char *name, const char *path, struct err *err)
{
        struct json_field at = json_field_get(in, name);

        return path[0] == '\0' || path[0] == '/'
                       ? 0
                       : json_field_error(&at, err, "must be an absolute path, not '%s'", path);
}

static int check_cdi(const struct json_field *at, void *object, struct err *err)
{
        const struct plugin_config *config = object;

        if (config->cdi_names && config->cdi_directory[0] == '\0')
                return json_field_error(at, err,
                                        "names without a spec file cannot be resolved; set 'directory', for "
                                        "example to /var/run/cdi");
        return check_absolute(at, "directory", config->cdi_directory, err);
}

static int check_selectors(const struct json_field *in, const struct plugin_config *config, struct err *err)
{
        struct json_field at = json_field_get(in, "selectorsOf");
        size_t count = 0;

        for (size_t i = 0; i < config->selector_count; i++) {
                const struct vendor *vendor = vendor_selectors_of(config->selectors[i]);

                if (vendor == NULL)
                        return json_field_error(&at, err,
                                                "'%s' has no driver of claims whose attributes are known",
                                                config->selectors[i]);
                for (size_t k = 0; k < i; k++)
                        if (strcmp(config->selectors[k], config->selectors[i]) == 0)
                                return json_field_error(&at, err, "has '%s' twice", config->selectors[i]);
                count += vendor_selectors_count(vendor);
        }
        return count <= PLUGIN_CONFIG_SELECTORS_ATTRIBUTES_MAX
                       ? 0
                       : json_field_error(&at, err,
                                          "are %zu attributes: a device has place for %d beside our own",
                                          count, PLUGIN_CONFIG_SELECTORS_ATTRIBUTES_MAX);
}

static int check_plugin(const struct json_field *at, void *object, struct err *err)
{
        const struct plugin_config *config = object;
        int r = check_absolute(at, "pluginsRegistry", config->plugins_registry, err);

        if (r == 0)
                r = check_absolute(at, "deviceRoot", config->device_root, err);
        if (r == 0)
                r = check_selectors(at, config, err);
        return r < 0 ? r : check_absolute(at, "launchSocket", config->launch_socket_directory, err);
}

/* clang-format off */
const char *const plugin_config_offers[] = { "plugin", "both", "dra", "planned", NULL };
static const char *const registrations[] = { "kubelet", "watcher", NULL },
                  *const divisions[] = { "vendor", "model", "group", NULL }; /* enum resource_map_by */

#define AT(member) JSON_TABLE_AT(struct resource_map_rule, member)
static const struct json_table_row rule_rows[] = {
        { "group",           JSON_TABLE_CHARS,  AT(group) },
        { "vendor",          JSON_TABLE_CHARS,  AT(vendor) },
        { "model",           JSON_TABLE_CHARS,  AT(model) },
        { "resource",        JSON_TABLE_CHARS,  AT(resource) },
        { "replicas",        JSON_TABLE_UINT,   AT(replicas), .min = 1, .max = REPLICAS_MAX },
        { .name = NULL },
};
static const struct json_table rule_table = {
        .rows = rule_rows, .size_bytes = sizeof(struct resource_map_rule), .strict = true, .check = check_rule,
};
#undef AT

#define AT(member) JSON_TABLE_AT(struct plugin_config, member)
#define PART(rows_, check_) (const struct json_table){                                                       \
                .rows = (rows_), .size_bytes = sizeof(struct plugin_config), .strict = true, .check = (check_) }
#define WHOLE .size_bytes = sizeof(struct plugin_config)
static const struct json_table_row resource_rows[] = {
        { "by",              JSON_TABLE_CHOICE, AT(resources.by), .names = divisions },
        { "rules",           JSON_TABLE_ARRAY,  AT(resources.rules), .table = &rule_table,
          .count = offsetof(struct plugin_config, resources.rule_count) },
        { .name = NULL },
};
static const struct json_table_row cdi_rows[] = {
        { "names",           JSON_TABLE_BOOL,   AT(cdi_names) },
        { "directory",       JSON_TABLE_CHARS,  AT(cdi_directory) },
        { .name = NULL },
};
static const struct json_table cdi_table = PART(cdi_rows, check_cdi);
static const struct json_table_row vendor_row = { "", JSON_TABLE_CHARS, .size_bytes = PLUGIN_CONFIG_VENDOR_BYTES };
static const struct json_table_row plugin_rows[] = {
        { "registration",    JSON_TABLE_CHOICE, AT(watcher), .names = registrations },
        { "pluginsRegistry", JSON_TABLE_CHARS,  AT(plugins_registry) },
        { "deviceRoot",      JSON_TABLE_CHARS,  AT(device_root) },
        { "launchSocket",    JSON_TABLE_CHARS,  AT(launch_socket_directory) },
        { "cdi",             JSON_TABLE_OBJECT, WHOLE, .table = &cdi_table },
        { "selectorsOf",       JSON_TABLE_ARRAY,  AT(selectors), .element = &vendor_row,
          .count = offsetof(struct plugin_config, selector_count) },
        { .name = NULL },
};
static const struct json_table resource_table = PART(resource_rows, NULL), plugin_table = PART(plugin_rows, check_plugin);

/* `resources:` may be the list of rules itself. */
static const struct json_table_row list_rows[] = {
        { "offer",           JSON_TABLE_CHOICE, AT(offer), .names = plugin_config_offers },
        { "resources",       JSON_TABLE_ARRAY,  AT(resources.rules), .table = &rule_table,
          .count = offsetof(struct plugin_config, resources.rule_count) },
        { "plugin",          JSON_TABLE_OBJECT, WHOLE, .table = &plugin_table },
        { .name = NULL },
};
static const struct json_table_row root_rows[] = {
        { "offer",           JSON_TABLE_CHOICE, AT(offer), .names = plugin_config_offers },
        { "resources",       JSON_TABLE_OBJECT, WHOLE, .table = &resource_table },
        { "plugin",          JSON_TABLE_OBJECT, WHOLE, .table = &plugin_table },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table list_table = { .rows = list_rows, WHOLE },
                               root_table = { .rows = root_rows, WHOLE };

int plugin_config_parse(const json_t *root, struct plugin_config *ret, struct err *err)
{
        struct json_field at = json_field_root(root);
        struct plugin_config config;
        int r;

        plugin_config_default(&config);
        if (root != NULL && json_is_array(json_field_get(&at, "resources").value))
                r = json_table_decode(&list_table, root, &config, err);
        else
                r = root != NULL ? json_table_decode(&root_table, root, &config, err) : 0;
        if (r == 0)
                *ret = config;
        return r;
}
