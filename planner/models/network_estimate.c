/* Times and memory of blocks of operators, from their work and a device's rate. */
#include "planner/models/network_estimate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct network_estimate_assumptions network_estimate_default(void)
{
        return (struct network_estimate_assumptions){ .efficiency = 0.4,
                                                      .training = true,
                                                      .samples = 1,
                                                      .bytes_per_element = 2,
                                                      .bytes_per_parameter = 16 };
}

double network_estimate_ms(uint64_t multiply_adds, const struct network_estimate_device *device,
                           const struct network_estimate_assumptions *assumptions)
{
        double flop = 2.0 * (double) multiply_adds * (double) assumptions->samples *
                      (assumptions->training ? 3 : 1);

        return flop / (device->tflops * assumptions->efficiency * 1e9);
}

uint64_t network_estimate_memory_bytes(const struct network_estimate_block *block,
                                       const struct network_estimate_assumptions *assumptions)
{
        return block->parameters *
               (assumptions->training ? assumptions->bytes_per_parameter : assumptions->bytes_per_element);
}

static const char *block_name(const struct network_operation *operation)
{
        return operation->block[0] != '\0' ? operation->block : operation->name;
}

int network_estimate_blocks(const struct network *network, struct network_estimate_block **ret,
                            size_t *ret_count, struct err *err)
{
        CLEANUP(free_p) uint64_t *crossing = calloc(network->count + 1, sizeof(*crossing));
        struct network_estimate_block *blocks = calloc(network->count + 1, sizeof(*blocks));
        size_t count = 0;

        if (blocks == NULL || crossing == NULL || network_crossing(network, crossing, err) < 0) {
                free(blocks);
                return err_set(err, -ENOMEM, "no memory for %zu operators", network->count);
        }
        for (size_t i = 0; i < network->count; i++) {
                const struct network_operation *operation = &network->operators[i];
                struct network_estimate_block *block = &blocks[count > 0 ? count - 1 : 0];

                if (count == 0 || strcmp(block->name, block_name(operation)) != 0) {
                        block = &blocks[count++];
                        block->name = block_name(operation);
                        block->first = i;
                }
                block->last = i;
                block->parameters += network_operation_parameters(operation);
                block->multiply_adds += network_operation_multiply_adds(operation);
                block->activations += network_operation_elements(operation);
                block->crossing = crossing[i];
        }
        *ret = blocks;
        *ret_count = count;
        return 0;
}
