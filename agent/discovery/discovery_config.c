#include "agent/discovery/discovery_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/quantity.h"
#include "base/text.h"

#define WORD "abcdefghijklmnopqrstuvwxyz0123456789-"

/* The first that fails ends the caller. */
#define READ(call)                                                                                           \
        do {                                                                                                 \
                int read_result_ = (call);                                                                   \
                if (read_result_ < 0)                                                                        \
                        return read_result_;                                                                 \
        } while (0)

static int wrong(const struct json_field *in, const char *name, struct err *err, const char *expected)
{
        struct json_field at = json_field_get(in, name);

        return json_field_error(&at, err, "must be %s", expected);
}

/* Exactly four hexadecimal digits, with or without 0x. */
static int parse_id(const char *text, size_t length, uint16_t *ret)
{
        char digits[5];
        uint64_t value;

        if (length == 6 && text_starts_with(text, "0x")) {
                text += 2;
                length -= 2;
        }
        if (length != 4)
                return -EINVAL;
        memcpy(digits, text, 4);
        digits[4] = '\0';
        if (text_parse_hex64(digits, &value) < 0 || value == 0)
                return -EINVAL;
        *ret = (uint16_t) value;
        return 0;
}

/* --- models --- */

static int read_ids(const struct json_field *at, struct discovery_model *model, struct err *err)
{
        char text[32] = "";
        const char *colon;

        READ(json_field_require(at, "pci", err));
        READ(json_field_text(at, "pci", text, sizeof(text), err));
        colon = strchr(text, ':');
        if (colon == NULL || parse_id(text, (size_t) (colon - text), &model->pci_vendor) < 0 ||
            parse_id(colon + 1, strlen(colon + 1), &model->pci_device) < 0)
                return wrong(at, "pci", err, "two PCI ids such as \"10de:2330\"");
        return 0;
}

static int read_memory(const struct json_field *at, struct discovery_model *model, struct err *err)
{
        char text[32] = "";
        int64_t bytes = 0;

        READ(json_field_text(at, "memory", text, sizeof(text), err));
        if (text[0] != '\0' && (quantity_parse(text, &bytes) < 0 || bytes < 0))
                return wrong(at, "memory", err, "a quantity such as 80Gi");
        model->memory_bytes = (uint64_t) bytes;
        return 0;
}

static int read_model(const struct json_field *at, struct discovery_model *model, struct err *err)
{
        static const char *const known[] = { "vendor",     "pci",        "name",       "memory",
                                             "tflopsBf16", "tflopsFp16", "tflopsFp32", NULL };

        READ(json_field_is_object(at, err));
        READ(json_field_only(at, known, err));
        READ(json_field_require(at, "vendor", err));
        READ(json_field_require(at, "name", err));
        READ(json_field_text(at, "vendor", model->vendor, sizeof(model->vendor), err));
        READ(json_field_text(at, "name", model->name, sizeof(model->name), err));
        READ(read_ids(at, model, err));
        READ(read_memory(at, model, err));
        READ(json_field_double(at, "tflopsBf16", 0, 1e6, &model->tflops_bf16, err));
        READ(json_field_double(at, "tflopsFp16", 0, 1e6, &model->tflops_fp16, err));
        READ(json_field_double(at, "tflopsFp32", 0, 1e6, &model->tflops_fp32, err));
        return model->name[0] == '\0' ? wrong(at, "name", err, "a name") : 0;
}

/* --- vendors --- */

static int read_classes(const struct json_field *at, struct discovery_vendor *vendor, struct err *err)
{
        struct json_field list;

        READ(json_field_array(at, "classes", ARRAY_SIZE(vendor->classes) - 1, &list, err));
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field class = json_field_at(&list, i);

                if (!json_is_string(class.value) ||
                    parse_id(json_string_value(class.value), json_string_length(class.value),
                             &vendor->classes[i]) < 0)
                        return json_field_error(&class, err, "must be a PCI class such as \"1200\"");
        }
        return 0;
}

static int check_vendor(const struct json_field *at, const struct discovery_vendor *vendor, struct err *err)
{
        if (vendor->name[0] == '\0' || strspn(vendor->name, WORD) != strlen(vendor->name))
                return wrong(at, "name", err, "a word of a-z, 0-9 and '-'");
        if (vendor->node[0] != '\0' &&
            (!text_starts_with(vendor->node, "/dev/") || strstr(vendor->node, "..") != NULL))
                return wrong(at, "node", err, "a path such as /dev/acme{n}");
        return 0;
}

static int read_vendor(const struct json_field *at, struct discovery_vendor *vendor, struct err *err)
{
        static const char *const known[] = { "name", "runtime", "resource", "pci", "classes", "node", NULL };
        char text[16] = "";

        READ(json_field_is_object(at, err));
        READ(json_field_only(at, known, err));
        READ(json_field_require(at, "name", err));
        READ(json_field_require(at, "pci", err));
        READ(json_field_text(at, "name", vendor->name, sizeof(vendor->name), err));
        READ(json_field_text(at, "runtime", vendor->runtime, sizeof(vendor->runtime), err));
        READ(json_field_text(at, "resource", vendor->resource, sizeof(vendor->resource), err));
        READ(json_field_text(at, "node", vendor->node, sizeof(vendor->node), err));
        READ(json_field_text(at, "pci", text, sizeof(text), err));
        if (parse_id(text, strlen(text), &vendor->pci_vendor) < 0)
                return wrong(at, "pci", err, "a PCI vendor id such as \"abcd\"");
        READ(read_classes(at, vendor, err));
        return check_vendor(at, vendor, err);
}

/* --- exclusions --- */

static int read_exclusion(const struct json_field *at, struct discovery_exclusion *rule, struct err *err)
{
        static const char *const known[] = { "id", "pci", "vendor", "model", "numa", NULL };
        int64_t numa = 0;
        int r;

        READ(json_field_is_object(at, err));
        READ(json_field_only(at, known, err));
        READ(json_field_text(at, "id", rule->id, sizeof(rule->id), err));
        READ(json_field_text(at, "pci", rule->pci, sizeof(rule->pci), err));
        READ(json_field_text(at, "vendor", rule->vendor, sizeof(rule->vendor), err));
        READ(json_field_text(at, "model", rule->model, sizeof(rule->model), err));
        r = json_field_int64(at, "numa", 0, 4095, &numa, err);
        rule->has_numa = r == 0;
        rule->numa = (int) numa;
        return r < 0 ? r : 0;
}

static int read_all(const json_t *object, struct discovery_options *options, struct err *err)
{
        static const char *const known[] = { "models", "vendors", NULL };
        struct json_field root = json_field_root(object), discovery, models, vendors, exclusions;

        READ(json_field_is_object(&root, err));
        READ(json_field_object(&root, "discovery", &discovery, err));
        if (discovery.value != NULL)
                READ(json_field_only(&discovery, known, err));
        READ(json_field_array(&discovery, "models", DISCOVERY_RULES_MAX, &models, err));
        READ(json_field_array(&discovery, "vendors", DISCOVERY_RULES_MAX, &vendors, err));
        READ(json_field_array(&root, "exclude", DISCOVERY_RULES_MAX, &exclusions, err));
        for (; options->model_count < json_field_count(&models); options->model_count++) {
                struct json_field at = json_field_at(&models, options->model_count);

                READ(read_model(&at, &options->models[options->model_count], err));
        }
        for (; options->vendor_count < json_field_count(&vendors); options->vendor_count++) {
                struct json_field at = json_field_at(&vendors, options->vendor_count);

                READ(read_vendor(&at, &options->vendors[options->vendor_count], err));
        }
        for (; options->exclusion_count < json_field_count(&exclusions); options->exclusion_count++) {
                struct json_field at = json_field_at(&exclusions, options->exclusion_count);

                READ(read_exclusion(&at, &options->exclusions[options->exclusion_count], err));
        }
        return 0;
}

int discovery_config_decode(const json_t *root, struct discovery_options *ret, struct err *err)
{
        CLEANUP(free_p) struct discovery_options *options = calloc(1, sizeof(*options));
        int r;

        if (options == NULL)
                return err_set(err, -ENOMEM, "no memory for the configuration");
        r = read_all(root, options, err);
        if (r == 0)
                *ret = *options;
        return r < 0 ? r : 0;
}
