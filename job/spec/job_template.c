/* The fields of a template, a row each, and what a template may not take: the launcher's names, and chips. */
#include "job/spec/job_template.h"

#include <errno.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/quantity.h"
#include "base/text.h"

#define LETTERS       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS        "0123456789"
#define RESOURCES_MAX 16 /* that one vendor's chips are counted under */

static bool begins(const char *text, const char *with)
{
        return strncmp(text, with, strlen(with)) == 0;
}

static bool is_variable(const char *name)
{
        return strspn(name, LETTERS DIGITS "_") == strlen(name) && strchr(DIGITS, name[0]) == NULL &&
               !begins(name, "REMUDA_") && strcmp(name, "POD_IP") != 0;
}

static bool is_chip(const char *resource)
{
        const char *names[RESOURCES_MAX];

        for (size_t v = 0; vendors[v] != NULL; v++) {
                size_t count = vendor_resources(vendors[v], names, RESOURCES_MAX);

                for (size_t i = 0; i < count; i++)
                        if (strcmp(names[i], resource) == 0)
                                return true;
        }
        return begins(resource, "remuda.dev/");
}

/* That kube-scheduler lets containers share: a request may be less than the limit. */
static bool is_shared(const char *resource)
{
        return strcmp(resource, "cpu") == 0 || strcmp(resource, "memory") == 0 ||
               strcmp(resource, "ephemeral-storage") == 0;
}

static bool is_resource(const char *name)
{
        const char *slash = strchr(name, '/');

        if (is_shared(name))
                return true;
        return slash != NULL && slash != name && slash[1] != '\0' && strchr(slash + 1, '/') == NULL &&
               strspn(name, LETTERS DIGITS "-._/") == strlen(name) && !is_chip(name);
}

static bool is_quantity(const char *text)
{
        int64_t milli;

        return quantity_parse_milli(text, &milli) == 0 && milli >= 0;
}

static bool is_size(const char *text)
{
        int64_t bytes;

        return quantity_parse(text, &bytes) == 0 && bytes > 0;
}

/* "500m", or a whole number such as people write for CPUs. */
static int decode_quantity(const struct json_field *at, void *field, struct err *err)
{
        const char *text = json_string_value(at->value);
        char number[24];

        if (json_is_integer(at->value)) {
                (void) text_format(number, sizeof(number), "%lld", (long long) json_integer_value(at->value));
                text = number;
        }
        if (text == NULL || !is_quantity(text) || !text_copy(field, JOB_TEMPLATE_QUANTITY_BYTES, text))
                return json_field_error(at, err, "is not a quantity; such as 4, 500m or 16Gi");
        return 0;
}

const struct job_template_resource *job_template_find(const struct job_template_resource *list, size_t count,
                                                      const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(list[i].name, name) == 0)
                        return &list[i];
        return NULL;
}

static bool differs(const struct job_template_resource *a, const struct job_template_resource *b,
                    bool *ret_more)
{
        int64_t left = 0, right = 0;

        (void) quantity_parse_milli(a->quantity, &left); /* both were read so */
        if (b != NULL)
                (void) quantity_parse_milli(b->quantity, &right);
        *ret_more = left > right;
        return left != right;
}

/* The API server would refuse each pod for it, later. */
static int check_request(const struct json_field *requests, const struct job_template *template,
                         const struct job_template_resource *request, struct err *err)
{
        const struct job_template_resource *limit =
                job_template_find(template->limits, template->limit_count, request->name);
        struct json_field at = json_field_get(requests, request->name);
        bool more, other = differs(request, limit, &more);

        if (!is_shared(request->name) && other)
                return json_field_error(&at, err,
                                        "%s is not the limit, and nobody shares it; write it in limits alone",
                                        request->quantity);
        if (limit != NULL && more)
                return json_field_error(&at, err, "%s is more than the limit, %s; give at most that",
                                        request->quantity, limit->quantity);
        return 0;
}

static int check_limit(const struct json_field *limits, const struct job_template_resource *limit,
                       struct err *err)
{
        struct json_field at = json_field_get(limits, limit->name);
        int64_t milli = 0;

        (void) quantity_parse_milli(limit->quantity, &milli); /* it was read so */
        if (is_shared(limit->name) || milli % 1000 == 0)
                return 0;
        return json_field_error(&at, err, "%s is not a whole number; give one, such as 1", limit->quantity);
}

/* Of two of one name Kubernetes takes the last. */
static int check_variable(const struct json_field *env, const struct job_template *template, size_t index,
                          struct err *err)
{
        struct json_field at = json_field_at(env, index);

        for (size_t i = 0; i < index; i++)
                if (strcmp(template->environment[i].name, template->environment[index].name) == 0)
                        return json_field_error(&at, err, "'%s' is listed twice; remove one",
                                                template->environment[index].name);
        return 0;
}

static int check(const struct json_field *at, void *object, struct err *err)
{
        struct json_field env = json_field_get(at, "env"), resources = json_field_get(at, "resources"),
                          requests = json_field_get(&resources, "requests"),
                          limits = json_field_get(&resources, "limits");
        const struct job_template *template = object;
        int r = 0;

        for (size_t i = 0; i < template->request_count && r == 0; i++)
                r = check_request(&requests, template, &template->requests[i], err);
        for (size_t i = 0; i < template->limit_count && r == 0; i++)
                r = check_limit(&limits, &template->limits[i], err);
        for (size_t i = 0; i < template->variable_count && r == 0; i++)
                r = check_variable(&env, template, i, err);
        return r;
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct job_template, member)
static const struct json_table_rule
        variable_rule = { is_variable, "is not a variable that a template may set; letters, digits and '_', and neither POD_IP nor REMUDA_..., which are the launcher's" },
        resource_rule = { is_resource, "not a resource that a template may name; cpu, memory, ephemeral-storage or another device's such as rdma/hca; of chips `chips` says how many" },
        size_rule = { is_size, "is not a size; such as 8Gi" };
static const struct json_table_row variable_rows[] = {
        { "name",  JSON_TABLE_CHARS, JSON_TABLE_AT(struct job_template_variable, name), .min = 1, .rule = &variable_rule, .required = true, .mend = "name the variable", .help = "the name of a variable" },
        { "value", JSON_TABLE_CHARS, JSON_TABLE_AT(struct job_template_variable, value), .help = "its value, a text; write numbers in quotes" },
        { .name = NULL },
};
static const struct json_table variable_table = { .rows = variable_rows, .size_bytes = sizeof(struct job_template_variable), .strict = true };
static const struct json_table_row quantity_row = { "", JSON_TABLE_CUSTOM, JSON_TABLE_AT(struct job_template_resource, quantity), .decode = decode_quantity };
static const struct json_table resource_table = { .size_bytes = sizeof(struct job_template_resource), .key = offsetof(struct job_template_resource, name), .key_bytes = JOB_TEMPLATE_NAME_BYTES };
#define RESOURCES(member, number) AT(member), .count = offsetof(struct job_template, number), .max = JOB_TEMPLATE_RESOURCES_MAX, .table = &resource_table, .element = &quantity_row, .rule = &resource_rule
static const struct json_table_row resources_rows[] = {
        { "requests", JSON_TABLE_MAP, RESOURCES(requests, request_count), .help = "give quantities such as {cpu: 4, memory: 16Gi}, at most 16" },
        { "limits",   JSON_TABLE_MAP, RESOURCES(limits, limit_count),     .help = "give quantities such as {memory: 16Gi, rdma/hca: 1}, at most 16" },
        { .name = NULL },
};
static const struct json_table resources_table = { .rows = resources_rows, .size_bytes = sizeof(struct job_template), .strict = true };
static const struct json_table_row template_rows[] = {
        { "env",       JSON_TABLE_LIST,   AT(environment), .count = offsetof(struct job_template, variable_count), .max = JOB_TEMPLATE_VARIABLES_MAX, .table = &variable_table, .help = "give a list of at most 64 such as {name: A, value: b}" },
        { "resources", JSON_TABLE_OBJECT, .size_bytes = sizeof(struct job_template), .table = &resources_table, .help = "give {requests: {cpu: 4, memory: 16Gi}}" },
        { "shmSize",   JSON_TABLE_CHARS,  AT(shm_size), .min = 1, .rule = &size_rule, .help = "the size of /dev/shm, such as 8Gi" },
        { .name = NULL },
};
const struct json_table job_template_table = { .rows = template_rows, .size_bytes = sizeof(struct job_template), .strict = true, .check = check };
/* clang-format on */
