/* Any bytes as the metrics page of an agent: never a crash; of no device nothing is known, memory is known
 * whole or not at all, and two nodes of one page are as hot as one. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/node_figures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *page = malloc(size + 1);
        struct node_figures once, sum = NODE_FIGURES_NONE;

        if (page == NULL)
                abort();
        memcpy(page, data, size);
        page[size] = '\0';
        once = node_figures_read(page);
        if (once.busy_devices == 0 && !isnan(once.busy))
                abort();
        if (isnan(once.used) != isnan(once.memory))
                abort();
        node_figures_add(&sum, &once);
        node_figures_add(&sum, &once);
        if (sum.busy_devices != 2 * once.busy_devices || isnan(sum.used) != isnan(once.used) ||
            (!isnan(once.temperature) && sum.temperature != once.temperature))
                abort();
        free(page);
        return 0;
}
