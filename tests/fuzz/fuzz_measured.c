/* Any JSON as a file of measurements: never a crash, and what is accepted is what an inventory may carry. */
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/measured_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *value = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL);
        struct measured_json_list list;
        struct err err = { 0 };

        if (value == NULL)
                return 0;
        if (measured_json_decode(value, &list, &err) == 0) {
                for (size_t i = 0; i < list.count; i++)
                        if (!(list.groups[i].measured_gflops > 0) ||
                            list.groups[i].measured_kernel[0] == '\0')
                                __builtin_trap();
                measured_json_free(&list);
        } else if (err.msg[0] == '\0') {
                __builtin_trap(); /* a refusal says why */
        }
        json_decref(value);
        return 0;
}
