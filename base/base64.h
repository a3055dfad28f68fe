/* Base64 (RFC 4648, padding required, line breaks allowed): certificates inside a kubeconfig. Pure. */
#pragma once

#include <stddef.h>

/* base64_decode() - NUL-terminated bytes for the caller to free. NULL: not base64, or no memory. */
char *base64_decode(const char *text, size_t *ret_size_bytes);
