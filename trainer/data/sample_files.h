/* Sample files: where the bytes of each sample lie in a few large files, which stay open and are read as
 * samples are needed, so that data may be larger than memory: 16 bytes a sample are kept. Read by several
 * threads at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct sample_files_place {
        uint64_t offset;
        uint32_t size_bytes, file;
};

struct sample_files_file {
        int fd;
        uint64_t size_bytes;
        char *path; /* for messages */
};

struct sample_files {
        struct sample_files_file *files;
        struct sample_files_place *places;
        size_t file_count, count, room;
};

/* sample_files_add() - open another file. Return: its number, or a negative errno. */
int sample_files_add(struct sample_files *s, const char *path, struct err *err);

/* sample_files_note() - the next sample lies there. Return: 0; -EINVAL: not within the file; -ENOMEM. */
int sample_files_note(struct sample_files *s, int file, uint64_t offset, uint64_t size_bytes,
                      struct err *err);

/* sample_files_read() - the bytes of a sample. @to: room for its size_bytes. Return: 0, or -EIO with file and
 * offset: the file has changed. sample_files_wrong() - adds them to a message about what was read. */
int sample_files_read(const struct sample_files *s, size_t sample, void *to, struct err *err);
int sample_files_wrong(const struct sample_files *s, size_t sample, int result, struct err *err);

/* sample_files_announce() - a sample will be read soon: the kernel may begin with it. */
void sample_files_announce(const struct sample_files *s, size_t sample);

void sample_files_free(struct sample_files *s);

/* sample_files_list() - the names PREFIX*SUFFIX of a directory, in their order. @ret: allocated, with each
 * name. Return: how many. sample_files_list_free() - them. */
size_t sample_files_list(const char *directory, const char *prefix, const char *suffix, char ***ret);
void sample_files_list_free(char **names, size_t count);
