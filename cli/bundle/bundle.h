/* Bundle: what a support bundle holds: files with their names, what could not be had and why, and the page
 * that says both. All of it is masked when it is packed, after all of it was studied (base/secrets), so that
 * a password which one source gives away is masked in every other.
 *
 * In memory, bounded: BUNDLE_FILE_BYTES a file, BUNDLE_BYTES together; what has no room is missing, and that
 * is said. Names are made of components that are cleaned here: nothing that a cluster or a file says becomes
 * a path. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secrets/secrets.h"
#include "base/text.h"

#define BUNDLE_FILE_BYTES ((size_t) 8 << 20)
#define BUNDLE_BYTES      ((size_t) 64 << 20)
#define BUNDLE_SOURCE_USEC                                                                                   \
        UINT64_C(5000000) /* a source that does not answer is waited for so long at most                     \
                           */
#define BUNDLE_NAME_BYTES 256

struct bundle_file {
        char name[BUNDLE_NAME_BYTES];
        json_t *json; /* or bytes */
        char *bytes;
        size_t size_bytes;
        bool serials_masked; /* by who wrote it */
};

/* Zero-initialised; bundle_free(). */
struct bundle {
        struct bundle_file *files;
        size_t file_count, file_capacity;
        size_t size_bytes; /* of all that was added */
        json_t *missing;   /* [{"source", "why"}] */
        struct secrets secrets;
        bool failed; /* memory was short: nothing is packed */
};

void bundle_free(struct bundle *bundle);

/* bundle_add_bytes(), bundle_add_json() - @folder: "node", "logs"; @parts: of the name, from anywhere,
 * NULL-terminated, with '.' between. The one copies, the other takes over the reference (NULL: memory was
 * short). A name that there is already is missing; one that is too long for an archive is shortened, with a
 * hash of all of it. */
void bundle_add_bytes(struct bundle *bundle, const char *folder, const char *const *parts, const char *bytes,
                      size_t size_bytes);
void bundle_add_json(struct bundle *bundle, const char *folder, const char *const *parts, json_t *value);

/* bundle_serials_are_masked() - in the file that was added last, as `remuda machine record` does: once more
 * they would be others than elsewhere. */
void bundle_serials_are_masked(struct bundle *bundle);
#define BUNDLE_PARTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* bundle_miss() - a source gave nothing. */
void bundle_miss(struct bundle *bundle, const char *source, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* bundle_pack() - append the archive, gzipped, with its MANIFEST first. A file that no archive can hold is
 * missing. Return: 0; -ENOMEM. */
int bundle_pack(struct bundle *bundle, uint64_t now_usec, struct text *archive, struct err *err);
