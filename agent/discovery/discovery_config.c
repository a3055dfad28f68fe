/* The tables of what an operator may say of discovery, and how a PCI id is written. */
#include "agent/discovery/discovery_config.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_table.h"
#include "base/quantity.h"
#include "base/text.h"

#define WORD       "abcdefghijklmnopqrstuvwxyz0123456789-"
#define TFLOPS_MAX 1e6
#define NUMA_MAX   4095

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

/* "10de:2330", into a model's vendor and device. */
static int decode_ids(const struct json_field *at, void *field, struct err *err)
{
        struct discovery_options_model *model = field;
        const char *text = NULL, *colon;
        int r = json_field_as_string(at, &text, err);

        if (r < 0)
                return r;
        colon = strchr(text, ':');
        if (colon == NULL || parse_id(text, (size_t) (colon - text), &model->pci_vendor) < 0 ||
            parse_id(colon + 1, strlen(colon + 1), &model->pci_device) < 0)
                return json_field_error(at, err, "must be two PCI ids such as \"10de:2330\"");
        return 0;
}

static int decode_id(const struct json_field *at, void *field, struct err *err)
{
        const char *text = NULL;
        int r = json_field_as_string(at, &text, err);

        if (r == 0 && parse_id(text, strlen(text), field) < 0)
                r = json_field_error(at, err, "must be a PCI id such as \"1200\"");
        return r;
}

static int decode_memory(const struct json_field *at, void *field, struct err *err)
{
        const char *text = NULL;
        int64_t bytes = 0;
        int r = json_field_as_string(at, &text, err);

        if (r == 0 && text[0] != '\0' && (quantity_parse(text, &bytes) < 0 || bytes < 0))
                r = json_field_error(at, err, "must be a quantity such as 80Gi");
        if (r == 0)
                *(uint64_t *) field = (uint64_t) bytes;
        return r;
}

static int wrong(const struct json_field *in, const char *name, struct err *err, const char *expected)
{
        struct json_field at = json_field_get(in, name);

        return json_field_error(&at, err, "must be %s", expected);
}

static int check_model(const struct json_field *at, void *object, struct err *err)
{
        const struct discovery_options_model *model = object;

        return model->name[0] == '\0' ? wrong(at, "name", err, "a name") : 0;
}

static int check_vendor(const struct json_field *at, void *object, struct err *err)
{
        const struct discovery_options_vendor *vendor = object;

        if (vendor->name[0] == '\0' || strspn(vendor->name, WORD) != strlen(vendor->name))
                return wrong(at, "name", err, "a word of a-z, 0-9 and '-'");
        if (vendor->node[0] != '\0' &&
            (!text_starts_with(vendor->node, "/dev/") || strstr(vendor->node, "..") != NULL))
                return wrong(at, "node", err, "a path such as /dev/acme{n}");
        return 0;
}

static int check_exclusion(const struct json_field *at, void *object, struct err *err)
{
        (void) object;
        if (json_object_size(at->value) > 0)
                return 0;
        return json_field_error(
                at, err, "an empty rule would exclude everything; give id, pci, vendor, model or numa");
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct discovery_options_model, member)
static const struct json_table_row model_rows[] = {
        { "vendor",     JSON_TABLE_CHARS,  AT(vendor), .required = true },
        { "pci",        JSON_TABLE_CUSTOM, .required = true, .decode = decode_ids },
        { "name",       JSON_TABLE_CHARS,  AT(name), .required = true },
        { "memory",     JSON_TABLE_CUSTOM, AT(memory_bytes), .decode = decode_memory },
        { "tflopsBf16", JSON_TABLE_DOUBLE, AT(tflops_bf16), .most = TFLOPS_MAX },
        { "tflopsFp16", JSON_TABLE_DOUBLE, AT(tflops_fp16), .most = TFLOPS_MAX },
        { "tflopsFp32", JSON_TABLE_DOUBLE, AT(tflops_fp32), .most = TFLOPS_MAX },
        { .name = NULL },
};
#undef AT
static const struct json_table model_table = {
        .rows = model_rows, .size_bytes = sizeof(struct discovery_options_model), .strict = true, .check = check_model,
};

#define AT(member) JSON_TABLE_AT(struct discovery_options_vendor, member)
static const struct json_table_row class_row = {
        "", JSON_TABLE_CUSTOM, .size_bytes = sizeof(uint16_t), .decode = decode_id,
};
static const struct json_table_row vendor_rows[] = {
        { "name",       JSON_TABLE_CHARS,  AT(name), .required = true },
        { "runtime",    JSON_TABLE_CHARS,  AT(runtime) },
        { "resource",   JSON_TABLE_CHARS,  AT(resource) },
        { "pci",        JSON_TABLE_CUSTOM, AT(pci_vendor), .required = true, .decode = decode_id },
        { "classes",    JSON_TABLE_ARRAY,  AT(classes), .element = &class_row,
          .count = offsetof(struct discovery_options_vendor, class_count), .max = 7 },
        { "node",       JSON_TABLE_CHARS,  AT(node) },
        { .name = NULL },
};
#undef AT
static const struct json_table vendor_table = {
        .rows = vendor_rows, .size_bytes = sizeof(struct discovery_options_vendor), .strict = true, .check = check_vendor,
};

#define AT(member) JSON_TABLE_AT(struct discovery_options_exclusion, member)
static const struct discovery_options_exclusion any = { .numa = -1 };
static const struct json_table_row exclusion_rows[] = {
        { "id",         JSON_TABLE_CHARS,  AT(id) },
        { "pci",        JSON_TABLE_CHARS,  AT(pci) },
        { "vendor",     JSON_TABLE_CHARS,  AT(vendor) },
        { "model",      JSON_TABLE_CHARS,  AT(model) },
        { "numa",       JSON_TABLE_INT,    AT(numa), .max = NUMA_MAX },
        { .name = NULL },
};
#undef AT
static const struct json_table exclusion_table = {
        .rows = exclusion_rows, .size_bytes = sizeof(struct discovery_options_exclusion), .strict = true,
        .initial = &any, .check = check_exclusion,
};

#define AT(member)    JSON_TABLE_AT(struct discovery_options, member), .max = DISCOVERY_RULES_MAX
#define COUNT(member) .count = offsetof(struct discovery_options, member)
static const struct json_table_row discovery_rows[] = {
        { "models",     JSON_TABLE_LIST,   AT(models), .table = &model_table, COUNT(model_count) },
        { "vendors",    JSON_TABLE_LIST,   AT(vendors), .table = &vendor_table, COUNT(vendor_count) },
        { .name = NULL },
};
static const struct json_table discovery_table = {
        .rows = discovery_rows, .size_bytes = sizeof(struct discovery_options), .strict = true,
};
static const struct json_table_row root_rows[] = {
        { "discovery",  JSON_TABLE_OBJECT, .size_bytes = sizeof(struct discovery_options), .table = &discovery_table },
        { "exclude",    JSON_TABLE_LIST,   AT(exclusions), .table = &exclusion_table, COUNT(exclusion_count) },
        { .name = NULL },
};
#undef AT
/* clang-format on */
static const struct json_table root_table = { .rows = root_rows,
                                              .size_bytes = sizeof(struct discovery_options) };

int discovery_config_decode(const json_t *root, struct discovery_options *ret, struct err *err)
{
        *ret = (struct discovery_options){ 0 };
        return json_table_decode(&root_table, root, ret, err);
}

void discovery_config_free(struct discovery_options *options)
{
        json_table_free(&root_table, options);
}
