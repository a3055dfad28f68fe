/* JSON prune: a text without the members that nobody reads. Most of what an API server tells of a node or a
 * pod is of no interest (who set which field, which images are there), and a tree of it costs ten times what
 * passing it over does.
 *
 * In memory only; strict as json_scan.h is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define JSON_PRUNE_PATHS_MAX 32

/* json_prune() - copy the text without the members named.
 * @paths: "status.images", ended by NULL, JSON_PRUNE_PATHS_MAX at most; an array on the way stands for each
 * object in it, names with escapes in the text are no names of a path
 * @under: the member of the whole that the paths begin in ("object" of a watch event); NULL = the whole
 * itself
 * @out:   room for size_bytes
 *
 * Return: the bytes written, all in all no more than there were; 0 for a text that is no JSON. */
size_t json_prune(const char *bytes, size_t size_bytes, const char *const *paths, const char *under,
                  char *out);
