/* Any bytes as a checkpoint: an error, or values that lie within the bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "trainer/checkpoint_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct checkpoint_file_facts facts = { 0 };
        const unsigned char *values = NULL;
        struct err err = { 0 };

        if (checkpoint_file_parse(data, size, &facts, &values, &err) < 0) {
                if (err.msg[0] == '\0')
                        abort();
                return 0;
        }
        if (values < data || facts.parameters * sizeof(float) > (size_t) (data + size - values))
                abort();
        return 0;
}
