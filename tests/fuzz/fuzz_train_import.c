/* Any bytes as an ONNX file to go on from: an error with a sentence, or all parameters of a small made-up
 * model. */
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "trainer/export/onnx_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct model_size shape = { .input = { 4, 4, 1 }, .classes = 2 };
        CLEANUP(free_p) float *parameters = NULL;
        struct err err = { 0 };
        struct model m;

        if (model_build("mlp", &shape, &m, &err) < 0)
                abort();
        parameters = malloc(m.parameter_count * sizeof(*parameters));
        if (parameters == NULL)
                abort();
        if (onnx_read_bytes(&m, data, size, parameters, &err) < 0 && err.msg[0] == '\0')
                abort();
        return 0;
}
