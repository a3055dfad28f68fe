/* Tar: the members of an uncompressed archive, one after the other, without their contents (POSIX ustar, pax
 * and GNU long names). A header is believed as far as its checksum is right and its member ends within the
 * file. */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define TAR_NAME_BYTES  1024
#define TAR_EXTRA_BYTES 65536 /* of a pax header or a long name */

struct tar {
        int fd;
        uint64_t size_bytes; /* of the file */
        uint64_t at;         /* 0 at the beginning */
};

struct tar_member {
        char name[TAR_NAME_BYTES];
        uint64_t offset, size_bytes; /* of its contents */
};

/* tar_next() - the next plain file. Return: 1; 0 at the end; -EINVAL with the offset in the message; -EIO. */
int tar_next(struct tar *t, struct tar_member *ret, struct err *err);
