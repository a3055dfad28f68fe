/* Any text as a preprocessing specification: an error with a sentence, or values in range. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/preprocess.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct preprocess_steps p;
        struct err err = { 0 };
        char *spec = malloc(size + 1);

        if (spec == NULL)
                return 0;
        memcpy(spec, data, size);
        spec[size] = '\0';
        if (preprocess_parse(spec, size % 2 == 0, &p, &err) < 0) {
                if (err.msg[0] == '\0')
                        abort();
        } else if (!(p.flip >= 0 && p.flip <= 1) || p.height > PREPROCESS_STEPS_EDGE_MAX || p.crop > 1024) {
                abort();
        }
        free(spec);
        return 0;
}
