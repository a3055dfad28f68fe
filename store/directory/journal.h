/* Journal: a file of lines that several processes append to and none rewrites (bindings.jsonl).
 *
 * What is committed: every line that is whole. Appending takes the file's lock, first reads what others
 * appended (so that the caller decides on everything that is committed), writes, and syncs once for a whole
 * batch. A line that was cut short by a crash is closed by the next append and then reads as junk, unless
 * nothing but its newline was lost. If a write fails the file is cut back to where it was.
 *
 * Lines are JSON objects. Appending gives each two members more, at its end:
 *
 *         {"uid":"u", ... ,"sequence":7,"checksum":"1c291ca3"}
 *
 * the number of the line among those that have one, from 1, and the CRC-32 of all the bytes before the
 * checksum. The last number stands once more in a file beside it, ".NAME.last", written after the sync. A
 * checksum that is another's, a number that does not follow, or an end before that last one means that the
 * disk or somebody lost lines: what can be read still counts, and nothing is appended any more until the file
 * was restored, or it and the one beside it were removed. So whatever single byte, line or file is lost, no
 * line is forgotten in silence. Lines without the two, of older programs, are read as they are. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/text.h"

#define JOURNAL_LINE_MAX ((size_t) 1 << 20)

struct journal {
        int directory_fd; /* borrowed */
        char name[64];
        int fd; /* -1 while there is no file */
        dev_t device;
        ino_t inode;
        off_t read_bytes;  /* how far it was read */
        uint64_t sequence; /* of the last line that has one */
        char damage[200];  /* what is wrong with the file, "" = nothing */
        bool damage_said;  /* the reader's note that it was told */
        bool cut_short;    /* the damage is that its end is missing, which may come yet */
        size_t told_bytes; /* of the rest, told as a line that lacks its newline alone; 0 = it is none */
        struct text rest;  /* the beginning of a line whose end was not there yet */
};

/* One line, NUL-terminated, without its newline. */
typedef void (*journal_line)(void *userdata, const char *line, size_t size_bytes);

void journal_init(struct journal *j, int directory_fd, const char *name);
void journal_free(struct journal *j);

/* journal_close() - the next call opens it again and reads it from its beginning. */
void journal_close(struct journal *j);

/* journal_read() - the lines that were appended since the last call.
 * Return: 0; 1 when the file was replaced, removed or cut: forget every line so far, then the lines of this
 * very call are all there are (`forget` is called before them); negative errno. */
int journal_read(struct journal *j, void (*forget)(void *userdata), journal_line line, void *userdata,
                 struct err *err);

/* journal_lock() - create the file if need be, take its lock and read what others appended (as
 * journal_read(), 1 included). -EBADMSG and j->damage where lines are lost. Then decide, and journal_commit()
 * (lines, each ended by '\n'; may be empty) or journal_unlock(). */
int journal_lock(struct journal *j, void (*forget)(void *userdata), journal_line line, void *userdata,
                 struct err *err);
int journal_commit(struct journal *j, const char *lines, size_t size_bytes, struct err *err);
void journal_unlock(struct journal *j);
