/* Secret name: does a name (of a variable, a field, an option, a header) say that its value is a secret?
 *
 * Rather one too many: PASSWORD, api-token, clientKeyData, X-Auth-Key, Cookie, and "token" within any other
 * word. Not so what ends with a word for where a secret lies (`tokenFile`, `secretName`): those values are
 * names. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SECRET_NAME_MAX_BYTES 256 /* of a longer one the end is looked at */

bool secret_name(const char *name, size_t size_bytes);

/* secret_name_bare() - is all of it one of the words that a secret stands behind without any sign between
 * ("Bearer S")? */
bool secret_name_bare(const char *name, size_t size_bytes);
