/* Reads and writes networks, operator by operator. */
#include "planner/models/network_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_writer.h"
#include "planner/shards/plan_field.h"

static const char *const root_fields[] = { "name",        "input",      "operators",
                                           "estimate",    "parameters", "multiply_adds",
                                           "activations", "published",  NULL };
static const char *const operator_fields[] = { "name",       "block",         "type",   "inputs", "output",
                                               "inner",      "kernel",        "groups", "bias",   "tied",
                                               "parameters", "multiply_adds", NULL };

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

static int decode_sizes(const struct json_field *in, const char *name, size_t max, uint64_t *ret,
                        size_t *ret_count, struct err *err)
{
        struct json_field list;
        int r = json_field_array(in, name, max, &list, err);

        if (r != 0)
                return r;
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field at = json_field_at(&list, i);

                if (!json_is_integer(at.value) || json_integer_value(at.value) < 1)
                        return json_field_error(
                                &at, err,
                                "must be a whole number of 1 or more; give the sizes of one sample");
                ret[i] = (uint64_t) json_integer_value(at.value);
        }
        *ret_count = json_field_count(&list);
        return 0;
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

static int decode_type(const struct json_field *at, enum network_operator *ret, struct err *err)
{
        const char *names[OPERATOR_TYPE_COUNT + 1] = { 0 };
        unsigned index = 0;
        int r;

        for (unsigned i = 0; i < OPERATOR_TYPE_COUNT; i++)
                names[i] = network_operator_name((enum network_operator) i);
        r = json_field_require(at, "type", err);
        if (r == 0)
                r = json_field_choice(at, "type", names, &index, err);
        if (r == 0)
                *ret = (enum network_operator) index;
        return r;
}

static int decode_operator(const struct json_field *at, struct network_operation *operation, struct err *err)
{
        const char *name = NULL;
        size_t kernel_rank = 0;
        int r = json_field_is_object(at, err);

        if (r == 0)
                r = json_field_only(at, operator_fields, err);
        if (r == 0)
                r = plan_field_string(at, "name", "a name of its own", &name, err);
        if (r == 0)
                r = json_field_text(at, "name", operation->name, sizeof(operation->name), err);
        if (r == 0)
                r = json_field_text(at, "block", operation->block, sizeof(operation->block), err);
        if (r >= 0)
                r = decode_type(at, &operation->type, err);
        if (r == 0)
                r = decode_sizes(at, "output", NETWORK_RANK_MAX, operation->output, &operation->rank, err);
        if (r >= 0)
                r = decode_sizes(at, "kernel", 2, operation->kernel, &kernel_rank, err);
        if (r >= 0)
                r = json_field_uint64(at, "inner", 1, NETWORK_ELEMENTS_MAX, &operation->inner, err);
        if (r >= 0)
                r = json_field_uint64(at, "groups", 1, NETWORK_ELEMENTS_MAX, &operation->groups, err);
        if (r >= 0)
                r = json_field_bool(at, "bias", &operation->bias, err);
        if (r >= 0)
                r = json_field_bool(at, "tied", &operation->tied, err);
        if (r >= 0)
                r = json_field_uint64(at, "weights", 0, NETWORK_ELEMENTS_MAX, &operation->weights, err);
        if (operation->groups == 0)
                operation->groups = 1;
        if (operation->type == OPERATOR_CONV && kernel_rank == 1)
                operation->kernel[1] = 1;
        return r < 0 ? r : 0;
}

static int decode_operators(const struct json_field *root, struct network *network, struct err *err)
{
        CLEANUP(free_p) uint32_t *links = calloc(NETWORK_INPUTS_MAX, sizeof(*links));
        CLEANUP(free_p) uint32_t *sorted = NULL;
        struct names names = { .network = network };
        struct json_field list;
        size_t link_count = 0;
        int r = plan_field_list(root, "operators", NETWORK_OPERATORS_MAX,
                                "the operators in the order in which they run", &list, err);

        if (r < 0)
                return r;
        names.sorted = sorted = calloc(json_field_count(&list) + 1, sizeof(*sorted));
        if (links == NULL || sorted == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu operators", json_field_count(&list));
        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field at = json_field_at(&list, i);
                struct network_operation operation = { 0 };
                uint32_t index;

                r = decode_operator(&at, &operation, err);
                if (r == 0)
                        r = decode_links(&at, &names, links, &link_count, err);
                if (r < 0)
                        return r;
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
        int r = json_field_is_object(&root, err);

        if (r == 0)
                r = json_field_only(&root, root_fields, err);
        if (r == 0)
                r = json_field_text(&root, "name", network.name, sizeof(network.name), err);
        if (r >= 0)
                r = decode_sizes(&root, "input", NETWORK_RANK_MAX, network.input, &network.input_rank, err);
        if (r >= 0)
                r = decode_operators(&root, &network, err);
        if (r == 0)
                r = network_check(&network, err);
        if (r < 0) {
                network_free(&network);
                return r;
        }
        *ret = network;
        return 0;
}

static void write_sizes(struct json_writer *json, const char *key, const uint64_t *sizes, size_t count)
{
        json_write_open(json, key, '[');
        for (size_t i = 0; i < count; i++)
                json_write_uint64(json, NULL, sizes[i]);
        json_write_close(json, ']');
}

static void write_operator(struct json_writer *json, const struct network *network,
                           const struct network_operation *operation)
{
        json_write_open(json, NULL, '{');
        json_write_string(json, "name", operation->name);
        if (operation->block[0] != '\0')
                json_write_string(json, "block", operation->block);
        json_write_string(json, "type", network_operator_name(operation->type));
        json_write_open(json, "inputs", '[');
        for (size_t i = 0; i < operation->link_count; i++) {
                uint32_t link = network->links[operation->first_link + i];

                json_write_string(json, NULL,
                                  link == NETWORK_INPUT ? "input" : network->operators[link].name);
        }
        json_write_close(json, ']');
        write_sizes(json, "output", operation->output, operation->rank);
        if (operation->inner > 0)
                json_write_uint64(json, "inner", operation->inner);
        if (operation->type == OPERATOR_CONV) {
                write_sizes(json, "kernel", operation->kernel, 2);
                json_write_uint64(json, "groups", operation->groups);
        }
        if (operation->type == OPERATOR_CONV || operation->type == OPERATOR_LINEAR)
                json_write_bool(json, "bias", operation->bias);
        if (operation->tied)
                json_write_bool(json, "tied", true);
        if (operation->weights > 0)
                json_write_uint64(json, "weights", operation->weights);
        json_write_uint64(json, "parameters", network_operation_parameters(operation));
        json_write_uint64(json, "multiply_adds", network_operation_multiply_adds(operation));
        json_write_close(json, '}');
}

void network_json(const struct network *network, const struct network_model *model, struct text *out)
{
        struct network_totals totals = network_totals(network);
        struct json_writer json = { .text = out };

        json_write_open(&json, NULL, '{');
        json_write_string(&json, "name", network->name);
        json_write_string(&json, "estimate",
                          "by formula from the shapes, for one sample; nothing was measured");
        json_write_uint64(&json, "parameters", totals.parameters);
        json_write_uint64(&json, "multiply_adds", totals.multiply_adds);
        json_write_uint64(&json, "activations", totals.activations);
        if (model != NULL) {
                json_write_open(&json, "published", '{');
                json_write_uint64(&json, "parameters", model->published_parameters);
                if (model->published_multiply_adds > 0)
                        json_write_double(&json, "multiply_adds", model->published_multiply_adds);
                json_write_string(&json, "source", model->source);
                json_write_close(&json, '}');
        }
        write_sizes(&json, "input", network->input, network->input_rank);
        json_write_open(&json, "operators", '[');
        for (size_t i = 0; i < network->count; i++)
                write_operator(&json, network, &network->operators[i]);
        json_write_close(&json, ']');
        json_write_close(&json, '}');
}
