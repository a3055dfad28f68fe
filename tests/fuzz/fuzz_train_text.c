/* Any bytes as text: tokens stay below the number of known ones, and never outnumber the bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "trainer/data/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        for (int bytes = 0; bytes < 2; bytes++) {
                struct err err = { 0 };
                uint32_t *tokens = NULL;
                size_t count = 0, known = 0;

                if (tokens_learn((const char *) data, size, bytes == 1, &tokens, &count, &known, NULL, &err) <
                    0)
                        abort();
                if (count > size)
                        abort();
                for (size_t i = 0; i < count; i++)
                        if (tokens[i] >= known)
                                abort();
                free(tokens);
        }
        return 0;
}
