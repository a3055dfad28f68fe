/* Parameters, multiply-adds and crossing elements by formula from the shapes. */
#include "planner/models/network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

const char *const network_operator_names[] = {
        [OPERATOR_CONV] = "conv",
        [OPERATOR_LINEAR] = "linear",
        [OPERATOR_MATMUL] = "matmul",
        [OPERATOR_EMBEDDING] = "embedding",
        [OPERATOR_BATCH_NORM] = "batch_norm",
        [OPERATOR_LAYER_NORM] = "layer_norm",
        [OPERATOR_RMS_NORM] = "rms_norm",
        [OPERATOR_ELEMENTWISE] = "elementwise",
        [OPERATOR_POOL] = "pool",
        [OPERATOR_JOIN] = "join",
        [OPERATOR_TYPE_COUNT] = NULL,
};

void network_free(struct network *network)
{
        free(network->operators);
        free(network->links);
        *network = (struct network){ 0 };
}

static bool grow(void **array, size_t *room, size_t need, size_t size, size_t max)
{
        size_t more = *room < 64 ? 64 : *room;
        void *grown;

        if (need > max)
                return false;
        while (more < need)
                more *= 2;
        if (more == *room)
                return true;
        grown = realloc(*array, more * size);
        if (grown == NULL)
                return false;
        *array = grown;
        *room = more;
        return true;
}

uint32_t network_add(struct network *network, const struct network_operation *operation,
                     const uint32_t *links, size_t link_count)
{
        void *operators = network->operators, *all_links = network->links;
        struct network_operation *own;

        if (network->failed || link_count > NETWORK_INPUTS_MAX ||
            !grow(&operators, &network->room, network->count + 1, sizeof(*own), NETWORK_OPERATORS_MAX)) {
                network->failed = true;
                return 0;
        }
        network->operators = operators;
        if (!grow(&all_links, &network->link_room, network->link_count + link_count, sizeof(*links),
                  16 * NETWORK_OPERATORS_MAX)) {
                network->failed = true;
                return 0;
        }
        network->links = all_links;
        own = &network->operators[network->count];
        *own = *operation;
        own->first_link = network->link_count;
        own->link_count = link_count;
        for (size_t i = 0; i < link_count; i++)
                network->links[network->link_count++] = links[i];
        return (uint32_t) network->count++;
}

uint32_t network_add_named(struct network *network, const char *block, const char *name,
                           const struct network_operation *operation, const uint32_t *links,
                           size_t link_count)
{
        struct network_operation own = *operation;

        (void) text_copy(own.block, sizeof(own.block), block);
        (void) text_format(own.name, sizeof(own.name), "%s.%s", block, name);
        return network_add(network, &own, links, link_count);
}

uint64_t network_operation_elements(const struct network_operation *operation)
{
        uint64_t elements = 1;

        for (size_t i = 0; i < operation->rank; i++)
                elements *= operation->output[i];
        return elements;
}

static uint64_t parameters_of_type(const struct network_operation *operation)
{
        uint64_t first = operation->output[0], last = operation->output[operation->rank - 1];

        if (operation->tied)
                return 0;
        switch (operation->type) {
        case OPERATOR_CONV:
                return operation->kernel[0] * operation->kernel[1] * (operation->inner / operation->groups) *
                               first +
                       (operation->bias ? first : 0);
        case OPERATOR_LINEAR:
                return operation->inner * last + (operation->bias ? last : 0);
        case OPERATOR_EMBEDDING:
                return operation->inner * last;
        case OPERATOR_BATCH_NORM:
                return 2 * first;
        case OPERATOR_LAYER_NORM:
                return 2 * last;
        case OPERATOR_RMS_NORM:
                return last;
        default:
                return 0;
        }
}

uint64_t network_operation_parameters(const struct network_operation *operation)
{
        return parameters_of_type(operation) + operation->weights;
}

uint64_t network_operation_multiply_adds(const struct network_operation *operation)
{
        switch (operation->type) {
        case OPERATOR_CONV:
                return operation->kernel[0] * operation->kernel[1] * (operation->inner / operation->groups) *
                       network_operation_elements(operation);
        case OPERATOR_LINEAR:
        case OPERATOR_MATMUL:
                return operation->inner * network_operation_elements(operation);
        default:
                return 0;
        }
}

struct network_totals network_totals(const struct network *network)
{
        struct network_totals totals = { 0 };

        for (size_t i = 0; i < network->count; i++) {
                totals.parameters += network_operation_parameters(&network->operators[i]);
                totals.multiply_adds += network_operation_multiply_adds(&network->operators[i]);
                totals.activations += network_operation_elements(&network->operators[i]);
        }
        return totals;
}

/* Is the product of the numbers below the limit? */
static bool product_below(const uint64_t *numbers, size_t count, uint64_t limit)
{
        uint64_t product = 1;

        for (size_t i = 0; i < count; i++)
                if (numbers[i] == 0 || __builtin_mul_overflow(product, numbers[i], &product) ||
                    product > limit)
                        return false;
        return true;
}

static int check_operator(const struct network *network, size_t index, struct err *err)
{
        const struct network_operation *operation = &network->operators[index];
        uint64_t work[] = { operation->inner == 0 ? 1 : operation->inner,
                            operation->kernel[0] == 0 ? 1 : operation->kernel[0],
                            operation->kernel[1] == 0 ? 1 : operation->kernel[1] };
        bool needs_inner = operation->type == OPERATOR_CONV || operation->type == OPERATOR_LINEAR ||
                           operation->type == OPERATOR_MATMUL || operation->type == OPERATOR_EMBEDDING;

        if (operation->rank == 0 || operation->rank > NETWORK_RANK_MAX ||
            !product_below(operation->output, operation->rank, NETWORK_ELEMENTS_MAX))
                return err_set(
                        err, -EINVAL,
                        "operators[%zu].output: must be 1 to %d sizes of 1 or more, below 2^48 together",
                        index, NETWORK_RANK_MAX);
        if (operation->weights > NETWORK_ELEMENTS_MAX)
                return err_set(err, -EINVAL, "operators[%zu].weights: more than 2^48", index);
        if (needs_inner && operation->inner == 0)
                return err_set(err, -EINVAL, "operators[%zu]: a %s needs what it sums over", index,
                               network_operator_names[operation->type]);
        if (!product_below(work, ARRAY_SIZE(work), (uint64_t) 1 << 60) ||
            !product_below((uint64_t[]){ work[0] * work[1] * work[2], network_operation_elements(operation) },
                           2, (uint64_t) 1 << 60))
                return err_set(err, -EINVAL, "operators[%zu]: has more than 2^60 multiply-adds", index);
        if (operation->type == OPERATOR_CONV &&
            (operation->groups == 0 || operation->inner % operation->groups != 0 ||
             operation->kernel[0] == 0 || operation->kernel[1] == 0))
                return err_set(
                        err, -EINVAL,
                        "operators[%zu]: groups must divide the input channels, the kernel be 1 or more",
                        index);
        for (size_t i = 0; i < operation->link_count; i++) {
                uint32_t link = network->links[operation->first_link + i];

                if (link != NETWORK_INPUT && link >= index)
                        return err_set(err, -EINVAL,
                                       "operators[%zu]: reads an operation that does not stand before it",
                                       index);
        }
        return 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp((*(const struct network_operation *const *) a)->name,
                      (*(const struct network_operation *const *) b)->name);
}

int network_check(const struct network *network, struct err *err)
{
        CLEANUP(free_p) const struct network_operation **sorted = calloc(network->count + 1, sizeof(*sorted));
        uint64_t total = 0;

        if (network->failed || sorted == NULL)
                return err_set(err, -ENOMEM, "no memory, or more than %zu operators", NETWORK_OPERATORS_MAX);
        if (network->count == 0)
                return err_set(err, -EINVAL, "operators: must not be empty; give at least one");
        for (size_t i = 0; i < network->count; i++) {
                int r = check_operator(network, i, err);

                if (r < 0)
                        return r;
                sorted[i] = &network->operators[i];
                if (__builtin_add_overflow(total, network_operation_multiply_adds(sorted[i]), &total) ||
                    total >> 62 != 0)
                        return err_set(err, -EINVAL, "operators: have more than 2^62 multiply-adds together");
        }
        qsort(sorted, network->count, sizeof(*sorted), by_name);
        for (size_t i = 1; i < network->count; i++)
                if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
                        return err_set(err, -EINVAL,
                                       "operators: two are called '%.90s'; give each its own name",
                                       sorted[i]->name);
        return 0;
}

int network_crossing(const struct network *network, uint64_t *ret, struct err *err)
{
        CLEANUP(free_p) size_t *last_reader = calloc(network->count + 1, sizeof(*last_reader));
        CLEANUP(free_p) uint64_t *ends = calloc(network->count + 1, sizeof(*ends));
        uint64_t live = 0;

        if (last_reader == NULL || ends == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu operators", network->count);
        for (size_t i = 0; i < network->count; i++) {
                const struct network_operation *operation = &network->operators[i];

                for (size_t j = 0; j < operation->link_count; j++)
                        if (network->links[operation->first_link + j] != NETWORK_INPUT)
                                last_reader[network->links[operation->first_link + j]] = i;
        }
        for (size_t i = 0; i < network->count; i++) {
                uint64_t own = network_operation_elements(&network->operators[i]);

                if (last_reader[i] > i) {
                        live += own;
                        ends[last_reader[i]] += own;
                }
                live -= ends[i];
                ret[i] = i + 1 == network->count ? own : live;
        }
        return 0;
}
