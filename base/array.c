/* The pointer is copied as bytes: it may be one to anything. */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 16

void *array_add(void *array, size_t *count, size_t *capacity, size_t element_bytes)
{
        size_t room = capacity == NULL ? *count + 1 : *capacity == 0 ? FIRST : *capacity * 2;
        char *first;

        memcpy(&first, array, sizeof(first));
        if (capacity == NULL || *count == *capacity) {
                first = room <= SIZE_MAX / element_bytes ? realloc(first, room * element_bytes) : NULL;
                if (first == NULL)
                        return NULL;
                memcpy(array, &first, sizeof(first));
                if (capacity != NULL)
                        *capacity = room;
        }
        return memset(first + (*count)++ * element_bytes, 0, element_bytes);
}
