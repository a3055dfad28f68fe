/* Reads and writes networks, operator by operator. */
#include "planner/models/network_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/json/json_writer.h"

/* An operator as the file has it. */
struct file_operator {
        struct network_operation operation;
        size_t kernel_rank;
        json_t *inputs; /* names; NULL = not given */
};

struct file {
        char name[NETWORK_NAME_BYTES];
        uint64_t input[NETWORK_RANK_MAX];
        size_t input_rank;
        struct file_operator *operators;
        size_t operator_count;
};

#define OPERATOR(member) JSON_TABLE_AT(struct file_operator, member)
#define FILE_(member)    JSON_TABLE_AT(struct file, member)
#define UNREAD(name_)                                                                                        \
        {                                                                                                    \
                .name = (name_), .kind = JSON_TABLE_UNREAD                                                   \
        }
#define SIZES_MEND "the sizes of one sample"

static const struct json_table_row size = { .kind = JSON_TABLE_UINT,
                                            .size_bytes = sizeof(uint64_t),
                                            .min = 1 };

/* clang-format off */
static const struct json_table_row operator_rows[] = {
        { "name",   JSON_TABLE_CHARS,  OPERATOR(operation.name), .min = 1, .required = true, .mend = "a name of its own" },
        { "block",  JSON_TABLE_CHARS,  OPERATOR(operation.block) },
        { "type",   JSON_TABLE_CHOICE, OPERATOR(operation.type), .names = network_operator_names, .required = true },
        { "inputs", JSON_TABLE_VALUE,  OPERATOR(inputs) },
        { "output", JSON_TABLE_ARRAY,  OPERATOR(operation.output), .element = &size,
          .count = offsetof(struct file_operator, operation.rank), .mend = SIZES_MEND },
        { "inner",  JSON_TABLE_UINT,   OPERATOR(operation.inner), .min = 1, .max = NETWORK_ELEMENTS_MAX },
        { "kernel", JSON_TABLE_ARRAY,  OPERATOR(operation.kernel), .element = &size,
          .count = offsetof(struct file_operator, kernel_rank), .mend = SIZES_MEND },
        { "groups", JSON_TABLE_UINT,   OPERATOR(operation.groups), .min = 1, .max = NETWORK_ELEMENTS_MAX },
        { "bias",   JSON_TABLE_BOOL,   OPERATOR(operation.bias) },
        { "tied",   JSON_TABLE_BOOL,   OPERATOR(operation.tied) },
        { "weights", JSON_TABLE_UINT,  OPERATOR(operation.weights), .max = NETWORK_ELEMENTS_MAX },
        UNREAD("parameters"), UNREAD("multiply_adds"),
        { .name = NULL },
};

static const struct file_operator operator_initial = { .operation.groups = 1 };
static const struct json_table operator_table = { .rows = operator_rows, .size_bytes = sizeof(struct file_operator),
                                                  .strict = true, .initial = &operator_initial };

static const struct json_table_row file_rows[] = {
        { "name",      JSON_TABLE_CHARS, FILE_(name) },
        { "input",     JSON_TABLE_ARRAY, FILE_(input), .element = &size, .count = offsetof(struct file, input_rank),
          .mend = SIZES_MEND },
        { "operators", JSON_TABLE_LIST,  FILE_(operators), .table = &operator_table, .min = 1,
          .max = NETWORK_OPERATORS_MAX, .count = offsetof(struct file, operator_count), .required = true,
          .mend = "the operators in the order in which they run" },
        UNREAD("estimate"), UNREAD("parameters"), UNREAD("multiply_adds"), UNREAD("activations"), UNREAD("published"),
        { .name = NULL },
};
static const struct json_table file_table = { .rows = file_rows, .size_bytes = sizeof(struct file), .strict = true };
/* clang-format on */

/* Names of the operators so far, to find an input by: sorted by name, found by halving. */
struct names {
        uint32_t *sorted; /* indices */
        size_t count;
        const struct network *network;
};

static size_t name_place(const struct names *names, const char *name)
{
        size_t low = 0, high = names->count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(names->network->operators[names->sorted[middle]].name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static bool find_name(const struct names *names, const char *name, uint32_t *ret)
{
        size_t place = name_place(names, name);

        if (place == names->count || strcmp(names->network->operators[names->sorted[place]].name, name) != 0)
                return false;
        *ret = names->sorted[place];
        return true;
}

static void add_name(struct names *names, uint32_t index)
{
        size_t place = name_place(names, names->network->operators[index].name);

        memmove(&names->sorted[place + 1], &names->sorted[place],
                (names->count - place) * sizeof(*names->sorted));
        names->sorted[place] = index;
        names->count++;
}

static int decode_links(const struct json_field *at, const struct names *names, uint32_t *links,
                        size_t *ret_count, struct err *err)
{
        struct json_field list;
        int r = json_field_array(at, "inputs", NETWORK_INPUTS_MAX, &list, err);

        if (r == JSON_FIELD_ABSENT) {
                links[0] = names->network->count == 0 ? NETWORK_INPUT : (uint32_t) names->network->count - 1;
                *ret_count = 1;
                return 0;
        }
        if (r < 0)
                return r;
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field link = json_field_at(&list, i);
                const char *name = json_string_value(link.value);

                if (name == NULL)
                        return json_field_error(
                                &link, err,
                                "must be a name; give an operation that stands before, or \"input\"");
                if (find_name(names, name, &links[i]))
                        continue;
                if (strcmp(name, "input") != 0)
                        return json_field_error(
                                &link, err,
                                "'%.90s' does not stand before; give an operation that does, or "
                                "\"input\"",
                                name);
                links[i] = NETWORK_INPUT;
        }
        *ret_count = json_field_count(&list);
        return 0;
}

static int add_operators(const struct json_field *root, const struct file *file, struct network *network,
                         struct err *err)
{
        CLEANUP(free_p) uint32_t *links = calloc(NETWORK_INPUTS_MAX, sizeof(*links));
        CLEANUP(free_p) uint32_t *sorted = calloc(file->operator_count + 1, sizeof(*sorted));
        struct names names = { .network = network, .sorted = sorted };
        struct json_field list = json_field_get(root, "operators");
        size_t link_count = 0;

        if (links == NULL || sorted == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu operators", file->operator_count);
        for (size_t i = 0; i < file->operator_count; i++) {
                struct network_operation operation = file->operators[i].operation;
                struct json_field at = json_field_at(&list, i);
                uint32_t index;
                int r = decode_links(&at, &names, links, &link_count, err);

                if (r < 0)
                        return r;
                if (operation.type == OPERATOR_CONV && file->operators[i].kernel_rank == 1)
                        operation.kernel[1] = 1;
                index = network_add(network, &operation, links, link_count);
                if (network->failed)
                        return err_set(err, -ENOMEM, "no memory for %zu operators", i + 1);
                add_name(&names, index);
        }
        return 0;
}

int network_json_decode(const json_t *json, struct network *ret, struct err *err)
{
        struct json_field root = json_field_root(json);
        struct network network = { 0 };
        struct file file = { .operator_count = 0 };
        int r = json_table_decode(&file_table, json, &file, err);

        if (r < 0)
                return r;
        memcpy(network.name, file.name, sizeof(network.name));
        memcpy(network.input, file.input, sizeof(network.input));
        network.input_rank = file.input_rank;
        r = add_operators(&root, &file, &network, err);
        if (r == 0)
                r = network_check(&network, err);
        json_table_free(&file_table, &file);
        if (r < 0) {
                network_free(&network);
                return r;
        }
        *ret = network;
        return 0;
}

static void write_sizes(struct json_writer *json, const char *key, const uint64_t *sizes, size_t count)
{
        json_writer_open(json, key, '[');
        for (size_t i = 0; i < count; i++)
                json_writer_uint64(json, NULL, sizes[i]);
        json_writer_close(json, ']');
}

static void write_operator(struct json_writer *json, const struct network *network,
                           const struct network_operation *operation)
{
        json_writer_open(json, NULL, '{');
        json_writer_string(json, "name", operation->name);
        if (operation->block[0] != '\0')
                json_writer_string(json, "block", operation->block);
        json_writer_string(json, "type", network_operator_names[operation->type]);
        json_writer_open(json, "inputs", '[');
        for (size_t i = 0; i < operation->link_count; i++) {
                uint32_t link = network->links[operation->first_link + i];

                json_writer_string(json, NULL,
                                   link == NETWORK_INPUT ? "input" : network->operators[link].name);
        }
        json_writer_close(json, ']');
        write_sizes(json, "output", operation->output, operation->rank);
        if (operation->inner > 0)
                json_writer_uint64(json, "inner", operation->inner);
        if (operation->type == OPERATOR_CONV) {
                write_sizes(json, "kernel", operation->kernel, 2);
                json_writer_uint64(json, "groups", operation->groups);
        }
        if (operation->type == OPERATOR_CONV || operation->type == OPERATOR_LINEAR)
                json_writer_bool(json, "bias", operation->bias);
        if (operation->tied)
                json_writer_bool(json, "tied", true);
        if (operation->weights > 0)
                json_writer_uint64(json, "weights", operation->weights);
        json_writer_uint64(json, "parameters", network_operation_parameters(operation));
        json_writer_uint64(json, "multiply_adds", network_operation_multiply_adds(operation));
        json_writer_close(json, '}');
}

void network_json(const struct network *network, const struct network_model *model, struct text *out)
{
        struct network_totals totals = network_totals(network);
        struct json_writer json = { .text = out };

        json_writer_open(&json, NULL, '{');
        json_writer_string(&json, "name", network->name);
        json_writer_string(&json, "estimate",
                           "by formula from the shapes, for one sample; nothing was measured");
        json_writer_uint64(&json, "parameters", totals.parameters);
        json_writer_uint64(&json, "multiply_adds", totals.multiply_adds);
        json_writer_uint64(&json, "activations", totals.activations);
        if (model != NULL) {
                json_writer_open(&json, "published", '{');
                json_writer_uint64(&json, "parameters", model->published_parameters);
                if (model->published_multiply_adds > 0)
                        json_writer_double(&json, "multiply_adds", model->published_multiply_adds);
                json_writer_string(&json, "source", model->source);
                json_writer_close(&json, '}');
        }
        write_sizes(&json, "input", network->input, network->input_rank);
        json_writer_open(&json, "operators", '[');
        for (size_t i = 0; i < network->count; i++)
                write_operator(&json, network, &network->operators[i]);
        json_writer_close(&json, ']');
        json_writer_close(&json, '}');
}
