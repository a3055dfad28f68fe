/* Rank watch: the files in which a rank and its launcher say how it is: progress lines (REMUDA_PROGRESS,
 * written by the program) and its report (written by remuda-launch). Any content is survived: what cannot be
 * read says nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "job/launcher/message.h"
#include "job/world/world.h"

/* rank_watch_line() - one line as JSON: {"epoch", "step", "samples", "loss", "accuracy", "seconds",
 * "busy_seconds", "samples_per_s", "epoch_samples", "begins_seconds", "shares_step"}, all optional.
 * Return: false if it is no JSON object. */
bool rank_watch_line(const char *line, size_t size_bytes, struct progress_line *ret);

/* rank_watch_progress() - the whole lines after *offset, which moves on; each is told to @rank.
 * Return: how many there were. */
size_t rank_watch_progress(const char *path, off_t *offset, struct progress_rank *rank, uint64_t now_usec);

struct rank_watch_report {
        pid_t pid, launcher; /* the program, its remuda-launch; 0 = not known */
        bool ended, asked;   /* asked: to end, before it did */
        int exit_code;
        uint64_t ended_usec; /* CLOCK_MONOTONIC, which all of a host have */
};

/* rank_watch_report() - Return: false if there is none. */
bool rank_watch_report(const char *path, struct rank_watch_report *ret);

/* rank_watch_last_line() - the last words in a file (job/world/hint.h), of as much of its end as fits; "" =
 * there are none. */
void rank_watch_last_line(const char *path, char *line, size_t size);

/* rank_watch_process() - the state of a process as ps(1) writes it: 'T' is stopped by a signal, 'D' in the
 * kernel; 0 = not known. */
char rank_watch_process(pid_t pid);

/* rank_watch_tell() - what is seen of a rank (group_ranks.h), here or by a group elsewhere, as facts of the
 * world.
 * @lines: of its progress, that were taken in already */
void rank_watch_tell(struct world *world, const Rendezvous__RankSeen *said, uint32_t *lines,
                     uint64_t now_usec);
