/* The largest of each column is 127. */
#include "trainer/export/channels.h"

#include <math.h>

size_t channels_of(const struct model_node *n)
{
        return n->vocabulary > 0 ? n->weight_count / n->vocabulary : n->out.channels;
}

void channels_quantise(size_t rows, size_t cols, float *values, int8_t *bytes, float *scales)
{
        for (size_t c = 0; c < cols; c++) {
                float largest = 0;

                for (size_t r = 0; r < rows; r++)
                        largest = fmaxf(largest, fabsf(values[r * cols + c]));
                largest /= 127; /* of the least numbers there are that is none */
                scales[c] = largest > 0 ? largest : 1;
        }
        for (size_t i = 0; i < rows * cols; i++) {
                bytes[i] = (int8_t) lrintf(values[i] / scales[i % cols]);
                values[i] = (float) bytes[i] * scales[i % cols];
        }
}
