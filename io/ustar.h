/* Ustar: an archive of regular files as POSIX.1-1988 has it, which every tar reads; built in memory.
 *
 * Names are relative, of letters, digits and "-_.+=@," between single '/', no component "." or "..", at most
 * 255 bytes, cut at a '/' into prefix (155) and name (100). Files belong to root, mode 0600. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

#define USTAR_BLOCK_BYTES 512
#define USTAR_LAST_BYTES  100 /* that the last component has at most */

/* ustar_name() - a component of a name from any text: every other byte becomes '_', and so does a leading
 * '.'; cut at what there is room for, "_" from an empty one. */
void ustar_name(const char *text, char *ret, size_t ret_bytes);

/* ustar_add() - append a file. @time_sec: since 1970.
 * Return: 0; -EINVAL (no such name), -ENAMETOOLONG, -EFBIG (8 GiB and more), -ENOMEM. */
int ustar_add(struct text *archive, const char *name, const void *bytes, size_t size_bytes, uint64_t time_sec,
              struct err *err);

/* ustar_end() - append the two blocks of zeros that end it. Return: 0 or -ENOMEM. */
int ustar_end(struct text *archive, struct err *err);
