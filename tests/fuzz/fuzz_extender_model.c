/* Any bytes as the choices of the model (tests/model/model.h): filter, bind, relabel, delete and faults in
 * any order.
 */
#include <stdint.h>

#include "tests/model/model.h"

#define STEPS_MAX 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct chance chance = { .bytes = data, .left = size };

        if (size > 0 && model_run(&chance, STEPS_MAX) != NULL)
                __builtin_trap();
        return 0;
}
