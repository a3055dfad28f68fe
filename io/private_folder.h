/* Private temporary folders: made, and removed with everything in them, links not followed. */
#pragma once

#include <stddef.h>

/* private_folder_name() - `path` becomes $TMPDIR/prefix and ten random digits, or /tmp/... where TMPDIR is
 * not given, relative, or longer than 40 bytes: sockets will lie in it, and their paths have room for 108.
 * Nothing is made yet. private_folder() - the same, and it is made. Returns 0 or a negative errno; then
 * `path` is empty. */
int private_folder_name(char *path, size_t size, const char *prefix);
int private_folder(char *path, size_t size, const char *prefix);

/* private_folder_remove() - only a folder whose own name begins with `prefix`; anything else is left alone.
 */
void private_folder_remove(const char *path, const char *prefix);
