/* Knows ONNX from JSON by the first byte. */
#include "planner/models/network_bytes.h"

#include <string.h>

bool network_bytes_are_onnx(const char *bytes, size_t size_bytes)
{
        return size_bytes > 0 && strchr(" \t\r\n{[", bytes[0]) == NULL;
}
