/* Folder logs: what the ranks of a job of `remuda run` print, from the files of its folder, line by line, as
 * it comes: rank-N.out and rank-N.err. A world that is started anew begins its files anew, and is read from
 * there. Who reads asks again and again; a call reads what there is and waits for nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOLDER_LOGS_ALL        (-1)      /* of the ranks */
#define FOLDER_LOGS_LINE_BYTES (1 << 20) /* what a line has more is left out */

struct folder_logs;

/* folder_logs_new() - nothing is read yet.
 * @tail_bytes: of each file that is there already no more than its last so many are read, from the beginning
 *      of a line; 0 = all
 * @line: without its end; any bytes but 0
 * Return: NULL without memory. */
struct folder_logs *folder_logs_new(const char *folder, size_t rank_count, long rank, uint64_t tail_bytes,
                                    void (*line)(void *userdata, size_t rank, const char *line),
                                    void *userdata);

/* folder_logs_read() - what has come since, @max_bytes of each file at most; 0 = all. Return: may there be
 * more? */
bool folder_logs_read(struct folder_logs *logs, uint64_t max_bytes);

/* folder_logs_finish() - nothing more comes: what has no end of a line yet is a line, too. */
void folder_logs_finish(struct folder_logs *logs);
void folder_logs_free(struct folder_logs *logs); /* accepts NULL */
