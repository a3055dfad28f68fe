/* Network bytes: which form a file of a network has. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* network_bytes_are_onnx() - such a file begins with the key of a field, 0x08 as a rule; never with a blank
 * or a brace, as JSON does. */
bool network_bytes_are_onnx(const char *bytes, size_t size_bytes);
