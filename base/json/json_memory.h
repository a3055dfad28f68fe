/* JSON memory: what jansson frees is kept by its size, for the next document.
 *
 * An API server's objects come one after the other, each of some hundred small blocks that are there for as
 * long as it is read. malloc() has a few of each size at hand; the others go back to its heap, where they are
 * merged, and are cut from it again: a tenth of what it takes to read 5,000 nodes and their pods. Here up to
 * JSON_MEMORY_BYTES of a size wait, 4 MiB if all do. They are blocks of malloc()'s all the same: a string
 * of json_dumps() is freed as ever. For programs of one thread. */
#pragma once

#define JSON_MEMORY_BYTES 65536

/* json_memory_keep() - from now on, for the whole program. */
void json_memory_keep(void);

/* json_memory_release() - and as it was before; blocks that wait are freed. */
void json_memory_release(void);
