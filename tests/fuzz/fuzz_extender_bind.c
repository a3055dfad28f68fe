/* Any bytes as ExtenderBindingArgs: four strings, or a sentence that says what is wrong. */
#include <stdint.h>

#include "scheduler-extender/wire/extender_bind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct extender_bind args;
        struct err err = { 0 };
        int r = extender_bind_decode((const char *) data, size, &args, &err);

        if (r == 0 &&
            (args.pod_name == NULL || args.pod_uid == NULL || args.node == NULL || args.node[0] == '\0'))
                __builtin_trap();
        if (r < 0 && err.msg[0] == '\0')
                __builtin_trap();
        extender_bind_free(&args);
        return 0;
}
